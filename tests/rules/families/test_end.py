"""Causes of endings: each on several bindings, with its near misses."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import msgspec
import pytest

from a2a_proxy.model.values import Actor, Severity
from a2a_proxy.model.wire import Chunk, ChunkKind, Direction
from a2a_proxy.rules.endings.call_facts import format_ns
from a2a_proxy.rules.examples.conversation import (
    CLEAN_SEND,
    QUESTION_CALL,
    STARTED_CALL,
    ClientLeaves,
    Event,
    EventPause,
    Fields,
    Finish,
    RawBytes,
    fetch_card,
    grpc,
    http,
    json_text,
    rest,
    rest_error,
    rest_stream,
    rpc,
    rpc_error,
    rpc_stream,
)
from a2a_proxy.rules.examples.objects import (
    agent_reply,
    artifact,
    card,
    chunk,
    error_info,
    input_required,
    reply,
    send,
    snapshot,
    status,
    task,
)
from a2a_proxy.rules.examples.pipe import (
    close_output,
    exit_agent,
    pipe_call,
    pipe_response,
    pipe_script,
)
from a2a_proxy.rules.examples.script import MS, STEP, Script, run_together
from support_rules import endings, findings

SECOND = 1000 * MS
GET = {"id": "t1"}
BEGIN = (snapshot(), status("WORKING"))
KEY_CARD = fetch_card(
    card(
        securitySchemes={"key": {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}}},
        securityRequirements=[{"schemes": {"key": {"list": []}}}],
    )
)
KEY: Fields = {"X-Key": "k-1234567890"}
HTML: Fields = {"Content-Type": "text/html"}
DONE = status("COMPLETED", second=1)


def stream(binding: str, *events: Any, finish: Finish = "end", text: str = "m1") -> Script:
    """Return a streaming call."""
    if binding == "grpc":
        return grpc("SendStreamingMessage", send(id=text), *events, finish=finish)
    if binding == "rest":
        return rest_stream("POST", "/message:stream", send(id=text), *events, finish=finish)
    return rpc_stream("SendStreamingMessage", send(id=text), *events, finish=finish)


def poll(binding: str, state: str, **options: Any) -> Script:
    """Return a GetTask."""
    if binding == "grpc":
        return grpc("GetTask", GET, task(state, second=1), **options)
    if binding == "rest":
        return rest("GET", "/tasks/t1", None, task(state, second=1), **options)
    return rpc("GetTask", GET, task(state, second=1), id=9, **options)


def ask(binding: str, **options: Any) -> Script:
    """Return a SendMessage."""
    if binding == "rest":
        return rest("POST", "/message:send", send(id=options.pop("id", "m1")), "", **options)
    return rpc("SendMessage", send(id=options.pop("id", "m1")), agent_reply(), **options)


def by_the_proxy(script: Script) -> list[Chunk]:
    """Return the conversation with the answers as the proxy's own."""
    return [
        msgspec.structs.replace(each, kind=ChunkKind.OURS)
        if each.kind is ChunkKind.DATA and each.direction is Direction.TO_CLIENT
        else each
        for each in script.make_chunks()
    ]


def causes(session: Script | list[Chunk]) -> dict[int, str]:
    """Return the cause by exchange, of failures only."""
    return {
        number: each.cause for number, each in endings(session).items() if each.severity is not None
    }


_UNREACHABLE = "a2a-proxy cannot reach the upstream agent agent:8000: "
NETWORK = pytest.mark.parametrize("binding", ["jsonrpc", "rest", "grpc"])
HTTP = pytest.mark.parametrize("binding", ["jsonrpc", "rest"])

# --- the connection


@HTTP
@pytest.mark.parametrize(
    ("reason", "cause", "step"),
    [
        ("connection refused", "no-connection", "start the agent"),
        ("cannot resolve agent: name or service not known", "no-connection", "host name"),
        ("no answer within 10 s", "no-connection", "firewall"),
        ("its certificate is self-signed", "tls-failed", "--upstream-ca"),
        ("its certificate has expired", "tls-failed", "correct the agent's certificate"),
        ("its certificate is not for agent", "tls-failed", "a host name of the certificate"),
        ("the TLS handshake failed: handshake failure", "tls-failed", "--upstream-cert"),
        ("it does not speak TLS on this port", "wrong-protocol", "--upstream http://localhost"),
        ("it does not speak HTTP/2 without TLS (h2c)", "wrong-protocol", "--upstream-grpc"),
    ],
)
def test_agent_that_cannot_be_reached(binding: str, reason: str, cause: str, step: str) -> None:
    """The detail of the proxy is the cause, with the option to use."""
    (ending,) = endings(ask(binding, unreachable=reason)).values()
    assert (ending.cause, ending.severity) == (cause, Severity.ERROR)
    assert reason in ending.summary
    assert step in ending.next_step
    assert ending.ended_by.startswith("the proxy")


def test_grpc_agent_that_cannot_be_reached() -> None:
    call = grpc("SendMessage", send(), status=14, text=f"{_UNREACHABLE}connection refused")
    assert causes(by_the_proxy(call)) == {1: "no-connection"}
    assert causes(call) == {}, "the agent's own error is an answer"


def test_retry_that_succeeds_is_no_failure() -> None:
    failed = ask("jsonrpc", unreachable="connection refused")
    assert causes(failed + CLEAN_SEND) == {}
    assert causes(failed + ask("jsonrpc", id="other")) == {1: "no-connection"}
    assert causes(CLEAN_SEND + failed) == {2: "no-connection"}


@HTTP
def test_connection_without_an_answer(binding: str) -> None:
    (ending,) = endings(ask(binding, finish="cut", seconds=2)).values()
    assert (ending.cause, ending.severity) == ("no-answer", Severity.ERROR)
    assert "after 2.0 s" in ending.summary
    assert ending.received == "nothing"
    assert len(ending.remaining) == 2


@HTTP
def test_tls_port_answers_in_plain_text(binding: str) -> None:
    words = "The plain HTTP request was sent to HTTPS port"
    call = (
        rest("POST", "/message:send", send(), words, status=400, reply_headers=HTML)
        if binding == "rest"
        else rpc("SendMessage", send(), answer=words, status=400, reply_headers=HTML)
    )
    (ending,) = endings(call).values()
    assert ending.cause == "wrong-protocol"
    assert "--upstream https://" in ending.next_step


