"""JSON-RPC, REST and the agent card over HTTP/1.1, with aiohttp.

Support for clients that half-close their connection after the request and still read the answer.

By default an aiohttp server treats the client's FIN as the end of the connection. Here it is the
end only if no request was received, if a stream has begun as the answer, or if the recorded client
left at this point.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Any, Protocol

import msgspec
from aiohttp import web

from a2a_proxy.model.values import Binding
from a2a_proxy.model.wire import Headers
from a2a_proxy.protocol.bindings import jsonrpc
from a2a_proxy.protocol.bindings.card import is_card_path
from a2a_proxy.relay import tcp
from a2a_proxy.replay.convert.json_escapes import escape_as_recorded
from a2a_proxy.replay.convert.responses import OLD_DIALECTS
from a2a_proxy.replay.core.miss import Miss
from a2a_proxy.replay.core.script import LineKind, PlayerRequest, PlayerSend, RecordedCall
from a2a_proxy.replay.serve.cards import ReplayCards
from a2a_proxy.replay.serve.incoming import RequestReader, RpcParseError, match_rest
from a2a_proxy.replay.serve.outgoing import (
    ResponseWriter,
    RestResponseWriter,
    RpcResponseWriter,
    error_of,
    escape_json,
    localise_sent_card,
    recorded_form,
    rpc_failure,
)
from a2a_proxy.replay.serve.performance import ClientCall, ReplayPlayer
from a2a_proxy.replay.serve.websocket import WebSocketServer, is_a2a_handshake
from a2a_proxy.wire.sse import rebuild_event

_MAX_BODY_BYTES = 256 * 1024 * 1024
"""Maximum number of bytes of a request body."""
_EVENT_KINDS = (LineKind.MESSAGE, LineKind.COMMENT)
_HTTP_BINDINGS = (Binding.JSONRPC, Binding.REST)
_TRANSPORT_FIELDS = frozenset(
    {
        "content-length",
        "content-type",
        "content-encoding",
        "transfer-encoding",
        "connection",
        "keep-alive",
    }
    | {"date", "server", "trailer", "upgrade", "vary"}
)
_STREAM_HEADERS = {
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",
}


_CHECK_SECONDS = 0.2
"""Seconds for received bytes to become a request, and interval at which the answer is checked for
completion."""


class HttpAnswer(Protocol):
    """An answer being sent."""

    @property
    def is_streaming(self) -> bool:
        """Whether the answer has begun as a stream and continues."""

    @property
    def is_waiting(self) -> bool:
        """Whether everything recorded has been sent and the client has to leave."""


class HalfClosedConnections:
    """The connections of one server, kept open after a half-close."""

    def __init__(self) -> None:
        self._open_connections: dict[Any, _HalfClosedConnection] = {}
        """By transport."""

    def begin_answer(self, transport: Any, answer: HttpAnswer) -> None:
        """Note that a request was read and its answer begins."""
        if (connection := self._open_connections.get(transport)) is not None:
            connection.answer, connection.has_unread_request = answer, False

    def end_answer(self, transport: Any) -> None:
        """Note that the answer is complete."""
        if (connection := self._open_connections.get(transport)) is not None:
            connection.answer = None

    def protocol_factory(
        self, server: Callable[[], asyncio.Protocol]
    ) -> Callable[[], asyncio.Protocol]:
        """Wrap a server's protocol factory for `loop.create_server`, adding half-close support."""
        return lambda: _HalfClosedConnection(server(), self._open_connections)


class _HalfClosedConnection(asyncio.Protocol):
    def __init__(
        self, inner: asyncio.Protocol, connections: dict[Any, _HalfClosedConnection]
    ) -> None:
        self.answer: HttpAnswer | None = None
        self.has_unread_request = False
        """Whether bytes were received that have not become a request yet."""
        self._inner = inner
        self._connections = connections
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._connections[transport] = self
        self._inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        self.has_unread_request = True
        self._inner.data_received(data)

    def eof_received(self) -> bool:
        """Handle the client's FIN; True keeps the other direction open."""
        if self.answer.is_streaming if self.answer is not None else not self.has_unread_request:
            return False
        asyncio.get_running_loop().call_later(_CHECK_SECONDS, self._check_answer)
        return True

    def _check_answer(self) -> None:
        if self._transport.is_closing():
            return
        if self.answer is None or self.answer.is_waiting:
            self._transport.close()
        else:
            asyncio.get_running_loop().call_later(_CHECK_SECONDS, self._check_answer)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.pop(self._transport, None)
        self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()


