"""The fast checks of JSON accept each optional member of an object and nothing else.

In the templates `?` before a name means that the member is optional.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import msgspec
import pytest

from a2a_proxy.model.values import EventKind, Frame, FrameKind
from a2a_proxy.model.wire import Direction
from a2a_proxy.protocol.artifact_chunks import ArtifactChunk, chunks_of_frame
from a2a_proxy.protocol.json_shapes import decode_envelope, decode_result
from a2a_proxy.protocol.json_summary import summarise_result
from a2a_proxy.protocol.status_summary import StatusSummary, decode_status
from a2a_proxy.protocol.strict.json_checks import (
    JSON_0_3,
    JSON_1_0,
    PROTO_JSON_0_3,
    Check,
    check_empty,
)
from a2a_proxy.protocol.summary import Summary

FREE = {"a": ["b", None]}
UTC = "2026-01-01T00:00:00.000Z"


def said(role: str, part: dict[str, Any], parts: str = "parts", **more: Any) -> dict[str, Any]:
    ids = {"?taskId": "t1", "?contextId": "c1", "?metadata": FREE}
    return {"messageId": "m1", "role": role, parts: [part, part]} | ids | more


def of_task(status: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"taskId": "t1", "contextId": "c1", "status": status, "?metadata": FREE} | more


def with_chunk(part: dict[str, Any], **more: Any) -> dict[str, Any]:
    artifact = {
        "artifactId": "a1",
        "parts": [part, part],
        "?name": "n",
        "?description": "d",
        "?metadata": FREE,
    }
    return {
        "taskId": "t1",
        "contextId": "c1",
        "artifact": artifact,
        "?append": True,
        "?lastChunk": False,
    } | more


def whole_task(
    status: dict[str, Any], message: dict[str, Any], part: dict[str, Any], **more: Any
) -> dict[str, Any]:
    artifact = with_chunk(part)["artifact"]
    lists = {"?artifacts": [artifact], "?history": [message], "?metadata": FREE}
    return {"id": "t1", "contextId": "c1", "status": status} | lists | more


def rpc(**more: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": "r1"} | more


TEXT = {"text": "x", "?mediaType": "text/plain", "?filename": "f"}
FREE_TEXT = TEXT | {"?metadata": FREE}
DATA = {"data": {"a": 1}, "?metadata": FREE}
REPLY, QUESTION = said("ROLE_AGENT", FREE_TEXT), said("ROLE_USER", DATA)
WORKING = {"state": "TASK_STATE_WORKING", "?timestamp": UTC, "?message": said("ROLE_AGENT", TEXT)}
NUMBERED = {"?generation": "3"}
STATUS_1_0 = {"statusUpdate": of_task(WORKING, **NUMBERED)}
CHUNK_1_0 = {"artifactUpdate": with_chunk(TEXT, **NUMBERED)}
DATA_1_0 = {"artifactUpdate": with_chunk(DATA)}
TASK_1_0 = whole_task(WORKING, QUESTION, DATA, **NUMBERED)
ANSWER_1_0 = REPLY | {"contextId": "c1"}
del ANSWER_1_0["?contextId"]
LENGTHS = {"?acceptedOutputModes": ["text/plain"], "?historyLength": 0}
SEND_1_0 = {
    "message": QUESTION,
    "?configuration": LENGTHS | {"?returnImmediately": True},
    "?metadata": FREE,
}

OLD_TEXT = {"kind": "text", "text": "x", "?metadata": FREE}
OLD_DATA = {"kind": "data", "data": {"a": 1}, "?metadata": FREE}
OLD_REPLY = said("agent", OLD_TEXT, kind="message")
OLD_WORKING = {"state": "working", "?timestamp": "2026-01-01T00:00:00+01:00", "?message": OLD_REPLY}
OLD_STATUS = of_task(OLD_WORKING, kind="status-update", final=True)
OLD_CHUNK = with_chunk(OLD_TEXT, kind="artifact-update", **{"?metadata": FREE})
OLD_TASK = whole_task(OLD_WORKING, said("user", OLD_DATA, kind="message"), OLD_DATA, kind="task")
OLD_ANSWER = OLD_REPLY | {"contextId": "c1"}
del OLD_ANSWER["?contextId"]
OLD_SEND = {
    "message": said("user", OLD_TEXT, kind="message"),
    "?configuration": LENGTHS | {"?blocking": True},
    "?metadata": FREE,
}

PLAIN = {"text": "x", "?metadata": FREE}
PROTO_REPLY = said("ROLE_AGENT", PLAIN, "content")
PROTO_WORKING = {"state": "TASK_STATE_CANCELLED", "?timestamp": UTC, "?message": PROTO_REPLY}
PROTO_STATUS = {"statusUpdate": of_task(PROTO_WORKING, **{"?final": True})}
PROTO_CHUNK = {"artifactUpdate": with_chunk(PLAIN, **{"?metadata": FREE})}
PROTO_TASK = whole_task(PROTO_WORKING, said("ROLE_USER", PLAIN, "content"), PLAIN)
PROTO_ANSWER = PROTO_REPLY | {"contextId": "c1"}
del PROTO_ANSWER["?contextId"]
PROTO_SEND = {
    "message": said("ROLE_USER", PLAIN, "content"),
    "?configuration": LENGTHS | {"?blocking": True},
    "?metadata": FREE,
}

CASES: dict[str, tuple[Check, dict[str, Any]]] = {
    "1.0-status": (JSON_1_0.check("event"), STATUS_1_0),
    "1.0-chunk": (JSON_1_0.check("event"), CHUNK_1_0),
    "1.0-data": (JSON_1_0.check("event"), DATA_1_0),
    "1.0-task": (JSON_1_0.check("event"), {"task": TASK_1_0}),
    "1.0-message": (JSON_1_0.check("event"), {"message": ANSWER_1_0}),
    "1.0-sent-task": (JSON_1_0.check("sent"), {"task": TASK_1_0}),
    "1.0-sent-message": (JSON_1_0.check("sent"), {"message": ANSWER_1_0}),
    "1.0-one-task": (JSON_1_0.check("task"), TASK_1_0),
    "1.0-send": (JSON_1_0.check("send"), SEND_1_0),
    "1.0-empty": (check_empty, {}),
    "1.0-rpc-status": (JSON_1_0.check("event", enveloped=True), rpc(result=STATUS_1_0)),
    "1.0-rpc-numbered": (JSON_1_0.check("event", enveloped=True), rpc(id=1, result=CHUNK_1_0)),
    "1.0-rpc-sent": (JSON_1_0.check("sent", enveloped=True), rpc(result={"message": ANSWER_1_0})),
    "1.0-rpc-task": (JSON_1_0.check("task", enveloped=True), rpc(result=TASK_1_0)),
    "1.0-rpc-send": (
        JSON_1_0.check("send", enveloped=True),
        rpc(method="SendMessage", params=SEND_1_0),
    ),
    "1.0-rpc-id": (
        JSON_1_0.check("task id", enveloped=True),
        rpc(method="GetTask", params={"id": "t1"}),
    ),
    "0.3-status": (JSON_0_3.check("event", enveloped=True), rpc(result=OLD_STATUS)),
    "0.3-chunk": (JSON_0_3.check("event", enveloped=True), rpc(result=OLD_CHUNK)),
    "0.3-task": (JSON_0_3.check("event", enveloped=True), rpc(result=OLD_TASK)),
    "0.3-message": (JSON_0_3.check("event", enveloped=True), rpc(result=OLD_ANSWER)),
    "0.3-sent-task": (JSON_0_3.check("sent", enveloped=True), rpc(result=OLD_TASK)),
    "0.3-sent-message": (JSON_0_3.check("sent", enveloped=True), rpc(result=OLD_ANSWER)),
    "0.3-one-task": (JSON_0_3.check("task", enveloped=True), rpc(result=OLD_TASK)),
    "0.3-send": (
        JSON_0_3.check("send", enveloped=True),
        rpc(method="message/send", params=OLD_SEND),
    ),
    "0.3-id": (
        JSON_0_3.check("task id", enveloped=True),
        rpc(method="tasks/get", params={"id": "t1"}),
    ),
    "0.3-rest-status": (PROTO_JSON_0_3.check("event"), PROTO_STATUS),
    "0.3-rest-chunk": (PROTO_JSON_0_3.check("event"), PROTO_CHUNK),
    "0.3-rest-task": (PROTO_JSON_0_3.check("event"), {"task": PROTO_TASK}),
    "0.3-rest-message": (PROTO_JSON_0_3.check("event"), {"message": PROTO_ANSWER}),
    "0.3-rest-sent": (PROTO_JSON_0_3.check("sent"), {"task": PROTO_TASK}),
    "0.3-rest-one-task": (PROTO_JSON_0_3.check("task"), PROTO_TASK),
    "0.3-rest-send": (PROTO_JSON_0_3.check("send"), PROTO_SEND),
}
EACH = pytest.mark.parametrize(("check", "template"), CASES.values(), ids=CASES)
Path = tuple[str | int, ...]


def places(value: Any, here: Path = ()) -> Iterator[Path]:
    """The root and every place below it, without the content of free objects."""
    yield here
    if here and str(here[-1]).removeprefix("?") in ("metadata", "data"):
        return
    pairs = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for name, item in pairs:
        yield from places(item, (*here, name))


def at(value: Any, path: Path) -> Any:
    for name in path:
        value = value[name]
    return value


def changed(template: Any, path: Path, change: Any) -> Any:
    """The template with something else at a place; with nothing there if `change` is `...`."""
    if not path:
        return change
    copy = template.copy()
    copy[path[0]] = changed(copy[path[0]], path[1:], change)
    if copy[path[0]] is ...:
        del copy[path[0]]
    return copy


def spell(template: Any, twice: Path | None = None) -> bytes:
    """The JSON text of a template; the member at `twice` stands there twice."""
    if isinstance(template, dict):
        found = []
        for name, item in template.items():
            below = twice[1:] if twice and twice[0] == name else None
            member = msgspec.json.encode(name.removeprefix("?")) + b":" + spell(item, below or None)
            found += [member, member] if below == () else [member]
        return b"{" + b",".join(found) + b"}"
    if isinstance(template, list):
        inner = [
            spell(item, twice[1:] if twice and twice[0] == at else None)
            for at, item in enumerate(template)
        ]
        return b"[" + b",".join(inner) + b"]"
    return msgspec.json.encode(template)


def optional(template: Any) -> list[Path]:
    return [path for path in places(template) if path and str(path[-1]).startswith("?")]


def forms(template: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The template, whole and without metadata, each also without one or two optional members."""
    plain = template
    while free := [path for path in optional(plain) if path[-1] == "?metadata"]:
        plain = changed(plain, free[0], ...)
    for whole in (template, plain):
        yield whole
        members = optional(whole)
        for path in members:
            yield changed(whole, path, ...)
        for one, other in combinations(members, 2):
            if one[: len(other)] != other and other[: len(one)] != one:
                yield changed(changed(whole, one, ...), other, ...)