@NETWORK
def test_equal_waits_without_an_answer_are_a_timeout(binding: str) -> None:
    """Of something between, if they end at different times; one event ends them together."""

    def cut(number: int, seconds: float) -> Script:
        if binding == "grpc":
            return grpc("SendMessage", send(id=f"m{number}"), seconds=seconds, finish="cut")
        return ask(binding, seconds=seconds, finish="cut", id=f"m{number}")

    found = endings(cut(1, 6) + cut(2, 6))
    assert {(each.cause, each.actor) for each in found.values()} == {("no-answer", Actor.BETWEEN)}
    assert "a time-out of about 6.0 s" in found[1].summary
    together = run_together(cut(1, 6), cut(2, 6), after=10 * MS)
    for other in (cut(1, 6), cut(1, 6) + cut(2, 8), cut(1, 1) + cut(2, 1), together):
        assert {each.actor for each in endings(other).values()} == {Actor.AGENT}


@HTTP
def test_connection_that_ends_at_once_may_want_tls(binding: str) -> None:
    """Only of an agent that has answered nothing."""
    ended = ask(binding, finish="cut", id="m9")
    (alone,) = endings(ended).values()
    assert alone.remaining[0] == "the agent speaks TLS on this port"
    assert alone.next_step.startswith("if the agent speaks TLS there, start the proxy with")
    served = rest("POST", "/message:send", send(), agent_reply()) + CLEAN_SEND
    (after,) = endings(served + ended).values()
    assert len(after.remaining) == 2
    (begun,) = endings(grpc("SendMessage", send(), finish="cut")).values()
    assert len(begun.remaining) == 2, "its answer had begun"
    chunks = ended.make_chunks()
    closing = next(number for number, each in enumerate(chunks) if each.kind is ChunkKind.RESET)
    wait = b"HTTP/1.1 100 Continue\r\n\r\n"
    said = Chunk(1, ChunkKind.DATA, Direction.TO_CLIENT, chunks[closing].at, wait)
    (told,) = endings([*chunks[:closing], said, *chunks[closing:]]).values()
    assert len(told.remaining) == 2, "it had said to continue"


@HTTP
@pytest.mark.parametrize(
    ("start", "words"),
    [
        (b"\0\0\x18\x04\0\0\0\0\0", "--upstream-grpc localhost:8000"),
        (b"220 mail ready\r\n", ""),
    ],
    ids=["HTTP/2", "other"],
)
@pytest.mark.parametrize("speaks_first", [False, True], ids=["after", "before"])
def test_port_that_speaks_no_http1(
    binding: str, start: bytes, words: str, speaks_first: bool
) -> None:
    """Its first bytes say what it speaks, also if they come before the request."""
    chunks = ask(binding).make_chunks()
    answered = next(
        number
        for number, each in enumerate(chunks)
        if each.kind is ChunkKind.DATA and each.direction is Direction.TO_CLIENT
    )
    first = msgspec.structs.replace(chunks.pop(answered), data=start)
    chunks.insert(1 if speaks_first else answered, first)
    found = [each for each in endings(chunks).values() if each.cause == "wrong-protocol"]
    assert [words in each.next_step for each in found] == [True] * bool(words)


def test_card_that_is_not_served() -> None:
    """A client that finds the card at another path has no problem."""
    missing = rest("GET", "/agent/.well-known/agent-card.json", None, "no", status=404)
    (ending,) = endings(missing).values()
    assert (ending.cause, ending.actor) == ("wrong-url", Actor.CLIENT)
    assert ending.command == "a2a-inspect card http://localhost:8000"
    assert endings(missing + fetch_card()) == {}
    refused = rest("GET", "/.well-known/agent-card.json", None, "who?", status=401)
    assert causes(refused) == {1: "no-credentials"}
    broken = rest("GET", "/.well-known/agent-card.json", None, "oh", status=500)
    assert [each.cause for each in endings(broken).values()] == ["agent-error"]


@HTTP
def test_redirection_without_a_body(binding: str) -> None:
    options: dict[str, Any] = {"status": 302, "reply_headers": {"Location": "https://login/"}}
    call = (
        rest("POST", "/message:send", send(), "", **options)
        if binding == "rest"
        else rpc("SendMessage", send(), answer="", **options)
    )
    (ending,) = endings(call).values()
    assert (ending.cause, ending.actor) == ("answered-between", Actor.BETWEEN)
    assert "a redirection to https://login/" in ending.summary


@HTTP
def test_words_of_a_gateway_in_json(binding: str) -> None:
    """An error as the binding has it is the agent's; other JSON is not."""
    options: dict[str, Any] = {"status": 503, "reply_headers": {"Content-Type": "application/json"}}
    words = '{"error":"no healthy upstream"}'
    own = json.dumps(
        rest_error(503, "UNAVAILABLE", "BUSY")
        if binding == "rest"
        else {"jsonrpc": "2.0", "id": 1, "error": rpc_error(-32000, text="busy")}
    )
    for body, cause in ((words, "answered-between"), (own, "agent-error")):
        call = (
            rest("POST", "/message:send", send(), body, **options)
            if binding == "rest"
            else rpc("SendMessage", send(), answer=body, **options)
        )
        assert [each.cause for each in endings(call).values()] == [cause]


@HTTP
@pytest.mark.parametrize("status", [502, 503, 504])
def test_page_of_a_gateway(binding: str, status: int) -> None:
    page = "<html>down</html>"
    call = (
        rest("POST", "/message:send", send(), page, status=status, reply_headers=HTML)
        if binding == "rest"
        else rpc("SendMessage", send(), answer=page, status=status, reply_headers=HTML)
    )
    (ending,) = endings(call).values()
    assert (ending.cause, ending.actor) == ("answered-between", Actor.BETWEEN)


def test_gateway_in_front_of_grpc() -> None:
    assert causes(grpc("SendMessage", send(), status=None, http_status=503)) == {
        1: "answered-between"
    }


