"""Unknown fields of a recorded message are sent again in the dialect in which they were
recorded."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from a2a_proto import from_dict, parse, to_dict
from a2a_proxy.model.values import Dialect
from a2a_proxy.replay.convert.protobuf_bytes import add_unknown_fields
from a2a_proxy.replay.core.call_playback import CallPlayback
from a2a_proxy.replay.core.player import Player
from a2a_proxy.replay.core.script import LineKind, ReplayScript
from a2a_proxy.replay.serve.outgoing import encode_grpc_message
from support_replay import START, again, message, sample

SCHEMA = "lf.a2a.v1.StreamResponse"
NEW = b"\x92\x3f\x03new"
"""Field 1010, a text: of no message of A2A."""
NEWER = b"\x98\x3f\x07"
"""Field 1011, a number."""


def task_answer(identifier: str) -> dict[str, Any]:
    part = {"text": "hello", "metadata": {"k": {"deep": [1]}}}
    messages = [{"messageId": f"m-{n}", "role": "ROLE_AGENT", "parts": [part]} for n in (1, 2)]
    return {
        "task": {"id": identifier, "status": {"state": "TASK_STATE_WORKING"}, "history": messages}
    }


def with_more(value: dict[str, Any]) -> Any:
    """A message whose task, and the second message of its history, say more than the schema
    knows."""
    made: Any = from_dict("1.0", SCHEMA, value)
    made.task.MergeFromString(NEW)
    made.task.history[1].MergeFromString(NEWER)
    return made


def test_unknown_fields_are_copied_at_any_depth() -> None:
    now = from_dict("1.0", SCHEMA, task_answer("t-now")).SerializeToString()
    found: Any = parse(
        "1.0",
        SCHEMA,
        add_unknown_fields(now, with_more(task_answer("t-then")).SerializeToString(), SCHEMA),
    )
    assert found == with_more(task_answer("t-now"))
    assert found.task.history[1].SerializeToString().endswith(NEWER)


@pytest.mark.parametrize(
    "recorded",
    [b"", b"\xff\xff\xff", from_dict("1.0", SCHEMA, task_answer("a")).SerializeToString()],
)
def test_messages_without_unknown_fields_are_unchanged(recorded: bytes) -> None:
    now = from_dict("1.0", SCHEMA, {"message": message("hi")["message"]}).SerializeToString()
    assert add_unknown_fields(now, recorded, SCHEMA) is now


def begun(script: ReplayScript, dialect: Dialect) -> CallPlayback:
    """Its first SendMessage, asked in a dialect."""
    recorded = next(call for call in script.calls if call.operation == "SendMessage")
    found = Player(script).begin_call(again(recorded, dialect=dialect), START)
    assert isinstance(found, CallPlayback)
    return found


@pytest.mark.parametrize(
    ("name", "dialect", "line"),
    [("sdk-0.3-grpc", Dialect.V1_0, "1.0"), ("sdk-1.x-grpc", Dialect.V0_3, "0.3")],
)
def test_clients_of_another_dialect_get_no_unknown_fields(
    name: str, dialect: Dialect, line: Any
) -> None:
    play = begun(sample(name), dialect)
    send = next(each for each in play.take_due(START) if each.what is LineKind.MESSAGE)
    found = to_dict(parse(line, "SendMessageResponse", encode_grpc_message(send, play)))
    assert found["task"]["id"] == send.value["task"]["id"]
    assert found["task"]["artifacts"][0]["parts"] == [{"text": "forty-two"}]


def test_grpc_messages_include_unknown_fields() -> None:
    play = begun(sample("sdk-1.x-grpc"), Dialect.V1_0)
    send = next(each for each in play.take_due(START) if each.what is LineKind.MESSAGE)
    assert send.line is not None
    more = replace(send, line=replace(send.line, raw=send.line.raw + NEW))
    assert encode_grpc_message(more, play) == encode_grpc_message(send, play) + NEW
