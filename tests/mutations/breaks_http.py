"""HTTP around the calls: content types, statuses, methods, paths, queries, lengths, compression."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from a2a_proxy.model.exchange import Binding
from mutations.pick import JSONRPC, REST, alone, change, pick, raw, refused, replace, stream
from support_mutations import Ex, Msg, Talk, Want, block, mutation

RPC_V1 = ("sdk-1.x-jsonrpc", "js-three-bindings")
RPC_ALL = (*RPC_V1, "sdk-0.3-jsonrpc", "js-to-0.3", "dialect-0.2")
REST_V1 = ("sdk-1.x-rest", "js-three-bindings")
STREAMS = ("sdk-1.x-jsonrpc", "sdk-1.x-rest", "sdk-0.3-jsonrpc", "sdk-0.3-rest", "js-to-0.3", "dialect-0.2", "demo")
LOOKUPS = ("sdk-1.x-jsonrpc", "sdk-0.3-jsonrpc", "dialect-0.2")


def _send(talk: Talk, binding: Binding) -> Ex:
    """A message that was answered at once."""
    return pick(talk, "SendMessage", binding)


def _http(talk: Talk) -> Ex:
    """A stream over HTTP/1."""
    return next(each for each in (stream(talk, b) for b in (JSONRPC, REST) if _has(talk, b)) if not each.grpc)


def _has(talk: Talk, binding: Binding) -> bool:
    return any(each.streams and each.facts.binding is binding and len(each.answers) > 5 for each in talk.exchanges)


# --- content types ------------------------------------------------------------------------------------------------


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
    """It is JSON-RPC all the same."""
    call = _send(talk, JSONRPC)
    call.set("content-type", "text/html", reply=True)
    yield Want("A2A-HTTP-002", call, call.answers[0])


@mutation("sdk-1.x-rest", "demo")
def a_rest_body_as_text_json(talk: Talk) -> Iterator[Want]:
    """A type of its own."""
    call = pick(talk, "SendMessage", REST, 1)
    call.set("content-type", "text/json")
    yield Want("A2A-HTTP-008", call, call.requests[0])


@mutation(*REST_V1, "demo")
def a_rest_answer_as_text_json(talk: Talk) -> Iterator[Want]:
    """A type of its own."""
    call = _send(talk, REST)
    call.set("content-type", "text/json", reply=True)
    yield Want("A2A-HTTP-008", call)


@mutation("demo")
def a_rest_body_as_plain_json(talk: Talk) -> Iterator[Want]:
    """Right in 1.0.0, no more since 1.0.1."""
    call = _send(talk, REST)
    call.set("content-type", "application/json")
    yield Want("A2A-HTTP-008", call, call.requests[0])


@mutation(*RPC_ALL)
def a_call_in_latin_1(talk: Talk) -> Iterator[Want]:
    """Its type says so; there is nothing but ASCII in it."""
    call = _send(talk, JSONRPC)
    call.set("content-type", "application/json; charset=iso-8859-1")
    yield Want("A2A-HTTP-015", call)


@mutation("sdk-1.x-rest", "demo")
def a_rest_answer_in_utf_16(talk: Talk) -> Iterator[Want]:
    """By its type."""
    call = _send(talk, REST)
    call.set("content-type", "application/a2a+json; charset=utf-16", reply=True)
    yield Want("A2A-HTTP-015", call)


@mutation(*LOOKUPS)
def octets_of_latin_1(talk: Talk) -> Iterator[Want]:
    """An umlaut in one octet."""
    call = _send(talk, JSONRPC)
    raw(call.answers[0], b"forty-two", "f\u00fcnf".encode("latin-1"))
    yield Want("A2A-HTTP-015", call, call.answers[0])
    yield Want("A2A-RPC-001", call, call.answers[0])


# --- streams ------------------------------------------------------------------------------------------------------


@mutation(*STREAMS)
def a_stream_as_lines(talk: Talk) -> Iterator[Want]:
    """One JSON object a line."""
    call = _http(talk)
    call.set("content-type", "application/x-ndjson", reply=True)
    yield Want("A2A-HTTP-003", call)


@mutation("sdk-1.x-jsonrpc", "sdk-1.x-rest")
def a_streaming_call_gets_one_object(talk: Talk) -> Iterator[Want]:
    """A task that is complete."""
    call = _http(talk)
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
    """Only JSON is."""
    call = _http(talk)
    call.set("accept", "application/json")
    yield Want("A2A-HTTP-006", call, call.requests[0])


@mutation(*STREAMS)
def nothing_is_said_to_be_accepted(talk: Talk) -> Iterator[Want]:
    """The field is missing."""
    call = _http(talk)
    call.set("accept", None)
    yield Want("A2A-HTTP-006", call, call.requests[0])


@mutation(*STREAMS)
def a_compressed_stream(talk: Talk) -> Iterator[Want]:
    """Each event is flushed, so that nothing is late."""
    call = _http(talk)
    call.coding = "gzip"
    pack = zlib.compressobj(wbits=31)
    for each in call.answers:
        each.wire = pack.compress(block(each)) + pack.flush(zlib.Z_SYNC_FLUSH)
    call.tail = pack.flush()
    yield Want("A2A-HTTP-019", call)


@mutation("sdk-1.x-jsonrpc", "sdk-1.x-rest")
def a_stream_that_was_held_back(talk: Talk) -> Iterator[Want]:
    """All updates come at once, five seconds after the call, a second apart by their timestamps."""
    call = _http(talk)
    call.shift(1, 5_000_000_000)
    seconds = 36
    for each in call.answers:
        update = each.value.get("result", each.value).get("statusUpdate")
        if update is not None:
            raw(each, update["status"]["timestamp"].encode(), f"2026-11-21T07:34:{seconds}.000001Z".encode())
            seconds += 1
    yield Want("A2A-HTTP-019", call, call.answers[-1])


# --- statuses and bodies ------------------------------------------------------------------------------------------


@mutation(*LOOKUPS)
def an_error_with_status_500(talk: Talk) -> Iterator[Want]:
    """A JSON-RPC error is usually under 200."""
    call = refused(talk)
    call.status = 500
    yield Want("A2A-HTTP-009", call, call.answers[0])


@mutation("sdk-1.x-rest", "demo")
def an_error_with_status_200(talk: Talk) -> Iterator[Want]:
    """Of REST."""
    call = refused(talk)
    call.status = 200
    call.set("content-type", "application/a2a+json", reply=True)
    yield Want("A2A-HTTP-010", call, call.answers[0])


@mutation("sdk-1.x-rest")
def a_task_with_status_404(talk: Talk) -> Iterator[Want]:
    """It is there, and it is not found."""
    call = pick(talk, "GetTask", REST)
    call.status = 404
    yield Want("A2A-HTTP-010", call, call.answers[0])


@mutation("sdk-1.x-rest")
def a_delete_without_content(talk: Talk) -> Iterator[Want]:
    """204 in place of an empty object."""
    call = pick(talk, "DeleteTaskPushNotificationConfig", REST)
    call.status, call.answers = 204, []
    yield Want("A2A-HTTP-018", call)


@mutation("demo")
def a_call_with_credentials_is_redirected(talk: Talk) -> Iterator[Want]:
    """To the same host."""
    call = refused(talk)
    call.status, call.answers = 307, []
    call.set("location", "/a2a/", reply=True)
    yield Want("A2A-HTTP-017", call)


@mutation("demo")
def a_call_with_credentials_is_redirected_elsewhere(talk: Talk) -> Iterator[Want]:
    """To a stranger."""
    call = refused(talk)
    call.status, call.answers = 308, []
    call.set("location", "https://example.com/a2a/", reply=True)
    yield Want("A2A-HTTP-017", call)


@mutation(*STREAMS)
def the_last_chunk_is_missing(talk: Talk) -> Iterator[Want]:
    """The task was told of to its end."""
    call = _http(talk)
    call.finish = "stall"
    yield Want("A2A-HTTP-016", call)


# --- requests of REST ---------------------------------------------------------------------------------------------


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
    """And the agent takes it."""
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
    """What it means nobody knows."""
    call = pick(talk, "GetTask", REST)
    body = Msg(b"{}", call.started, "json")
    call.requests.append(body)
    call.set("content-type", "application/a2a+json")
    yield Want("A2A-HTTP-013", call, body)


@mutation("sdk-1.x-rest")
def another_task_in_the_body(talk: Talk) -> Iterator[Want]:
    """The path names the one that is canceled."""
    call = pick(talk, "CancelTask", REST)
    change(call.requests[0], lambda body: body.update(id="another"))
    yield Want("A2A-HTTP-014", call, call.requests[0])


@mutation(*REST_V1)
def the_path_of_an_operation_twice(talk: Talk) -> Iterator[Want]:
    """The client was given the URL of an operation."""
    call = alone(talk, "SendMessage", REST)
    call.target += "/message:send"
    call.status, call.answers = 404, []
    yield Want("A2A-HTTP-020", call, call.requests[0])


@mutation(*REST_V1)
def a_json_rpc_call_to_a_rest_path(talk: Talk) -> Iterator[Want]:
    """The client was given the URL of an operation."""
    call = alone(talk, "SendMessage", REST)
    request = call.requests[0]
    replace(request, {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": request.value})
    call.status, call.answers = 404, []
    yield Want("A2A-HTTP-020", call, request)