@EACH
def test_each_optional_member_may_be_missing(check: Check, template: dict[str, Any]) -> None:
    for form in forms(template):
        assert check(spell(form)), form


def frame_of(template: dict[str, Any], event: EventKind) -> Frame:
    payload = spell(template)
    kind, size = FrameKind.EVENT, len(payload)
    return Frame(
        1, 1, 1, Direction.TO_CLIENT, kind, 1, 1, 0, size, payload, size, schema="json", event=event
    )


def summarise(payload: bytes, rpc_id: str) -> Summary:
    """Return what the lenient decoder reads of an event, which must have this JSON-RPC id."""
    if not rpc_id:
        return summarise_result(decode_result(payload), streaming=True)
    envelope = decode_envelope(payload)
    assert bytes(envelope.id).decode() == rpc_id
    assert envelope.result is not None
    return summarise_result(envelope.result, streaming=True)


@EACH
def test_the_summary_of_an_update_is_that_of_partial_decoding(
    check: Check, template: dict[str, Any]
) -> None:
    for form in forms(template):
        message = check(spell(form))
        assert message is not None
        assert message.summary is None or message.summary == summarise(spell(form), message.rpc_id)
        found = message.content
        if isinstance(found, StatusSummary):
            expected = decode_status(frame_of(form, EventKind.STATUS))
            assert [each for each in found.named_ids if each] == [
                each for each in expected.named_ids if each
            ]
            assert (
                msgspec.structs.replace(found, named_ids=expected.named_ids, is_plain=False)
                == expected
            )
        elif isinstance(found, ArtifactChunk):
            assert [found] == chunks_of_frame(frame_of(form, EventKind.ARTIFACT))


