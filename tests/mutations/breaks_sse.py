"""Broken event streams: lines, names, ids, data and ends."""

from __future__ import annotations

import json
from collections.abc import Iterator

from mutations.pick import JSONRPC, REST, change, raw, replace, stream
from support_mutations import Ex, Msg, Talk, Want, mutation

JSON = ("sdk-1.x-jsonrpc", "sdk-0.3-jsonrpc", "js-to-0.3", "dialect-0.2", "demo")
ALL = (*JSON, "sdk-1.x-rest", "sdk-0.3-rest", "js-three-bindings")
V1 = ("sdk-1.x-jsonrpc", "sdk-1.x-rest", "js-three-bindings", "demo")
MIDDLE = 3
"""The index of a chunk in the middle of a stream."""


def _stream(talk: Talk) -> Ex:
    """Return the first stream over HTTP/1 that shows a task from its beginning to its end."""
    found = [
        each
        for each in talk.all("SendStreamingMessage", streams=True, grpc=False)
        if len(each.answers) > 5
    ]
    return found[0]


def _crashed(talk: Talk) -> Ex:
    """Return a stream that ended with an error."""
    return next(each for each in talk.all("SendStreamingMessage", grpc=False) if _fails(each))


def _fails(call: Ex) -> bool:
    return (
        call.streams
        and bool(call.answers)
        and "error" in call.answers[-1].value
        and len(call.answers) > 1
    )


def _raw(call: Ex, index: int, data: bytes) -> Msg:
    """Insert a block before this event."""
    made = Msg(b"", call.answers[index].at, "json")
    made.wire = data
    call.answers.insert(index, made)
    return made


# --- lines


@mutation(*ALL)
def a_ping_that_is_no_comment(talk: Talk) -> Iterator[Want]:
    """An event name without data."""
    call = _stream(talk)
    yield Want("A2A-SSE-001", call, _raw(call, MIDDLE, b"event: ping\n\n"))


@mutation(*ALL)
def data_in_words(talk: Talk) -> Iterator[Want]:
    """The data is not JSON."""
    call = _stream(talk)
    made = _raw(call, MIDDLE, b"data: still there\n\n")
    yield Want("A2A-SSE-002", call, made)


@mutation(*ALL)
def the_last_line_is_open(talk: Talk) -> Iterator[Want]:
    """The empty line after the terminal state is missing."""
    call = _stream(talk)
    last = call.answers[-1]
    last.wire = b"data: " + json.dumps(last.value).encode() + b"\n"
    yield Want("A2A-SSE-003", call, last)


@mutation(*ALL)
def a_name_for_an_event(talk: Talk) -> Iterator[Want]:
    """Browsers deliver it only to listeners of that name."""
    call = _stream(talk)
    event = call.answers[MIDDLE]
    event.framing = "event: artifact\n" + event.framing
    yield Want("A2A-SSE-006", call, event)


@mutation(*ALL)
def an_unknown_field(talk: Talk) -> Iterator[Want]:
    """Clients ignore it."""
    call = _stream(talk)
    event = call.answers[MIDDLE]
    event.framing = "priority: high\n" + event.framing
    yield Want("A2A-SSE-006", call, event)


@mutation(*ALL)
def lines_that_end_with_cr(talk: Talk) -> Iterator[Want]:
    """Legal, and not read by every client."""
    call = _stream(talk)
    event = call.answers[MIDDLE]
    event.framing = "data: \0\r\r"
    yield Want("A2A-SSE-016", call, event)


@mutation(*ALL)
def an_event_id_twice(talk: Talk) -> Iterator[Want]:
    """Both events have the id 7."""
    call = _stream(talk)
    for event in call.answers[1:3]:
        event.framing = "id: 7\n" + event.framing
    yield Want("A2A-SSE-010", call, call.answers[2])


@mutation(*ALL)
def a_stream_is_to_be_resumed(talk: Talk) -> Iterator[Want]:
    """By the id of its last event."""
    call = _stream(talk)
    call.set("last-event-id", "7")
    yield Want("A2A-SSE-010", call)


# --- bytes


