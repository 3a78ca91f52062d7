"""The numbered agent on the wire: JSON-RPC, REST and gRPC as the 1.1 draft has them, long polls and
preconditions too.

Prints its ports as JSON and serves until its stdin closes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import grpc
from aiohttp import web
from story import Agent, Json, Mismatch

from a2a_proto import from_dict, message_class, to_dict

SERVICE = "/lf.a2a.v1.A2AService/"
INFO = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "domain": "a2a-protocol.org"}


def info(error: Exception) -> Json:
    """The ErrorInfo of a refusal."""
    if isinstance(error, Mismatch):
        return {**INFO, "reason": "TASK_GENERATION_MISMATCH", "metadata": error.metadata}
    return {**INFO, "reason": "TASK_NOT_FOUND"}


def card(base: str, grpc_port: int) -> Json:
    """What the agent says of itself."""
    interfaces = [
        {"url": f"{base}/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.1"},
        {"url": base, "protocolBinding": "HTTP+JSON", "protocolVersion": "1.1"},
        {"url": f"127.0.0.1:{grpc_port}", "protocolBinding": "GRPC", "protocolVersion": "1.1"},
    ]
    skill = {"id": "count", "name": "count", "description": "counts its changes", "tags": ["test"]}
    modes = {"defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"]}
    about = {"name": "numbered agent", "description": "numbers what it changes", "version": "1.0.0"}
    return {
        **about,
        **modes,
        "supportedInterfaces": interfaces,
        "capabilities": {"streaming": True},
        "skills": [skill],
    }


class Http:
    """JSON-RPC and REST."""

    def __init__(self, agent: Agent, grpc_port: int) -> None:
        self._agent, self._grpc = agent, grpc_port
        self.app = web.Application()
        self.app.router.add_get("/.well-known/agent-card.json", self.card)
        self.app.router.add_post("/rpc", self.rpc)
        self.app.router.add_post("/message:{verb}", self.rest_send)
        self.app.router.add_get("/tasks/{id}", self.rest_get)

    async def card(self, request: web.Request) -> web.Response:
        """The card."""
        caching = {"Cache-Control": "max-age=60", "ETag": '"1"'}
        return web.json_response(card(f"http://{request.host}", self._grpc), headers=caching)

    async def rpc(self, request: web.Request) -> web.StreamResponse:
        """One JSON-RPC call."""
        call = await request.json()
        params, answer = call.get("params", {}), {"jsonrpc": "2.0", "id": call["id"]}
        try:
            if call["method"] == "SendStreamingMessage":
                return await sse(request, self._agent.stream(params), answer)
            if call["method"] == "SendMessage":
                answer["result"] = await self._agent.send(params)
            else:
                current = params.get("currentGeneration")
                answer["result"] = await self._agent.get(
                    params["id"], None if current is None else int(current)
                )
        except Mismatch as error:
            answer["error"] = {"code": -32010, "message": str(error), "data": [info(error)]}
        except KeyError as error:
            answer["error"] = {"code": -32001, "message": "no such task", "data": [info(error)]}
        return web.json_response(answer)

    async def rest_send(self, request: web.Request) -> web.StreamResponse:
        """`/message:send` and `/message:stream`."""
        params = await request.json()
        try:
            if request.match_info["verb"] == "stream":
                return await sse(request, self._agent.stream(params), None)
            return rest(await self._agent.send(params))
        except Mismatch as error:
            return refused(409, "ABORTED", error)
        except KeyError as error:
            return refused(404, "NOT_FOUND", error)

    async def rest_get(self, request: web.Request) -> web.Response:
        """`/tasks/{id}`."""
        current = request.query.get("currentGeneration")
        try:
            return rest(
                await self._agent.get(
                    request.match_info["id"], None if current is None else int(current)
                )
            )
        except KeyError as error:
            return refused(404, "NOT_FOUND", error)


def rest(body: Json, status: int = 200) -> web.Response:
    """A REST answer."""
    return web.json_response(body, status=status, content_type="application/a2a+json")


def refused(status: int, name: str, error: Exception) -> web.Response:
    """A REST error."""
    said = "no such task" if isinstance(error, KeyError) else str(error)
    return rest(
        {"error": {"code": status, "status": name, "message": said, "details": [info(error)]}},
        status,
    )


async def sse(
    request: web.Request, events: AsyncIterator[Json], envelope: Json | None
) -> web.StreamResponse:
    """A stream of events; what is refused is refused before it begins."""
    first = await anext(events)
    response = web.StreamResponse(
        headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"}
    )
    await response.prepare(request)

    async def tell(event: Json) -> None:
        value = event if envelope is None else {**envelope, "result": event}
        await response.write(b"data: " + json.dumps(value).encode() + b"\n\n")

    await tell(first)
    async for event in events:
        await tell(event)
    await response.write_eof()
    return response


class Grpc(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # generic in the stubs only
    """The gRPC binding over the project's own descriptors."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def service(self, details: Any) -> Any:
        """The handler of one call; None answers UNIMPLEMENTED."""
        if details.method == f"{SERVICE}SendStreamingMessage":
            return grpc.unary_stream_rpc_method_handler(self.stream)
        if details.method == f"{SERVICE}SendMessage":
            return grpc.unary_unary_rpc_method_handler(self.send)
        if details.method == f"{SERVICE}GetTask":
            return grpc.unary_unary_rpc_method_handler(self.get)
        return None

    async def stream(self, request: bytes, context: Any) -> AsyncIterator[bytes]:
        """Events of a send."""
        try:
            async for event in self._agent.stream(read("SendMessageRequest", request)):
                yield written("StreamResponse", event)
        except (Mismatch, KeyError) as error:
            await abort(context, error)

    async def send(self, request: bytes, context: Any) -> bytes:
        """A task."""
        try:
            return written(
                "SendMessageResponse", await self._agent.send(read("SendMessageRequest", request))
            )
        except (Mismatch, KeyError) as error:
            await abort(context, error)
            raise

    async def get(self, request: bytes, context: Any) -> bytes:
        """The task, perhaps later."""
        asked: Any = message_class("1.0", "GetTaskRequest").FromString(request)
        current = asked.current_generation if asked.HasField("current_generation") else None
        try:
            return written("Task", await self._agent.get(asked.id, current))
        except KeyError as error:
            await abort(context, error)
            raise


