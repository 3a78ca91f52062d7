"""Pairs of identifiers, and the values of one side renamed for the other."""

from __future__ import annotations

import pytest

from a2a_proto import from_dict, to_dict
from a2a_proxy.recording.difference.fields import MAX_DEPTH, CanonicalFields
from a2a_proxy.recording.difference.ids import LEFT, RIGHT, PairedIds, iter_identifiers

TASK, OTHER = "task-of-the-left", "task-of-the-right"


@pytest.fixture
def ids() -> PairedIds:
    """One task, with a long id, and one context, with a short id."""
    made = PairedIds()
    assert made.pair_ids("task", TASK, OTHER)
    assert made.pair_ids("context", "c1", "c2")
    return made


def test_an_identifier_has_one_partner(ids: PairedIds) -> None:
    assert ids.pair_ids("task", TASK, OTHER)
    assert not ids.pair_ids("task", TASK, "another")
    assert not ids.pair_ids("task", "another", OTHER)
    assert ids.pair_ids("message", TASK, "of-another-kind")
    assert ids.find_partner(LEFT, "task", TASK) == OTHER
    assert ids.find_partner(RIGHT, "task", OTHER) == TASK
    assert ids.find_partner(RIGHT, "task", TASK) is None


def test_both_sides_of_a_pair_are_neutralized_alike(ids: PairedIds) -> None:
    assert ids.neutralize_text(LEFT, f"see {TASK}!") == ids.neutralize_text(RIGHT, f"see {OTHER}!")
    assert ids.neutralize_text(LEFT, f"see {TASK}!") != ids.neutralize_text(LEFT, f"see {OTHER}!")
    assert ids.neutralize_id(LEFT, "context", "c1") == ids.neutralize_id(RIGHT, "context", "c2")
    assert (
        ids.neutralize_id(LEFT, "task", "unknown")
        == ids.neutralize_id(RIGHT, "task", "another")
        == ""
    )


def test_short_identifiers_are_words_of_a_text(ids: PairedIds) -> None:
    assert ids.rename_text(f"c1 {TASK}") == f"c1 {OTHER}"


def test_json_and_protobuf_are_renamed_alike(ids: PairedIds) -> None:
    """By kind in members of A2A, as words in all other texts."""
    part = {"text": f"on {TASK}", "metadata": {"contextId": "c1", "of": [TASK]}}
    message = {
        "messageId": "c1",
        "contextId": "c1",
        "taskId": TASK,
        "referenceTaskIds": [TASK, "new"],
        "parts": [part],
    }
    renamed = {
        "messageId": "c1",
        "contextId": "c2",
        "taskId": OTHER,
        "referenceTaskIds": [OTHER, "new"],
        "parts": [{"text": f"on {OTHER}", "metadata": {"contextId": "c1", "of": [OTHER]}}],
    }
    assert ids.rename_json({"message": message}) == {"message": renamed}
    request = from_dict("1.0", "SendMessageRequest", {"message": message})
    ids.rename_protobuf(request)
    assert to_dict(request)["message"] == renamed


def test_values_nested_too_deeply_are_not_searched(ids: PairedIds) -> None:
    value: object = {"taskId": TASK}
    for _ in range(MAX_DEPTH):
        value = [value]
    assert list(iter_identifiers([value], CanonicalFields())) == []
    assert [found[1:] for found in iter_identifiers(value[0], CanonicalFields())] == [
        ("task", TASK)
    ]  # type: ignore[index]
    assert ids.rename_json([value]) == [value]
    assert ids.rename_json(value[0]) != value[0]  # type: ignore[index]