@mutation(*ALL)
def a_stream_in_latin_1(talk: Talk) -> Iterator[Want]:
    """By its content type."""
    call = _stream(talk)
    call.set("content-type", "text/event-stream; charset=iso-8859-1", reply=True)
    yield Want("A2A-SSE-009", call)


@mutation(*JSON[:-1], "sdk-1.x-rest", "sdk-0.3-rest", "js-three-bindings")
def a_byte_of_latin_1(talk: Talk) -> Iterator[Want]:
    """In the text of an artifact."""
    call = _stream(talk)
    event = call.answers[MIDDLE]
    replace(event, event.value)
    raw(event, b"piece", "pi\u00e8ce".encode("latin-1"))
    yield Want("A2A-SSE-009", call, event)
    yield Want("A2A-HTTP-015", call, event)


@mutation(*ALL)
def a_mark_in_mid_stream(talk: Talk) -> Iterator[Want]:
    """A byte order mark: the line has an unknown field, and its event is lost."""
    call = _stream(talk)
    made = _raw(call, MIDDLE, b"\xef\xbb\xbfdata: {}\n\n")
    yield Want("A2A-SSE-009", call, made)


@mutation(*ALL)
def a_stream_to_be_stored(talk: Talk) -> Iterator[Want]:
    """No `Cache-Control`."""
    call = _stream(talk)
    call.set("cache-control", None, reply=True)
    yield Want("A2A-SSE-013", call)


# --- what events hold


@mutation(*JSON)
def all_events_without_their_envelope(talk: Talk) -> Iterator[Want]:
    """Reported once; they are decoded all the same."""
    call = stream(talk, JSONRPC)
    for event in call.answers:
        replace(event, event.value["result"])
    yield Want("A2A-SSE-004", call, call.answers[0])


@mutation(*JSON)
def an_event_without_its_envelope(talk: Talk) -> Iterator[Want]:
    """As in REST."""
    call = stream(talk, JSONRPC)
    event = call.answers[1]
    replace(event, event.value["result"])
    yield Want("A2A-SSE-004", call, event)


@mutation("sdk-1.x-rest", "js-three-bindings")
def an_event_in_an_envelope(talk: Talk) -> Iterator[Want]:
    """As in JSON-RPC."""
    call = stream(talk, REST)
    event = call.answers[1]
    replace(event, {"jsonrpc": "2.0", "id": 1, "result": event.value})
    yield Want("A2A-SSE-005", call, event)
    yield Want("A2A-SCH-004", call, event)


@mutation("sdk-1.x-rest", "js-three-bindings")
def two_things_in_one_event(talk: Talk) -> Iterator[Want]:
    """A status and an artifact."""
    call = stream(talk, REST)
    event, artifact = call.answers[6], call.answers[7].value
    change(event, lambda body: body.update(artifact))
    del call.answers[7]
    yield Want("A2A-SSE-005", call, event)
    yield Want("A2A-SCH-004", call, event)


# --- errors and ends


@mutation("sdk-1.x-jsonrpc", "sdk-1.x-rest", "dialect-0.2")
def an_event_after_an_error(talk: Talk) -> Iterator[Want]:
    """The last chunk is late."""
    call = _crashed(talk)
    call.answers[-1], call.answers[-2] = call.answers[-2], call.answers[-1]
    yield Want("A2A-SSE-008", call, call.answers[-1])


@mutation("sdk-1.x-jsonrpc", "sdk-1.x-rest", "dialect-0.2")
def an_error_twice(talk: Talk) -> Iterator[Want]:
    """The second one has the same content."""
    call = _crashed(talk)
    call.answers.append(call.answers[-1].again())
    yield Want("A2A-SSE-008", call, call.answers[-1])


@mutation(*ALL)
def a_stream_is_cut_off(talk: Talk) -> Iterator[Want]:
    """The agent resets it while the task is not finished."""
    call = _stream(talk)
    del call.answers[-1]
    call.finish = "cut"
    yield Want("A2A-END-018", call)


@mutation(*ALL)
def a_stream_without_its_last_chunk(talk: Talk) -> Iterator[Want]:
    """The connection is closed while the task is not finished."""
    call = _stream(talk)
    del call.answers[-1]
    call.finish = "stall"
    yield Want("A2A-END-018", call)
