"""Broken JSON-RPC texts and envelopes."""

from __future__ import annotations

from collections.abc import Iterator

from mutations.pick import JSONRPC, REST, alone, change, pick, raw, refused, replace, stream
from support_mutations import Talk, Want, mutation

V1 = ("sdk-1.x-jsonrpc", "js-three-bindings")
OLD = ("sdk-0.3-jsonrpc", "dialect-0.2")
LOOKUPS = ("sdk-1.x-jsonrpc", "sdk-0.3-jsonrpc", "dialect-0.2")
"""Samples with GetTask on JSON-RPC, of an existing task and of an unknown one."""
ALL = (*V1, *OLD, "js-to-0.3", "demo")
MIDDLE = 3
"""The index of a chunk in the middle of a stream."""


# --- text


@mutation(*LOOKUPS)
def the_answer_is_cut_short(talk: Talk) -> Iterator[Want]:
    """The last bytes of the body are missing, its length says so."""
    call = pick(talk, "GetTask", JSONRPC)
    call.answers[0].data = call.answers[0].data[:-2]
    yield Want("A2A-RPC-001", call, call.answers[0])


@mutation("sdk-1.x-rest", "sdk-0.3-rest")
def a_rest_answer_is_cut_short(talk: Talk) -> Iterator[Want]:
    """The last bytes of the body are missing, its length says so."""
    call = pick(talk, "GetTask", REST)
    call.answers[0].data = call.answers[0].data[:-2]
    yield Want("A2A-RPC-001", call, call.answers[0])


@mutation("sdk-1.x-rest", "sdk-0.3-rest", "js-three-bindings")
def a_rest_request_is_cut_short(talk: Talk) -> Iterator[Want]:
    """The agent answers it as if it were complete."""
    call = alone(talk, "SendMessage", REST)
    call.requests[0].data = call.requests[0].data[:-1]
    yield Want("A2A-RPC-001", call, call.requests[0])


@mutation(*LOOKUPS)
def the_answer_is_empty(talk: Talk) -> Iterator[Want]:
    """Status 200 and an empty body."""
    call = pick(talk, "GetTask", JSONRPC)
    call.answers = []
    yield Want("A2A-RPC-001", call)


@mutation(*LOOKUPS)
def the_answer_is_a_number(talk: Talk) -> Iterator[Want]:
    """The result is not in an object."""
    call = pick(talk, "GetTask", JSONRPC)
    replace(call.answers[0], 7)
    yield Want("A2A-RPC-008", call, call.answers[0])


@mutation(*LOOKUPS)
def something_follows_the_answer(talk: Talk) -> Iterator[Want]:
    """Two JSON values in one body."""
    call = pick(talk, "GetTask", JSONRPC)
    call.answers[0].data += b"{}"
    yield Want("A2A-RPC-001", call, call.answers[0])


@mutation(*LOOKUPS)
def the_request_is_cut_short(talk: Talk) -> Iterator[Want]:
    """The agent answers it as if it were complete."""
    call = pick(talk, "GetTask", JSONRPC)
    call.requests[0].data = call.requests[0].data[:-1]
    yield Want("A2A-RPC-001", call, call.requests[0])


@mutation(*ALL)
def an_event_is_cut_short(talk: Talk) -> Iterator[Want]:
    """The data of one event in the middle of a stream, which is lost."""
    call = stream(talk, JSONRPC)
    event = call.answers[1]
    event.data = event.data[:-2]
    yield Want("A2A-SSE-002", call, event)


@mutation(*LOOKUPS)
def a_name_stands_twice(talk: Talk) -> Iterator[Want]:
    """The id of the response."""
    call = pick(talk, "GetTask", JSONRPC)
    raw(call.answers[0], b'"jsonrpc":', b'"jsonrpc":"2.0","jsonrpc":')
    yield Want("A2A-RPC-018", call, call.answers[0])


@mutation(*ALL)
def a_name_stands_twice_in_an_event(talk: Talk) -> Iterator[Want]:
    """The member `contextId` of an update."""
    call = stream(talk, JSONRPC)
    event = call.answers[MIDDLE]
    raw(event, b'"contextId":', b'"contextId":"c-0","contextId":')
    yield Want("A2A-RPC-018", call, event)


# --- envelope


@mutation(*LOOKUPS)
def the_request_says_jsonrpc_1(talk: Talk) -> Iterator[Want]:
    """Another version of JSON-RPC."""
    call = pick(talk, "GetTask", JSONRPC)
    change(call.requests[0], lambda body: body.update(jsonrpc="1.0"))
    yield Want("A2A-RPC-002", call, call.requests[0])


@mutation(*LOOKUPS)
def the_response_has_a_number_as_version(talk: Talk) -> Iterator[Want]:
    """2.0 and not "2.0"."""
    call = pick(talk, "GetTask", JSONRPC)
    change(call.answers[0], lambda body: body.update(jsonrpc=2.0))
    yield Want("A2A-RPC-002", call, call.answers[0])


@mutation(*ALL)
def an_event_without_jsonrpc(talk: Talk) -> Iterator[Want]:
    """It has an id and a result."""
    call = stream(talk, JSONRPC)
    event = call.answers[MIDDLE]
    change(event, lambda body: body.pop("jsonrpc"))
    yield Want("A2A-RPC-002", call, event)


@mutation(*LOOKUPS)
def a_batch_of_one(talk: Talk) -> Iterator[Want]:
    """The request is an array, and so is its answer."""
    call = pick(talk, "GetTask", JSONRPC)
    replace(call.requests[0], [call.requests[0].value])
    replace(call.answers[0], [call.answers[0].value])
    yield Want("A2A-RPC-003", call, call.requests[0])


@mutation(*LOOKUPS)
def an_array_as_response(talk: Talk) -> Iterator[Want]:
    """To a single call."""
    call = pick(talk, "GetTask", JSONRPC)
    replace(call.answers[0], [call.answers[0].value])
    yield Want("A2A-RPC-003", call, call.answers[0])


@mutation(*LOOKUPS)
def neither_result_nor_error(talk: Talk) -> Iterator[Want]:
    """The envelope has neither."""
    call = pick(talk, "GetTask", JSONRPC)
    change(call.answers[0], lambda body: body.pop("result"))
    yield Want("A2A-RPC-008", call, call.answers[0])


@mutation(*LOOKUPS)
def result_and_error(talk: Talk) -> Iterator[Want]:
    """The envelope has both."""
    call = refused(talk)
    change(call.answers[0], lambda body: body.update(result={"id": "t1"}))
    yield Want("A2A-RPC-008", call, call.answers[0])


@mutation(*LOOKUPS)
def a_result_of_null_beside_the_error(talk: Talk) -> Iterator[Want]:
    """As older libraries write it."""
    call = refused(talk)
    change(call.answers[0], lambda body: body.update(result=None))
    yield Want("A2A-RPC-008", call, call.answers[0])