def test_overloaded_agent_is_not_a_gateway() -> None:
    busy = rpc("SendMessage", send(), error=rpc_error(-32000, text="busy"), status=503)
    assert [each.cause for each in endings(busy).values()] == ["agent-error"]


@HTTP
def test_url_of_the_card_is_not_served(binding: str) -> None:
    """The card's owner must act; without a card the client."""
    missing = (
        rest("POST", "/message:send", send(), "<h1>no</h1>", status=404, reply_headers=HTML)
        if binding == "rest"
        else rpc("SendMessage", send(), answer="<h1>no</h1>", status=404, reply_headers=HTML)
    )
    (led,) = endings(fetch_card() + missing).values()
    assert (led.cause, led.actor, led.severity) == ("wrong-url", Actor.AGENT, Severity.ERROR)
    assert "supportedInterfaces" in led.summary
    assert led.command.startswith("a2a-inspect card --probe http")
    (alone,) = endings(missing).values()
    assert (alone.actor, alone.severity) == (Actor.CLIENT, Severity.WARNING)


def test_unknown_task_is_not_a_wrong_url() -> None:
    """Agents that answer 404 for a task without an A2A error are served nevertheless."""
    missing = rest("GET", "/tasks/no", None, '{"detail":"Not Found"}', status=404)
    known = rest("POST", "/message:send", send(), agent_reply())
    assert causes(known + missing) == {}
    refused = rest_error(404, "NOT_FOUND", "TASK_NOT_FOUND")
    assert causes(rest("GET", "/tasks/no", None, refused, status=404)) == {}


# --- the answer


@NETWORK
def test_credentials_are_absent_or_refused(binding: str) -> None:
    def call(headers: Fields | None) -> Script:
        if binding == "grpc":
            return grpc("SendMessage", send(), status=16, text="who?", headers=headers)
        options: dict[str, Any] = {"status": 401, "headers": headers, "reply_headers": HTML}
        if binding == "rest":
            return rest("POST", "/message:send", send(), "who?", **options)
        return rpc("SendMessage", send(), answer="who?", **options)

    key: Fields = {"x-key": "k-1234567890"}
    bearer: Fields = {"authorization": "Bearer abcdefgh12345678"}
    assert causes(KEY_CARD + call(None)) == {2: "no-credentials"}
    assert causes(KEY_CARD + call(bearer)) == {2: "no-credentials"}
    assert causes(KEY_CARD + call(key)) == {2: "credentials-refused"}
    (ending,) = endings(KEY_CARD + call(bearer)).values()
    assert "header X-Key (scheme key)" in ending.summary
    assert "Bearer" in ending.summary
    assert "abcdefgh" not in str(ending.to_object())


def test_first_request_of_a_challenge_is_no_failure() -> None:
    refused = rpc("SendMessage", send(), answer="who?", status=401, reply_headers=HTML)
    assert causes(KEY_CARD + refused + rpc("SendMessage", send(), agent_reply(), headers=KEY)) == {}


@pytest.mark.parametrize(
    ("reason", "code", "words"),
    [
        ("TASK_NOT_CANCELABLE", -32002, "nothing: the task has ended"),
        ("TASK_NOT_FOUND", -32001, "a task id that this agent has returned"),
        ("METHOD_NOT_FOUND", -32601, "does not offer it"),
        ("INVALID_PARAMS", -32602, "correct the request"),
    ],
)
def test_next_step_of_an_error(reason: str, code: int, words: str) -> None:
    """What the client can do depends on the error."""
    call = rpc("CancelTask", GET, error=rpc_error(code, reason, "no"))
    (ending,) = endings(call).values()
    assert (ending.cause, ending.severity) == ("agent-error", None)
    assert words in ending.next_step


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("TaskNotFoundError: Task not found", "a task id that this agent has returned"),
        ("TaskNotCancelableError: Task cannot be canceled", "nothing: the task has ended"),
        ("Method not implemented", "does not offer it"),
    ],
)
def test_next_step_by_the_words_of_an_error(text: str, words: str) -> None:
    """The Python SDK 0.3 answers over gRPC so, the second error with UNIMPLEMENTED too."""
    (ending,) = endings(grpc("CancelTask", GET, status=12, text=text)).values()
    assert words in ending.next_step


def test_words_of_a_failure_are_not_about_the_request() -> None:
    """Its step is that of the agent, as its actor."""
    text = "prompt template of task not found on disk"
    for call in (
        rpc("SendMessage", send(), error=rpc_error(-32603, text=text)),
        grpc("SendMessage", send(), status=13, text=text),
    ):
        (ending,) = endings(call).values()
        assert (ending.actor, ending.next_step[:9]) == (Actor.AGENT, "look into")


def test_request_that_cannot_be_decoded_is_the_fault_of_its_client() -> None:
    """The Python SDK answers with UNKNOWN, as for a failure of its own."""
    (ending,) = endings(grpc("GetTask", b"\xff\xff\xff", status=2, text="corrupt")).values()
    assert (ending.cause, ending.actor) == ("agent-error", Actor.CLIENT)
    (ending,) = endings(grpc("GetTask", GET, status=2, text="broken")).values()
    assert (ending.cause, ending.actor) == ("agent-error", Actor.AGENT)


@NETWORK
def test_version_is_refused(binding: str) -> None:
    call = {
        "jsonrpc": rpc("SendMessage", send(), error=rpc_error(-32009, "VERSION_NOT_SUPPORTED")),
        "rest": rest(
            "POST",
            "/message:send",
            send(),
            rest_error(400, "FAILED_PRECONDITION", "VERSION_NOT_SUPPORTED"),
            status=400,
        ),
        "grpc": grpc(
            "SendMessage", send(), status=9, details=[error_info("VERSION_NOT_SUPPORTED")]
        ),
    }[binding]
    (ending,) = endings(fetch_card() + call).values()
    assert (ending.cause, ending.actor) == ("version-refused", Actor.AGENT)
    assert ending.summary == "the agent refuses version 1.0, which its card offers there"
    name = {"jsonrpc": "JSONRPC", "rest": "HTTP+JSON", "grpc": "GRPC"}[binding]
    older = {"url": "http://localhost:8000/", "protocolBinding": name, "protocolVersion": "0.3"}
    (ending,) = endings(fetch_card(card(supportedInterfaces=[older])) + call).values()
    assert (ending.cause, ending.actor) == ("version-refused", Actor.CLIENT)
    assert ending.summary == "the agent refuses version 1.0; the card offers 0.3"
    elsewhere = {**older, "url": "http://localhost:8000/v1", "protocolVersion": "1.0"}
    known = fetch_card(card(supportedInterfaces=[older, elsewhere]))
    (ending,) = endings(known + call).values()
    at_its_url = binding == "grpc"  # its methods have one path
    assert ending.actor is (Actor.AGENT if at_its_url else Actor.CLIENT)
    (ending,) = endings(call.then(fetch_card(), SECOND)).values()
    assert ending.actor is Actor.CLIENT, "the card came later"


