"""Bodies whose content type does not say what they are."""

from __future__ import annotations

import base64
import gzip
import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from a2a_proxy.model.values import Binding, Frame, FrameKind
from a2a_proxy.wire.sse import rebuild_event
from support_conversation import (
    TO_CLIENT,
    Http,
    Played,
    play,
    play_bytewise,
    play_split,
    splits,
)
from support_messages import ask, status, task

_RESULTS = ({"task": task("SUBMITTED")}, status("WORKING", "on it"), status("COMPLETED"))
_ERROR = {"code": -32004, "message": "no stream here"}


def call(binding: str) -> Http:
    """A streaming call."""
    if binding == "rest":
        return Http().request("POST /message:stream", ask(), a2a_version="1.0")
    return Http().call("SendStreamingMessage", ask(), a2a_version="1.0")


def value(binding: str, result: Any) -> bytes:
    """An answer or an event in the binding."""
    made = result if binding == "rest" else {"jsonrpc": "2.0", "id": 1, "result": result}
    return json.dumps(made).encode()


def answers(played: Played) -> list[Frame]:
    """The frames of the agent."""
    return [each for each in played.frames if each.direction is TO_CLIENT]


def everywhere(script: Http) -> Played:
    """Play a script, the same in every split with a restart."""
    whole = play(script)
    for step, at in list(splits(script))[::3]:
        again = play_split(script, step, at, restart=True)
        assert [each.payload for each in again.frames] == [each.payload for each in whole.frames]
        assert [each.kind for each in again.frames] == [each.kind for each in whole.frames]
        assert again.exchange.states == whole.exchange.states
    assert play_bytewise(script).exchange.error == whole.exchange.error
    return whole


@pytest.mark.parametrize("binding", ["jsonrpc", "rest"])
@pytest.mark.parametrize(
    "kind",
    [
        "text/event-stream",
        "application/x-ndjson",
        "application/json",
        "text/plain",
        "application/json-seq",
    ],
)
@pytest.mark.parametrize("form", [b"%s\n", b"\x1e%s\n", b"%s", b"\xef\xbb\xbf%s\r\n\r\n"])
def test_json_objects_in_place_of_events_are_events(binding: str, kind: str, form: bytes) -> None:
    """One a line, after U+001E, or one after another, under any content type."""
    script = call(binding).stream(content_type=kind)
    body = b"".join(form % value(binding, each) for each in _RESULTS)
    half = len(body) // 2
    script.chunk(body[:half]).chunk(body[half:]).done()
    played = everywhere(script)
    events = [each for each in answers(played) if each.kind is FrameKind.EVENT]
    assert [each.payload for each in events] == [value(binding, each) for each in _RESULTS]
    assert [each.task_id for each in events] == ["t1"] * 3
    assert played.exchange.states == ("submitted", "working", "completed")
    assert played.exchange.error == "JSON in place of server-sent events"
    assert played.exchange.streaming
    rebuilt = [rebuild_event(each.framing, each.payload) for each in answers(played)]
    assert b"".join(rebuilt) == body


@pytest.mark.parametrize("binding", ["jsonrpc", "rest"])
@pytest.mark.parametrize("kind", ["application/json", "text/plain", "text/html"])
def test_events_under_another_content_type_are_events(binding: str, kind: str) -> None:
    """The fields show that the body is an event stream."""
    script = call(binding).stream(content_type=kind)
    for each in _RESULTS:
        script.chunk(b"data: " + value(binding, each) + b"\n\n")
    played = everywhere(script.done())
    assert [each.kind for each in answers(played)] == [FrameKind.EVENT] * 3 + [FrameKind.END]
    assert played.exchange.states == ("submitted", "working", "completed")
    assert played.exchange.error == f"server-sent events under {kind}"
    assert played.exchange.streaming


def test_an_object_is_shown_before_the_next_one_arrives() -> None:
    """Where the content type announces several."""
    stream = call("jsonrpc").stream(content_type="application/x-ndjson")
    (event,) = answers(play(stream.chunk(value("jsonrpc", _RESULTS[0]))))
    assert event.kind is FrameKind.EVENT


