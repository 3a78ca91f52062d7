"""WebSockets of real peers through the real proxy: what each peer receives, what is recorded."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import trustme
from aiohttp import web
from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve

from a2a_proxy.model.values import Binding, FrameKind
from a2a_proxy.recording.read.rows import make_key
from support_proxy import Proxy, finished, inspect

SECONDS = 60
SEND = {"message": {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "hello " * 40}]}}
Answer = Callable[[str], Awaitable[None]]


def task(name: str) -> dict[str, Any]:
    """A task."""
    return {"id": "t-1", "contextId": "c-1", "status": {"state": f"TASK_STATE_{name}"}}


def events() -> list[dict[str, Any]]:
    """The events of the stream."""
    status = {"taskId": "t-1", "contextId": "c-1", "status": task("WORKING")["status"]}
    done = {**status, "status": task("COMPLETED")["status"]}
    return [{"task": task("SUBMITTED")}, {"statusUpdate": status}, {"statusUpdate": done}]


async def answer(text: str, send: Answer) -> None:
    """Answer a call, as an agent."""
    call = json.loads(text)
    head = {"jsonrpc": "2.0", "id": call["id"]}
    if call["method"] == "GetTask":
        await send(json.dumps({**head, "result": task("COMPLETED")}))
        return
    for each in events():
        await send(json.dumps({**head, "result": each}))
    await send(json.dumps({**head, "streamEnd": True}))


async def _answer_with_websockets(socket: ServerConnection) -> None:
    async for message in socket:
        assert isinstance(message, str)
        await answer(message, socket.send)


async def _answer_with_aiohttp(request: web.Request) -> web.WebSocketResponse:
    socket = web.WebSocketResponse(protocols=["a2a.v1"], compress=True)
    await socket.prepare(request)
    async for message in socket:
        await answer(message.data, socket.send_str)
    return socket


@asynccontextmanager
async def agent(library: str, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Serve an agent; yield its port."""
    if library == "websockets":
        async with serve(
            _answer_with_websockets, "127.0.0.1", 0, subprotocols=["a2a.v1"], ssl=tls
        ) as server:
            yield server.sockets[0].getsockname()[1]
        return
    application = web.Application()
    application.router.add_get("/a2a/ws", _answer_with_aiohttp)
    runner = web.AppRunner(application)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        assert site._server is not None
        yield site._server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]
    finally:
        await runner.cleanup()


def _requests() -> list[str]:
    return [
        json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        for number, (method, params) in enumerate(
            [("SendStreamingMessage", SEND), ("GetTask", {"id": "t-1"})], 1
        )
    ]


async def call(library: str, url: str, forward: str = "", **options: Any) -> list[str]:
    """Make both calls; return what the agent answers, the subprotocol and the close code."""
    fields = {"A2A-Version": "1.0"}
    answers = []
    if library == "websockets":
        if forward:
            options["proxy"] = forward
        async with connect(
            url, subprotocols=["a2a.v1"], additional_headers=fields, **options
        ) as socket:
            for request in _requests():
                await socket.send(request)
                answers.append(str(await socket.recv()))
                while "Streaming" in request and "streamEnd" not in answers[-1]:
                    answers.append(str(await socket.recv()))
            await socket.ping(b"are you there")
        return [*answers, str(socket.subprotocol), str(socket.close_code)]
    if forward:
        options["proxy"] = forward
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(
            url, protocols=["a2a.v1"], headers=fields, compress=15, **options
        ) as socket,
    ):
        for request in _requests():
            await socket.send_str(request)
            answers.append(await socket.receive_str())
            while "Streaming" in request and "streamEnd" not in answers[-1]:
                answers.append(await socket.receive_str())
        await socket.ping()
    return [*answers, str(socket.protocol), str(socket.close_code)]


def check(between: Proxy) -> None:
    """Check what is recorded: the handshake and one exchange for each call, without findings."""
    with finished(between) as recording:
        (session,) = recording.read_sessions()
        assert session.missing_text == ""
        rows = [row.exchange for row in recording.read_exchanges()]
        assert [(each.binding, each.how, each.error) for each in rows] == [
            (Binding.OTHER, "complete", ""),
            (Binding.WEBSOCKET, "complete", ""),
            (Binding.WEBSOCKET, "complete", ""),
        ]
        assert rows[1].states == ("submitted", "working", "completed")
        kinds = [each.frame.kind for each in recording.read_frames(make_key(1, 2))]
        assert kinds == [FrameKind.REQUEST, *[FrameKind.EVENT] * 3, FrameKind.END]
        assert [row.connection.kind for row in recording.read_connections()] == ["websocket"]
    told = inspect(between.state, "check", between.recording)
    assert "found: 0 errors, 0 warnings, 0 infos" in told
    assert "every call ended well" in inspect(between.state, "why", between.recording)


@pytest.mark.parametrize("way", ["listen", "fault", "tls", "forward", "intercept"])
@pytest.mark.parametrize("peers", [("websockets", "aiohttp"), ("aiohttp", "websockets")])
async def test_peers_notice_nothing(tmp_path: Path, peers: tuple[str, str], way: str) -> None:
    """Each library as client and as agent, with compression: the same messages as without the
    proxy, through each kind of listener; a fault for other calls ends with the handshake."""
    client, server = peers
    is_secure = way in ("tls", "intercept")
    authority = trustme.CA()
    file = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(file))
    certificate = authority.issue_cert("localhost")
    certificate.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "own.pem"))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(tls)
    trust = ssl.create_default_context(cafile=str(file))
    async with agent(server, tls if is_secure else None) as port:
        scheme = "s" if is_secure else ""
        url = f"ws{scheme}://localhost:{port}/a2a/ws"
        options: dict[str, Any] = {"ssl": trust} if is_secure else {}
        expected = await asyncio.wait_for(call(client, url, **options), SECONDS)
        upstream = f"http{scheme}://localhost:{port}"
        words = {
            "listen": (upstream, ""),
            "fault": (upstream, "", "--fault", "drop status 9 of SendStreamingMessage"),
            "tls": (
                upstream, "", "--upstream-ca", str(file),
                "--tls", "--tls-cert", str(tmp_path / "own.pem"),
            ),
            "forward": ("", "", "--forward", "127.0.0.1:0"),
            "intercept": (
                "", "", "--forward", "127.0.0.1:0", "--intercept", "private",
                "--upstream-ca", str(file),
            ),
        }[way]  # fmt: skip
        between = await asyncio.to_thread(Proxy(tmp_path, *words).start)
        try:
            forward = between.base_url if way in ("forward", "intercept") else ""
            if not forward:
                url = f"ws{scheme}://localhost:{between.port}/a2a/ws"
            if way == "intercept":
                trust.load_verify_locations(str(between.state / "ca" / "ca.pem"))
            through = await asyncio.wait_for(call(client, url, forward, **options), SECONDS)
            assert through == expected
            await asyncio.to_thread(check, between)
        finally:
            between.kill()