@HTTP
@pytest.mark.parametrize(
    ("body", "media", "words"),
    [
        ('{"a":1}\n{"b":2}\n', "application/x-ndjson", "2 JSON objects (NDJSON)"),
        ('\x1e{"a":1}\n\x1e{"b":2}\n', "text/plain", "2 JSON text records"),
        ('{"a":1}\x1e{"b":2}\x1e', "text/plain", "2 JSON text records"),
        ('{"error":{"code":-32004,"message":"over"}}', "text/event-stream", "-32004: over"),
        ('{"result":{}}', "text/event-stream", "one JSON object under"),
        ("<html></html>", "text/event-stream", "an HTML page"),
    ],
)
def test_answer_in_the_wrong_container(binding: str, body: str, media: str, words: str) -> None:
    options: dict[str, Any] = {"reply_headers": {"Content-Type": media}}
    call = (
        rest("POST", "/message:stream", send(), body, **options)
        if binding == "rest"
        else rpc("SendStreamingMessage", send(), answer=body, **options)
    )
    (ending,) = endings(call).values()
    if ending.cause == "answered-between":
        assert body.startswith("<")
        return
    assert ending.cause == "wrong-container"
    assert words in ending.summary


@HTTP
def test_json_in_its_own_container(binding: str) -> None:
    """A byte order mark is the container's fault; JSON of something else is the agent's error."""

    def call(body: str) -> Script:
        if binding == "rest":
            return rest("POST", "/message:send", send(), body)
        return rpc("SendMessage", send(), answer=body)

    result = '{"task":{"id":"t1","contextId":"c1","status":{"state":"TASK_STATE_COMPLETED"}}}'
    if binding == "jsonrpc":
        result = f'{{"jsonrpc":"2.0","id":1,"result":{result}}}'
    (marked,) = endings(call(f"\ufeff{result}")).values()
    assert (marked.cause, marked.actor) == ("wrong-container", Actor.AGENT)
    assert "without a byte order mark" in marked.next_step
    (other,) = endings(call('{"ok":true}')).values()
    assert (other.cause, other.actor) == ("no-result", Actor.AGENT)
    error = '{"error":{"code":-32004,"message":"over"}}'
    if binding == "jsonrpc":
        error = f'{{"jsonrpc":"2.0","id":1,{error[1:]}'
    event = f"data: {result}\n\n"
    for body, words in (
        (json.dumps(result), "one JSON object inside a JSON string"),
        (b64encode(result.encode()).decode(), "one JSON object inside base64"),
        (json.dumps(error), "a JSON error inside a JSON string"),
        (json.dumps(event * 2), "2 server-sent events inside a JSON string"),
        (event, "1 server-sent event under `application/"),
        (f"{result}\n{result}", "2 JSON objects (NDJSON)"),
        (f"[{result},{result}]", "an array of 2 JSON objects"),
    ):
        (ending,) = endings(call(body)).values()
        assert ending.cause == "wrong-container"
        assert f"the answer is {words}" in ending.summary
        assert ("it says" in ending.summary) == ("-32004" in body)
        assert "one object is due" in ending.summary


@HTTP
@pytest.mark.parametrize("media", ["application/json", "text/plain", None])
def test_events_under_another_content_type(binding: str, media: str | None) -> None:
    """The events count, and clients do not read them."""
    results = (snapshot(), status("COMPLETED", second=1))
    wrapped = (
        results
        if binding == "rest"
        else [{"jsonrpc": "2.0", "id": 1, "result": each} for each in results]
    )
    body = "".join(f"data: {json_text(each)}\n\n" for each in wrapped)
    options: dict[str, Any] = {"reply_headers": {"Content-Type": media}}
    call = (
        rest("POST", "/message:stream", send(), body, **options)
        if binding == "rest"
        else rpc("SendStreamingMessage", send(), answer=body, **options)
    )
    (ending,) = endings(call).values()
    assert ending.cause == "wrong-container"
    assert "the answer is 2 server-sent events" in ending.summary


@HTTP
@pytest.mark.parametrize("status_code", [200, 204])
@pytest.mark.parametrize("is_stream", [False, True])
def test_empty_answer(binding: str, status_code: int, is_stream: bool) -> None:
    """A success without a result leaves the client with nothing."""
    operation = "SendStreamingMessage" if is_stream else "SendMessage"
    path = "/message:stream" if is_stream else "/message:send"
    empty = {"status": status_code, "reply_headers": {"Content-Type": None}}
    if binding == "rest":
        script = http("POST", path, json_text(send()), "", **empty)
    else:
        script = rpc(operation, send(), answer="", **empty)
    (ending,) = endings(script).values()
    assert (ending.cause, ending.severity) == ("no-result", Severity.ERROR)
    assert ending.summary == (
        f"the answer (HTTP {status_code}) is empty, a result of {operation} is due"
    )


def test_answers_that_may_be_empty() -> None:
    """A delete, a card that has not changed, and a notification."""
    config = {"taskId": "t1", "id": "p1"}
    no_type = {"reply_headers": {"Content-Type": None}}
    path = "/tasks/t1/pushNotificationConfigs/p1"
    card_path = "/.well-known/agent-card.json"
    for script in (
        http("DELETE", path, "", "", status=204, **no_type),
        http("GET", card_path, "", "", status=304, **no_type),
        http("HEAD", card_path, "", "", **no_type),
        rpc("DeleteTaskPushNotificationConfig", config, answer={"jsonrpc": "2.0", "id": 1}),
    ):
        assert not endings(script)


