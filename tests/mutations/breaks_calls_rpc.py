"""Broken JSON-RPC requests, ids, results and errors."""

from __future__ import annotations

from collections.abc import Iterator

from mutations.pick import JSONRPC, change, pick, refused, stream
from support_mutations import MS, Msg, Talk, Want, mutation

OLD = ("sdk-0.3-jsonrpc", "dialect-0.2")
LOOKUPS = ("sdk-1.x-jsonrpc", *OLD)
"""Samples with GetTask on JSON-RPC, of an existing task and of an unknown one."""
STREAMS = (*LOOKUPS, "js-three-bindings", "js-to-0.3", "demo")
MIDDLE = 3
"""The index of a chunk in the middle of a stream."""


# --- requests


@mutation(*LOOKUPS)
def a_request_without_method(talk: Talk) -> Iterator[Want]:
    """The agent answers it."""
    call = pick(talk, "GetTask", JSONRPC)
    change(call.requests[0], lambda body: body.pop("method"))
    yield Want("A2A-RPC-004", call, call.requests[0])


@mutation(*LOOKUPS)
def the_method_is_a_number(talk: Talk) -> Iterator[Want]:
    """The method cannot be identified."""
    call = pick(talk, "GetTask", JSONRPC)
    change(call.requests[0], lambda body: body.update(method=7))
    yield Want("A2A-RPC-004", call, call.requests[0])


@mutation(*LOOKUPS)
def an_unknown_method_succeeds(talk: Talk) -> Iterator[Want]:
    """The agent treats it as GetTask."""
    call = pick(talk, "GetTask", JSONRPC)
    change(call.requests[0], lambda body: body.update(method="tasks/look"))
    yield Want("A2A-RPC-011", call, call.answers[0])


@mutation(*LOOKUPS)
def an_unknown_method_succeeds_first(talk: Talk) -> Iterator[Want]:
    """Before any call of A2A, with a result of its own."""
    made = talk.add(pick(talk, "GetTask", JSONRPC), after=talk.exchanges[0])
    first = min(each.started for each in talk.exchanges if each.facts.binding is JSONRPC)
    shift = made.started - first + 20 * MS
    for each in (*made.requests, *made.answers):
        each.at -= shift
    made.started, made.answered, made.ended = (
        made.started - shift,
        made.answered - shift,
        made.ended - shift,
    )
    change(made.requests[0], lambda body: body.update(method="tasks/look"))
    change(made.answers[0], lambda body: body.update(result={"found": True}))
    yield Want("A2A-RPC-011", made, made.answers[0])


@mutation(*LOOKUPS)
def an_unknown_method_is_invalid_params(talk: Talk) -> Iterator[Want]:
    """The error should be MethodNotFound."""
    call = refused(talk)
    change(call.requests[0], lambda body: body.update(method="tasks/look"))
    change(
        call.answers[0],
        lambda body: body.update(error={"code": -32602, "message": "Invalid parameters"}),
    )
    yield Want("A2A-RPC-011", call, call.answers[0])


@mutation(*LOOKUPS)
def params_are_an_array(talk: Talk) -> Iterator[Want]:
    """Positional parameters."""
    call = pick(talk, "GetTask", JSONRPC)
    change(call.requests[0], lambda body: body.update(params=[body["params"]["id"]]))
    yield Want("A2A-RPC-012", call, call.requests[0])


@mutation(*LOOKUPS)
def params_are_missing(talk: Talk) -> Iterator[Want]:
    """The call needs a task id."""
    call = pick(talk, "GetTask", JSONRPC)
    change(call.requests[0], lambda body: body.pop("params"))
    yield Want("A2A-RPC-012", call, call.requests[0])


# --- ids


@mutation(*LOOKUPS)
def a_notification_is_answered(talk: Talk) -> Iterator[Want]:
    """A request without an id, and null as the id of its response."""
    call = pick(talk, "GetTask", JSONRPC)
    change(call.requests[0], lambda body: body.pop("id"))
    change(call.answers[0], lambda body: body.update(id=None))
    yield Want("A2A-RPC-005", call, call.requests[0])
    yield Want("A2A-RPC-017", call, call.answers[0])


def _both(exchange_answers: list[Msg], request: Msg, ident: object) -> None:
    for each in (request, *exchange_answers):
        change(each, lambda body: body.update(id=ident))


@mutation(*LOOKUPS)
def the_id_is_an_object(talk: Talk) -> Iterator[Want]:
    """On both sides alike."""
    call = pick(talk, "GetTask", JSONRPC)
    _both(call.answers, call.requests[0], {"n": 1})
    yield Want("A2A-RPC-006", call, call.requests[0])


@mutation(*LOOKUPS)
def the_id_is_null(talk: Talk) -> Iterator[Want]:
    """On both sides alike."""
    call = pick(talk, "GetTask", JSONRPC)
    _both(call.answers, call.requests[0], None)
    yield Want("A2A-RPC-006", call, call.requests[0])


