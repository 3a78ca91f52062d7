"""What the agents and clients of the old dialects share: serving, SSE both ways, and JSON-RPC over
aiohttp.

The behaviours and the transcript are those of the SDK peers (`agents/behaviours.py`,
`clients/kit.py`).
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import socket
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "agents"), str(HERE.parent / "clients")]

import behaviours  # noqa: E402
import kit  # noqa: E402

Json = dict[str, Any]
EVENT_STREAM = "text/event-stream"


class RpcError(Exception):
    """A JSON-RPC error: raised by an agent to answer it, by a client when it is answered."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data

    def json(self) -> Json:
        """The `error` member."""
        shown = {"code": self.code, "message": self.message}
        return shown if self.data is None else {**shown, "data": self.data}


def now() -> str:
    """A timestamp as the old agents wrote it: no zone."""
    return datetime.now(UTC).replace(tzinfo=None).isoformat()


def listen() -> tuple[socket.socket, str]:
    """A listener on a free port of 127.0.0.1, and its base URL."""
    listener = socket.create_server(("127.0.0.1", 0))
    return listener, f"http://127.0.0.1:{listener.getsockname()[1]}"


async def serve(app: web.Application, listener: socket.socket, args: Any) -> None:
    """Serve the application on the listener until killed, saying so on stdout."""
    behaviours.watch_stdin(args)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.SockSite(runner, listener).start()
    print(json.dumps({"http": listener.getsockname()[1]}), flush=True)
    await asyncio.Event().wait()


async def stream(
    request: web.Request, results: AsyncIterator[Json], rpc_id: Any
) -> web.StreamResponse:
    """Answer with one SSE frame per result, each a JSON-RPC response; an error becomes the last
    frame."""
    headers = {
        "Content-Type": EVENT_STREAM,
        "Cache-Control": "no-cache",
        "Connection": "keep-alive",
    }
    response = web.StreamResponse(headers=headers)
    await response.prepare(request)
    try:
        async for result in results:
            await response.write(frame({"jsonrpc": "2.0", "id": rpc_id, "result": result}))
    except RpcError as why:
        await response.write(frame({"jsonrpc": "2.0", "id": rpc_id, "error": why.json()}))
    await response.write_eof()
    return response


def frame(answer: Json) -> bytes:
    """One event."""
    return b"data: " + json.dumps(answer, ensure_ascii=False).encode() + b"\n\n"


def answer(rpc_id: Any, result: Any) -> web.Response:
    """A unary answer."""
    return web.json_response({"jsonrpc": "2.0", "id": rpc_id, "result": result})


def refuse(rpc_id: Any, why: RpcError) -> web.Response:
    """A unary error; JSON-RPC errors travel with status 200."""
    return web.json_response({"jsonrpc": "2.0", "id": rpc_id, "error": why.json()})


class Rpc:
    """A JSON-RPC client of one URL."""

    def __init__(
        self, http: aiohttp.ClientSession, url: str, headers: dict[str, str] | None = None
    ) -> None:
        self.http, self.url, self.headers = http, url, headers or {}
        self.numbers = itertools.count(1)

    def body(self, method: str, params: Json) -> Json:
        """A request object; ids are strings."""
        return {
            "jsonrpc": "2.0",
            "id": f"req-{next(self.numbers)}",
            "method": method,
            "params": params,
        }

    async def call(self, method: str, params: Json) -> Any:
        """The result of a unary call; raises RpcError."""
        async with self.http.post(
            self.url, json=self.body(method, params), headers=self.headers
        ) as response:
            return result_of(await response.json())

    async def stream(self, method: str, params: Json) -> AsyncIterator[Json]:
        """The results of a streaming call, as they come; raises RpcError, also in the middle."""
        headers = {**self.headers, "Accept": EVENT_STREAM}
        async with self.http.post(
            self.url, json=self.body(method, params), headers=headers
        ) as response:
            if response.content_type != EVENT_STREAM:
                result_of(await response.json())
            async for data in events(response.content):
                yield result_of(json.loads(data))


async def events(content: aiohttp.StreamReader) -> AsyncIterator[str]:
    """The data of each event of a stream."""
    lines: list[str] = []
    while line := await content.readline():
        text = line.decode().rstrip("\r\n")
        if text.startswith("data:"):
            lines.append(text[5:].removeprefix(" "))
        elif not text and lines:
            yield "\n".join(lines)
            lines = []


def result_of(body: Json) -> Any:
    """The result of a JSON-RPC response; raises RpcError."""
    if "error" in body:
        raise RpcError(body["error"]["code"], body["error"]["message"], body["error"].get("data"))
    return body["result"]


def error(why: Exception) -> kit.Event:
    """What went wrong, as an event."""
    if isinstance(why, RpcError):
        return {
            "kind": "error",
            "type": "RpcError",
            "code": str(why.code),
            "message": why.message,
            "data": why.data,
        }
    return {"kind": "error", "type": type(why).__name__, "code": None, "message": str(why)}


def part(chunk: behaviours.Chunk, discriminator: str) -> Json:
    """A chunk's body as a part, which is told apart by `type` in 0.1 and by `kind` in 0.2."""
    if chunk.kind == "text":
        return {discriminator: "text", "text": chunk.body}
    if chunk.kind == "data":
        return {discriminator: "data", "data": chunk.body}
    body = chunk.body
    where = {"bytes": base64.b64encode(body).decode()} if isinstance(body, bytes) else {"uri": body}
    return {discriminator: "file", "file": {"name": "file.bin", "mimeType": chunk.media, **where}}


def part_shown(one: Json) -> kit.Event:
    """A part of either dialect as an event shows it."""
    if "text" in one:
        return kit.text_of(one["text"])
    if "data" in one:
        return {"data": one["data"]}
    file = one["file"]
    body = {"raw": file["bytes"]} if "bytes" in file else {"url": file["uri"]}
    return {**body, "media": file["mimeType"], "name": file["name"]}


def status_shown(status: Json) -> kit.Event:
    """State and text of a status."""
    text = "".join(one.get("text", "") for one in status.get("message", {}).get("parts", []))
    return {"state": status["state"], "text": text or None}


class Gates:
    """Lets a task wait until somebody opens its gate, or cancels it."""

    def __init__(self) -> None:
        self.ends: dict[str, asyncio.Future[bool]] = {}

    def of(self, task_id: str) -> asyncio.Future[bool]:
        """Resolves to False when the gate opens, and to True when the task is canceled."""
        return self.ends.setdefault(task_id, asyncio.get_running_loop().create_future())

    def end(self, task_id: str, canceled: bool) -> None:
        """Open the gate, or cancel."""
        if not self.of(task_id).done():
            self.of(task_id).set_result(canceled)
