"""Wrong content types and streams over HTTP."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from a2a_proxy.model.values import Binding
from mutations.pick import JSONRPC, REST, change, pick, raw, stream
from support_mutations import Ex, Talk, Want, block, mutation

RPC_V1 = ("sdk-1.x-jsonrpc", "js-three-bindings")
RPC_ALL = (*RPC_V1, "sdk-0.3-jsonrpc", "js-to-0.3", "dialect-0.2")
REST_V1 = ("sdk-1.x-rest", "js-three-bindings")
STREAMS = (
    "sdk-1.x-jsonrpc",
    "sdk-1.x-rest",
    "sdk-0.3-jsonrpc",
    "sdk-0.3-rest",
    "js-to-0.3",
    "dialect-0.2",
    "demo",
)
LOOKUPS = ("sdk-1.x-jsonrpc", "sdk-0.3-jsonrpc", "dialect-0.2")


def _send(talk: Talk, binding: Binding) -> Ex:
    """Return a message that was answered without a stream."""
    return pick(talk, "SendMessage", binding)


# --- content types


@mutation(*RPC_ALL)
def a_call_as_plain_text(talk: Talk) -> Iterator[Want]:
    """JSON-RPC is application/json."""
    call = _send(talk, JSONRPC)
    call.set("content-type", "text/plain")
    yield Want("A2A-HTTP-001", call, call.requests[0])


@mutation(*RPC_ALL)
def a_call_without_a_type(talk: Talk) -> Iterator[Want]:
    """The field is missing."""
    call = _send(talk, JSONRPC)
    call.set("content-type", None)
    yield Want("A2A-HTTP-001", call, call.requests[0])


@mutation(*RPC_ALL)
def a_response_as_html(talk: Talk) -> Iterator[Want]:
    """The body is JSON-RPC."""
    call = _send(talk, JSONRPC)
    call.set("content-type", "text/html", reply=True)
    yield Want("A2A-HTTP-002", call, call.answers[0])


def _put_page(call: Ex, status: int) -> None:
    """Answer with an HTML page."""
    call.status, call.answers[0].data = status, b"<!doctype html><title>agent</title>"
    call.set("content-type", "text/html; charset=utf-8", reply=True)


@mutation(*LOOKUPS)
def a_page_in_place_of_a_response(talk: Talk) -> Iterator[Want]:
    """The page of a server with the agent's address."""
    call = pick(talk, "GetTask", JSONRPC)
    _put_page(call, 200)
    yield Want("A2A-HTTP-002", call, call.answers[0])


@mutation(*LOOKUPS)
def a_page_about_a_crash(talk: Talk) -> Iterator[Want]:
    """The agent's framework answers, not the agent."""
    call = pick(talk, "GetTask", JSONRPC)
    _put_page(call, 500)
    yield Want("A2A-HTTP-002", call, call.answers[0])


@mutation("sdk-1.x-rest", "sdk-0.3-rest")
def a_page_in_place_of_a_rest_answer(talk: Talk) -> Iterator[Want]:
    """The page of a server with the agent's address."""
    call = pick(talk, "GetTask", REST)
    _put_page(call, 200)
    yield Want("A2A-HTTP-008", call, call.answers[0])


@mutation("sdk-1.x-rest", "sdk-0.3-rest")
def a_page_about_a_crash_on_rest(talk: Talk) -> Iterator[Want]:
    """The agent's framework answers, not the agent."""
    call = pick(talk, "GetTask", REST)
    _put_page(call, 500)
    yield Want("A2A-HTTP-008", call, call.answers[0])


@mutation("sdk-1.x-rest", "demo")
def a_rest_body_as_text_json(talk: Talk) -> Iterator[Want]:
    """`text/json`."""
    call = pick(talk, "SendMessage", REST, 1)
    call.set("content-type", "text/json")
    yield Want("A2A-HTTP-008", call, call.requests[0])


@mutation(*REST_V1, "demo")
def a_rest_answer_as_text_json(talk: Talk) -> Iterator[Want]:
    """`text/json`."""
    call = _send(talk, REST)
    call.set("content-type", "text/json", reply=True)
    yield Want("A2A-HTTP-008", call)


@mutation("demo")
def a_rest_body_as_plain_json(talk: Talk) -> Iterator[Want]:
    """Correct in 1.0.0, wrong since 1.0.1."""
    call = _send(talk, REST)
    call.set("content-type", "application/json")
    yield Want("A2A-HTTP-008", call, call.requests[0])