@mutation(*STREAMS)
def the_id_is_a_fraction(talk: Talk) -> Iterator[Want]:
    """Of a stream, in all its events."""
    call = stream(talk, JSONRPC)
    _both(call.answers, call.requests[0], 1.5)
    yield Want("A2A-RPC-006", call, call.requests[0])


@mutation(*STREAMS)
def an_event_has_another_id(talk: Talk) -> Iterator[Want]:
    """The id belongs to no call."""
    call = stream(talk, JSONRPC)
    event = call.answers[MIDDLE]
    change(event, lambda body: body.update(id="somebody-else"))
    yield Want("A2A-RPC-007", call, event)


@mutation(*LOOKUPS)
def the_id_comes_back_as_text(talk: Talk) -> Iterator[Want]:
    """The request had a number."""
    call = pick(talk, "GetTask", JSONRPC)
    change(call.requests[0], lambda body: body.update(id=41))
    change(call.answers[0], lambda body: body.update(id="41"))
    yield Want("A2A-RPC-007", call, call.answers[0])


@mutation(*LOOKUPS)
def the_response_has_no_id(talk: Talk) -> Iterator[Want]:
    """The member is missing."""
    call = pick(talk, "GetTask", JSONRPC)
    change(call.answers[0], lambda body: body.pop("id"))
    yield Want("A2A-RPC-007", call, call.answers[0])


# --- results and errors


@mutation("sdk-1.x-jsonrpc")
def a_send_gives_a_bare_task(talk: Talk) -> Iterator[Want]:
    """The result has no member `task` around it."""
    call = pick(talk, "SendMessage", JSONRPC)
    change(call.answers[0], lambda body: body.update(result=body["result"]["task"]))
    yield Want("A2A-SCH-004", call, call.answers[0])


@mutation("sdk-1.x-jsonrpc")
def a_task_in_a_wrapper(talk: Talk) -> Iterator[Want]:
    """As in the result of a send: required members are missing, and one member is unknown."""
    call = pick(talk, "GetTask", JSONRPC)
    change(call.answers[0], lambda body: body.update(result={"task": body["result"]}))
    yield Want("A2A-RPC-014", call, call.answers[0])
    yield Want("A2A-SCH-001", call, call.answers[0], times=2)
    yield Want("A2A-SCH-010", call, call.answers[0])


@mutation(*OLD)
def a_task_in_a_wrapper_of_1_0(talk: Talk) -> Iterator[Want]:
    """The client uses 0.3."""
    call = pick(talk, "GetTask", JSONRPC)
    change(call.answers[0], lambda body: body.update(result={"task": body["result"]}))
    yield Want("A2A-VER-007", call, call.answers[0])


@mutation(*LOOKUPS)
def the_result_is_null(talk: Talk) -> Iterator[Want]:
    """A task is expected."""
    call = pick(talk, "GetTask", JSONRPC)
    change(call.answers[0], lambda body: body.update(result=None))
    yield Want("A2A-RPC-014", call, call.answers[0])


@mutation(*LOOKUPS)
def the_error_is_a_text(talk: Talk) -> Iterator[Want]:
    """An object with a code is expected."""
    call = refused(talk)
    change(call.answers[0], lambda body: body.update(error="no such task"))
    yield Want("A2A-RPC-009", call, call.answers[0])


@mutation(*LOOKUPS)
def the_code_is_a_text(talk: Talk) -> Iterator[Want]:
    """Clients compare numbers."""
    call = refused(talk)
    change(call.answers[0], lambda body: body.update(error={"code": "-32001", "message": "no"}))
    yield Want("A2A-RPC-009", call, call.answers[0])


@mutation("sdk-1.x-jsonrpc")
def the_data_of_the_error_is_an_object(talk: Talk) -> Iterator[Want]:
    """Clients do not find the ErrorInfo in it."""
    call = refused(talk)
    change(call.answers[0], lambda body: body["error"].update(data=body["error"]["data"][0]))
    yield Want("A2A-RPC-010", call, call.answers[0])
    yield Want("A2A-ERR-003", call, call.answers[0])


@mutation("sdk-1.x-jsonrpc")
def the_data_of_the_error_has_no_type(talk: Talk) -> Iterator[Want]:
    """Clients cannot recognise the ErrorInfo."""
    call = refused(talk)
    change(call.answers[0], lambda body: body["error"]["data"][0].pop("@type"))
    yield Want("A2A-RPC-010", call, call.answers[0])


@mutation(*LOOKUPS)
def a_parse_error_with_an_id(talk: Talk) -> Iterator[Want]:
    """The request was parsed, because its id is known."""
    call = refused(talk)
    change(
        call.answers[0], lambda body: body.update(error={"code": -32700, "message": "Parse error"})
    )
    yield Want("A2A-RPC-013", call, call.answers[0])


@mutation(*LOOKUPS)
def an_undefined_code(talk: Talk) -> Iterator[Want]:
    """The code is free for implementations, and undefined here."""
    call = refused(talk)
    change(
        call.answers[0], lambda body: body.update(error={"code": -32042, "message": "out of paper"})
    )
    yield Want("A2A-RPC-015", call, call.answers[0])
