"""Messages as ProtoJSON, and the details of a gRPC status."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_proto import (
    ParseError,
    RenderError,
    from_dict,
    message_class,
    parse,
    read_status,
    to_dict,
    to_json,
)


def test_generation_is_a_string() -> None:
    """int64 is a decimal string, int32 a number, as ProtoJSON has it; exact beyond 2**53."""
    update: Any = message_class("1.0", "TaskStatusUpdateEvent")(task_id="t", generation=2**53 + 1)
    assert to_json(update) == '{"taskId":"t","generation":"9007199254740993"}'
    assert (
        to_json(message_class("1.0", "GetTaskRequest")(history_length=3)) == '{"historyLength":3}'
    )


def test_names_of_0_3() -> None:
    """The fields with a JSON name of their own carry it."""
    response: Any = message_class("0.3", "SendMessageResponse")()
    response.msg.message_id = "m"
    assert to_json(response) == '{"message":{"messageId":"m"}}'
    status: Any = message_class("0.3", "TaskStatus")(state=5)
    status.update.role = 2
    assert to_json(status) == '{"state":"TASK_STATE_CANCELLED","message":{"role":"ROLE_AGENT"}}'


def test_whole_numbers_of_a_struct() -> None:
    """Doubles that are whole come out as integers; others, and those too large to be exact,
    stay."""
    part: Any = message_class("1.0", "Part")()
    part.data.struct_value.update({"n": 3, "x": 0.5, "big": 1e300, "list": [True, -2]})
    assert to_dict(part) == {"data": {"n": 3, "x": 0.5, "big": 1e300, "list": [True, -2]}}
    assert '"n":3,' in to_json(part).replace("}", ",")


def test_text_stays_as_it_is() -> None:
    """Characters outside ASCII are not escaped; bytes are base64."""
    assert to_json(message_class("1.0", "Part")(text="zażółć")) == '{"text":"zażółć"}'
    assert to_json(message_class("1.0", "Part")(raw=b"\xff\xfe")) == '{"raw":"//4="}'


def test_unknown_enum_value() -> None:
    """A state that the line does not know is shown by its number."""
    assert to_dict(parse("1.0", "TaskStatus", b"\x08\x63")) == {"state": 99}


def test_no_json_form() -> None:
    """A time before year 1 or a NaN parses, and raises the documented error when shown."""
    late: Any = message_class("1.0", "TaskStatus")()
    late.timestamp.seconds = -(10**15)
    part: Any = message_class("1.0", "Part")()
    part.data.number_value = float("nan")
    for message in (late, part):
        with pytest.raises(RenderError, match="has no JSON form"):
            to_dict(message)


def test_status_details() -> None:
    """Known details have their fields, others their bytes; a detail that lies about its type is
    shown as bytes too."""
    status: Any = message_class("rpc", "Status")(code=5, message="no such task")
    known: Any = message_class("rpc", "ErrorInfo")(
        reason="TASK_NOT_FOUND", domain="a2a-protocol.org"
    )
    known.metadata["taskId"] = "t"
    bad: Any = message_class("rpc", "BadRequest")()
    bad.field_violations.add(field="message.parts", description="empty")
    status.details.add().Pack(known)
    status.details.add().Pack(bad)
    status.details.add(type_url="type.googleapis.com/google.rpc.RequestInfo", value=b"\x0a\x00")
    status.details.add(type_url="type.googleapis.com/google.rpc.ErrorInfo", value=b"\xff")
    prefix = "type.googleapis.com/google.rpc."
    assert read_status(status.SerializeToString()) == {
        "code": 5,
        "message": "no such task",
        "details": [
            {
                "@type": prefix + "ErrorInfo",
                "reason": "TASK_NOT_FOUND",
                "domain": "a2a-protocol.org",
                "metadata": {"taskId": "t"},
            },
            {
                "@type": prefix + "BadRequest",
                "fieldViolations": [{"field": "message.parts", "description": "empty"}],
            },
            {"@type": prefix + "RequestInfo", "value": "CgA="},
            {"@type": prefix + "ErrorInfo", "value": "/w=="},
        ],
    }


def test_status_without_details() -> None:
    """A bare status has no list; bytes that are no status raise the documented error."""
    assert read_status(b"\x08\x0c") == {"code": 12, "message": ""}
    with pytest.raises(ParseError):
        read_status(b"\x12\xff")


def test_from_dict_is_the_inverse_of_to_dict() -> None:
    """What `to_dict` gave makes the same message again; what is none is refused in words."""
    update: Any = message_class("1.0", "TaskStatusUpdateEvent")(task_id="t", generation=7)
    assert from_dict("1.0", "TaskStatusUpdateEvent", to_dict(update)) == update
    with pytest.raises(RenderError, match="this is not a Task"):
        from_dict("1.0", "Task", {"status": "working"})


def test_maps_come_in_one_order() -> None:
    """Members of Structs and maps are sorted at every depth; fields keep the order of their
    numbers."""
    names = [f"m{number:02}" for number in range(40)]
    deep = {name: dict.fromkeys(names[:20], 1) for name in reversed(names)}
    task = from_dict(
        "1.0", "Task", {"id": "t", "metadata": deep, "artifacts": [{"parts": [{"data": deep}]}]}
    )
    schemes = {name: {"httpAuthSecurityScheme": {"scheme": "b"}} for name in reversed(names)}
    card = from_dict("1.0", "AgentCard", {"name": "n", "securitySchemes": schemes, "version": "1"})
    shown = to_dict(task)

    assert list(shown) == ["id", "artifacts", "metadata"]
    for free in (shown["metadata"], shown["artifacts"][0]["parts"][0]["data"]):
        assert list(free) == names
        assert all(list(inner) == names[:20] for inner in free.values())
    assert list(to_dict(card)) == ["name", "version", "securitySchemes"]
    assert list(to_dict(card)["securitySchemes"]) == names
