"""Agents that serve a card over HTTP or gRPC, and clients that fetch it through a relay."""

from __future__ import annotations

import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import aiohttp
import grpc
import grpc.aio
import trustme
from aiohttp import web

from support_relay import SECONDS, Bench

PATH = "/.well-known/agent-card.json"
EXTENDED = {"1.0": "GetExtendedAgentCard", "0.3": "agent/getAuthenticatedExtendedCard"}
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@contextlib.asynccontextmanager
async def http_agent(
    answer: Answer, certificate: trustme.LeafCert | None = None
) -> AsyncIterator[int]:
    """Serve over HTTP, or over HTTPS with a certificate."""
    context = None
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certificate.configure_cert(context)
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


def card_of(interfaces: list[tuple[str, str]], line: str) -> dict[str, Any]:
    """Return a card of dialect 1.0 or 0.3 with these interfaces (url, binding)."""
    if line == "1.0":
        entries = [{"url": url, "protocolBinding": binding} for url, binding in interfaces]
        return {"name": "a", "supportedInterfaces": entries}
    (url, binding), *more = interfaces
    entries = [{"url": url, "transport": binding} for url, binding in more]
    return {"name": "a", "url": url, "preferredTransport": binding, "additionalInterfaces": entries}


def card_agent(
    *interfaces: tuple[str, str], signed: bool = False, line: str = "1.0"
) -> contextlib.AbstractAsyncContextManager[int]:
    """Serve a card; `PORT` in its URLs is replaced with the port of the agent. A POST returns it as
    the extended card over JSON-RPC. Other requests return their Host header."""

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path != PATH and request.method != "POST":
            return web.json_response({"host": request.headers["Host"]})
        port = str(request.transport.get_extra_info("sockname")[1])  # type: ignore[union-attr]
        card = card_of([(url.replace("PORT", port), binding) for url, binding in interfaces], line)
        card |= {"signatures": [{"protected": "e30", "signature": "x"}]} if signed else {}
        response = web.json_response(
            card if request.path == PATH else {"jsonrpc": "2.0", "id": 1, "result": card}
        )
        response.etag = "original"
        return response

    return http_agent(answer)


async def fetch(
    bench: Bench, path: str = PATH, **headers: str
) -> tuple[aiohttp.ClientResponse, bytes]:
    url = f"http://127.0.0.1:{bench.port}{path}"
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as response:
        return response, await response.read()


async def urls_of(bench: Bench) -> list[str]:
    """Return the URLs in the card that the client receives."""
    _, body = await fetch(bench)
    return _urls(json.loads(body))


async def extended_urls_of(bench: Bench, line: str = "1.0") -> list[str]:
    """Return the URLs in the extended card over JSON-RPC."""
    asked = {"jsonrpc": "2.0", "id": 1, "method": EXTENDED[line]}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"http://127.0.0.1:{bench.port}/", json=asked) as got,
    ):
        return _urls((await got.json())["result"])


def _urls(card: dict[str, Any]) -> list[str]:
    first = [card["url"]] if "url" in card else []
    entries = card.get("supportedInterfaces", card.get("additionalInterfaces", []))
    return first + [entry["url"] for entry in entries]


@contextlib.asynccontextmanager
async def grpc_server(answer: bytes = b"") -> AsyncIterator[int]:
    """Run a gRPC server that answers each call with these bytes, or with its request."""

    class Handler(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # generic in the stubs only
        def service(self, _: grpc.HandlerCallDetails) -> Any:
            return grpc.unary_unary_rpc_method_handler(_answer)

    async def _answer(request: bytes, _: object) -> bytes:
        return answer or request

    server = grpc.aio.server()
    server.add_generic_rpc_handlers((Handler(),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield port
    finally:
        await server.stop(None)


async def call(port: int, method: str = "/a.B/Echo") -> bytes:
    own = (("grpc.use_local_subchannel_pool", 1),)  # no connection of an earlier, refused call
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", own) as channel:
        return await channel.unary_unary(method)(b"hi", timeout=SECONDS)  # type: ignore[call-arg, no-any-return]
