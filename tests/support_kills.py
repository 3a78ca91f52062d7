"""Endless streams of numbered events through a proxy, to compare the events that clients received
with a recording.

The clients reach the agent on any way of `support_ways`, except `unread`, whose events nobody
records. With `absolute` gRPC is in tunnels (`connect`), because gRPC has no other form.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import ssl
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import trustme
from aiohttp import web

from a2a_proto import from_dict
from a2a_proxy.recording.read.reader import Recording
from support_cli import recorder_of
from support_proxy import Proxy
from support_ways import Way

METHOD = "/lf.a2a.v1.A2AService/SendStreamingMessage"
MARK = re.compile(rb"mark ([0-9a-z]+) (\d+) (\d+)\.")
PAUSE = 0.002
"""Seconds between two events of a stream."""
SECONDS = 120.0

Mark = tuple[int, int]
"""Number of the event within its stream, and the time at which the agent sent it, ns."""


def update(stream: str, number: int) -> dict[str, Any]:
    """Return one event of a stream."""
    text = f"mark {stream} {number} {time.time_ns()}."
    message = {"messageId": f"m-{number}", "role": "ROLE_AGENT", "parts": [{"text": text}]}
    status = {"state": "TASK_STATE_WORKING", "message": message}
    return {"statusUpdate": {"taskId": f"task-{stream}", "contextId": "c", "status": status}}


def marks(data: bytes) -> list[tuple[str, Mark]]:
    """Return the marks in these bytes, in order."""
    return [
        (stream.decode(), (int(number), int(sent))) for stream, number, sent in MARK.findall(data)
    ]


class StreamingAgent(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # generic in the stubs only
    """An agent that streams over gRPC and JSON-RPC until `enough`; the text of the request names
    the stream."""

    def __init__(self, certificate: trustme.LeafCert | None = None) -> None:
        """Create an agent that speaks TLS if it has a certificate."""
        self.enough = asyncio.Event()
        self.http_port = self.grpc_port = 0
        self._certificate = certificate

    async def __aenter__(self) -> StreamingAgent:
        self._grpc = grpc.aio.server()
        self._grpc.add_generic_rpc_handlers((self,))
        context = None
        if (certificate := self._certificate) is None:
            self.grpc_port = self._grpc.add_insecure_port("127.0.0.1:0")
        else:
            pair = (
                certificate.private_key_pem.bytes(),
                b"".join(pem.bytes() for pem in certificate.cert_chain_pems),
            )
            self.grpc_port = self._grpc.add_secure_port(
                "127.0.0.1:0", grpc.ssl_server_credentials([pair])
            )
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            certificate.configure_cert(context)
        await self._grpc.start()
        app = web.Application()
        app.router.add_post("/{stream}", self._sse)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=context).start()
        self.http_port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self.enough.set()
        await self._grpc.stop(0.1)
        await self._runner.cleanup()

    def service(self, details: grpc.HandlerCallDetails) -> Any:
        return (
            grpc.unary_stream_rpc_method_handler(self._send) if details.method == METHOD else None
        )

    async def _events(self, stream: str) -> AsyncIterator[dict[str, Any]]:
        number = 0
        while not self.enough.is_set():
            yield update(stream, number)
            number += 1
            await asyncio.sleep(PAUSE)

    async def _send(self, _request: bytes, context: Any) -> AsyncIterator[bytes]:
        stream = dict(context.invocation_metadata())["stream"]
        async for event in self._events(stream):
            yield from_dict("1.0", "StreamResponse", event).SerializeToString()

    async def _sse(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        with contextlib.suppress(OSError):  # the proxy was killed
            async for event in self._events(request.match_info["stream"]):
                await response.write(
                    f"data: {json.dumps({'jsonrpc': '2.0', 'id': 1, 'result': event})}\n\n".encode()
                )
        return response


class Reach:
    """How clients reach a streaming agent through a proxy: the options of the proxy, and those of
    the clients."""

    def __init__(self, way: Way, folder: Path) -> None:
        self.way = way
        self._origin_ca = folder / "origin-ca.pem"
        self._certificate: trustme.LeafCert | None = None
        if way.agent_has_tls:
            authority = trustme.CA()
            authority.cert_pem.write_to_path(str(self._origin_ca))
            self._certificate = authority.issue_cert("localhost")

    def agent(self) -> StreamingAgent:
        """Return a new agent, which is not started."""
        return StreamingAgent(self._certificate)

    def proxy(self, folder: Path, agent: StreamingAgent, *extra: str) -> Proxy:
        """Return a proxy for this agent, which is not started."""
        upstream, grpc_upstream = self.targets(agent)
        if self.way.is_forwarded:
            upstream = grpc_upstream = ""
            extra += ("--forward", "127.0.0.1:0")
        elif self.way.client_has_tls:
            extra += ("--tls",)
        if self.way.agent_has_tls:
            extra += ("--upstream-ca", str(self._origin_ca))
        if self.way is Way.INTERCEPT:
            extra += ("--intercept", "private")
        return Proxy(folder, upstream, grpc_upstream, "--quiet", *extra)

    def targets(self, agent: StreamingAgent) -> tuple[str, str]:
        """Return the URL or address of the agent's HTTP port and of its gRPC port."""
        host = "https://localhost" if self.way.agent_has_tls else "127.0.0.1"
        return f"{host}:{agent.http_port}", f"{host}:{agent.grpc_port}"

    def http_session(self, agent: StreamingAgent, between: Proxy) -> aiohttp.ClientSession:
        """Return a session whose URLs begin with the agent."""
        scheme = "https" if self.way.client_has_tls else "http"
        place = (
            self.targets(agent)[0].rpartition("/")[2]
            if self.way.is_forwarded
            else f"localhost:{between.port}"
        )
        context = (
            ssl.create_default_context(cadata=self._authority(between))
            if self.way.client_has_tls
            else True
        )
        return aiohttp.ClientSession(
            f"{scheme}://{place}",
            timeout=aiohttp.ClientTimeout(total=None),
            connector=aiohttp.TCPConnector(ssl=context),
            proxy=between.base_url if self.way.is_forwarded else None,
        )

    def grpc_channel(self, agent: StreamingAgent, between: Proxy) -> grpc.aio.Channel:
        """Return a channel to the agent with a connection of its own."""
        options: list[tuple[str, Any]] = [("grpc.use_local_subchannel_pool", 1)]
        place = f"localhost:{between.port}"
        if self.way.is_forwarded:
            options.append(("grpc.http_proxy", between.base_url))
            place = self.targets(agent)[1].rpartition("/")[2]
        if not self.way.client_has_tls:
            return grpc.aio.insecure_channel(place, options=options)
        credentials = grpc.ssl_channel_credentials(self._authority(between).encode())
        return grpc.aio.secure_channel(place, credentials, options=options)

    def _authority(self, between: Proxy) -> str:
        return (between.state / "ca" / "ca.pem").read_text()


