"""Errors with wrong codes, statuses, reasons, details and words."""

from __future__ import annotations

from collections.abc import Iterator

from mutations.pick import change, frame, info, refuse, refused, replace, say
from support_mutations import Ex, Talk, Want, mutation

RPC = ("sdk-1.x-jsonrpc",)
REST = ("sdk-1.x-rest", "demo")
GRPC = ("sdk-1.x-grpc",)
ALL = (*RPC, *REST, *GRPC)
EACH = ("sdk-1.x-jsonrpc", "sdk-1.x-rest", "sdk-1.x-grpc")
JSON = (*RPC, *REST)


def _finished(talk: Talk) -> Ex:
    """A message for a task that is over: it was refused."""
    return next(
        each for each in talk.all("SendStreamingMessage") if b"unary" in each.requests[0].data
    )


def _canceled(talk: Talk) -> Ex:
    """The second one of a task: it was refused."""
    return talk.first("CancelTask", 1)


# --- mapping


@mutation(*REST)
def not_found_under_400(talk: Talk) -> Iterator[Want]:
    """The reason is TASK_NOT_FOUND, the status that of a bad request."""
    call = refused(talk)
    call.status = 400
    change(call.answers[0], lambda body: body["error"].update(code=400))
    yield Want("A2A-ERR-001", call, call.answers[0])


@mutation("sdk-1.x-rest")
def not_cancelable_under_409(talk: Talk) -> Iterator[Want]:
    """As 1.0.0 had it."""
    call = _canceled(talk)
    call.status = 409
    change(call.answers[0], lambda body: body["error"].update(code=409))
    yield Want("A2A-ERR-001", call, call.answers[0])


@mutation(*REST)
def the_status_is_not_the_code(talk: Talk) -> Iterator[Want]:
    """HTTP says 400, the body 404."""
    call = refused(talk)
    call.status = 400
    yield Want("A2A-ERR-001", call, call.answers[0])
    yield Want("A2A-ERR-005", call, call.answers[0])


@mutation(*GRPC)
def not_found_as_failed_precondition(talk: Talk) -> Iterator[Want]:
    """In gRPC."""
    call = refused(talk)
    refuse(call, "TASK_NOT_FOUND", code=0, http=0, status="", number=9)
    yield Want("A2A-ERR-002", call)


@mutation(*GRPC)
def unsupported_as_unimplemented(talk: Talk) -> Iterator[Want]:
    """As 1.0.0 had it."""
    call = _finished(talk)
    refuse(call, "UNSUPPORTED_OPERATION", code=0, http=0, status="", number=12)
    yield Want("A2A-ERR-002", call)


@mutation(*RPC)
def the_code_of_another_error(talk: Talk) -> Iterator[Want]:
    """Code and reason disagree."""
    call = refused(talk)
    change(call.answers[0], lambda body: body["error"].update(code=-32004))
    yield Want("A2A-ERR-006", call, call.answers[0])


@mutation(*RPC)
def the_reason_of_another_error(talk: Talk) -> Iterator[Want]:
    """Code and reason disagree."""
    call = _canceled(talk)
    info(call, reason="UNSUPPORTED_OPERATION")
    yield Want("A2A-ERR-006", call, call.answers[0])
    yield Want("A2A-STATE-010", call, call.answers[0])


# --- shape


@mutation(*RPC)
def a_json_rpc_error_without_data(talk: Talk) -> Iterator[Want]:
    """The code alone."""
    call = refused(talk)
    change(call.answers[0], lambda body: body["error"].pop("data"))
    yield Want("A2A-ERR-003", call, call.answers[0])


@mutation(*REST)
def a_rest_error_without_details(talk: Talk) -> Iterator[Want]:
    """The status alone."""
    call = refused(talk)
    change(call.answers[0], lambda body: body["error"].pop("details"))
    yield Want("A2A-ERR-003", call, call.answers[0])


@mutation(*ALL)
def a_reason_in_camel_case(talk: Talk) -> Iterator[Want]:
    """TaskNotFound."""
    call = refused(talk)
    info(call, reason="TaskNotFound")
    yield Want("A2A-ERR-004", call, frame(call))


@mutation(*ALL)
def a_reason_that_nobody_knows(talk: Talk) -> Iterator[Want]:
    """TASK_LOST."""
    call = refused(talk)
    info(call, reason="TASK_LOST")
    yield Want("A2A-ERR-004", call, frame(call))


@mutation(*JSON)
def another_domain(talk: Talk) -> Iterator[Want]:
    """With a reason of A2A."""
    call = refused(talk)
    info(call, domain="example.com")
    yield Want("A2A-ERR-004", call, frame(call))


@mutation(*JSON)
def metadata_that_is_a_number(talk: Talk) -> Iterator[Want]:
    """Values are strings."""
    call = refused(talk)
    info(call, metadata={"tries": 3})
    yield Want("A2A-ERR-004", call, frame(call))


@mutation(*JSON)
def a_reason_that_is_a_list(talk: Talk) -> Iterator[Want]:
    """No rule breaks down on it."""
    call = refused(talk)
    info(call, reason=["TASK_NOT_FOUND"])
    yield Want("A2A-ERR-004", call, frame(call))


@mutation(*REST)
def a_status_that_grpc_does_not_have(talk: Talk) -> Iterator[Want]:
    """MISSING."""
    call = refused(talk)
    change(call.answers[0], lambda body: body["error"].update(status="MISSING"))
    yield Want("A2A-ERR-005", call, call.answers[0])


