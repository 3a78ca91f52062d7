"""gRPC calls with broken heads, prefixes, messages, numbers of messages and ends."""

from __future__ import annotations

from collections.abc import Iterator

from support_mutations import MS, Ex, Talk, Want, mutation

V1 = ("sdk-1.x-grpc", "js-three-bindings", "demo")
BOTH = ("sdk-1.x-grpc", "sdk-0.3-grpc")
CALLS = (*BOTH, "js-three-bindings", "demo")
STREAMS = (*CALLS, "concurrent-grpc")
ERROR = b"grpc-status-details-bin"


def unary(talk: Talk) -> Ex:
    """Return an answered call that only reads."""
    lookups = ("GetTask", "GetExtendedAgentCard")
    return next(each for name in lookups for each in talk.all(name, grpc=True) if each.answers)


def stream(talk: Talk) -> Ex:
    """Return a stream that shows a task from its beginning to its end, with an artifact in
    chunks."""
    return next(
        each for each in talk.all("SendStreamingMessage", grpc=True) if len(each.answers) > 5
    )


def refused(talk: Talk, status: int) -> Ex:
    """Return a call that ended with this status."""
    return next(each for each in talk.exchanges if each.facts.grpc_status == status)


@mutation(*CALLS)
def the_request_is_grpc_json(talk: Talk) -> Iterator[Want]:
    """An unknown content type."""
    call = unary(talk)
    call.set("content-type", "application/grpc+json")
    yield Want("A2A-GRPC-001", call)


@mutation(*STREAMS)
def the_answer_is_grpc_web(talk: Talk) -> Iterator[Want]:
    """The agent is behind a gRPC-Web proxy."""
    call = stream(talk)
    call.set("content-type", "application/grpc-web", reply=True)
    yield Want("A2A-GRPC-001", call)


@mutation(*CALLS)
def a_gateway_answers_502(talk: Talk) -> Iterator[Want]:
    """An HTML page instead of the answer."""
    call = unary(talk)
    call.status, call.trailers, call.answers = 502, [], []
    call.set("content-type", "text/html", reply=True)
    yield Want("A2A-GRPC-002", call)


@mutation(*CALLS)
def trailers_without_status(talk: Talk) -> Iterator[Want]:
    """The answer is complete, the status of the call is missing."""
    call = unary(talk)
    call.set("grpc-status", None, trailer=True)
    call.set("x-served-by", "node-1", trailer=True)
    yield Want("A2A-GRPC-003", call)


@mutation(*STREAMS)
def a_stream_ends_without_trailers(talk: Talk) -> Iterator[Want]:
    """END_STREAM on a DATA frame."""
    call = stream(talk)
    call.finish = "stall"
    yield Want("A2A-GRPC-003", call)


@mutation(*STREAMS)
def the_status_is_a_word(talk: Talk) -> Iterator[Want]:
    """OK in place of 0."""
    call = stream(talk)
    call.set("grpc-status", "OK", trailer=True)
    yield Want("A2A-GRPC-004", call)


@mutation(*CALLS)
def the_status_is_17(talk: Talk) -> Iterator[Want]:
    """The statuses are 0 to 16."""
    call = unary(talk)
    call.set("grpc-status", "17", trailer=True)
    yield Want("A2A-GRPC-004", call)
    yield Want("A2A-GRPC-008", call)


@mutation("sdk-1.x-grpc", "js-three-bindings")
def a_method_of_0_3(talk: Talk) -> Iterator[Want]:
    """TaskSubscription under the package of 1.0."""
    call = talk.all("SubscribeToTask", grpc=True)[-1]
    call.target = call.target.replace("SubscribeToTask", "TaskSubscription")
    _unimplemented(call)
    yield Want("A2A-GRPC-009", call)


@mutation("sdk-0.3-grpc", "demo")
def a_method_of_nobody(talk: Talk) -> Iterator[Want]:
    """GetTasks, an unknown method."""
    call = unary(talk)
    call.target += "s"
    _unimplemented(call)
    yield Want("A2A-GRPC-009", call)


def _unimplemented(call: Ex) -> None:
    call.answers, call.trailers = [], []
    call.set("grpc-status", "12", reply=True)
    call.set("grpc-message", "unknown method", reply=True)
    call.set(ERROR.decode(), None, reply=True)


