"""Forwarding to a live agent, byte for byte, of the calls that the recording has no answer to."""

import asyncio
import contextlib
from typing import Any

import aiohttp
import grpc
from aiohttp import web

from a2a_proxy.replay.core.miss import Miss, MissKind

_CONNECTION_FIELDS = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-connection",
        "transfer-encoding",
        "te",
        "trailer",
        "upgrade",
        "content-length",
    }
)
"""Hop-by-hop fields, which each connection sets itself."""
_GRPC_FIELDS = frozenset(
    {"te", "content-type", "user-agent", "grpc-timeout", "grpc-encoding", "grpc-accept-encoding"}
)
_CHANNEL_OPTIONS = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
_EOF: Any = grpc.aio.EOF  # type: ignore[attr-defined]  # not in the stubs


def is_forwardable(miss: Miss) -> bool:
    """Whether a miss can be forwarded: a call that has not begun can, a call that left the
    recording while running cannot."""
    return miss.kind is not MissKind.DIVERGED


class Passthrough:
    """Forwards calls to a live agent at `host:port`, over HTTP and gRPC."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._http: aiohttp.ClientSession | None = None
        self._grpc: grpc.aio.Channel | None = None
        self.call_count = 0
        """Number of forwarded calls."""

    async def stop(self) -> None:
        """Close the connections to the agent."""
        if self._http is not None:
            await self._http.close()
        if self._grpc is not None:
            await self._grpc.close(None)

    async def forward_http(self, request: web.Request, body: bytes) -> web.StreamResponse:
        """Forward an HTTP request and stream the answer back."""
        self.call_count += 1
        if self._http is None:
            patience = aiohttp.ClientTimeout(total=None, sock_connect=30)
            self._http = aiohttp.ClientSession(auto_decompress=False, timeout=patience)
        # `Host` is kept, because an agent may build its card's URLs from it, and the client must
        # reach them.
        head = [
            (name, value)
            for name, value in request.headers.items()
            if name.lower() not in _CONNECTION_FIELDS
        ]
        url = f"http://{self._address}{request.raw_path}"
        try:
            async with self._http.request(
                request.method,
                url,
                data=body,
                headers=head,
                allow_redirects=False,
                skip_auto_headers=("User-Agent",),
            ) as answer:
                return await _send_answer(request, answer)
        except aiohttp.ClientConnectionError as wrong:
            return web.json_response(
                {"error": {"code": 502, "message": f"the live agent is not reachable: {wrong}"}},
                status=502,
            )

    async def forward_grpc(self, method: str, first: bytes, context: Any) -> None:
        """Forward a gRPC call whose first message has been read."""
        self.call_count += 1
        if self._grpc is None:
            self._grpc = grpc.aio.insecure_channel(self._address, options=_CHANNEL_OPTIONS)
        metadata = tuple(
            (n, v) for n, v in context.invocation_metadata() or () if n.lower() not in _GRPC_FIELDS
        )
        method_call: Any = self._grpc.stream_stream(method, None, None)
        call = method_call(metadata=metadata, timeout=context.time_remaining())
        listening = asyncio.create_task(_send_client_messages(call, first, context))
        try:
            with contextlib.suppress(grpc.aio.AioRpcError):  # its status is passed on below
                await context.send_initial_metadata(tuple(await call.initial_metadata() or ()))
                while (message := await call.read()) is not _EOF:
                    await context.write(message)
            context.set_code(await call.code())
            context.set_details(await call.details() or "")
            context.set_trailing_metadata(tuple(await call.trailing_metadata() or ()))
        finally:
            listening.cancel()
            call.cancel()


async def _send_answer(request: web.Request, answer: aiohttp.ClientResponse) -> web.StreamResponse:
    headers = [
        (name, value)
        for name, value in answer.headers.items()
        if name.lower() not in _CONNECTION_FIELDS
    ]
    response = web.StreamResponse(status=answer.status, reason=answer.reason)
    response.headers.extend(headers)
    if answer.content_length is not None:
        response.content_length = answer.content_length
    await response.prepare(request)
    async for piece in answer.content.iter_any():
        await response.write(piece)
    await response.write_eof()
    return response


async def _send_client_messages(call: Any, first: bytes, context: Any) -> None:
    """Forward the client's messages until it half-closes; stop if the call is over by then."""
    with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
        await call.write(first)
        while (message := await context.read()) is not _EOF:
            await call.write(message)
        await call.done_writing()