@pytest.mark.parametrize("lead", [b"[connected]\n\n", b'{"hello":1}\n\n', b"<!-- pad -->\n\n"])
def test_lines_that_event_streams_ignore_hide_no_event(lead: bytes) -> None:
    events = b"".join(b"data: " + value("jsonrpc", each) + b"\n\n" for each in _RESULTS)
    played = everywhere(call("jsonrpc").stream().chunk(lead + events).done())
    found = [each for each in answers(played) if each.kind is not FrameKind.COMMENT]
    assert [each.kind for each in found] == [FrameKind.EVENT] * len(_RESULTS) + [FrameKind.END]
    assert played.exchange.streaming
    assert not played.exchange.error


@pytest.mark.parametrize("padding", [b" " * 2_000_000, b"\n" * 20_000])
def test_large_object_in_place_of_events_is_read(padding: bytes) -> None:
    """Also before its end has arrived, or with blanks after it."""
    body = value("jsonrpc", _RESULTS[2])
    for data in (body + padding, body.replace(b": ", b":" + padding, 1)):
        found = answers(play(call("jsonrpc").stream().chunk(data[:-9]).chunk(data[-9:]).done()))
        assert [each.state for each in found if each.kind is FrameKind.EVENT] == [3]


@pytest.mark.parametrize("body", [b"id: not found\n", b":( sorry, no agent here\n", b"[]x\n"])
def test_prose_is_no_stream(body: bytes) -> None:
    played = everywhere(call("jsonrpc").answer(body, content_type="text/plain"))
    assert played.exchange.error == "HTTP 200 instead of JSON-RPC"
    assert not played.exchange.streaming


@pytest.mark.parametrize("lead", [b"\n\n", b"\xef\xbb\xbf"])
def test_bytes_before_one_object_are_kept_once(lead: bytes) -> None:
    body = lead + value("jsonrpc", _RESULTS[0])
    played = everywhere(call("jsonrpc").answer(body, content_type="application/json"))
    (response,) = answers(played)
    framing = (response.framing or "\0").encode("latin-1")
    assert framing.replace(b"\0", response.payload) == body


@pytest.mark.parametrize("binding", ["jsonrpc", "rest"])
def test_json_behind_a_byte_order_mark_is_read(binding: str) -> None:
    """Its task counts and its error is that of the call; a result is an error, because many clients
    cannot read it."""
    body = b"\xef\xbb\xbf" + value(binding, _RESULTS[0])
    played = everywhere(call(binding).answer(body, content_type="application/json"))
    (response,) = answers(played)
    assert (response.kind, response.task_id) == (FrameKind.RESPONSE, "t1")
    assert played.exchange.error == "JSON behind a byte order mark"
    error = b'{"jsonrpc": "2.0", "id": 1, "error": {"code": -32001, "message": "gone"}}'
    if binding == "rest":
        error = b'{"error": {"code": 404, "status": "NOT_FOUND", "message": "gone"}}'
    status = 404 if binding == "rest" else 200
    script = call(binding).answer(b"\xef\xbb\xbf" + error, status=status)
    assert "gone" in everywhere(script).exchange.error


def test_byte_order_mark_in_the_answer_to_a_notification_is_no_error() -> None:
    """The receiver's answer is not A2A; whoever delivers reads only its status."""
    script = Http().request("POST /hook", status("COMPLETED"), a2a_version="1.0")
    played = everywhere(script.answer(b'\xef\xbb\xbf{"ok":true}', content_type="text/json"))
    assert played.exchange.binding is Binding.WEBHOOK
    assert not played.exchange.error


@pytest.mark.parametrize("binding", ["jsonrpc", "rest"])
def test_events_in_an_unknown_coding_may_be_results(binding: str) -> None:
    script = call(binding).stream(content_encoding="foo").chunk(b"\x28\xb5\x2f").done()
    assert not everywhere(script).exchange.error


def test_page_of_an_error_status_is_no_sequence() -> None:
    """JSON under `text/event-stream` with an error status is the body of an HTTP error."""
    body = b'{"detail": "Unauthorized"}'
    played = everywhere(call("jsonrpc").answer(body, content_type="text/event-stream", status=401))
    assert played.exchange.error == "HTTP 401: Unauthorized"
    assert not played.exchange.events


