"""gRPC messages that are broken, too large, too many or too few."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from mutations.breaks_grpc import BOTH, CALLS, ERROR, STREAMS, refused, stream, unary
from support_mutations import Talk, Want, mutation


@mutation(*STREAMS)
def a_prefix_begins_with_two(talk: Talk) -> Iterator[Want]:
    """Neither compressed nor not."""
    call = stream(talk)
    last = call.answers[-1]
    last.wire = b"\2" + struct.pack(">I", len(last.data)) + last.data
    yield Want("A2A-GRPC-005", call, last)
    yield Want("UNDECODABLE", call, last)


@mutation(*CALLS)
def an_answer_is_shorter_than_its_prefix_says(talk: Talk) -> Iterator[Want]:
    """The stream ends inside a message."""
    call = unary(talk)
    answer = call.answers[0]
    answer.wire = b"\0" + struct.pack(">I", len(answer.data) + 9) + answer.data
    yield Want("A2A-GRPC-005", call, answer)
    yield Want("UNDECODABLE", call, answer)


@mutation(*STREAMS)
def a_message_is_compressed_and_nobody_said_how(talk: Talk) -> Iterator[Want]:
    """The flag is set, grpc-encoding is not there."""
    call = stream(talk)
    broken = call.answers[3]
    broken.wire = b"\1" + struct.pack(">I", len(broken.data)) + broken.data
    yield Want("A2A-GRPC-006", call, broken)
    yield Want("UNDECODABLE", call, broken)


@mutation(*CALLS)
def an_answer_is_said_to_be_gzip(talk: Talk) -> Iterator[Want]:
    """And is not."""
    call = unary(talk)
    call.set("grpc-encoding", "gzip", reply=True)
    answer = call.answers[0]
    answer.wire = b"\1" + struct.pack(">I", len(answer.data)) + answer.data
    yield Want("A2A-GRPC-006", call, answer)
    yield Want("UNDECODABLE", call, answer)


@mutation(*CALLS)
def an_answer_is_no_message(talk: Talk) -> Iterator[Want]:
    """A length that leads out of the message."""
    call = unary(talk)
    call.answers[0].data = b"\x0a\x7f" + call.answers[0].data[:20]
    yield Want("A2A-GRPC-007", call, call.answers[0])
    yield Want("UNDECODABLE", call, call.answers[0])


@mutation(*STREAMS)
def a_text_is_not_utf8(talk: Talk) -> Iterator[Want]:
    """An artifact in another coding."""
    call = stream(talk)
    broken = next(
        each for each in call.answers if b"2 of" in each.data or b"Afternoon" in each.data
    )
    broken.data = broken.data.replace(b"2", b"\xe9", 1).replace(b"tram", b"tr\xe9m", 1)
    yield Want("A2A-GRPC-007", call, broken)
    yield Want("UNDECODABLE", call, broken)


@mutation(*BOTH)
def a_request_is_no_message(talk: Talk) -> Iterator[Want]:
    """The client's own bytes; the agent fails the call."""
    call = unary(talk)
    call.requests[0].data = b"\x0a\x02\xc3\x28"
    call.answers, call.reply_headers, call.trailers = (
        [],
        [list(each) for each in refused(talk, 5).reply_headers],
        [],
    )
    call.set("grpc-status", "13", reply=True)
    call.set(ERROR.decode(), None, reply=True)
    yield Want("A2A-GRPC-007", call, call.requests[0])
    yield Want("UNDECODABLE", call, call.requests[0])


@mutation(*BOTH, "demo")
def an_answer_comes_twice(talk: Talk) -> Iterator[Want]:
    """A unary call has one."""
    call = unary(talk)
    call.answers.append(call.answers[0].again())
    yield Want("A2A-GRPC-008", call)


@mutation(*CALLS)
def an_answer_is_lost(talk: Talk) -> Iterator[Want]:
    """Status OK and nothing else."""
    call = unary(talk)
    call.answers = []
    yield Want("A2A-GRPC-008", call)


@mutation(*CALLS)
def a_request_comes_twice(talk: Talk) -> Iterator[Want]:
    """The client streams where nothing is taken but one message."""
    call = unary(talk)
    call.requests.append(call.requests[0].again())
    yield Want("A2A-GRPC-008", call)


@mutation(*CALLS)
def an_error_comes_after_the_answer(talk: Talk) -> Iterator[Want]:
    """The library drops the answer."""
    call = unary(talk)
    call.set("grpc-status", "13", trailer=True)
    call.set("grpc-message", "broken", trailer=True)
    yield Want("A2A-GRPC-008", call)


@mutation(*STREAMS)
def an_event_has_an_unknown_field(talk: Talk) -> Iterator[Want]:
    """Number 15 of the stream's answer."""
    call = stream(talk)
    call.answers[2].data += b"\x7a\x03new"
    yield Want("A2A-GRPC-010", call, call.answers[2])


@mutation(*CALLS)
def a_request_has_an_unknown_field(talk: Talk) -> Iterator[Want]:
    """A client that was built from something newer."""
    call = unary(talk)
    call.requests[0].data += b"\xf8\x01\x07"
    yield Want("A2A-GRPC-010", call, call.requests[0])


@mutation(*STREAMS)
def an_event_is_two_events(talk: Talk) -> Iterator[Want]:
    """A message before what parsers keep."""
    call = stream(talk)
    call.answers[2].data = b"\x12\x00" + call.answers[2].data
    yield Want("A2A-GRPC-011", call, call.answers[2])
