"""The demo's agent on the wire: JSON-RPC and REST on one HTTP port, gRPC on another, all on
loopback."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import grpc
from aiohttp import web

from a2a_proto import from_dict, message_class, to_dict
from a2a_proxy.demo.story import DemoTask, Json, TravelAgent, agent_card

_PAUSE_SECONDS = 0.15
"""Seconds between two events: slow enough to watch, quick enough to wait for."""
_SERVICE_NAME = "lf.a2a.v1.A2AService"
_NOT_FOUND_MESSAGE = "there is no such task"


_LOST_GENERATION = "4"
"""The generation whose event a lossy agent omits."""


class DemoAgent:
    """Serves one `TravelAgent`; a lossy one omits an event from each numbered stream."""

    def __init__(self, *, lossy: bool = False) -> None:
        self._agent = TravelAgent()
        self._lossy = lossy
        self._grpc = grpc.aio.server()
        self._runner: web.AppRunner | None = None
        self.http_port = 0
        self.grpc_port = 0

    async def start(self) -> None:
        """Listen on free ports of 127.0.0.1."""
        app = web.Application()
        app.router.add_get("/.well-known/agent-card.json", self._serve_card)
        app.router.add_post("/rpc", self._serve_jsonrpc)
        app.router.add_post("/message:{verb}", self._serve_rest_send)
        app.router.add_get("/tasks/{id}", self._serve_rest_get)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.http_port = self._runner.addresses[0][1]
        self._grpc.add_generic_rpc_handlers((_GrpcService(self._agent),))
        self.grpc_port = self._grpc.add_insecure_port("127.0.0.1:0")
        await self._grpc.start()

    async def stop(self) -> None:
        """Close both ports."""
        await self._grpc.stop(0.2)
        if self._runner is not None:
            await self._runner.cleanup()

    async def _serve_card(self, request: web.Request) -> web.Response:
        caching = {"Cache-Control": "max-age=60", "ETag": '"1"'}
        card = agent_card(f"http://{request.host}", request.host, numbered=self._lossy)
        return web.json_response(card, headers=caching)

    async def _serve_jsonrpc(self, request: web.Request) -> web.StreamResponse:
        call = await request.json()
        identifier, method, params = call["id"], call["method"], call.get("params", {})
        if method == "SendStreamingMessage":
            events = self._agent.answer_message(
                params["message"], numbered=request.headers.get("A2A-Version") == "1.1"
            )
            if self._lossy:
                events = (event for event in events if not _is_lost(event))
            return await _stream_events(
                request, ({"jsonrpc": "2.0", "id": identifier, "result": e} for e in events)
            )
        if method == "SendMessage":
            result = {"task": await _final_task(self._agent, params["message"])}
            return web.json_response({"jsonrpc": "2.0", "id": identifier, "result": result})
        task = self._agent.find_task(params.get("id", "")) if method == "GetTask" else None
        answer: Json = {"jsonrpc": "2.0", "id": identifier}
        answer |= {"result": task.as_json()} if task is not None else {"error": _rpc_error(method)}
        return web.json_response(answer)

    async def _serve_rest_send(self, request: web.Request) -> web.StreamResponse:
        message = (await request.json())["message"]
        if request.match_info["verb"] == "stream":
            return await _stream_events(request, self._agent.answer_message(message))
        return _rest_response({"task": await _final_task(self._agent, message)})

    async def _serve_rest_get(self, request: web.Request) -> web.Response:
        task = self._agent.find_task(request.match_info["id"])
        if task is None:
            error = {
                "code": 404,
                "status": "NOT_FOUND",
                "message": _NOT_FOUND_MESSAGE,
                "details": [_ERROR_INFO],
            }
            return _rest_response({"error": error}, status=404)
        return _rest_response(task.as_json())


_ERROR_INFO = {
    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
    "reason": "TASK_NOT_FOUND",
    "domain": "a2a-protocol.org",
}


def _is_lost(event: Json) -> bool:
    return any(member.get("generation") == _LOST_GENERATION for member in event.values())


def _rpc_error(method: str) -> Json:
    if method != "GetTask":
        return {"code": -32601, "message": "method not found"}
    return {"code": -32001, "message": _NOT_FOUND_MESSAGE, "data": [_ERROR_INFO]}


def _rest_response(body: Json, status: int = 200) -> web.Response:
    return web.json_response(body, status=status, content_type="application/a2a+json")


async def _final_task(agent: TravelAgent, message: Json) -> Json:
    """Answer a blocking send: return the task once it is terminal or interrupted."""
    identifier = ""
    for event in agent.answer_message(message):
        identifier = event["task"]["id"] if "task" in event else identifier
        await asyncio.sleep(_PAUSE_SECONDS)
    task = agent.find_task(identifier)
    assert isinstance(task, DemoTask)
    return task.as_json()


async def _stream_events(request: web.Request, events: Iterator[Json]) -> web.StreamResponse:
    response = web.StreamResponse(
        headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"}
    )
    await response.prepare(request)
    for event in events:
        await response.write(b"data: " + json.dumps(event).encode() + b"\n\n")
        await asyncio.sleep(_PAUSE_SECONDS)
    await response.write_eof()
    return response


class _GrpcService(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # generic in the stubs only
    """The gRPC binding over raw bytes: messages use the project's own descriptors, not generated
    code."""

    def __init__(self, agent: TravelAgent) -> None:
        self._agent = agent

    def service(
        self, handler_call_details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler[bytes, bytes] | None:
        """Return the handler of one call, or None to answer UNIMPLEMENTED."""
        method = handler_call_details.method
        if method == f"/{_SERVICE_NAME}/SendStreamingMessage":
            return grpc.unary_stream_rpc_method_handler(self._send_streaming)
        if method == f"/{_SERVICE_NAME}/GetTask":
            return grpc.unary_unary_rpc_method_handler(self._get_task)
        return None

    async def _send_streaming(self, request: bytes, _context: Any) -> AsyncIterator[bytes]:
        message = to_dict(message_class("1.0", "SendMessageRequest").FromString(request))["message"]
        for event in self._agent.answer_message(message):
            yield encode_message("StreamResponse", event)
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _get_task(self, request: bytes, context: Any) -> bytes:
        asked = to_dict(message_class("1.0", "GetTaskRequest").FromString(request))
        task = self._agent.find_task(asked.get("id", ""))
        if task is None:
            # The same error as a google.rpc.Status.
            info: Any = message_class("rpc", "google.rpc.ErrorInfo")(
                reason=_ERROR_INFO["reason"], domain=_ERROR_INFO["domain"]
            )
            status: Any = message_class("rpc", "google.rpc.Status")(
                code=5, message=_NOT_FOUND_MESSAGE
            )
            status.details.add(type_url=_ERROR_INFO["@type"], value=info.SerializeToString())
            details = (("grpc-status-details-bin", bytes(status.SerializeToString())),)
            await context.abort(grpc.StatusCode.NOT_FOUND, _NOT_FOUND_MESSAGE, details)
        assert isinstance(task, DemoTask)
        return encode_message("Task", task.as_json())


def encode_message(name: str, value: Json) -> bytes:
    """Return 1.0 JSON as a protobuf message of that name."""
    return from_dict("1.0", name, value).SerializeToString()