def read(name: str, data: bytes) -> Json:
    """A message as 1.0 JSON."""
    return to_dict(message_class("1.0", name).FromString(data))


def written(name: str, value: Json) -> bytes:
    """1.0 JSON as a message."""
    return from_dict("1.0", name, value).SerializeToString()


async def abort(context: Any, error: Exception) -> None:
    """A status with its ErrorInfo."""
    told = info(error)
    detail: Any = message_class("rpc", "google.rpc.ErrorInfo")(
        reason=told["reason"], domain=told["domain"]
    )
    detail.metadata.update(told.get("metadata", {}))
    mismatch = isinstance(error, Mismatch)
    code = grpc.StatusCode.ABORTED if mismatch else grpc.StatusCode.NOT_FOUND
    said = str(error) if mismatch else "no such task"
    status: Any = message_class("rpc", "google.rpc.Status")(code=code.value[0], message=said)
    status.details.add(type_url=told["@type"], value=detail.SerializeToString())
    await context.abort(code, said, (("grpc-status-details-bin", status.SerializeToString()),))


async def main() -> None:
    """Serve until stdin closes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--until-stdin-closes", action="store_true")
    parser.add_argument("--hold", type=float, default=1.0)
    options = parser.parse_args()
    agent, server = Agent(options.hold), grpc.aio.server()
    server.add_generic_rpc_handlers((Grpc(agent),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    runner = web.AppRunner(Http(agent, port).app, access_log=None, shutdown_timeout=0.5)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(json.dumps({"http": runner.addresses[0][1], "grpc": port}), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await server.stop(0.2)
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(main())
