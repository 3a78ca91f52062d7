"""The fast checks of protobuf accept common messages and refuse each change that a rule may
flag."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from a2a_proto import SchemaSet, from_dict
from a2a_proxy.protocol.schema import decoder_for
from a2a_proxy.protocol.strict.protobuf import CHECKS

Path = tuple[str | int, ...]
LINES: dict[SchemaSet, str] = {"1.0": "lf.a2a.v1", "0.3": "a2a.v1"}


def accepts(line: SchemaSet, name: str, value: dict[str, Any]) -> bool:
    return accepts_bytes(line, name, from_dict(line, name, value).SerializeToString())


def accepts_bytes(line: SchemaSet, name: str, payload: bytes) -> bool:
    found = CHECKS[f"{LINES[line]}.{name}"](payload)
    if found is not None and found.summary is not None:
        how = decoder_for(f"{LINES[line]}.{name}")
        assert found.summary == how.summarise(how.parse(payload))
    return found is not None


def changed(value: dict[str, Any], path: Path, new: Any) -> dict[str, Any]:
    made = copy.deepcopy(value)
    holder: Any = made
    for name in path[:-1]:
        holder = holder[name]
    if new is ...:
        del holder[path[-1]]
    else:
        holder[path[-1]] = new
    return made


def said(role: str, parts: str = "parts", **more: Any) -> dict[str, Any]:
    return {
        "messageId": "m1",
        "role": role,
        parts: [{"text": "x"}],
        "taskId": "t1",
        "contextId": "c1",
    } | more


def data_part(line: SchemaSet) -> dict[str, Any]:
    return {"data": {"a": 1}} if line == "1.0" else {"data": {"data": {"a": 1}}}


def task_of(line: SchemaSet) -> dict[str, Any]:
    parts = "parts" if line == "1.0" else "content"
    status = {
        "state": "TASK_STATE_WORKING",
        "timestamp": "2026-01-01T00:00:00Z",
        said_in(line): said("ROLE_AGENT", parts),
    }
    artifact = {"artifactId": "a1", "name": "n", "parts": [{"text": "x"}, data_part(line)]}
    history = [said("ROLE_USER", parts), said("ROLE_AGENT", parts)]
    return {
        "id": "t1",
        "contextId": "c1",
        "status": status,
        "artifacts": [artifact],
        "history": history,
    }


def said_in(line: SchemaSet) -> str:
    return "message" if line == "1.0" else "update"


def status_of(line: SchemaSet) -> dict[str, Any]:
    return {"statusUpdate": {"taskId": "t1", "contextId": "c1", "status": task_of(line)["status"]}}


def chunk_of(line: SchemaSet) -> dict[str, Any]:
    return {
        "artifactUpdate": {
            "taskId": "t1",
            "contextId": "c1",
            "artifact": task_of(line)["artifacts"][0],
        }
    }


def send_of(line: SchemaSet) -> dict[str, Any]:
    name, parts = ("message", "parts") if line == "1.0" else ("request", "content")
    return {
        name: said("ROLE_USER", parts),
        "configuration": {"historyLength": 3},
        "metadata": {"a": 1},
    }


BOTH = pytest.mark.parametrize("line", list(LINES))


@BOTH
def test_common_messages_are_accepted(line: SchemaSet) -> None:
    parts = "parts" if line == "1.0" else "content"
    reply = "message" if line == "1.0" else "msg"
    assert accepts(line, "StreamResponse", status_of(line))
    assert accepts(line, "StreamResponse", chunk_of(line))
    for name in ("StreamResponse", "SendMessageResponse"):
        assert accepts(line, name, {"task": task_of(line)})
        assert accepts(line, name, {reply: said("ROLE_AGENT", parts)})
    assert accepts(line, "Task", task_of(line))
    assert accepts(line, "SendMessageRequest", send_of(line))


@BOTH
def test_a_task_with_one_wrong_member_is_refused(line: SchemaSet) -> None:
    parts, inner = ("parts" if line == "1.0" else "content"), said_in(line)
    changes: list[tuple[Path, Any]] = [
        (("id",), ""),
        (("contextId",), ""),
        (("id",), "t2"),
        (("contextId",), "c2"),
        (("status", "state"), "TASK_STATE_UNSPECIFIED"),
        (("status",), ...),
        (("status", inner, "role"), "ROLE_USER"),
        (("artifacts", 0, "artifactId"), ""),
        (("artifacts", 0, "parts"), []),
        (("artifacts", 0, "extensions"), ["urn:x"]),
        (("history", 0, "role"), "ROLE_UNSPECIFIED"),
    ]
    for place in (("status", inner), ("history", 0), ("history", 1)):
        changes += [
            ((*place, "messageId"), ""),
            ((*place, "taskId"), "t2"),
            ((*place, "contextId"), "c2"),
            ((*place, parts), []),
            ((*place, "extensions"), ["urn:x"]),
            ((*place, parts), [{"text": "x"}, {}]),
        ]
    if line == "1.0":
        changes += [
            (("history", 0, "referenceTaskIds"), ["t2"]),
            (("artifacts", 0, "parts"), [{"text": "x", "mediaType": "odd/type"}]),
            (("artifacts", 0, "parts"), [{"url": "https://a/b"}]),
            (("artifacts", 0, "parts"), [{"raw": "eA=="}]),
            (("generation",), "-1"),
        ]
    for path, new in changes:
        value = changed(task_of(line), path, new)
        assert not accepts(line, "Task", value), path
        assert not accepts(line, "StreamResponse", {"task": value}), path
    assert accepts(line, "Task", changed(task_of(line), ("status", inner), ...))
    assert accepts(line, "Task", changed(task_of(line), ("history",), []))


@BOTH
@pytest.mark.parametrize("what", ["statusUpdate", "artifactUpdate"])
def test_an_update_with_one_wrong_member_is_refused(line: SchemaSet, what: str) -> None:
    value = status_of(line) if what == "statusUpdate" else chunk_of(line)
    changes: list[tuple[Path, Any]] = [((what, "taskId"), ""), ((what, "contextId"), "")]
    if what == "statusUpdate":
        inner = (what, "status", said_in(line))
        changes += [
            ((what, "status", "state"), "TASK_STATE_UNSPECIFIED"),
            ((*inner, "role"), "ROLE_USER"),
            ((*inner, "taskId"), "t2"),
            ((*inner, "contextId"), "c2"),
            ((*inner, "messageId"), ""),
        ]
    else:
        changes += [
            ((what, "artifact", "artifactId"), ""),
            ((what, "artifact", "parts"), []),
            ((what, "artifact"), ...),
        ]
    if line == "1.0":
        changes.append(((what, "generation"), "-1"))
        for number in ("3", "8000000000", str((1 << 63) - 1)):
            assert accepts(line, "StreamResponse", changed(value, (what, "generation"), number))
    for path, new in changes:
        assert not accepts(line, "StreamResponse", changed(value, path, new)), path


@BOTH
def test_a_reply_is_of_the_agent_and_names_its_context(line: SchemaSet) -> None:
    parts, reply = ("parts", "message") if line == "1.0" else ("content", "msg")
    for change in (
        {"role": "ROLE_USER"},
        {"contextId": ""},
        {"messageId": ""},
        {parts: []},
        {"extensions": ["urn:x"]},
    ):
        value = {reply: said("ROLE_AGENT", parts) | change}
        assert not accepts(line, "SendMessageResponse", value), change
    assert not accepts(line, "SendMessageResponse", {})


@BOTH
def test_a_request_with_one_unusual_member_is_refused(line: SchemaSet) -> None:
    message, parts = ("message", "parts") if line == "1.0" else ("request", "content")
    changes: list[tuple[Path, Any]] = [
        ((message, "role"), "ROLE_AGENT"),
        ((message, "messageId"), ""),
        ((message, parts), []),
        ((message, "extensions"), ["urn:x"]),
        (("configuration", "historyLength"), -1),
        (("configuration", "acceptedOutputModes"), ["text/plain"]),
        ((message,), ...),
    ]
    if line == "1.0":
        changes += [
            (("tenant",), "acme"),
            (("configuration", "taskPushNotificationConfig"), {"url": "https://a/b"}),
        ]
    else:
        changes.append((("configuration", "pushNotification"), {"url": "https://a/b"}))
    for path, new in changes:
        assert not accepts(line, "SendMessageRequest", changed(send_of(line), path, new)), path
    for path in (("configuration",), ("metadata",)):
        assert accepts(line, "SendMessageRequest", changed(send_of(line), path, ...))


@pytest.mark.parametrize(
    ("line", "name", "member"),
    [
        ("1.0", "GetTaskRequest", "id"),
        ("1.0", "CancelTaskRequest", "id"),
        ("1.0", "SubscribeToTaskRequest", "id"),
        ("0.3", "GetTaskRequest", "name"),
        ("0.3", "CancelTaskRequest", "name"),
        ("0.3", "TaskSubscriptionRequest", "name"),
    ],
)
def test_a_request_that_names_a_task_has_nothing_else(
    line: SchemaSet, name: str, member: str
) -> None:
    assert accepts(line, name, {member: "t1"})
    assert not accepts(line, name, {})
    if name == "GetTaskRequest":
        assert not accepts(line, name, {member: "t1", "historyLength": 1})
        assert not accepts(line, name, {"historyLength": 1})


@BOTH
def test_unknown_and_repeated_fields_and_long_forms_are_refused(line: SchemaSet) -> None:
    for name, value in (
        ("StreamResponse", status_of(line)),
        ("StreamResponse", chunk_of(line)),
        ("Task", task_of(line)),
        ("SendMessageRequest", send_of(line)),
    ):
        payload = from_dict(line, name, value).SerializeToString()
        for more in (b"\xf8\x3f\x01", b"\xfa\x3f\x00", payload, b"\x0a"):
            assert not accepts_bytes(line, name, payload + more)
        size = payload[1]
        if size < 128 and len(payload) == size + 2:
            assert not accepts_bytes(
                line, name, payload[:1] + bytes([size | 0x80, 0]) + payload[2:]
            )
        assert not accepts_bytes(line, name, payload[:-1])
