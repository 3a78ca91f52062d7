"""Wrong HTTP statuses, methods, paths, queries and lengths."""

from __future__ import annotations

from collections.abc import Iterator

from mutations.pick import REST, alone, change, pick, refused, replace, stream
from support_mutations import Msg, Talk, Want, mutation

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


# --- statuses and bodies


@mutation(*LOOKUPS)
def an_error_with_status_500(talk: Talk) -> Iterator[Want]:
    """A JSON-RPC error is usually sent with status 200."""
    call = refused(talk)
    call.status = 500
    yield Want("A2A-HTTP-009", call, call.answers[0])


@mutation("sdk-1.x-rest", "demo")
def an_error_with_status_200(talk: Talk) -> Iterator[Want]:
    """A REST error."""
    call = refused(talk)
    call.status = 200
    call.set("content-type", "application/a2a+json", reply=True)
    yield Want("A2A-HTTP-010", call, call.answers[0])


@mutation("sdk-1.x-rest")
def a_task_with_status_404(talk: Talk) -> Iterator[Want]:
    """The body has the task although the status is 404."""
    call = pick(talk, "GetTask", REST)
    call.status = 404
    yield Want("A2A-HTTP-010", call, call.answers[0])


@mutation("demo")
def a_call_with_credentials_is_redirected(talk: Talk) -> Iterator[Want]:
    """To the same host."""
    call = refused(talk)
    call.status, call.answers = 307, []
    call.set("location", "/a2a/", reply=True)
    yield Want("A2A-HTTP-017", call)


@mutation("demo")
def a_call_with_credentials_is_redirected_elsewhere(talk: Talk) -> Iterator[Want]:
    """To another host."""
    call = refused(talk)
    call.status, call.answers = 308, []
    call.set("location", "https://example.com/a2a/", reply=True)
    yield Want("A2A-HTTP-017", call)


@mutation(*STREAMS)
def the_last_chunk_is_missing(talk: Talk) -> Iterator[Want]:
    """The task has ended in the stream."""
    call = stream(talk)
    call.finish = "stall"
    yield Want("A2A-HTTP-016", call)


# --- requests of REST


@mutation(*REST_V1)
def a_message_by_put(talk: Talk) -> Iterator[Want]:
    """The method must be POST."""
    call = alone(talk, "SendMessage", REST)
    call.method, call.status, call.answers = "PUT", 405, []
    yield Want("A2A-HTTP-007", call)


@mutation("sdk-1.x-rest", "sdk-0.3-rest")
def a_cancel_by_get(talk: Talk) -> Iterator[Want]:
    """The method must be POST."""
    call = refused(talk, "CancelTask")
    call.method, call.requests, call.status = "GET", [], 405
    replace(call.answers[0], {"detail": "Method Not Allowed"})
    yield Want("A2A-HTTP-007", call)


@mutation("sdk-1.x-rest")
def a_query_in_snake_case(talk: Talk) -> Iterator[Want]:
    """As in the protobuf file."""
    call = pick(talk, "ListTasks", REST)
    call.target = call.target.replace("pageSize", "page_size")
    yield Want("A2A-HTTP-011", call)


@mutation("sdk-1.x-rest")
def a_history_length_in_snake_case(talk: Talk) -> Iterator[Want]:
    """As in the protobuf file."""
    call = pick(talk, "GetTask", REST)
    call.target = call.target.replace("historyLength", "history_length")
    yield Want("A2A-HTTP-011", call)


@mutation("sdk-1.x-rest")
def a_number_in_words(talk: Talk) -> Iterator[Want]:
    """The agent accepts it."""
    call = pick(talk, "GetTask", REST)
    call.target = call.target.replace("=10", "=ten")
    yield Want("A2A-HTTP-012", call)


@mutation("sdk-1.x-rest")
def a_boolean_as_a_number(talk: Talk) -> Iterator[Want]:
    """1 for true."""
    call = pick(talk, "ListTasks", REST)
    call.target += "&includeArtifacts=1"
    yield Want("A2A-HTTP-012", call)


@mutation("sdk-1.x-rest")
def a_state_of_0_3_in_a_query(talk: Talk) -> Iterator[Want]:
    """`completed`."""
    call = pick(talk, "ListTasks", REST)
    call.target += "&status=completed"
    yield Want("A2A-HTTP-012", call)


@mutation("sdk-1.x-rest", "sdk-0.3-rest", "demo")
def a_get_with_a_body(talk: Talk) -> Iterator[Want]:
    """The meaning of the body is undefined."""
    call = pick(talk, "GetTask", REST)
    body = Msg(b"{}", call.started, "json")
    call.requests.append(body)
    call.set("content-type", "application/a2a+json")
    yield Want("A2A-HTTP-013", call, body)


@mutation("sdk-1.x-rest")
def another_task_in_the_body(talk: Talk) -> Iterator[Want]:
    """The path names the canceled task."""
    call = pick(talk, "CancelTask", REST)
    change(call.requests[0], lambda body: body.update(id="another"))
    yield Want("A2A-HTTP-014", call, call.requests[0])


@mutation(*REST_V1)
def the_path_of_an_operation_twice(talk: Talk) -> Iterator[Want]:
    """The client was configured with the URL of an operation."""
    call = alone(talk, "SendMessage", REST)
    call.target += "/message:send"
    call.status, call.answers = 404, []
    yield Want("A2A-HTTP-020", call, call.requests[0])


@mutation(*REST_V1)
def a_json_rpc_call_to_a_rest_path(talk: Talk) -> Iterator[Want]:
    """The client was configured with the URL of an operation."""
    call = alone(talk, "SendMessage", REST)
    request = call.requests[0]
    replace(request, {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": request.value})
    call.status, call.answers = 404, []
    yield Want("A2A-HTTP-020", call, request)