@pytest.mark.parametrize(
    "name", [name for name in CASES if name.endswith(("status", "chunk", "rpc-numbered"))]
)
def test_updates_with_texts_have_a_summary(name: str) -> None:
    check, template = CASES[name]
    bare = template
    while found := [path for path in optional(bare) if path[-1] == "?metadata"]:
        bare = changed(bare, found[0], ...)
    found = check(spell(bare))
    assert found is not None
    assert found.summary is not None
    assert isinstance(found.content, StatusSummary | ArtifactChunk)


@EACH
def test_a_missing_member_a_strange_one_and_a_wrong_type_are_refused(
    check: Check, template: dict[str, Any]
) -> None:
    for path in places(template):
        value = at(template, path)
        name = str(path[-1]) if path else ""
        if path and isinstance(path[-1], str) and not name.startswith("?"):
            assert not check(spell(changed(template, path, ...))), path
        if name.removeprefix("?") != "metadata" and (
            name != "data" or "kind" in at(template, path[:-1])
        ):
            assert not check(spell(changed(template, path, None))), path
            assert not check(spell(changed(template, path, [1]))), path
        if isinstance(value, dict) and name.removeprefix("?") not in ("metadata", "data"):
            assert not check(spell(changed(template, path, value | {"strange": 1}))), path
        if path and isinstance(path[-1], str):
            assert not check(spell(template, path)), path


