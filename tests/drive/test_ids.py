"""Identifiers of the recording mapped to those of the live agent."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_proto import from_dict, to_dict
from a2a_proxy.drive.ids import DriveIds

MESSAGE = "6661d4c8-8eb4-4b90-817e-79bd1ae79c94"
TASK, NOW = "59ab0f2c-876b-438c-a238-202ad1b184bb", "11111111-2222-4333-8444-555555555555"


@pytest.fixture
def ids() -> DriveIds:
    """Has seen a recorded send and its answer."""
    made = DriveIds(make_id=lambda: "fresh-id")
    made.add_request({"message": {"messageId": MESSAGE, "contextId": "trip"}})
    made.add_answer({"task": {"id": TASK, "contextId": "trip"}})
    return made


def test_agent_ids_are_unknown_until_the_live_agent_has_answered(ids: DriveIds) -> None:
    asked = {"id": TASK}
    assert ids.unknown_ids(asked) == [TASK]
    ids.learn_answer(
        {"task": {"id": TASK, "contextId": "trip"}}, {"task": {"id": NOW, "contextId": "trip"}}
    )
    assert ids.unknown_ids(asked) == []
    assert ids.rename_json(asked) == {"id": NOW}


def test_ids_of_the_client_are_fresh_where_they_are_uuids(ids: DriveIds) -> None:
    """So an agent that remembers messages can be driven twice. Other ids are sent unchanged and
    never awaited."""
    sent = ids.rename_json({"message": {"messageId": MESSAGE, "contextId": "trip"}})
    assert sent == {"message": {"messageId": "fresh-id", "contextId": "trip"}}
    assert ids.unknown_ids(sent) == []


@pytest.mark.parametrize(
    ("live", "kind"),
    [
        ({"statusUpdate": {"taskId": NOW, "contextId": "c"}}, "another kind of event"),
        ({"task": {"contextId": "c", "id": NOW}}, "the same"),
    ],
)
def test_ids_are_learned_from_any_event(ids: DriveIds, live: dict[str, Any], kind: str) -> None:
    ids.learn_answer({"task": {"id": TASK, "contextId": "trip"}}, live)
    assert ids.rename_text(TASK) == NOW, kind


def test_ids_inside_texts_and_paths_are_replaced(ids: DriveIds) -> None:
    ids.learn_answer({"task": {"id": TASK}}, {"task": {"id": NOW}})
    assert ids.rename_text(f"open:{TASK}, please") == f"open:{NOW}, please"
    assert ids.rename_text(f"/v1/tasks/{TASK}:cancel?x=1") == f"/v1/tasks/{NOW}:cancel?x=1"


def test_members_named_id_in_data_parts_are_ignored(ids: DriveIds) -> None:
    """A member `id` in data is not a task's."""
    before, after = (
        {"message": {"parts": [{"data": {"id": row}}]}} for row in ("row-0001", "row-9")
    )
    ids.learn_answer(before, after)
    assert ids.rename_text("row-0001") == "row-0001"
    ids.learn_answer({"task": {"id": "t-1"}}, {"task": {"id": "t-2"}})
    assert ids.rename_json({"id": "t-1", "metadata": {"id": "t-1"}}) == {
        "id": "t-2",
        "metadata": {"id": "t-1"},
    }


def test_ids_are_replaced_in_protobuf(ids: DriveIds) -> None:
    """Named fields, lists, texts and the strings of a Struct."""
    ids.learn_answer({"task": {"id": TASK}}, {"task": {"id": NOW}})
    message = {
        "messageId": MESSAGE,
        "taskId": TASK,
        "referenceTaskIds": [TASK],
        "parts": [{"text": f"on {TASK}"}],
    }
    made = from_dict(
        "1.0", "SendMessageRequest", {"message": {**message, "metadata": {"of": TASK}}}
    )
    ids.rename_protobuf(made)
    sent = to_dict(made)["message"]
    assert (sent["messageId"], sent["taskId"], sent["referenceTaskIds"]) == ("fresh-id", NOW, [NOW])
    assert (sent["parts"][0]["text"], sent["metadata"]) == (f"on {NOW}", {"of": NOW})
