"""Endless streams of numbered events through a proxy, to compare the events that clients received with a recording."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import grpc
from aiohttp import web

from a2a_proto import from_dict
from a2a_proxy.recording.read.reader import Recording
from support_cli import recorder_of

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
    return [(stream.decode(), (int(number), int(sent))) for stream, number, sent in MARK.findall(data)]


class StreamingAgent(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # generic in the stubs only
    """An agent that streams over gRPC and JSON-RPC until `enough`; the text of the request names the stream."""

    def __init__(self) -> None:
        self.enough = asyncio.Event()
        self.http_port = self.grpc_port = 0

    async def __aenter__(self) -> StreamingAgent:
        self._grpc = grpc.aio.server()
        self._grpc.add_generic_rpc_handlers((self,))
        self.grpc_port = self._grpc.add_insecure_port("127.0.0.1:0")
        await self._grpc.start()
        app = web.Application()
        app.router.add_post("/{stream}", self._sse)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.http_port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self.enough.set()
        await self._grpc.stop(0.1)
        await self._runner.cleanup()

    def service(self, details: grpc.HandlerCallDetails) -> Any:
        return grpc.unary_stream_rpc_method_handler(self._send) if details.method == METHOD else None

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
                await response.write(f"data: {json.dumps({'jsonrpc': '2.0', 'id': 1, 'result': event})}\n\n".encode())
        return response


class Clients:
    """Streams of both bindings; `got` holds the received events, `ends` the end of each stream."""

    def __init__(self) -> None:
        self.got: dict[str, list[Mark]] = defaultdict(list)
        self.ends: dict[str, str] = {}
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, address: str, streams: int, prefix: str = "") -> None:
        for number in range(streams):
            self._tasks.append(
                asyncio.ensure_future(self._kept(f"{prefix}g{number}", self._grpc(address, f"{prefix}g{number}")))
            )
            self._tasks.append(
                asyncio.ensure_future(self._kept(f"{prefix}s{number}", self._sse(address, f"{prefix}s{number}")))
            )

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

    async def _grpc(self, address: str, stream: str) -> None:
        options = (("grpc.use_local_subchannel_pool", 1),)  # a connection of its own
        async with grpc.aio.insecure_channel(address, options=options) as channel:
            async for message in channel.unary_stream(METHOD, None, None)(b"", metadata=(("stream", stream),)):
                self._keep(message)

    async def _sse(self, address: str, stream: str) -> None:
        body = {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": {"message": {}}}
        timeout = aiohttp.ClientTimeout(total=None)
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.post(f"http://{address}/{stream}", json=body, headers={"A2A-Version": "1.0"}) as response,
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
