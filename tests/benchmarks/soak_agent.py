"""An agent of the soak in a process of its own: `soak_agent.py HTTP_PORT GRPC_PORT`.

The name of a stream says how many events it has (`STREAM-N`). The text of an event depends on the
name and its number alone, so that each event differs from all others.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
from aiohttp import web
from english import English

sys.path.append(str(Path(__file__).resolve().parents[1]))
from a2a_proto import from_dict

SERVICE = "/lf.a2a.v1.A2AService/"
MESSAGE_BYTES = 2_000
"""Bytes of the longest text of an event."""
_NO_LETTER = re.compile("[^A-Za-z ]+")


class Texts:
    """The texts of all events."""

    def __init__(self) -> None:
        self._english = English()

    def event(self, stream: str, number: int) -> dict[str, Any]:
        """Return one event of a stream: each third one is an artifact's part, the others are status
        updates. The last one completes the task."""
        size = random.Random(f"{stream} {number}").choice((20, 40, 80, 160, MESSAGE_BYTES))
        words = _NO_LETTER.sub(
            " ", self._english.sentence(size).decode()
        )  # nothing that looks like a secret
        text = f"mark {stream} {number}. {words}"
        names = {"taskId": f"task-{stream}", "contextId": f"context-{stream}"}
        is_last = number == int(stream.rpartition("-")[2]) - 1
        if number % 3 == 2 and not is_last:
            artifact = {"artifactId": "report", "parts": [{"text": text}]}
            return {"artifactUpdate": {**names, "artifact": artifact, "append": number > 2}}
        message = {
            "messageId": f"{stream}-{number}",
            "role": "ROLE_AGENT",
            "parts": [{"text": text}],
        }
        state = "TASK_STATE_COMPLETED" if is_last else "TASK_STATE_WORKING"
        return {"statusUpdate": {**names, "status": {"state": state, "message": message}}}


class SoakAgent(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # generic in the stubs only
    """Server streams and bidirectional streams over gRPC; JSON-RPC and REST, as streams and as
    single answers."""

    def __init__(self) -> None:
        self._texts = Texts()

    async def serve(self, http_port: int, grpc_port: int) -> None:
        """Serve until the process is killed."""
        server = grpc.aio.server()
        server.add_generic_rpc_handlers((self,))
        server.add_insecure_port(f"127.0.0.1:{grpc_port}")
        await server.start()
        app = web.Application()
        app.router.add_post("/rpc/{stream}", self._rpc)
        app.router.add_post("/{stream}/v1/message:stream", self._rest)
        app.router.add_post("/{stream}/v1/message:send", self._rest)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", http_port).start()
        print("ready", flush=True)
        await asyncio.Event().wait()

    def service(self, details: grpc.HandlerCallDetails) -> Any:
        """Return the handler of a gRPC method."""
        if details.method == f"{SERVICE}SendLiveMessage":
            return grpc.stream_stream_rpc_method_handler(self._live)
        return grpc.unary_stream_rpc_method_handler(self._stream)

    async def _events(self, stream: str) -> AsyncIterator[dict[str, Any]]:
        for number in range(int(stream.rpartition("-")[2])):
            yield self._texts.event(stream, number)
            await asyncio.sleep(0.002 if number % 8 else 0.1)

    async def _stream(self, _request: bytes, context: Any) -> AsyncIterator[bytes]:
        async for event in self._events(dict(context.invocation_metadata())["stream"]):
            yield from_dict("1.0", "StreamResponse", event).SerializeToString()

    async def _live(self, requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
        stream, number = dict(context.invocation_metadata())["stream"], 0
        async for _ in requests:
            yield from_dict(
                "1.0", "StreamResponse", self._texts.event(stream, number)
            ).SerializeToString()
            number += 1

    async def _rpc(self, request: web.Request) -> web.StreamResponse:
        call = await request.json()
        if call["method"] == "SendStreamingMessage":
            return await self._send(
                request, lambda event: {"jsonrpc": "2.0", "id": call["id"], "result": event}
            )
        event = self._texts.event(request.match_info["stream"], 0)["statusUpdate"]["status"][
            "message"
        ]
        return web.json_response({"jsonrpc": "2.0", "id": call["id"], "result": {"message": event}})

    async def _rest(self, request: web.Request) -> web.StreamResponse:
        if request.path.endswith(":stream"):
            return await self._send(request, lambda event: event)
        event = self._texts.event(request.match_info["stream"], 0)["statusUpdate"]["status"][
            "message"
        ]
        return web.json_response({"message": event})

    async def _send(self, request: web.Request, wrap: Any) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        with contextlib.suppress(OSError):  # the client died
            async for event in self._events(request.match_info["stream"]):
                await response.write(f"data: {json.dumps(wrap(event))}\n\n".encode())
        return response


if __name__ == "__main__":
    asyncio.run(SoakAgent().serve(int(sys.argv[1]), int(sys.argv[2])))
