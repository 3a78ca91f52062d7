"""Probing the interfaces of a card: what is sent, and how each answer is judged."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
import grpc.aio
import pytest
from aiohttp import web

from a2a_proto import from_dict, message_class
from a2a_proxy.cli.card import fetch, probe
from a2a_proxy.cli.card.probe import MAX_PROBES, ProbeResult, Verdict, probe_interfaces
from a2a_proxy.rules.examples.conversation import rest_error, rpc_error
from a2a_proxy.rules.examples.objects import Json, card
from support_cards import http_agent

NOT_FOUND = rpc_error(-32001, "TASK_NOT_FOUND", "no such task")
UUID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"


def entry(url: str, binding: str, version: str = "1.0", **more: str) -> Json:
    return {"url": url, "protocolBinding": binding, "protocolVersion": version, **more}


async def probe_one(*entries: Json) -> ProbeResult:
    (found,) = await probe_interfaces(card(supportedInterfaces=list(entries)))
    return found


def reply(
    body: object, status: int = 200, **headers: str
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def answer(_: web.Request) -> web.StreamResponse:
        text = body if isinstance(body, str) else json.dumps(body)
        kind = "text/html" if isinstance(body, str) else "application/json"
        return web.Response(text=text, status=status, content_type=kind, headers=headers)

    return answer


async def probe_http(
    body: object, binding: str, status: int = 200, **headers: str
) -> tuple[Verdict, str]:
    async with http_agent(reply(body, status, **headers)) as port:
        found = await probe_one(entry(f"http://127.0.0.1:{port}/a", binding))
    return found.verdict, found.words


# --- the request


class Heard:
    """An agent that keeps its requests and answers 404."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, dict[str, str], str]] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(
            (request.method, request.path_qs, dict(request.headers), await request.text())
        )
        return web.Response(status=404)


@pytest.mark.parametrize(
    ("version", "method"), [("1.0", "GetTask"), ("0.3", "tasks/get"), ("", "GetTask")]
)
async def test_jsonrpc_request(version: str, method: str) -> None:
    """GetTask of a random id, in the dialect of the interface, at the URL as it is, without
    credentials."""
    heard = Heard()
    async with http_agent(heard.answer) as port:
        for _ in range(2):
            await probe_one(entry(f"http://127.0.0.1:{port}/a/?b=c", "JSONRPC", version))
    (verb, target, headers, text), (*_, second) = heard.requests
    call = json.loads(text)
    assert (verb, target, call["method"]) == ("POST", "/a/?b=c", method)
    assert re.fullmatch(UUID, call["params"]["id"])
    assert call["params"] != json.loads(second)["params"]
    assert headers.get("A2A-Version") == (None if version == "0.3" else "1.0")
    assert "Authorization" not in headers
    assert headers["User-Agent"].startswith("a2a-inspect/")


@pytest.mark.parametrize(
    ("version", "more", "path"),
    [
        ("1.0", {}, "/a/tasks/"),
        ("0.3", {}, "/a/v1/tasks/"),
        ("1.0", {"tenant": "t"}, "/a/t/tasks/"),
    ],
)
async def test_rest_request(version: str, more: dict[str, str], path: str) -> None:
    heard = Heard()
    async with http_agent(heard.answer) as port:
        await probe_one(entry(f"http://127.0.0.1:{port}/a/", "HTTP+JSON", version, **more))
    ((verb, target, _, text),) = heard.requests
    assert (verb, text) == ("GET", "")
    assert re.fullmatch(path + UUID, target)


async def test_interfaces_of_both_forms_are_probed_once() -> None:
    """An 0.3 card too; the same URL in 1.0 and 0.3 are two interfaces."""
    heard = Heard()
    async with http_agent(heard.answer) as port:
        url = f"http://127.0.0.1:{port}/"
        new = card(supportedInterfaces=[entry(url, "JSONRPC"), entry(url, "JSONRPC", "0.3")])
        both = new | {"url": url, "preferredTransport": "JSONRPC", "protocolVersion": "0.3.0"}
        assert [each.interface.path for each in await probe_interfaces(both)] == [
            "supportedInterfaces[0].url",
            "supportedInterfaces[1].url",
        ]
        old = {
            "url": url,
            "additionalInterfaces": [{"url": f"{url}rest", "transport": "HTTP+JSON"}],
        }
        before = await probe_interfaces(old)
        old["protocolVersion"] = "0.3.0"
        probed = await probe_interfaces(old)
    methods = sorted(
        json.loads(text)["method"] for verb, _, _, text in heard.requests if verb == "POST"
    )
    assert methods == ["GetTask", "tasks/get", "tasks/get", "tasks/get"]
    assert [each.label.partition(" at ")[0] for each in probed] == ["JSONRPC 0.3", "HTTP+JSON 0.3"]
    assert [each.label.partition(" at ")[0] for each in before] == ["JSONRPC 0.2", "HTTP+JSON 0.2"]