@mutation(*REST)
def the_code_is_a_text(talk: Talk) -> Iterator[Want]:
    """As text."""
    call = refused(talk)
    change(call.answers[0], lambda body: body["error"].update(code="404"))
    yield Want("A2A-ERR-005", call, call.answers[0])


@mutation(*REST)
def a_detail_without_type(talk: Talk) -> Iterator[Want]:
    """What it is nobody can tell."""
    call = refused(talk)
    change(call.answers[0], lambda body: body["error"]["details"][0].pop("@type"))
    yield Want("A2A-ERR-005", call, call.answers[0])


@mutation(*REST)
def an_error_as_problem_json(talk: Talk) -> Iterator[Want]:
    """The form of the release candidate."""
    call = refused(talk)
    call.set("content-type", "application/problem+json", reply=True)
    replace(call.answers[0], {"type": "about:blank", "title": "Task not found", "status": 404})
    yield Want("A2A-ERR-009", call)


@mutation(*ALL)
def a_stack_trace_in_the_message(talk: Talk) -> Iterator[Want]:
    """For everybody to read."""
    call = refused(talk)
    say(call, 'Traceback (most recent call last): File "agent.py", line 7, in get')
    yield Want("A2A-ERR-010", call, frame(call))


@mutation(*ALL)
def sql_in_the_message(talk: Talk) -> Iterator[Want]:
    """For everybody to read."""
    call = refused(talk)
    say(call, "no row: SELECT id FROM tasks")
    yield Want("A2A-ERR-010", call, frame(call))


# --- situation


@mutation(*EACH)
def a_finished_task_is_an_internal_error(talk: Talk) -> Iterator[Want]:
    """UnsupportedOperationError is due."""
    call = _finished(talk)
    refuse(call, "INTERNAL_ERROR", code=-32603, http=500, status="INTERNAL", number=13)
    yield Want("A2A-ERR-007", call, frame(call))


@mutation(*EACH)
def a_finished_task_is_a_bad_parameter(talk: Talk) -> Iterator[Want]:
    """UnsupportedOperationError is due."""
    call = _finished(talk)
    refuse(call, "INVALID_PARAMS", code=-32602, http=400, status="INVALID_ARGUMENT", number=3)
    yield Want("A2A-ERR-007", call, frame(call))


@mutation(*ALL)
def an_unknown_task_is_an_internal_error(talk: Talk) -> Iterator[Want]:
    """TaskNotFoundError is due."""
    call = refused(talk)
    refuse(call, "INTERNAL_ERROR", code=-32603, http=500, status="INTERNAL", number=13)
    yield Want("A2A-ERR-007", call, frame(call))


def _asks_on_grpc_too(talk: Talk) -> None:
    """The last call is for a task that nobody knows, and fails with NOT_FOUND like the one on
    REST."""
    call = talk.all("GetTask", grpc=True)[0]
    call.requests[0].edit(lambda body: body.update(id="00000000-0000-4000-8000-000000000000"))
    call.answers, call.trailers = [], []
    call.set("grpc-status", "5", reply=True)
    call.set("grpc-message", "there is no such task", reply=True)
    data = (
        b"\x08\x05\x12\x15there is no such task\x1aN\n(type.googleapis.com/google.rpc.ErrorInfo"
        b'\x12"\n\x0eTASK_NOT_FOUND\x12\x10a2a-protocol.org'
    )
    call.reply_headers.append([b"grpc-status-details-bin", b"\0" + data])


@mutation("demo", prepare=_asks_on_grpc_too)
def another_error_on_grpc(talk: Talk) -> Iterator[Want]:
    """REST says TASK_NOT_FOUND."""
    call = talk.all("GetTask", grpc=True)[0]
    refuse(call, "UNSUPPORTED_OPERATION", code=0, http=0, status="", number=9)
    yield Want("A2A-ERR-008", call)


@mutation("demo", prepare=_asks_on_grpc_too)
def another_error_on_rest(talk: Talk) -> Iterator[Want]:
    """And gRPC says TASK_NOT_FOUND after it."""
    refuse(
        refused(talk),
        "UNSUPPORTED_OPERATION",
        code=0,
        http=400,
        status="FAILED_PRECONDITION",
        number=0,
    )
    yield Want("A2A-ERR-008", talk.all("GetTask", grpc=True)[0])


# --- overload


@mutation(*REST)
def too_busy_for_a_rest_call(talk: Talk) -> Iterator[Want]:
    """503 without Retry-After."""
    call = refused(talk)
    call.status = 503
    replace(call.answers[0], {"error": {"code": 503, "status": "UNAVAILABLE", "message": "busy"}})
    yield Want("A2A-ERR-011", call)


@mutation("sdk-1.x-jsonrpc", "sdk-0.3-jsonrpc", "dialect-0.2")
def too_many_calls(talk: Talk) -> Iterator[Want]:
    """429 without Retry-After, from a gateway."""
    call = refused(talk)
    call.status, call.answers = 429, []
    call.set("content-type", None, reply=True)
    yield Want("A2A-ERR-011", call)


@mutation("sdk-1.x-grpc", "sdk-0.3-grpc")
def too_busy_for_a_grpc_call(talk: Talk) -> Iterator[Want]:
    """UNAVAILABLE without RetryInfo."""
    call = refused(talk)
    call.set("grpc-status", "14", reply=True)
    call.set("grpc-message", "busy", reply=True)
    call.set("grpc-status-details-bin", None, reply=True)
    yield Want("A2A-ERR-011", call)
