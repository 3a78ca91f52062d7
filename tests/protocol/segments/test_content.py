"""Texts, media and tool calls of frames, with the paths of their parts."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import msgspec
import pytest

from a2a_proto import SchemaSet, from_dict
from a2a_proxy.model.values import Dialect, Frame, FrameKind
from a2a_proxy.model.wire import Direction
from a2a_proxy.protocol.segments.content import FrameContent, ToolEvent, content_of_frame

RAW = bytes(range(250, 256)) + b"x"
CODED = base64.b64encode(RAW).decode()
URL = "https://localhost/a.png"


def frame(payload: bytes, schema: str = "json", kind: FrameKind = FrameKind.EVENT) -> Frame:
    return Frame(
        1,
        1,
        1,
        Direction.TO_CLIENT,
        kind,
        1,
        1,
        0,
        len(payload),
        payload,
        len(payload),
        schema=schema,
        message_id="m7",
    )


def read(value: dict[str, Any], dialect: Dialect = Dialect.V1_0) -> FrameContent:
    return content_of_frame(frame(msgspec.json.encode(value)), dialect, "SendStreamingMessage")


def read_live(schema_set: SchemaSet, name: str, value: dict[str, Any]) -> FrameContent:
    kind = FrameKind.REQUEST if name.endswith("Request") else FrameKind.EVENT
    payload = from_dict(schema_set, name, value).SerializeToString()
    return content_of_frame(
        frame(payload, f"lf.a2a.v1.{name}@{schema_set}", kind), Dialect.V1_0, "SendLiveMessage"
    )


def status_with(*parts: dict[str, Any]) -> dict[str, Any]:
    message = {"messageId": "m1", "role": "ROLE_AGENT", "parts": list(parts)}
    return {"state": "TASK_STATE_WORKING", "message": message}


def chunk_with(*parts: dict[str, Any]) -> dict[str, Any]:
    return {
        "artifactUpdate": {
            "taskId": "t1",
            "contextId": "c1",
            "artifact": {"artifactId": "a1", "parts": [*parts]},
        }
    }


TOLD = {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "told"}]}
PICTURE = {"raw": CODED, "mediaType": "image/png", "filename": "a.png"}
LINK = {"url": URL, "mediaType": "image/png", "filename": "b.png"}


def test_texts_have_the_id_of_their_artifact_or_message() -> None:
    task = {
        "id": "t1",
        "contextId": "c1",
        "status": status_with({"text": "asked"}),
        "artifacts": [
            {"artifactId": "a1", "parts": [{"text": "one"}, {"text": ""}]},
            {"artifactId": "a2", "parts": [{"text": "two"}]},
        ],
        "history": [{"messageId": "m0", "role": "ROLE_USER", "parts": [{"text": "before"}]}],
    }
    assert read({"task": task}).texts == [("m7", "asked"), ("a1", "one"), ("a1", ""), ("a2", "two")]
    update = {"taskId": "t1", "contextId": "c1", "status": status_with({"text": "working"})}
    assert read({"statusUpdate": update}).texts == [("m7", "working")]
    assert read({"message": status_with({"text": "hello"})["message"]}).texts == [("m7", "hello")]
    assert read(chunk_with({"text": "part"})).texts == [("a1", "part")]


@pytest.mark.parametrize(
    ("value", "path", "artifact"),
    [
        (chunk_with({"text": "x"}, PICTURE), "artifactUpdate.artifact.parts[1]", "a1"),
        ({"message": status_with(PICTURE)["message"]}, "message.parts[0]", ""),
        (
            {"statusUpdate": {"taskId": "t1", "contextId": "c1", "status": status_with(PICTURE)}},
            "statusUpdate.status.message.parts[0]",
            "",
        ),
        (
            {"task": {"id": "t1", "contextId": "c1", "status": status_with(PICTURE)}},
            "task.status.message.parts[0]",
            "",
        ),
        (
            {
                "task": {
                    "id": "t1",
                    "contextId": "c1",
                    "status": {"state": "TASK_STATE_COMPLETED"},
                    "artifacts": [
                        {"artifactId": "a1", "parts": [{"text": "x"}]},
                        {"artifactId": "a2", "parts": [PICTURE]},
                    ],
                }
            },
            "task.artifacts[1].parts[0]",
            "a2",
        ),
    ],
)
def test_media_have_path_artifact_type_name_and_bytes(
    value: dict[str, Any], path: str, artifact: str
) -> None:
    (found,) = read(value).media
    assert (found.path, found.artifact_id, found.media_type, found.filename) == (
        path,
        artifact,
        "image/png",
        "a.png",
    )
    assert (found.url, found.data, found.encoding) == ("", RAW, "base64")
    assert found.sha256 == hashlib.sha256(RAW).hexdigest()


def test_a_url_is_media_without_bytes() -> None:
    (found,) = read(chunk_with(LINK)).media
    assert (found.url, found.data, found.encoding, found.sha256) == (URL, b"", "url", "")
    assert (found.media_type, found.filename, found.artifact_id) == ("image/png", "b.png", "a1")


@pytest.mark.parametrize("raw", [CODED, CODED.rstrip("="), base64.urlsafe_b64encode(RAW).decode()])
def test_base64_may_be_url_safe_and_without_padding(raw: str) -> None:
    assert [each.data for each in read(chunk_with({"raw": raw})).media] == [RAW]


@pytest.mark.parametrize("raw", ["a", "!!!!", "é"])
def test_invalid_base64_is_omitted(raw: str) -> None:
    assert read(chunk_with({"raw": raw}, {"text": "x"})) == FrameContent(texts=[("a1", "x")])


def test_bytes_of_protobuf() -> None:
    payload = from_dict("1.0", "StreamResponse", chunk_with(PICTURE)).SerializeToString()
    content = content_of_frame(
        frame(payload, "lf.a2a.v1.StreamResponse"), Dialect.V1_0, "SendStreamingMessage"
    )
    assert [(each.data, each.encoding) for each in content.media] == [(RAW, "bytes")]


@pytest.mark.parametrize(
    ("data", "metadata", "expected"),
    [
        ({"name": "search", "id": "f1", "args": {}}, None, ToolEvent("search", "f1", False)),
        ({"name": "search", "id": "f1", "response": {}}, None, ToolEvent("search", "f1", True)),
        ({"name": "search", "args": {}, "response": {}}, {}, ToolEvent("search", "", True)),
        ({"name": "search", "id": 1, "args": {}}, None, ToolEvent("search", "", False)),
        ({"name": "search"}, {"adk_type": "function_call"}, ToolEvent("search", "", False)),
        ({"name": "search"}, {"type": "function_call"}, ToolEvent("search", "", False)),
        (
            {"name": "search", "args": {}},
            {"adk_type": "function_response"},
            ToolEvent("search", "", True),
        ),
        (
            {"name": "search", "response": {}},
            {"type": "function_call"},
            ToolEvent("search", "", False),
        ),
        (
            {"name": "search"},
            {"adk_type": "function_response", "type": "x"},
            ToolEvent("search", "", True),
        ),
        ({"name": "search", "args": {}}, {"adk_type": "code"}, None),
        ({"name": "search", "response": {}}, {"type": "code"}, None),
        ({"name": "search"}, None, None),
        ({"name": 1, "args": {}}, None, None),
        ({"args": {}}, {"type": "function_call"}, None),
        ([{"name": "search", "args": {}}], None, None),
        ("search", {"type": "function_call"}, None),
    ],
)
def test_tool_events_are_marked_by_metadata_or_members(
    data: Any, metadata: dict[str, Any] | None, expected: ToolEvent | None
) -> None:
    part = {"data": data} | ({} if metadata is None else {"metadata": metadata})
    assert read(chunk_with(part)) == FrameContent(tools=[expected] if expected is not None else [])


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"task": []},
        {"task": {"id": "t1", "contextId": "c1"}},
        {
            "statusUpdate": {
                "taskId": "t1",
                "contextId": "c1",
                "status": {"state": "TASK_STATE_WORKING"},
            }
        },
        {"artifactUpdate": {"taskId": "t1"}},
        {"error": {"code": 1}},
    ],
)
def test_events_without_parts_have_no_content(value: dict[str, Any]) -> None:
    assert read(value) == FrameContent()


def test_a_payload_that_cannot_be_read_has_no_content() -> None:
    for payload in (b"", b"no json", b"[1]"):
        assert content_of_frame(frame(payload), Dialect.V1_0, "SendMessage") == FrameContent()


def test_objects_of_0_3_are_read_in_the_form_of_1_0() -> None:
    part = {"kind": "file", "file": {"bytes": CODED, "mimeType": "image/png", "name": "a.png"}}
    update = {
        "kind": "artifact-update",
        "taskId": "t1",
        "contextId": "c1",
        "artifact": {"artifactId": "a1", "parts": [part]},
    }
    (found,) = read({"jsonrpc": "2.0", "id": 1, "result": update}, Dialect.V0_3).media
    assert (found.path, found.data, found.filename) == (
        "artifactUpdate.artifact.parts[0]",
        RAW,
        "a.png",
    )


def test_a_request_has_the_content_of_its_message() -> None:
    params = {"message": {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "hello"}]}}
    request = msgspec.json.encode(
        {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params}
    )
    assert content_of_frame(
        frame(request, kind=FrameKind.REQUEST), Dialect.V1_0, "SendMessage"
    ).texts == [("m7", "hello")]


@pytest.mark.parametrize(
    ("schema_set", "name", "value", "texts"),
    [
        ("live-1975", "LiveRequest", {"message": {"message": TOLD}}, [("m7", "told")]),
        ("live-1975", "LiveResponse", {"event": {"message": TOLD}}, [("m7", "told")]),
        ("live-1975", "LiveResponse", {"event": chunk_with({"text": "told"})}, [("a1", "told")]),
        ("live-2153", "StreamRequest", {"message": TOLD}, [("m7", "told")]),
        ("live-2153", "StreamRequest", chunk_with({"text": "told"}), [("a1", "told")]),
        ("live-2153", "StreamResponse", chunk_with({"text": "told"}), [("a1", "told")]),
        ("live-2153", "StreamResponse", {"message": TOLD}, [("m7", "told")]),
    ],
)
def test_messages_and_events_of_live_streams(
    schema_set: SchemaSet, name: str, value: dict[str, Any], texts: list[tuple[str, str]]
) -> None:
    assert read_live(schema_set, name, value).texts == texts


@pytest.mark.parametrize("name", ["LiveRequest", "LiveResponse"])
def test_the_part_of_a_media_frame(name: str) -> None:
    (found,) = read_live("live-1975", name, {"frame": {"part": PICTURE}}).media
    assert (found.path, found.artifact_id, found.media_type, found.data) == (
        "frame.part",
        "",
        "image/png",
        RAW,
    )
    assert read_live("live-1975", name, {"frame": {"part": {"text": "hi"}}}).texts == [("m7", "hi")]
    assert read_live("live-1975", name, {"frame": {}}) == FrameContent()
