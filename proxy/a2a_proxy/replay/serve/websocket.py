"""Server of a script on a WebSocket, for the subprotocol of A2A (manual/protocol.md
"WebSocket")."""

import asyncio
import contextlib
from typing import Any

import msgspec
from aiohttp import WSMsgType, web

from a2a_proxy.model.values import Binding
from a2a_proxy.protocol.bindings.websocket import read_parameters
from a2a_proxy.protocol.json_shapes import UNREADABLE_ERRORS
from a2a_proxy.protocol.operations import STREAMING_OPERATIONS
from a2a_proxy.replay.core.miss import Miss
from a2a_proxy.replay.core.script import LineKind
from a2a_proxy.replay.serve.incoming import RequestReader, RpcParseError, RpcRequest
from a2a_proxy.replay.serve.outgoing import RpcResponseWriter, rpc_failure
from a2a_proxy.replay.serve.performance import ClientCall, ReplayPlayer
from a2a_proxy.replay.serve.stdio import encode_rpc_send
from a2a_proxy.wire.websocket import SUBPROTOCOL


def is_a2a_handshake(request: web.Request) -> bool:
    """Whether the request opens a WebSocket with the subprotocol of A2A."""
    offered = ",".join(request.headers.getall("Sec-WebSocket-Protocol", []))
    is_asked = request.headers.get("Upgrade", "").lower() == "websocket"
    return is_asked and SUBPROTOCOL in [each.strip() for each in offered.split(",")]


class WebSocketServer:
    """Serves one client until a peer closes the socket."""

    def __init__(
        self, replay: ReplayPlayer, incoming: RequestReader, request: web.Request, most: int
    ) -> None:
        """`most` is the size of the largest message, in bytes."""
        self._replay = replay
        self._incoming = incoming
        self._request = request
        self._socket = web.WebSocketResponse(protocols=[SUBPROTOCOL], max_msg_size=most)
        self._calls: dict[str, asyncio.Task[None]] = {}
        """By the JSON of their ids."""

    async def serve(self) -> web.WebSocketResponse:
        """Answer the calls of the client; those that are open at the end are given up."""
        await self._socket.prepare(self._request)
        try:
            async for message in self._socket:
                if message.type is WSMsgType.TEXT:
                    await self._read_message(message.data.encode())
        finally:
            for task in self._calls.values():
                task.cancel()
            await asyncio.gather(*self._calls.values(), return_exceptions=True)
        return self._socket

    async def _read_message(self, data: bytes) -> None:
        members = _decode_members(data)
        key = msgspec.json.encode(members.get("id")).decode()
        if members.get("cancelStream") is True:
            if (task := self._calls.get(key)) is not None:
                task.cancel()
            await self._end_stream(members.get("id"))
            return
        own = read_parameters(msgspec.json.encode(members.get("serviceParams")))
        headers = (*own, *self._request.raw_headers)
        try:
            call = self._incoming.read_rpc(
                data, headers, Binding.WEBSOCKET, target=self._request.raw_path
            )
        except RpcParseError as wrong:
            self._replay.report_refusal("a message", Binding.WEBSOCKET, wrong.message)
            await self._socket.send_str(rpc_failure(wrong.code, wrong.message).decode())
            return
        task = asyncio.create_task(self._answer_call(call))
        self._calls[key] = task
        task.add_done_callback(lambda done: self._forget_call(key, done))

    def _forget_call(self, key: str, task: asyncio.Task[None]) -> None:
        if self._calls.get(key) is task:
            del self._calls[key]

    async def _answer_call(self, call: RpcRequest) -> None:
        writer = RpcResponseWriter(call.id, call.request.operation, call.request.dialect)
        found = self._replay.begin_call(call.request)
        with contextlib.suppress(ConnectionError):
            if isinstance(found, ClientCall):
                await self._play_call(found, writer)
                if call.request.operation in STREAMING_OPERATIONS:
                    await self._end_stream(call.id)
                return
            _, data = (
                writer.encode_miss(found)
                if isinstance(found, Miss)
                else writer.encode_refusal(found)
            )
            await self._socket.send_str(data.decode())

    async def _play_call(self, client_call: ClientCall, writer: RpcResponseWriter) -> None:
        async with contextlib.aclosing(client_call.iter_sends()) as sends:
            async for send in sends:
                if send.what in (LineKind.RESET, LineKind.CUT):
                    transport = self._request.transport
                    if transport is not None:
                        transport.abort()
                elif (data := encode_rpc_send(send, client_call, writer)) is not None:
                    await self._socket.send_str(data.decode())

    async def _end_stream(self, rpc_id: Any) -> None:
        end = {"jsonrpc": "2.0", "id": rpc_id, "streamEnd": True}
        with contextlib.suppress(ConnectionError):
            await self._socket.send_str(msgspec.json.encode(end).decode())


def _decode_members(data: bytes) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(data)
    except UNREADABLE_ERRORS:
        return {}
    return value if isinstance(value, dict) else {}