@mutation("sdk-1.x-grpc")
def an_error_without_details(talk: Talk) -> Iterator[Want]:
    """NOT_FOUND alone."""
    call = refused(talk, 5)
    call.set(ERROR.decode(), None, reply=True)
    yield Want("A2A-GRPC-012", call)


@mutation("sdk-1.x-grpc")
def a_precondition_without_details(talk: Talk) -> Iterator[Want]:
    """FAILED_PRECONDITION stands for four errors."""
    call = refused(talk, 9)
    call.set(ERROR.decode(), None, reply=True)
    yield Want("A2A-GRPC-012", call)


@mutation("sdk-1.x-grpc")
def details_of_another_domain(talk: Talk) -> Iterator[Want]:
    """An ErrorInfo with a domain other than A2A's."""
    call = refused(talk, 5)
    for pair in call.reply_headers:
        if pair[0] == ERROR:
            pair[1] = pair[1].replace(b"a2a-protocol.org", b"my-protocol.org!")
    yield Want("A2A-GRPC-012", call)
    yield Want("A2A-ERR-004", call)


@mutation("sdk-1.x-grpc")
def details_of_another_status(talk: Talk) -> Iterator[Want]:
    """The status in the details differs from that of the call."""
    call = refused(talk, 5)
    for pair in call.reply_headers:
        if pair[0] == ERROR:
            pair[1] = pair[1].replace(b"\x08\x05", b"\x08\x09", 1)
    yield Want("A2A-GRPC-013", call)


@mutation("sdk-1.x-grpc")
def details_that_nobody_can_read(talk: Talk) -> Iterator[Want]:
    """They are truncated."""
    call = refused(talk, 5)
    for pair in call.reply_headers:
        if pair[0] == ERROR:
            pair[1] = pair[1][:-7]
    yield Want("A2A-GRPC-013", call)


@mutation(*CALLS)
def metadata_in_upper_case(talk: Talk) -> Iterator[Want]:
    """A name as HTTP/1.1 writes it."""
    call = unary(talk)
    call.headers.append([b"X-Request-Id", b"17"])
    yield Want("A2A-GRPC-014", call)


@mutation(*V1)
def the_version_comes_twice(talk: Talk) -> Iterator[Want]:
    """Two entries."""
    call = stream(talk)
    call.headers.append([b"a2a-version", b"1.0"])
    yield Want("A2A-GRPC-014", call)


@mutation(*STREAMS)
def the_agent_resets_a_stream(talk: Talk) -> Iterator[Want]:
    """In the middle of an artifact."""
    call = stream(talk)
    del call.answers[3:]
    call.finish = "cut"
    yield Want("A2A-END-018", call)


@mutation(*STREAMS)
def the_agent_resets_a_stream_at_once(talk: Talk) -> Iterator[Want]:
    """Before any event: the client cannot know whether the task exists."""
    call = stream(talk)
    call.answers = []
    call.finish = "cut"
    yield Want("A2A-END-005", call)


@mutation(*CALLS)
def a_deadline_passes(talk: Talk) -> Iterator[Want]:
    """The library ends the call."""
    call = unary(talk)
    call.answers, call.trailers = [], []
    call.set("grpc-timeout", "1S")
    call.set("grpc-status", "4", reply=True)
    call.set("grpc-message", "Deadline Exceeded", reply=True)
    yield Want("A2A-GRPC-017", call)


@mutation(*STREAMS)
def a_client_leaves_at_its_deadline(talk: Talk) -> Iterator[Want]:
    """It cancels the stream when its time is over."""
    call = stream(talk)
    del call.answers[3:]
    call.finish = "leave"
    call.set("grpc-timeout", f"{(call.ended - call.started) // MS}m")
    yield Want("A2A-GRPC-017", call)


@mutation("sdk-1.x-grpc")
def a_failure_is_unknown(talk: Talk) -> Iterator[Want]:
    """UNKNOWN, the status of libraries for an uncaught exception."""
    call = refused(talk, 3)
    call.set("grpc-status", "2", reply=True)
    call.set(ERROR.decode(), None, reply=True)
    yield Want("A2A-GRPC-018", call)