# --- JSON-RPC and REST


def envelope(**members: object) -> Json:
    return {"jsonrpc": "2.0", "id": 1, **members}


@pytest.mark.parametrize(
    ("body", "status", "verdict", "words"),
    [
        (envelope(error=NOT_FOUND), 200, Verdict.ANSWERS, "TASK_NOT_FOUND -32001: no such task"),
        (envelope(error={"code": -32001}), 404, Verdict.ANSWERS, "TASK_NOT_FOUND -32001"),
        (
            envelope(error={"code": -32601, "message": "x"}),
            200,
            Verdict.FAILS,
            "METHOD_NOT_FOUND -32601: x",
        ),
        (
            envelope(error={"code": -32009, "message": "x"}),
            200,
            Verdict.FAILS,
            "VERSION_NOT_SUPPORTED -32009: x",
        ),
        (
            envelope(error={"code": -32603, "message": [1]}),
            500,
            Verdict.ODD,
            "INTERNAL_ERROR -32603; expected TASK_NOT_FOUND",
        ),
        (envelope(error={"code": "x"}), 200, Verdict.ODD, "; expected TASK_NOT_FOUND"),
        (
            envelope(result={"id": "1"}),
            200,
            Verdict.ODD,
            "returns a result for a task that cannot exist; expected TASK_NOT_FOUND",
        ),
        ({}, 401, Verdict.ANSWERS, "requires authentication (status 401)"),
        ("<html>", 403, Verdict.ANSWERS, "requires authentication (status 403)"),
        ("<html>", 200, Verdict.FAILS, "status 200 with text/html, which is not JSON-RPC"),
        (
            {"detail": "x"},
            404,
            Verdict.FAILS,
            "status 404 with application/json, which is not JSON-RPC",
        ),
    ],
)
async def test_jsonrpc_answers(body: object, status: int, verdict: Verdict, words: str) -> None:
    assert await probe_http(body, "JSONRPC", status) == (verdict, words)


@pytest.mark.parametrize(
    ("body", "status", "verdict", "words"),
    [
        (
            rest_error(404, "NOT_FOUND", "TASK_NOT_FOUND"),
            404,
            Verdict.ANSWERS,
            "TASK_NOT_FOUND 404: it failed",
        ),
        (
            rest_error(404, "NOT_FOUND", "", details=[]),
            404,
            Verdict.ANSWERS,
            "NOT_FOUND 404: it failed",
        ),
        ({"message": "Task not found"}, 404, Verdict.ANSWERS, "404: Task not found"),
        (
            {"detail": "Not Found"},
            404,
            Verdict.FAILS,
            "which is not an A2A error: nothing is served at this path",
        ),
        ("404 page", 404, Verdict.FAILS, "status 404 with text/html, which is not a JSON object"),
        (
            rest_error(400, "X", "VERSION_NOT_SUPPORTED"),
            400,
            Verdict.FAILS,
            "VERSION_NOT_SUPPORTED 400: it failed",
        ),
        (rest_error(500, "INTERNAL", "", details=[]), 500, Verdict.ODD, "INTERNAL 500: it failed"),
        ({"id": "1"}, 200, Verdict.ODD, "returns status 200 for a task that cannot exist"),
        ({}, 401, Verdict.ANSWERS, "requires authentication (status 401)"),
    ],
)
async def test_rest_answers(body: object, status: int, verdict: Verdict, words: str) -> None:
    found, reason = await probe_http(body, "HTTP+JSON", status)
    assert found is verdict
    assert words in reason