@pytest.mark.parametrize("binding", ["jsonrpc", "grpc"])
def test_result_of_another_form(binding: str) -> None:
    if binding == "grpc":
        script = grpc("SendMessage", send())
    else:
        script = rpc("SendMessage", send(), "done")
    (ending,) = endings(script).values()
    assert (ending.cause, ending.severity) == ("no-result", Severity.ERROR)


def test_begin_of_another_answer_has_whole_characters() -> None:
    script = rpc(
        "SendMessage", send(), answer="ab" + "ä" * 90, reply_headers={"Content-Type": "text/plain"}
    )
    (ending,) = endings(script).values()
    assert ending.summary == f"the answer is no result of SendMessage: ab{'ä' * 58}"


def test_status_without_an_answer_is_the_error() -> None:
    (ending,) = endings(grpc("GetTask", GET, status=5, text="no such task")).values()
    assert ending.received == "the error"


@NETWORK
def test_first_message_names_a_task(binding: str) -> None:
    named = send(taskId="t-new")
    call = {
        "jsonrpc": rpc("SendMessage", named, error=rpc_error(-32001, "TASK_NOT_FOUND")),
        "rest": rest(
            "POST",
            "/message:send",
            named,
            rest_error(404, "NOT_FOUND", "TASK_NOT_FOUND"),
            status=404,
        ),
        "grpc": grpc("SendMessage", named, status=5, details=[error_info("TASK_NOT_FOUND")]),
    }[binding]
    assert causes(call) == {1: "invented-task"}


def test_task_that_was_forgotten_is_not_invented() -> None:
    missing = rpc(
        "SendMessage", send(id="m2", taskId="t1"), error=rpc_error(-32001, "TASK_NOT_FOUND"), id=2
    )
    begun = rpc("SendMessage", send(), snapshot("COMPLETED"))
    assert [each.cause for each in endings(begun + missing).values()] == ["agent-error"]


@pytest.mark.parametrize(
    ("call", "actor"),
    [
        (rpc("GetTask", GET, error=rpc_error(-32603, text="broken")), Actor.AGENT),
        (rpc("GetTask", GET, error=rpc_error(-32602, text="wrong")), Actor.CLIENT),
        (grpc("GetTask", GET, status=13, text="broken"), Actor.AGENT),
        (grpc("GetTask", GET, status=3, text="wrong"), Actor.CLIENT),
    ],
)
def test_error_of_the_agent_is_no_finding(call: Script, actor: Actor) -> None:
    (ending,) = endings(call).values()
    assert (ending.cause, ending.severity, ending.actor) == ("agent-error", None, actor)


@pytest.mark.parametrize("binding", ["jsonrpc", "rest"])
def test_error_ends_the_stream_of_an_active_task(binding: str) -> None:
    error: Event = (
        {"error": rpc_error(-32603, "INTERNAL_ERROR")}
        if binding == "jsonrpc"
        else rest_error(500, "INTERNAL", "INTERNAL_ERROR")
    )
    assert causes(stream(binding, *BEGIN, error)) == {1: "stream-error"}
    assert causes(stream(binding, *BEGIN, status("FAILED", second=1))) == {}


def test_grpc_error_ends_the_stream() -> None:
    failed = grpc("SendStreamingMessage", send(), *BEGIN, status=13, text="it broke")
    assert causes(failed) == {1: "stream-error"}


# --- streams


@HTTP
def test_artifact_after_the_final_state(binding: str) -> None:
    late = stream(binding, *BEGIN, DONE, ClientLeaves(), EventPause(0.5), chunk())
    assert causes(late) == {1: "final-first"}
    stayed = stream(binding, *BEGIN, DONE, EventPause(0.5), chunk())
    assert causes(stayed) == {}, "rules judge an artifact that the client received"
    assert causes(stream(binding, *BEGIN, chunk(), DONE, ClientLeaves())) == {}


def half_close(script: Script, after: int = STEP) -> list[Chunk]:
    """Return the conversation with a FIN of the client some time after its request, ns."""
    request, *others = (each for each in script.make_chunks() if each.kind is ChunkKind.DATA)
    rest = [each for each in script.make_chunks() if each.kind is not ChunkKind.DATA]
    fin = Chunk(request.connection, ChunkKind.EOF, Direction.TO_AGENT, request.at + after)
    return sorted([request, *others, fin, *rest], key=lambda each: each.at)


@HTTP
def test_client_that_half_closes(binding: str) -> None:
    """A FIN with the request, before the whole answer: the client has not left."""
    assert endings(half_close(stream(binding, *BEGIN, DONE))) == {}
    assert endings(half_close(stream(binding, *BEGIN, EventPause(20), DONE))) == {}
    assert endings(half_close(poll(binding, "COMPLETED", seconds=7))) == {}
    late = stream(binding, *BEGIN, ClientLeaves(), chunk(), EventPause(0.6), DONE)
    assert endings(late) == {}, "it took bytes for longer than a reset needs"
    ended = half_close(stream(binding, *BEGIN))
    assert causes(ended) == {}, "the agent may have ended it because of the FIN"


@HTTP
def test_client_that_leaves_before_the_answer(binding: str) -> None:
    """A FIN long after the request, before an answer in one piece, or before one that is cut."""
    (left,) = endings(half_close(poll(binding, "COMPLETED", seconds=7), 4 * SECOND)).values()
    assert left.cause == "client-left"
    short = stream(binding, *BEGIN, EventPause(2), ClientLeaves(), chunk(), DONE)
    assert [each.cause for each in endings(short).values()] == ["client-left"]
    cut = half_close(stream(binding, *BEGIN, EventPause(2), finish="cut"))
    assert [each.cause for each in endings(cut).values()] == ["client-left"]


@NETWORK
@pytest.mark.parametrize("finish", ["leave", "stop", "open"])
def test_end_that_the_stream_never_shows(binding: str, finish: Finish) -> None:
    """Judged when the client leaves, and when the recording ends."""
    if binding == "grpc" and finish == "stop":
        pytest.skip("only HTTP/1 examples stop with the proxy")
    waiting = stream(binding, *BEGIN, EventPause(14), finish=finish)
    found = endings(
        run_together(waiting, poll(binding, "COMPLETED"), after=SECOND).then(
            fetch_card(), 14 * SECOND
        )
    )
    assert found[1].cause == "end-not-sent"
    assert "#2 said completed" in found[1].summary