WRONG: dict[str, list[Any]] = {
    **{name: [""] for name in ("messageId", "taskId", "contextId", "artifactId")},
    "parts": [[]],
    "content": [[]],
    "role": ["ROLE_OTHER", "agents"],
    "generation": ["0", "03", "x", "1" * 19, 3],
    "mediaType": ["text", "Text/plain", "text/plain\n"],
    "acceptedOutputModes": [["text"]],
    "historyLength": [-1, 2**31, 1.5],
    "timestamp": [
        "",
        "now",
        "2026-01-01",
        "2026-01-01T00:00:00",
        "2026-02-30T00:00:00.000Z",
        "2026-01-01T24:00:00Z",
    ],
    "state": ["WORKING", "TASK_STATE_UNSPECIFIED", ""],
    "jsonrpc": ["1.0", "2"],
    "kind": ["other", ""],
}


@EACH
def test_a_value_outside_its_range_is_refused(check: Check, template: dict[str, Any]) -> None:
    for path in places(template):
        for value in WRONG.get(str(path[-1]).removeprefix("?"), ()) if path else ():
            assert not check(spell(changed(template, path, value))), (path, value)


@EACH
def test_a_message_inside_a_task_names_the_same_task_and_context(
    check: Check, template: dict[str, Any]
) -> None:
    for path in places(template):
        if (
            path
            and path[-1] in ("?taskId", "?contextId")
            and ("?history" in path or "?message" in path)
        ):
            assert not check(spell(changed(template, path, "other"))), path


@EACH
def test_a_message_has_the_role_of_its_sender(check: Check, template: dict[str, Any]) -> None:
    other = {"ROLE_USER": "ROLE_AGENT", "ROLE_AGENT": "ROLE_USER", "user": "agent", "agent": "user"}
    for path in places(template):
        if path and path[-1] == "role" and "?history" not in path:
            assert not check(spell(changed(template, path, other[at(template, path)]))), path


def test_a_part_of_1_0_has_one_content() -> None:
    for name, path in (
        ("1.0-chunk", ("artifactUpdate", "artifact")),
        ("1.0-message", ("message",)),
    ):
        check, template = CASES[name]
        for part in ({}, {"text": "x", "data": 1}, {"filename": "f"}):
            for index in (0, 1):
                assert not check(spell(changed(template, (*path, "parts", index), part)))


@pytest.mark.parametrize(
    "name", [name for name in CASES if "rpc" not in name and name.count("-") == 1]
)
def test_an_event_of_1_0_has_one_member(name: str) -> None:
    check, template = CASES[name]
    if check is JSON_1_0.check("event"):
        assert not check(b"{}")
        for other, (its_check, its_template) in CASES.items():
            if its_check is check and its_template.keys() != template.keys():
                assert not check(spell(template | its_template)), other


@pytest.mark.parametrize(
    ("check", "template"),
    [
        (JSON_1_0.check("event"), {"artifactUpdate": with_chunk({"text": "x"})}),
        (
            JSON_0_3.check("event", enveloped=True),
            rpc(result=with_chunk({"kind": "text", "text": "x"}, kind="artifact-update")),
        ),
    ],
    ids=["1.0", "0.3"],
)
def test_an_update_with_data_beside_a_text_has_no_summary(
    check: Check, template: dict[str, Any]
) -> None:
    """A summary of the text alone would take two different updates for equal."""
    update = template.get("artifactUpdate") or template["result"]
    update["artifact"]["parts"][1] = {"data": {"a": 1}} | (
        {"kind": "data"} if "result" in template else {}
    )
    found = check(spell(template))
    assert found is not None
    assert found.content is True