def test_an_error_as_an_event_stream_is_the_error_of_the_call() -> None:
    """Whole, over several lines, compressed."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "error": _ERROR}, indent=1).encode()
    plain = call("jsonrpc").stream().chunk(body).done()
    packed = (
        call("jsonrpc").stream(content_encoding="gzip").chunk(gzip.compress(body, mtime=0)).done()
    )
    for script in (plain, packed):
        played = everywhere(script)
        error, end = answers(played)
        assert (error.kind, error.error_code, end.kind) == (FrameKind.ERROR, -32004, FrameKind.END)
        assert played.exchange.error == "UNSUPPORTED_OPERATION -32004: no stream here"


@pytest.mark.parametrize("kind", ["application/json", "text/plain"])
def test_one_object_under_another_content_type_stays_a_response(kind: str) -> None:
    """Also with blanks after it, and also if it is not whole."""
    body = value("jsonrpc", _RESULTS[0]) + b"\n \n"
    (response,) = answers(everywhere(call("jsonrpc").answer(body, content_type=kind)))
    assert (response.kind, response.payload) == (FrameKind.RESPONSE, body)
    script = call("jsonrpc").stream(content_type=kind).chunk(body[:40]).end("eof", TO_CLIENT)
    part, _ = answers(everywhere(script))
    assert (part.kind, part.note) == (FrameKind.UNDECODABLE, "body broke off")


def test_a_page_as_an_event_stream_is_no_stream() -> None:
    """It is kept whole, and the call fails."""
    page = b"<html>\n\n<p>data: sold\n\n</html>\n"
    played = everywhere(call("jsonrpc").stream().chunk(page).done())
    (frame,) = answers(played)
    assert (frame.kind, frame.payload) == (FrameKind.OTHER, page)
    assert played.exchange.error == "HTTP 200 instead of JSON-RPC"


def unary(binding: str) -> Http:
    """A call with one answer."""
    if binding == "rest":
        return Http().request("POST /message:send", ask(), a2a_version="1.0")
    return Http().call("SendMessage", ask(), a2a_version="1.0")


_FORMS: dict[str, Callable[[bytes], bytes]] = {
    "inside a JSON string": lambda body: json.dumps(body.decode()).encode(),
    "inside base64": base64.b64encode,
    "inside base64 in a JSON string": lambda body: b'"%s"' % base64.b64encode(body),
}


@pytest.mark.parametrize("binding", ["jsonrpc", "rest"])
@pytest.mark.parametrize("kind", ["application/json", "text/plain", "text/event-stream"])
@pytest.mark.parametrize("form", _FORMS)
@pytest.mark.parametrize("call", [call, unary])
def test_answers_inside_a_body_are_read(
    binding: str, kind: str, form: str, call: Callable[[str], Http]
) -> None:
    """A body that is as a whole a JSON string or base64: one answer, an error, or events."""
    events = b"".join(b"data: " + value(binding, each) + b"\n\n" for each in _RESULTS)
    error = {"error": _ERROR} if binding == "rest" else {"id": 1, "error": _ERROR}
    bodies = (value(binding, _RESULTS[0]), events, json.dumps({"jsonrpc": "2.0"} | error).encode())
    for body in bodies:
        played = everywhere(call(binding).answer(_FORMS[form](body) + b"\n", content_type=kind))
        found = [each for each in answers(played) if each.kind is not FrameKind.END]
        assert [each.note for each in found] == [form] * len(found)
        if body is bodies[2]:
            assert "-32004: no stream here" in played.exchange.error
            continue
        assert found[0].payload == value(binding, _RESULTS[0])
        assert played.exchange.states[0] == "submitted"
        assert len(found) == (3 if body is events else 1)
        assert played.exchange.error == f"answer {form}"


@pytest.mark.parametrize("binding", ["jsonrpc", "rest"])
@pytest.mark.parametrize("text", ["OK", "data", '"OK"', '"{"', "e30", "bnVsbA=="])
def test_texts_hold_no_answer(binding: str, text: str) -> None:
    """Base64 and JSON strings of something else."""
    played = everywhere(unary(binding).answer(text.encode(), content_type="text/plain"))
    (frame,) = answers(played)
    assert (frame.payload, frame.note) == (text.encode(), "")
    assert played.exchange.error


@pytest.mark.parametrize("binding", ["jsonrpc", "rest"])
@pytest.mark.parametrize("form", ["sse", "lines", "records", "array"])
@pytest.mark.parametrize("status", [200, 500])
def test_several_objects_for_one_are_events(binding: str, form: str, status: int) -> None:
    """Also with an error status, which is an error."""
    if (binding, form) == ("jsonrpc", "array"):
        return  # read as a batch of responses: `test_array_for_one`
    values = [value(binding, each) for each in _RESULTS]
    body = {
        "sse": b"".join(b"data: %s\n\n" % each for each in values),
        "lines": b"\n".join(values),
        "records": b"".join(b"\x1e%s\n" % each for each in values),
        "array": b"[%s]" % b", ".join(values),
    }[form]
    script = unary(binding).answer(body, content_type="application/json", status=status)
    played = everywhere(script)
    events = [each for each in answers(played) if each.kind is FrameKind.EVENT]
    assert [each.payload for each in events] == values
    rebuilt = [rebuild_event(each.framing, each.payload) for each in answers(played)]
    assert b"".join(rebuilt) == body
    assert played.exchange.states == ("submitted", "working", "completed")
    line = "server-sent events in place of one object" if form == "sse" else "several objects"
    assert played.exchange.error.startswith(line)


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
@pytest.mark.parametrize("binding", ["jsonrpc", "rest"])
def test_array_of_events(binding: str, kind: str) -> None:
    """In place of a stream; the answer to a batch is an array, too."""
    body = b"[%s]" % b",\n".join(value(binding, each) for each in _RESULTS)
    played = everywhere(call(binding).answer(body, content_type=kind))
    assert played.exchange.states == ("submitted", "working", "completed")
    assert played.exchange.error == "JSON in place of server-sent events"
    rebuilt = [rebuild_event(each.framing, each.payload) for each in answers(played)]
    assert b"".join(rebuilt) == body


@pytest.mark.parametrize("call", [call, unary])
def test_array_for_one(call: Callable[[str], Http]) -> None:
    """Its object counts; clients that sent no batch cannot read it."""
    played = everywhere(call("jsonrpc").answer(b" [%s]" % value("jsonrpc", _RESULTS[0])))
    assert played.exchange.states == ("submitted",)
    assert played.exchange.error == "array in place of one object"


def test_answer_to_a_batch_is_no_container() -> None:
    calls = [
        {"jsonrpc": "2.0", "id": at, "method": "SendStreamingMessage", "params": ask()}
        for at in (1, 2)
    ]
    script = Http().request("POST /", calls, a2a_version="1.0")
    body = b"[%s]" % b",".join(value("jsonrpc", each) for each in _RESULTS[:2])
    played = everywhere(script.answer(body))
    assert [each.note for each in answers(played)] == ["batch"] * 2
    assert not played.exchange.error
    failed = Http().request("POST /", calls, a2a_version="1.0").answer(body, status=500)
    assert play(failed).exchange.error == "HTTP 500: Internal Server Error"
    blanks = Http().request("POST /", b" " * 100 + json.dumps(calls).encode(), a2a_version="1.0")
    assert not play(blanks.answer(body)).exchange.error


def test_array_of_another_protocol_is_no_container() -> None:
    """Only what answers a call of A2A is judged."""
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    played = play(Http().request("POST /", asked).answer(b"[1, 2]"))
    assert played.exchange.binding is Binding.JSONRPC
    assert not played.exchange.error


@pytest.mark.parametrize("binding", ["jsonrpc", "rest"])
@pytest.mark.parametrize("body", [b"upstream exploded\n\n", bytes(range(200)), b'{"a\n\n'])
def test_body_without_an_event_is_kept_whole(binding: str, body: bytes) -> None:
    """Under `text/event-stream`, where clients ignore it."""
    for script in (call(binding), unary(binding)):
        played = everywhere(script.stream().chunk(body[:9]).chunk(body[9:]).done())
        (frame,) = answers(played)
        assert (frame.kind, frame.payload) == (FrameKind.OTHER, body)
        assert played.exchange.error.startswith("HTTP 200 instead of JSON")


def test_many_objects_for_one_are_one_body() -> None:
    """Looked for in linear time, and no more than some."""
    for body in (b"{}\n" * 1_100, b"{}\n" * 1_000_000, json.dumps('{"a":' * 4_000_000).encode()):
        script = unary("jsonrpc").answer(body)
        began = time.process_time()
        (frame,) = answers(play(script))
        assert time.process_time() - began < 3
        assert frame.size == len(body)