@NETWORK
def test_end_shown_at_the_same_time_is_not_missing(binding: str) -> None:
    left = stream(binding, *BEGIN, EventPause(1), finish="leave")
    both = run_together(left, poll(binding, "COMPLETED"), after=SECOND)
    assert "end-not-sent" not in causes(both).values()


@NETWORK
@pytest.mark.parametrize("finish", ["cut", "leave"])
def test_equal_silences_are_an_idle_timeout(binding: str, finish: Finish) -> None:
    def cut(number: int, seconds: float) -> Script:
        return stream(binding, *BEGIN, EventPause(seconds), finish=finish, text=f"m{number}")

    found = endings(cut(1, 6) + cut(2, 6))
    assert {each.cause for each in found.values()} == {"idle-timeout"}
    assert {each.actor for each in found.values()} == {Actor.BETWEEN}
    assert found[1].severity is (Severity.WARNING if finish == "cut" else Severity.INFO)
    assert "about 6.0 s" in found[1].summary
    together = run_together(cut(1, 6), cut(2, 6), after=10 * MS)
    for other in (cut(1, 6), cut(1, 6) + cut(2, 8), cut(1, 1) + cut(2, 1), together):
        assert "idle-timeout" not in causes(other).values()


@NETWORK
def test_stream_ends_before_its_task(binding: str) -> None:
    assert causes(stream(binding, *BEGIN, finish="cut")) == {1: "stream-ended"}
    assert causes(stream(binding, *BEGIN)) == {1: "stream-ended"}
    assert causes(stream(binding, *BEGIN, DONE)) == {}
    asked = status("INPUT_REQUIRED", second=1, message=reply("which?"))
    assert causes(stream(binding, *BEGIN, asked)) == {}
    assert causes(stream(binding, agent_reply())) == {}


def test_stream_whose_last_event_cannot_be_decoded() -> None:
    """It may have shown the end of the task."""
    unread = b"\x0a\x02\xc3\x28"
    assert "stream-ended" not in causes(stream("grpc", *BEGIN, unread)).values()
    assert causes(stream("grpc", snapshot(), unread, status("WORKING"))) == {1: "stream-ended"}


@NETWORK
def test_work_that_stops_with_its_client(binding: str) -> None:
    left = stream(binding, *BEGIN, EventPause(1), finish="leave")
    working = poll(binding, "WORKING")
    stopped = left.then(working, 10 * SECOND).then(working, 10 * SECOND)
    (ending,) = endings(stopped).values()
    assert (ending.cause, ending.confidence) == ("work-stopped", "low")
    assert "#2, #3" in ending.summary
    soon = left.then(working, SECOND)
    assert "work-stopped" not in causes(soon).values()
    went_on = left.then(poll(binding, "COMPLETED"), 10 * SECOND)
    assert causes(went_on) == {}


@NETWORK
def test_client_gives_up_after_equal_times(binding: str) -> None:
    def give_up(number: int, seconds: float) -> Script:
        options: dict[str, Any] = {"seconds": seconds, "finish": "leave", "id": f"m{number}"}
        if binding != "grpc":
            return ask(binding, **options)
        return grpc("SendMessage", send(id=f"m{number}"), seconds=seconds, finish="leave")

    twice = endings(give_up(1, 7) + give_up(2, 7))
    assert {(each.cause, each.confidence) for each in twice.values()} == {
        ("client-timeout", "high")
    }
    silent = stream(binding, *BEGIN, EventPause(7), finish="leave", text="m2")
    mixed = endings(give_up(1, 7) + silent)
    assert {each.cause for each in mixed.values()} == {"client-timeout"}, "one timer for both"
    together = endings(run_together(give_up(1, 7), give_up(2, 7), after=10 * MS))
    assert {each.cause for each in together.values()} == {"client-left"}, "one program ended both"
    (once,) = endings(give_up(1, 30)).values()
    assert (once.cause, once.confidence) == ("client-timeout", "low")
    assert once.remaining[0].endswith("30 s")
    for other in (give_up(1, 7), give_up(1, 7) + give_up(2, 4)):
        assert {each.cause for each in endings(other).values()} == {"client-left"}


@NETWORK
def test_agent_that_is_silent(binding: str) -> None:
    def wait(seconds: float) -> Script:
        if binding == "grpc":
            return grpc("SendMessage", send(), seconds=seconds, finish="leave")
        return ask(binding, seconds=seconds, finish="leave")

    assert causes(wait(42)) == {1: "agent-silent"}
    assert causes(wait(4)) == {}
    stalled = stream(binding, *BEGIN, EventPause(42), finish="leave")
    assert causes(stalled) == {1: "agent-silent"}


@NETWORK
def test_client_leaves_right_after_a_frame(binding: str) -> None:
    left = stream(binding, *BEGIN, finish="leave")
    (ending,) = endings(left).values()
    assert (ending.cause, ending.confidence) == ("client-failed", "low")
    seq = 3 if binding == "grpc" else 2
    assert f"status working (#1.{seq})" in ending.summary
    assert ending.suspect == (1, seq)
    assert causes(left + poll(binding, "WORKING")) == {}, "it came back"
    assert causes(stream(binding, *BEGIN, EventPause(1), finish="leave")) == {}


@NETWORK
def test_task_that_its_client_leaves(binding: str) -> None:
    left = stream(binding, *BEGIN, EventPause(1), finish="leave")
    assert causes(left.then(fetch_card(), 40 * SECOND)) == {1: "task-left"}
    assert causes(left.then(poll(binding, "COMPLETED"), 5 * SECOND)) == {}