@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
async def test_http_that_does_not_answer(
    binding: str, unused_tcp_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A port on which nothing listens, a redirect, an agent that hangs, one that disconnects."""
    refused = await probe_one(entry(f"http://127.0.0.1:{unused_tcp_port}", binding))
    assert (refused.verdict, refused.words) == (Verdict.FAILS, "connection refused")
    redirected = await probe_http("", binding, 302, Location="https://elsewhere/?token=s3cret")
    assert redirected == (Verdict.FAILS, "status 302, a redirect to https://elsewhere/?…")

    async def hang(request: web.Request) -> web.StreamResponse:
        if request.path.startswith("/cut"):
            assert request.transport is not None
            request.transport.close()
        await asyncio.sleep(1)
        return web.Response()

    monkeypatch.setattr(probe, "FETCH_SECONDS", 0.1)
    async with http_agent(hang) as port:
        slow, cut = [
            await probe_one(entry(f"http://127.0.0.1:{port}/{path}", binding))
            for path in ("slow", "cut")
        ]
    assert (slow.verdict, slow.words) == (
        Verdict.FAILS,
        f"no answer within {fetch.FETCH_SECONDS:.0f} s",
    )
    assert (cut.verdict, cut.words) == (
        Verdict.FAILS,
        "it closed the connection before the end of its answer",
    )


async def test_a_large_answer_is_not_read_to_its_end() -> None:
    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            while True:
                await response.write(b" " * 65536)
        return response

    async with http_agent(endless) as port:
        found = await probe_one(entry(f"http://127.0.0.1:{port}", "JSONRPC"))
    assert found.verdict is Verdict.FAILS


# --- gRPC

Call = Callable[[bytes, Any], Awaitable[bytes]]


@contextlib.asynccontextmanager
async def grpc_agent(
    answer: Call, method: str = "/lf.a2a.v1.A2AService/GetTask"
) -> AsyncIterator[int]:
    """An agent with one method."""

    class Handler(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # generic in the stubs only
        def service(self, details: grpc.HandlerCallDetails) -> Any:
            return grpc.unary_unary_rpc_method_handler(answer) if details.method == method else None

    server = grpc.aio.server()
    server.add_generic_rpc_handlers((Handler(),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield port
    finally:
        await server.stop(None)


def failing(code: grpc.StatusCode, reason: str = "") -> Call:
    async def answer(_: bytes, context: Any) -> bytes:
        if reason:
            status: Any = message_class("rpc", "google.rpc.Status")(code=code.value[0])
            info: Any = message_class("rpc", "google.rpc.ErrorInfo")(reason=reason)
            status.details.add(
                type_url="type.googleapis.com/google.rpc.ErrorInfo", value=info.SerializeToString()
            )
            context.set_trailing_metadata(
                (("grpc-status-details-bin", status.SerializeToString()),)
            )
        await context.abort(code, "it failed: 100 %")
        raise AssertionError

    return answer


async def probe_grpc(answer: Call, form: str = "127.0.0.1:{}") -> tuple[Verdict, str]:
    async with grpc_agent(answer) as port:
        found = await probe_one(entry(form.format(port), "GRPC"))
    return found.verdict, found.words


@pytest.mark.parametrize("form", ["127.0.0.1:{}", "http://127.0.0.1:{}", "grpc://127.0.0.1:{}/"])
@pytest.mark.parametrize(
    ("code", "reason", "verdict", "words"),
    [
        ("NOT_FOUND", "TASK_NOT_FOUND", Verdict.ANSWERS,
         "TASK_NOT_FOUND NOT_FOUND: it failed: 100 %"),
        ("NOT_FOUND", "", Verdict.ANSWERS, "NOT_FOUND: it failed: 100 %"),
        ("UNAUTHENTICATED", "", Verdict.ANSWERS,
         "requires authentication (UNAUTHENTICATED: it failed: 100 %)"),
        ("PERMISSION_DENIED", "", Verdict.ANSWERS,
         "requires authentication (PERMISSION_DENIED: it failed: 100 %)"),
        ("UNIMPLEMENTED", "VERSION_NOT_SUPPORTED", Verdict.FAILS,
         "VERSION_NOT_SUPPORTED UNIMPLEMENTED: it fai"),
        ("INTERNAL", "", Verdict.ODD, "INTERNAL: it failed: 100 %"),
    ],
)  # fmt: skip
async def test_grpc_answers(
    form: str, code: str, reason: str, verdict: Verdict, words: str
) -> None:
    found, answer = await probe_grpc(failing(grpc.StatusCode[code], reason), form)
    assert found is verdict
    assert answer.startswith(words)


async def test_grpc_request() -> None:
    """The id and the version, and a task that cannot exist."""
    heard: list[tuple[bytes, dict[str, str]]] = []

    async def answer(request: bytes, context: Any) -> bytes:
        heard.append((request, dict(context.invocation_metadata())))
        return from_dict("1.0", "Task", {"id": "1"}).SerializeToString()

    found = await probe_grpc(answer)
    assert found == (
        Verdict.ODD,
        "returns a task for an id that cannot exist; expected TASK_NOT_FOUND",
    )
    ((data, metadata),) = heard
    request: Any = message_class("1.0", "GetTaskRequest").FromString(data)
    assert re.fullmatch(UUID, request.id)
    assert metadata["a2a-version"] == "1.0"


async def test_grpc_of_0_3_is_another_service() -> None:
    async with grpc_agent(failing(grpc.StatusCode.NOT_FOUND), "/a2a.v1.A2AService/GetTask") as port:
        old = card(
            supportedInterfaces=None,
            url=f"127.0.0.1:{port}",
            preferredTransport="GRPC",
            protocolVersion="0.3.0",
        )
        (before,) = await probe_interfaces(old)
        now = await probe_one(entry(f"127.0.0.1:{port}", "GRPC"))
    assert before.verdict is Verdict.ANSWERS
    assert now.verdict is Verdict.FAILS
    assert now.words.startswith("UNIMPLEMENTED")


async def test_grpc_that_does_not_answer(
    unused_tcp_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A port on which nothing listens, an agent that hangs, HTTP/1.1, TLS to a plain port."""
    refused = await probe_one(entry(f"127.0.0.1:{unused_tcp_port}", "GRPC"))
    assert (refused.verdict, refused.words) == (Verdict.FAILS, "connection refused (without TLS)")
    monkeypatch.setattr(probe, "FETCH_SECONDS", 0.5)

    async def hang(_: bytes, __: Any) -> bytes:
        await asyncio.sleep(5)
        return b""

    verdict, words = await probe_grpc(hang)
    assert (verdict, words) == (Verdict.FAILS, f"no answer within {fetch.FETCH_SECONDS:.0f} s")
    async with http_agent(reply({})) as port:
        plain = await probe_one(entry(f"127.0.0.1:{port}", "GRPC"))
    assert (plain.verdict, plain.words) == (
        Verdict.FAILS,
        "it does not speak HTTP/2 on this port (without TLS)",
    )
    found = await probe_grpc(hang, "https://127.0.0.1:{}")
    assert found == (Verdict.FAILS, "the TLS handshake failed (with TLS)")


# --- what is not probed


@pytest.mark.parametrize(
    ("url", "binding", "words"),
    [
        ("wss://127.0.0.1:1", "https://example.com/bindings/ws", "is not a core binding"),
        ("npx run agent", "stdio", "stdio is not a core binding"),
        ("http://127.0.0.1:1", "", "no binding is not a core binding"),
        ("/a2a", "JSONRPC", "the URL is invalid"),
        ("file:///etc/passwd", "JSONRPC", "the URL is invalid"),
        ("http://ann:pw@127.0.0.1:1/", "JSONRPC", "the URL is invalid or has user information"),
    ],
)
async def test_not_probed(url: str, binding: str, words: str) -> None:
    found = await probe_one(entry(url, binding))
    assert found.verdict is Verdict.SKIPPED
    assert words in found.words


async def test_only_the_first_interfaces_are_probed() -> None:
    heard = Heard()
    async with http_agent(heard.answer) as port:
        many = [
            entry(f"http://127.0.0.1:{port}/{number}", "JSONRPC")
            for number in range(MAX_PROBES + 2)
        ]
        found = await probe_interfaces(card(supportedInterfaces=many))
    assert len(heard.requests) == MAX_PROBES
    assert [each.verdict for each in found].count(Verdict.SKIPPED) == 2
    assert found[-1].words == f"not probed: only the first {MAX_PROBES} interfaces are"


async def test_a_label_has_no_secrets() -> None:
    found = await probe_one(entry("wss://ann:s3cret@host/?token=s3cret", "x"))
    assert found.label == "x 1.0 at wss://host/?…"
