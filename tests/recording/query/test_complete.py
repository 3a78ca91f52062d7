"""Completion of filter expressions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from a2a_proxy.recording.query.complete import suggest_completions
from a2a_proxy.recording.query.errors import QueryError
from a2a_proxy.recording.query.fields import FIELDS
from a2a_proxy.recording.query.parser import parse_expression
from a2a_proxy.recording.read.reader import Recording
from support_query import rich


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recording]:
    with Recording(rich(tmp_path_factory.mktemp("complete") / "r.a2a.db")) as opened:
        yield opened


@pytest.mark.parametrize(
    ("text", "start", "first"),
    [
        ("", 0, ["op:", "binding:", "dir:"]),
        ("st", 0, ["state:", "status:"]),
        ("err -ta", 5, ["task:"]),
        ("(ga", 1, ["gap"]),
        ("task:x st", 7, ["state:", "status:"]),
        ("req.pa", 4, ["part:"]),
        ("req.op", 4, []),
        ("http.x", 0, []),
        ("zzz", 0, []),
        ("state:in", 6, ["input-required"]),
        ("-state:TASK", 7, []),
        ("state:INPUT_R", 6, ["input-required"]),
        ("zzz:", 4, []),
        ("dur:", 4, []),
        ('op:"Sub', 3, ["SubscribeToTask"]),
        ("a) b:c (sev:w", 12, ["warning"]),
    ],
)
def test_words_are_completed_without_a_recording(text: str, start: int, first: list[str]) -> None:
    """Without a recording: fields and closed lists, in the place of what is being typed."""
    found = suggest_completions(text, len(text))
    assert (found.start, found.end) == (start, len(text))
    assert [each.text for each in found.items][: max(3, len(first))] == first or len(
        found.items
    ) > 3
    assert [each.text for each in found.items][: len(first)] == first


def test_completion_keeps_the_text_after_the_cursor() -> None:
    """What follows it is left alone."""
    found = suggest_completions("sta task:b2", 3)
    assert (found.start, found.end, [each.text for each in found.items]) == (
        0,
        3,
        ["state:", "status:"],
    )


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("op:", [("SendStreamingMessage", 12)]),
        ("binding:", [("jsonrpc", 14), ("grpc", 2)]),
        ("state:", [("submitted", 12), ("working", 12), ("completed", 12)]),
        ("dir:to-a", [("to-agent", 22)]),
        ("kind:art", [("artifact", 12)]),
        ("task:12", [("1234", 2), ("12", 2)]),
        ("task:weird", [('"weird \\"é\\"\\n"', 2)]),
        ("ctx:ctx-2", [("ctx-2", 2)]),
        ("agent:", [("agent:8000", 16)]),
        ("rec:", [("1", 8), ("2", 8)]),
        ("ver:1.1", [("1.1", 12)]),
        ("rule:GEN-00", [("A2A-GEN-001", 10)]),
        ("sev:", None),
        ("status:", None),
        ("code:", None),
        ("note:", None),
        ("peer:", None),
    ],
)
def test_values_are_completed_with_their_counts(
    recording: Recording, text: str, first: list[tuple[str, int]] | None
) -> None:
    """From the recording, the frequent ones first; each can be typed as it is, and finds something
    where it counts."""
    found = suggest_completions(text, len(text), recording.db)
    items = [(each.text, each.count) for each in found.items]
    assert first is None or sorted(items[: len(first)]) == sorted(first)
    assert items == sorted(items, key=lambda each: -each[1])
    for value, count in items:
        node = parse_expression(text[: found.start] + value)
        assert bool(count) <= bool(
            list(recording.find_frames(node)) or list(recording.find_exchanges(node))
        ), value


def test_every_closed_list_is_offered() -> None:
    """All words of a field, and each of them is one."""
    for field in FIELDS.values():
        offered = [
            each.text for each in suggest_completions(f"{field.name}:", len(field.name) + 1).items
        ]
        assert set(offered) <= set(field.kind.words)
        assert bool(offered) == bool(field.kind.words)
        for word in offered:
            parse_expression(f"{field.name}:{word}")


def test_invalid_expressions_are_completed() -> None:
    """An open quote, a parenthesis too many: completion never fails."""
    for text in ('task:"a b', ")) st", '"', "~~", "$.a", "\\u", "-", "req.", "a:b:c", "~"):
        found = suggest_completions(text, len(text))
        assert 0 <= found.start <= found.end == len(text)
        with pytest.raises(QueryError):
            parse_expression("(" + text)