class Clients:
    """Streams of both bindings; `got` holds the received events, `ends` the end of each stream."""

    def __init__(self) -> None:
        self.got: dict[str, list[Mark]] = defaultdict(list)
        self.ends: dict[str, str] = {}
        self._tasks: list[asyncio.Task[None]] = []

    def start(
        self, reach: Reach, agent: StreamingAgent, between: Proxy, streams: int, prefix: str = ""
    ) -> None:
        for number in range(streams):
            over_grpc, over_http = f"{prefix}g{number}", f"{prefix}s{number}"
            for stream, story in (
                (over_grpc, self._grpc(reach.grpc_channel(agent, between), over_grpc)),
                (over_http, self._sse(reach.http_session(agent, between), over_http)),
            ):
                self._tasks.append(asyncio.ensure_future(self._kept(stream, story)))

    async def begun(self, events: int = 3) -> None:
        """Wait until each stream has received some events."""
        async with asyncio.timeout(SECONDS):
            while len(self.got) < len(self._tasks) or min(map(len, self.got.values())) < events:
                assert not self.ends, self.ends
                await asyncio.sleep(0.005)

    async def ended(self) -> None:
        async with asyncio.timeout(SECONDS):
            await asyncio.gather(*self._tasks)

    async def _kept(self, stream: str, story: Any) -> None:
        try:
            await story
            self.ends[stream] = "ok"
        except (grpc.RpcError, aiohttp.ClientError, OSError) as error:
            self.ends[stream] = type(error).__name__

    def _keep(self, data: bytes) -> None:
        for stream, mark in marks(data):
            self.got[stream].append(mark)

    async def _grpc(self, to_agent: grpc.aio.Channel, stream: str) -> None:
        async with to_agent as channel:
            async for message in channel.unary_stream(METHOD, None, None)(
                b"", metadata=(("stream", stream),)
            ):
                self._keep(message)

    async def _sse(self, to_agent: aiohttp.ClientSession, stream: str) -> None:
        body = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "SendStreamingMessage",
            "params": {"message": {}},
        }
        async with (
            to_agent as session,
            session.post(f"/{stream}", json=body, headers={"A2A-Version": "1.0"}) as response,
        ):
            async for line in response.content:
                self._keep(line)


def recorded(path: Path, session: int | None = None) -> dict[str, list[Mark]]:
    """Return the marks of each stream in the order of the recording."""
    found: dict[str, list[Mark]] = defaultdict(list)
    with Recording(path) as stored:
        for row in stored.frames_after(0, session=session):
            for stream, mark in marks(row.frame.payload):
                found[stream].append(mark)
    return found


async def next_recorder(relay: int, before: int = 0) -> int:
    """Return the process id of the recorder that replaced the last killed one."""
    async with asyncio.timeout(SECONDS):
        while (found := recorder_of(relay)) in (0, before):
            await asyncio.sleep(0.01)
    return found


def kill(*pids: int) -> None:
    """Send SIGKILL to all of them at once."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP if len(pids) > 1 else signal.SIGKILL)
    for pid in pids if len(pids) > 1 else ():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