class HttpServer:
    """An HTTP server on a free port of loopback."""

    def __init__(self, replay: ReplayPlayer, incoming: RequestReader, cards: ReplayCards) -> None:
        self._replay = replay
        self._incoming = incoming
        self._cards = cards
        self._rpc_paths = incoming.rpc_paths | cards.rpc_paths
        self._connections = HalfClosedConnections()
        self._runner: web.AppRunner | None = None
        self._listener: asyncio.Server | None = None
        self.port = 0

    async def start(self) -> None:
        """Start to listen."""
        app = web.Application(client_max_size=_MAX_BODY_BYTES)
        app.router.add_route("*", "/{path:.*}", self._handle_request)
        # Handlers of disconnected clients are cancelled, because a handler that writes nothing
        # would not notice.
        self._runner = web.AppRunner(
            app,
            access_log=None,
            logger=_silent_logger(),
            shutdown_timeout=0.2,
            handler_cancellation=True,
        )
        await self._runner.setup()
        assert self._runner.server is not None
        factory = self._connections.protocol_factory(self._runner.server)
        self._listener = await asyncio.get_running_loop().create_server(factory, "127.0.0.1", 0)
        self.port = self._listener.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Stop, and end open requests."""
        if self._listener is not None:
            self._listener.close()
        if self._runner is not None:
            await self._runner.cleanup()

    async def _handle_request(self, request: web.Request) -> web.StreamResponse:
        try:
            return await self._answer_request(request)
        except (ConnectionError, web.HTTPException):
            raise  # the client disconnected, or its body is too large
        except Exception as wrong:
            self._replay.report_failure(f"{request.method} {request.path}", Binding.REST, wrong)
            raise

    async def _answer_request(self, request: web.Request) -> web.StreamResponse:
        method, target = request.method, request.raw_path
        if is_a2a_handshake(request):
            server = WebSocketServer(self._replay, self._incoming, request, _MAX_BODY_BYTES)
            return await server.serve()
        if is_card_path(method, target):
            return await self._answer_card(request)
        body = await request.read()
        if method == "POST" and jsonrpc.is_request(body):
            return await self._answer_rpc(request, body)
        found = match_rest(method, target)
        if found is not None:
            call_request = self._incoming.read_rest(
                found, method, target, body, request.raw_headers
            )
            return await self._play_call(
                request,
                call_request,
                RestResponseWriter(call_request.operation, call_request.dialect),
            )
        if method == "POST" and (not request.path.strip("/") or request.path in self._rpc_paths):
            return await self._answer_rpc(
                request, body
            )  # not JSON-RPC either: it gets a JSON-RPC error
        call_request = PlayerRequest(
            operation=f"{method} {request.path}", binding=Binding.REST, headers=request.raw_headers
        )
        return await self._play_call(
            request, call_request, RestResponseWriter(call_request.operation, call_request.dialect)
        )

    async def _answer_card(self, request: web.Request) -> web.StreamResponse:
        page = self._cards.card_page(request.path, request.host)
        if page.body is None and self._replay.passthrough is not None:
            return await self._replay.passthrough.forward_http(request, await request.read())
        if page.body is None:
            if not self._cards.has_card:
                self._cards.missed_path = request.path
            error = {
                "error": {
                    "code": page.status,
                    "message": "the recording has no agent card at this path",
                }
            }
            return web.json_response(error, status=page.status)
        head = {
            **_forwardable_headers(page.headers),
            "Content-Type": _content_type(page.headers) or "application/json",
        }
        body = escape_as_recorded(msgspec.json.encode(page.body), page.raw)
        return web.Response(status=page.status, body=body, headers=head)

    async def _answer_rpc(self, request: web.Request, body: bytes) -> web.StreamResponse:
        try:
            call = self._incoming.read_rpc(body, request.raw_headers, target=request.raw_path)
        except RpcParseError as wrong:
            self._replay.report_refusal(f"POST {request.path}", Binding.JSONRPC, wrong.message)
            return web.Response(
                body=rpc_failure(wrong.code, wrong.message), content_type="application/json"
            )
        return await self._play_call(
            request,
            call.request,
            RpcResponseWriter(call.id, call.request.operation, call.request.dialect),
        )

    async def _play_call(
        self, request: web.Request, call_request: PlayerRequest, writer: ResponseWriter
    ) -> web.StreamResponse:
        found = self._replay.begin_call(call_request)
        if not isinstance(found, ClientCall):
            if self._replay.passthrough is not None:
                return await self._replay.passthrough.forward_http(request, await request.read())
            status, data = (
                writer.encode_miss(found)
                if isinstance(found, Miss)
                else writer.encode_refusal(found)
            )
            return web.Response(status=status, body=data, content_type=writer.content_type)
        answer, transport = _PlayedAnswer(request, found, writer, self._cards), request.transport
        self._connections.begin_answer(transport, answer)
        try:
            return await answer.send_answer()
        finally:
            self._connections.end_answer(transport)


class _PlayedAnswer:
    """One response."""

    def __init__(
        self,
        request: web.Request,
        client_call: ClientCall,
        writer: ResponseWriter,
        cards: ReplayCards,
    ) -> None:
        self._request = request
        self._client_call = client_call
        self._writer = writer
        self._cards = cards
        self._call: RecordedCall = client_call.playback.call
        self._response: web.StreamResponse | None = None

    @property
    def is_streaming(self) -> bool:
        """Whether the response has begun as a stream and continues."""
        return self._response is not None

    @property
    def is_waiting(self) -> bool:
        """Whether everything recorded has been sent and the client has to leave."""
        playback = self._client_call.playback
        return not playback.is_over and not playback.pending_steps()

    async def send_answer(self) -> web.StreamResponse:
        """Send the sends of the player, as a stream or as one body."""
        call = self._call
        if call.streaming and call.binding in _HTTP_BINDINGS:
            await self._open_stream()  # the recorded response headers came before the first event
        async with contextlib.aclosing(self._client_call.iter_sends()) as sends:
            async for send in sends:
                if self._response is None and not (call.is_stream and send.what in _EVENT_KINDS):
                    self._client_call.mark_answered()
                    return await self._whole_response(send)
                if await self._send_in_stream(send):
                    break
        assert self._response is not None
        return self._response

    async def _open_stream(self) -> web.StreamResponse:
        call = self._call
        same = call.streaming and call.binding is self._client_call.playback.request.binding
        kind = _content_type(call.answer_headers) if same else ""
        response = web.StreamResponse(
            headers={**_forwardable_headers(call.answer_headers), "Content-Type": kind}
            if kind
            else _STREAM_HEADERS
        )
        await response.prepare(self._request)
        self._response = response
        return response

    async def _send_in_stream(self, send: PlayerSend) -> bool:
        """Send one more event or end; return whether it was the last."""
        response = self._response or await self._open_stream()
        if send.what in _EVENT_KINDS:
            await response.write(
                _encode_event(self._encode_message(send), self._event_framing(send))
            )
            return False
        if send.what is LineKind.MISS and send.miss is not None:
            await response.write(_encode_event(self._writer.encode_miss(send.miss)[1], "", "error"))
        elif send.what in (LineKind.RESET, LineKind.CUT):
            await self._break_off(send)
            return True
        elif (error := error_of(send, self._call, self._client_call.to_live_value)) is not None:
            request = self._client_call.playback.request
            if (
                request.dialect in OLD_DIALECTS
                and request.binding is Binding.REST
                and self._call.binding is not Binding.REST
            ):
                await self._break_off(
                    send
                )  # on REST before 1.0 an agent that fails in a stream just closes it
                return True
            named = "" if request.dialect in OLD_DIALECTS else "error"
            data = escape_json(send, self._writer.encode_refusal(error)[1])
            await response.write(_encode_event(data, self._event_framing(send), named))
        if send.is_final:
            await response.write_eof()
        return send.is_final

    async def _whole_response(self, send: PlayerSend) -> web.StreamResponse:
        """Return the answer to a unary call, or the answer that came in place of a stream."""
        call, writer = self._call, self._writer
        if send.what is LineKind.MESSAGE:
            data = self._encode_message(send)
            return self._make_response(
                call.status if call.binding in _HTTP_BINDINGS and call.status else 200, data
            )
        if send.what is LineKind.MISS and send.miss is not None:
            return self._make_response(*writer.encode_miss(send.miss))
        if send.what in (LineKind.RESET, LineKind.CUT):
            await self._break_off(send)
            return web.Response(status=500)
        error = error_of(send, call, self._client_call.to_live_value)
        if error is not None:
            status, data = writer.encode_refusal(error)
            same = call.binding is self._client_call.playback.request.binding
            return self._make_response(call.status if same else status, escape_json(send, data))
        if call.is_stream:
            response = await self._open_stream()
            await response.write_eof()
            return response
        return self._make_response(
            call.status if call.binding in _HTTP_BINDINGS and call.status else 200, b""
        )

    def _make_response(self, status: int, data: bytes) -> web.Response:
        """Return a response; if the recorded binding is the same, with the recorded headers."""
        call = self._call
        same = call.binding is self._client_call.playback.request.binding
        kind = _content_type(call.answer_headers) if same else ""
        headers = _forwardable_headers(call.answer_headers) if same else {}
        if data or status not in (204, 304):
            headers["Content-Type"] = (
                kind if kind and "event-stream" not in kind else self._writer.content_type
            )
        return web.Response(status=status, body=data, headers=headers)

    def _encode_message(self, send: PlayerSend) -> bytes:
        """Return a message as bytes, in its recorded form if possible; empty for a comment."""
        if send.what is LineKind.COMMENT:
            return b""
        # Put the URLs of the mock into a card that is the answer to a call.
        local = localise_sent_card(
            send,
            self._call.operation,
            lambda card: self._cards.localise_card(card, self._request.host),
        )
        mine = self._client_call
        recorded = recorded_form(send, mine.playback, mine.to_live_value) if local is send else None
        return self._writer.encode_message(local, recorded)

    def _event_framing(self, send: PlayerSend) -> str:
        """Return the recorded framing of an event: its fields and comments. On another binding an
        error is framed differently."""
        same = self._call.binding is self._client_call.playback.request.binding
        return (
            send.line.framing
            if send.line is not None and (same or send.what is not LineKind.ERROR)
            else ""
        )

    async def _break_off(self, send: PlayerSend) -> None:
        """Break off as recorded: close without an end, or reset the connection."""
        transport = self._request.transport
        if transport is None:
            return
        if send.what is LineKind.RESET:
            tcp.reset_connection(transport)
            return
        if self._response is not None and send.after and send.value is not None:
            data = _encode_event(self._encode_message(send), self._event_framing(send))[
                : send.after
            ]
            await self._response.write(data)
        transport.close()


def _silent_logger() -> logging.Logger:
    """Return a logger without output. Bytes that are not HTTP get a 400; a traceback for each would
    tell the user nothing."""
    logger = logging.getLogger(__name__)
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    return logger


def _encode_event(data: bytes, framing: str, name: str = "") -> bytes:
    """Return an event with the recorded framing; `name` is the event name if it has none."""
    if framing:
        return rebuild_event(framing, data)
    head = f"event: {name}\r\n".encode() if name else b""
    return b"%sdata: %s\r\n\r\n" % (head, data)


def _forwardable_headers(headers: Headers) -> dict[str, str]:
    """Return the fields of a recorded response that do not belong to its connection."""
    found = ((name.decode("latin-1"), value.decode("latin-1")) for name, value in headers)
    return {name: value for name, value in found if name.lower() not in _TRANSPORT_FIELDS}


def _content_type(headers: Headers) -> str:
    return next((v.decode("latin-1") for n, v in headers if n.lower() == b"content-type"), "")