@HTTP
def test_leaving_after_the_end_is_no_failure(binding: str) -> None:
    """Nor at a question, after CancelTask, or while the recording ends."""
    for last in (DONE, status("INPUT_REQUIRED", second=1, message=reply("which?"))):
        assert causes(stream(binding, *BEGIN, last, finish="leave")) == {}
    left = stream(binding, *BEGIN, EventPause(1), finish="leave")
    cancel = rpc("CancelTask", GET, task("CANCELED", second=1), id=3)
    cancelled = run_together(left, cancel, after=500 * MS).then(fetch_card(), 60 * SECOND)
    assert causes(cancelled) == {}
    long_after = stream(binding, *BEGIN, EventPause(5), finish="leave")
    assert causes(run_together(long_after, cancel, after=SECOND)) == {}
    seen = run_together(long_after, poll(binding, "CANCELED"), after=SECOND)
    assert causes(seen) == {1: "end-not-sent"}
    for finish in ("stop", "open"):
        (waits,) = endings(stream(binding, *BEGIN, finish=finish)).values()
        assert (waits.cause, waits.severity) == ("not-recorded", None)
        assert "nothing from the agent" in waits.summary
    assert causes(stream(binding, *BEGIN, finish="fault")) == {}


def test_end_that_is_not_recorded() -> None:
    """A proxy that stopped or was killed ended it."""
    (stopped,) = endings(stream("jsonrpc", *BEGIN, finish="stop")).values()
    chunks = stream("jsonrpc", *BEGIN, finish="open").make_chunks()
    (killed,) = endings(chunks[:-1], killed=True).values()
    for did, each in (("stopped", stopped), ("was killed", killed)):
        assert each.summary.startswith(f"open when the proxy {did}: nothing from the agent for")
        assert each.ended_by.startswith("the proxy, after")


# --- tasks


def test_question_answered_without_the_task() -> None:
    def answer(**members: Any) -> Script:
        made = {"task": task("COMPLETED", id="t2")}
        return rpc("SendMessage", send("four", id="m2", **members), made, id=2)

    named = QUESTION_CALL + answer(contextId="c1", referenceTaskIds=["t1"])
    assert causes(named) == {1: "answered-elsewhere"}
    assert causes(QUESTION_CALL + answer(contextId="c1")) == {}, "another subject"
    same = rpc("SendMessage", send("four", id="m2", taskId="t1"), snapshot("COMPLETED"), id=2)
    assert causes(QUESTION_CALL + same) == {}


def test_question_over_grpc_and_rest() -> None:
    question = snapshot("INPUT_REQUIRED", status=input_required())
    elsewhere = send("four", id="m2", contextId="c1", referenceTaskIds=["t1"])
    done = {"task": task("COMPLETED", id="t2")}
    for first, second in (
        (grpc("SendMessage", send(), question), grpc("SendMessage", elsewhere, done)),
        (
            rest("POST", "/message:send", send(), question),
            rest("POST", "/message:send", elsewhere, done),
        ),
    ):
        assert causes(first + second) == {1: "answered-elsewhere"}
        unanswered = first.then(fetch_card(), 700 * SECOND)
        assert causes(unanswered) == {1: "question-unanswered"}
        assert causes(first.then(fetch_card(), 60 * SECOND)) == {}


@NETWORK
def test_task_that_does_not_change(binding: str) -> None:
    begun = STARTED_CALL
    for number in range(3):
        begun = begun.then(poll(binding, "WORKING"), 40 * SECOND)
        assert ("task-stuck" in causes(begun).values()) is (number == 2)
    assert causes(begun.then(poll(binding, "COMPLETED"), 40 * SECOND)) == {}


@NETWORK
def test_task_that_nobody_asks_for(binding: str) -> None:
    begun = {
        "jsonrpc": STARTED_CALL,
        "rest": rest("POST", "/message:send", send(), snapshot("WORKING")),
        "grpc": grpc("SendMessage", send(), snapshot("WORKING")),
    }[binding]
    assert causes(begun.then(fetch_card(), 700 * SECOND)) == {1: "nobody-asked"}
    assert causes(begun.then(fetch_card(), 60 * SECOND)) == {}
    asked = begun.then(poll(binding, "COMPLETED"), 60 * SECOND)
    assert causes(asked.then(fetch_card(), 700 * SECOND)) == {}
    done = rpc("SendMessage", send(), snapshot("COMPLETED", artifacts=[artifact()]))
    assert causes(done.then(fetch_card(), 700 * SECOND)) == {}


def test_stdio_agent_that_exits_before_its_answer() -> None:
    """Nothing is between client and agent on a pipe."""
    exited = pipe_script(pipe_call("GetTask", GET), close_output(), exit_agent(3))
    (ending,) = endings(exited).values()
    assert (ending.cause, ending.actor) == ("no-answer", Actor.AGENT)
    assert ending.remaining == ()
    assert ending.next_step == "run the agent's command alone: does it report an error?"
    assert endings(pipe_script(pipe_call("GetTask", GET), pipe_response(task("COMPLETED")))) == {}


@pytest.mark.parametrize("binding", ["jsonrpc", "rest", "grpc"])
def test_lost_event(binding: str) -> None:
    """Until something brings the client what it missed."""

    def lost(*generations: str) -> Script:
        first, second, last = generations
        events = (
            snapshot(generation=first),
            status("WORKING", generation=second),
            status("COMPLETED", second=1, generation=last),
        )
        if binding == "grpc":
            return grpc("SendStreamingMessage", send(), *events, version="1.1")
        if binding == "rest":
            return rest_stream("POST", "/message:stream", send(), *events, version="1.1")
        return rpc_stream("SendStreamingMessage", send(), *events, version="1.1")

    (ending,) = endings(lost("1", "2", "5")).values()
    assert (ending.cause, ending.actor) == ("lost-event", Actor.CLIENT)
    assert ending.summary.startswith("generations 3 to 4 of the task did not arrive on this stream")
    assert ending.summary.endswith("neither GetTask nor another stream brought them afterwards")
    read = rpc("GetTask", GET, task("COMPLETED", second=1, generation="5"), id=2, version="1.1")
    assert not endings(lost("1", "2", "5") + read)
    assert not endings(lost("1", "2", "3"))


@pytest.mark.parametrize("binding", ["jsonrpc", "rest"])
def test_client_that_must_wait(binding: str) -> None:
    """As long as the agent says."""
    for fields, step in (({"Retry-After": "7"}, "wait 7 s,"), ({}, "wait a while,")):
        options: dict[str, Any] = {"status": 429, "reply_headers": fields, "answer": "slow down"}
        if binding == "rest":
            script = http("POST", "/message:send", json_text(send()), **options)
        else:
            script = ask(binding, **options)
        (ending,) = endings(script).values()
        assert (ending.cause, ending.actor) == ("agent-error", Actor.CLIENT)
        assert ending.next_step.startswith(step)