@mutation(*RPC_ALL)
def a_call_in_latin_1(talk: Talk) -> Iterator[Want]:
    """According to its type; the body is ASCII."""
    call = _send(talk, JSONRPC)
    call.set("content-type", "application/json; charset=iso-8859-1")
    yield Want("A2A-HTTP-015", call)


@mutation("sdk-1.x-rest", "demo")
def a_rest_answer_in_utf_16(talk: Talk) -> Iterator[Want]:
    """According to its type."""
    call = _send(talk, REST)
    call.set("content-type", "application/a2a+json; charset=utf-16", reply=True)
    yield Want("A2A-HTTP-015", call)


@mutation(*LOOKUPS)
def bytes_of_latin_1(talk: Talk) -> Iterator[Want]:
    """An umlaut in one byte."""
    call = _send(talk, JSONRPC)
    raw(call.answers[0], b"forty-two", "f\u00fcnf".encode("latin-1"))
    yield Want("A2A-HTTP-015", call, call.answers[0])
    yield Want("A2A-RPC-001", call, call.answers[0])


# --- streams


@mutation(*STREAMS)
def a_stream_as_lines(talk: Talk) -> Iterator[Want]:
    """One JSON object a line."""
    call = stream(talk)
    call.set("content-type", "application/x-ndjson", reply=True)
    yield Want("A2A-HTTP-003", call, call.answers[0])


@mutation("sdk-1.x-jsonrpc", "sdk-1.x-rest")
def a_streaming_call_gets_one_object(talk: Talk) -> Iterator[Want]:
    """A complete task."""
    call = stream(talk)
    call.set("content-type", "application/json", reply=True)
    done = call.answers[-1].value
    inner = done.get("result", done)
    status = inner.pop("statusUpdate")["status"]
    answer = call.answers[0]
    change(answer, lambda body: body.get("result", body)["task"].update(status=status))
    answer.framing = ""
    call.answers = [answer]
    yield Want("A2A-HTTP-004", call, answer)


@mutation("sdk-1.x-jsonrpc", "sdk-0.3-jsonrpc", "dialect-0.2", "demo")
def a_send_gets_a_stream(talk: Talk) -> Iterator[Want]:
    """The client asked for one answer."""
    call = stream(talk, JSONRPC)
    one = {"SendStreamingMessage": "SendMessage", "message/stream": "message/send"}
    change(call.requests[0], lambda body: body.update(method=one[body["method"]]))
    yield Want("A2A-HTTP-005", call)


@mutation("sdk-1.x-rest")
def a_rest_send_gets_a_stream(talk: Talk) -> Iterator[Want]:
    """The client asked for one answer."""
    call = stream(talk, REST)
    call.target = call.target.replace(":stream", ":send")
    yield Want("A2A-HTTP-005", call)


@mutation(*STREAMS)
def a_stream_is_not_accepted(talk: Talk) -> Iterator[Want]:
    """The client accepts only JSON."""
    call = stream(talk)
    call.set("accept", "application/json")
    yield Want("A2A-HTTP-006", call, call.requests[0])


@mutation(*STREAMS)
def nothing_is_said_to_be_accepted(talk: Talk) -> Iterator[Want]:
    """The field is missing."""
    call = stream(talk)
    call.set("accept", None)
    yield Want("A2A-HTTP-006", call, call.requests[0])


@mutation(*STREAMS)
def a_compressed_stream(talk: Talk) -> Iterator[Want]:
    """Each event is flushed, so that none is late."""
    call = stream(talk)
    call.coding = "gzip"
    pack = zlib.compressobj(wbits=31)
    for each in call.answers:
        each.wire = pack.compress(block(each)) + pack.flush(zlib.Z_SYNC_FLUSH)
    call.tail = pack.flush()
    yield Want("A2A-HTTP-019", call)


@mutation("sdk-1.x-jsonrpc", "sdk-1.x-rest")
def a_stream_that_was_held_back(talk: Talk) -> Iterator[Want]:
    """All updates arrive at once, five seconds after the call, with timestamps a second apart."""
    call = stream(talk)
    call.shift(1, 5_000_000_000)
    seconds = 36
    for each in call.answers:
        update = each.value.get("result", each.value).get("statusUpdate")
        if update is not None:
            raw(
                each,
                update["status"]["timestamp"].encode(),
                f"2026-11-21T07:34:{seconds}.000001Z".encode(),
            )
            seconds += 1
    yield Want("A2A-HTTP-019", call, call.answers[-1])