def test_agent_that_closes_at_once() -> None:
    """Within the same millisecond."""
    assert format_ns(400_000) == "less than 1 ms"
    assert format_ns(1_000_000) == "1 ms"


@NETWORK
def test_question_that_waits(binding: str) -> None:
    """It is no failure yet, until an answer comes or ten minutes are over."""
    asked = stream(binding, *BEGIN, status("INPUT_REQUIRED"))
    (ending,) = endings(asked).values()
    assert (ending.cause, ending.severity, ending.actor) == ("question-open", None, Actor.CLIENT)
    assert ending.summary.startswith("the task waits for the client: it is input-required")
    answered = asked + rpc("SendMessage", send(id="m2", taskId="t1"), snapshot("COMPLETED"), id=2)
    assert not endings(answered)


def test_sides_are_compared_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streams that the agent's side cut are not counted with those that the client left, also if
    the agent has no name."""

    def end(finish: Finish, text: str) -> Script:
        return stream("jsonrpc", *BEGIN, EventPause(6), finish=finish, text=text)

    script = end("cut", "m1") + end("cut", "m2") + end("leave", "m3") + end("leave", "m4")
    monkeypatch.setattr(
        "support_rules._ObservedCalls.read_exchange",
        lambda self, number: msgspec.structs.replace(self._exchanges[number], agent=""),
    )
    found = endings(script).values()
    assert {each.cause for each in found} == {"idle-timeout"}
    assert [each.summary.partition(" ")[0] for each in found] == ["2"] * 4


def test_error_of_a_streaming_call_needs_no_stream() -> None:
    """One finding about its content type, not two that contradict each other."""
    error = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32004, "message": "completed"}}
    script = rpc(
        "SubscribeToTask", GET, answer=json.dumps(error), reply_headers={"Content-Type": None}
    )
    rules = [each.rule for each in findings(script)]
    assert "A2A-HTTP-002" in rules
    assert "A2A-HTTP-003" not in rules


@pytest.mark.parametrize("binding", ["jsonrpc", "rest", "grpc"])
@pytest.mark.parametrize(
    ("kind", "members", "remark"),
    [
        ("ErrorInfo", {"reason": "R", "metadata": {"limit": "5"}}, "limit: 5"),
        ("BadRequest", {"fieldViolations": [{"field": "f", "description": "due"}]}, "f: due"),
        ("RetryInfo", {"retryDelay": "2s"}, "retry after 2s"),
        ("QuotaFailure", {"violations": [{"subject": "u", "description": "due"}]}, "u: due"),
        ("DebugInfo", {"stackEntries": ["f()"], "detail": "no key"}, "no key"),
        ("LocalizedMessage", {"locale": "de", "message": "zu viel"}, "zu viel"),
    ],
)
def test_details_of_an_error(binding: str, kind: str, members: dict[str, Any], remark: str) -> None:
    """Each is in the line of the call, whatever the binding."""
    details = [{"@type": f"type.googleapis.com/google.rpc.{kind}", **members}]
    call = {
        "jsonrpc": rpc(
            "SendMessage", send(), error={"code": -32603, "message": "failed", "data": details}
        ),
        "rest": rest(
            "POST",
            "/message:send",
            send(),
            rest_error(500, "INTERNAL", "", "failed", details=details),
            status=500,
        ),
        "grpc": grpc("SendMessage", send(), status=13, text="failed", details=details),
    }[binding]
    (ending,) = endings(call).values()
    assert ending.cause == "agent-error"
    assert ending.summary.endswith(f": failed ({remark})")


@pytest.mark.parametrize("binding", ["jsonrpc", "rest"])
@pytest.mark.parametrize(
    ("body", "media", "line"),
    [
        ("upstream exploded\nat x", "text/plain", "upstream exploded"),
        ('{"error":"bad","issues":[{"path":["a"],"message":"due"}]}', None, "bad (a: due)"),
        (
            '{"detail":[{"loc":["body","id"],"msg":"missing"}]}',
            "application/json",
            "body.id: missing",
        ),
        ('{"title":"Bad","detail":"worse"}', "application/problem+json", "worse"),
        ('{"errors":["one","two"]}', "application/json", "one, two"),
        ('"no such route"', "application/json", "no such route"),
    ],
)
def test_errors_of_no_version(binding: str, body: str, media: str | None, line: str) -> None:
    options: dict[str, Any] = {"reply_headers": {"Content-Type": media}, "status": 400}
    call = (
        rest("POST", "/message:send", send(), body, **options)
        if binding == "rest"
        else rpc("SendMessage", send(), answer=body, **options)
    )
    (ending,) = endings(call).values()
    assert ending.summary.endswith(f"400: {line}")


@HTTP
def test_binary_answer(binding: str) -> None:
    """It is named by size and type, not shown."""
    options: dict[str, Any] = {"reply_headers": {"Content-Type": "image/png"}}
    call = (
        rest("POST", "/message:send", send(), "\x00\x01", **options)
        if binding == "rest"
        else rpc("SendMessage", send(), answer="\x00\x01", **options)
    )
    (ending,) = endings(call).values()
    assert "a binary body of 2 bytes, `image/png`" in ending.summary


@pytest.mark.parametrize(
    ("body", "media", "words"),
    [
        ('{"task":{}}', "application/json", "one JSON object under `application/json`"),
        ('{"task":{}}', "application/grpc", "one JSON object under `application/grpc`"),
        ('data: {"task":{}}\n\n', "text/event-stream", "server-sent events under"),
    ],
)
def test_json_in_place_of_grpc(body: str, media: str, words: str) -> None:
    script = grpc(
        "SendMessage",
        send(),
        RawBytes(body.encode()),
        reply_headers={"content-type": media},
        status=0 if media == "application/grpc" else None,
    )
    (ending,) = endings(script).values()
    assert ending.cause == "wrong-container"
    assert f"the answer is {words}" in ending.summary
    assert "gRPC" in ending.next_step
