"""JSON-RPC, REST and the agent card over HTTP/1.1, by aiohttp."""

from __future__ import annotations

import asyncio
import contextlib
import logging

import msgspec
from aiohttp import web

from a2a_proxy.model.exchange import Binding
from a2a_proxy.model.wire import Headers
from a2a_proxy.protocol.bindings import jsonrpc
from a2a_proxy.protocol.bindings.card import is_card_path
from a2a_proxy.relay import tcp
from a2a_proxy.replay.convert.responses import OLD
from a2a_proxy.replay.core.miss import Miss
from a2a_proxy.replay.core.player_io import PlayerRequest, Send
from a2a_proxy.replay.core.script import LineKind, RecordedCall
from a2a_proxy.replay.serve.cards import ReplayCards
from a2a_proxy.replay.serve.half_closed import Connections
from a2a_proxy.replay.serve.incoming import BadRpc, Incoming, rest_match
from a2a_proxy.replay.serve.outgoing import (
    ResponseWriter,
    RestResponseWriter,
    RpcResponseWriter,
    as_recorded,
    refusal_of,
    rpc_failure,
    with_card,
)
from a2a_proxy.replay.serve.performance import ClientCall, ReplayPlayer
from a2a_proxy.wire.sse import rebuild

_MOST_BODY = 256 * 1024 * 1024
"""Octets of a request."""
_EVENTS = (LineKind.MESSAGE, LineKind.COMMENT)
_HTTP = (Binding.JSONRPC, Binding.REST)
_OF_TRANSPORT = frozenset(
    {"content-length", "content-type", "content-encoding", "transfer-encoding", "connection", "keep-alive"}
    | {"date", "server", "trailer", "upgrade", "vary"}
)
_STREAM = {"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class HttpServer:
    """A server on a free port of loopback."""

    def __init__(self, stage: ReplayPlayer, incoming: Incoming, cards: ReplayCards) -> None:
        self._stage = stage
        self._incoming = incoming
        self._cards = cards
        self._rpc_paths = incoming.rpc_paths | cards.rpc_paths
        self._connections = Connections()
        self._runner: web.AppRunner | None = None
        self._listener: asyncio.Server | None = None
        self.port = 0

    async def start(self) -> None:
        """Listen."""
        app = web.Application(client_max_size=_MOST_BODY)
        app.router.add_route("*", "/{path:.*}", self._handle)
        # A handler whose client has gone is cancelled: it may have nothing to write by which it would find out.
        self._runner = web.AppRunner(
            app, access_log=None, logger=_silent(), shutdown_timeout=0.2, handler_cancellation=True
        )
        await self._runner.setup()
        assert self._runner.server is not None
        made = self._connections.factory(self._runner.server)
        self._listener = await asyncio.get_running_loop().create_server(made, "127.0.0.1", 0)
        self.port = self._listener.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """End what is open."""
        if self._listener is not None:
            self._listener.close()
        if self._runner is not None:
            await self._runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        try:
            return await self._answer(request)
        except (ConnectionError, web.HTTPException):
            raise  # the client has gone, or sent too much
        except Exception as wrong:
            self._stage.failed(f"{request.method} {request.path}", Binding.REST, wrong)
            raise

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        method, target = request.method, request.raw_path
        if is_card_path(method, target):
            return await self._card(request)
        body = await request.read()
        if method == "POST" and jsonrpc.is_request(body):
            return await self._rpc(request, body)
        found = rest_match(method, target)
        if found is not None:
            asked = self._incoming.rest(found, method, target, body, request.raw_headers)
            return await self._play(request, asked, RestResponseWriter(asked.operation, asked.dialect))
        if method == "POST" and (not request.path.strip("/") or request.path in self._rpc_paths):
            return await self._rpc(request, body)  # no JSON-RPC either: that is what it is told
        asked = PlayerRequest(operation=f"{method} {request.path}", binding=Binding.REST, headers=request.raw_headers)
        return await self._play(request, asked, RestResponseWriter(asked.operation, asked.dialect))

    async def _card(self, request: web.Request) -> web.StreamResponse:
        page = self._cards.at(request.path, request.host)
        if page.body is None and self._stage.behind is not None:
            return await self._stage.behind.http(request, await request.read())
        if page.body is None:
            told = {"error": {"code": page.status, "message": "the recording has no agent card at this path"}}
            return web.json_response(told, status=page.status)
        head = {**_kept(page.headers), "Content-Type": _field(page.headers, "content-type") or "application/json"}
        return web.Response(status=page.status, body=msgspec.json.encode(page.body), headers=head)

    async def _rpc(self, request: web.Request, body: bytes) -> web.StreamResponse:
        try:
            call = self._incoming.rpc(body, request.raw_headers)
        except BadRpc as wrong:
            self._stage.refused(f"POST {request.path}", Binding.JSONRPC, wrong.message)
            return web.Response(body=rpc_failure(wrong.code, wrong.message), content_type="application/json")
        return await self._play(
            request, call.asked, RpcResponseWriter(call.id, call.asked.operation, call.asked.dialect)
        )

    async def _play(self, request: web.Request, asked: PlayerRequest, voice: ResponseWriter) -> web.StreamResponse:
        found = self._stage.begin(asked)
        if not isinstance(found, ClientCall):
            if self._stage.behind is not None:
                return await self._stage.behind.http(request, await request.read())
            status, octets = voice.miss(found) if isinstance(found, Miss) else voice.refusal(found)
            return web.Response(status=status, body=octets, content_type=voice.content_type)
        answer, transport = _Answer(request, found, voice, self._cards), request.transport
        self._connections.begin(transport, answer)
        try:
            return await answer.give()
        finally:
            self._connections.end(transport)


class _Answer:
    """One response."""

    def __init__(
        self, request: web.Request, performance: ClientCall, voice: ResponseWriter, cards: ReplayCards
    ) -> None:
        self._request = request
        self._performance = performance
        self._voice = voice
        self._cards = cards
        self._call: RecordedCall = performance.play.call
        self._response: web.StreamResponse | None = None

    @property
    def streams(self) -> bool:
        """It has begun, and more is to come."""
        return self._response is not None

    @property
    def waits(self) -> bool:
        """All is said that was recorded; its client is to leave."""
        play = self._performance.play
        return not play.over and not play.pending()

    async def give(self) -> web.StreamResponse:
        """Send what the player has, as a stream or in one piece."""
        call = self._call
        if call.streaming and call.binding in _HTTP:
            await self._open()  # its head came before its first event
        async with contextlib.aclosing(self._performance.sends()) as sends:
            async for send in sends:
                if self._response is None and not (call.streams and send.what in _EVENTS):
                    self._performance.answered()
                    return await self._whole(send)
                if await self._in_stream(send):
                    break
        assert self._response is not None
        return self._response

    async def _open(self) -> web.StreamResponse:
        call = self._call
        same = call.streaming and call.binding is self._performance.play.asked.binding
        kind = _field(call.answer_headers, "content-type") if same else ""
        response = web.StreamResponse(headers={**_kept(call.answer_headers), "Content-Type": kind} if kind else _STREAM)
        await response.prepare(self._request)
        self._response = response
        return response

    async def _in_stream(self, send: Send) -> bool:
        """Send one more thing; whether that was all."""
        response = self._response or await self._open()
        if send.what in _EVENTS:
            await response.write(_event(self._said(send), self._framing(send)))
            return False
        if send.what is LineKind.MISS and send.miss is not None:
            await response.write(_event(self._voice.miss(send.miss)[1], "", "error"))
        elif send.what in (LineKind.RESET, LineKind.CUT):
            await self._break(send)
            return True
        elif (told := refusal_of(send, self._call, self._performance.mapped)) is not None:
            asked = self._performance.play.asked
            if asked.dialect in OLD and asked.binding is Binding.REST and self._call.binding is not Binding.REST:
                await self._break(send)  # there an agent that fails in a stream just breaks it off
                return True
            named = "" if asked.dialect in OLD else "error"
            await response.write(_event(self._voice.refusal(told)[1], self._framing(send), named))
        if send.over:
            await response.write_eof()
        return send.over

    async def _whole(self, send: Send) -> web.StreamResponse:
        """The answer to a unary call, or what came in the place of a stream."""
        call, voice = self._call, self._voice
        if send.what is LineKind.MESSAGE:
            octets = self._said(send)
            return self._one(call.status if call.binding in _HTTP and call.status else 200, octets)
        if send.what is LineKind.MISS and send.miss is not None:
            return self._one(*voice.miss(send.miss))
        if send.what in (LineKind.RESET, LineKind.CUT):
            await self._break(send)
            return web.Response(status=500)
        told = refusal_of(send, call, self._performance.mapped)
        if told is not None:
            status, octets = voice.refusal(told)
            return self._one(call.status if call.binding is self._performance.play.asked.binding else status, octets)
        if call.streams:
            response = await self._open()
            await response.write_eof()
            return response
        return self._one(call.status if call.binding in _HTTP and call.status else 200, b"")

    def _one(self, status: int, octets: bytes) -> web.Response:
        """A body; where it was a recorded one's, with the head of that."""
        call = self._call
        same = call.binding is self._performance.play.asked.binding
        kind = _field(call.answer_headers, "content-type") if same else ""
        headers = _kept(call.answer_headers) if same else {}
        if octets or status not in (204, 304):
            headers["Content-Type"] = kind if kind and "event-stream" not in kind else self._voice.content_type
        return web.Response(status=status, body=octets, headers=headers)

    def _said(self, send: Send) -> bytes:
        """A message, as it was recorded if it can be; nothing of a comment."""
        if send.what is LineKind.COMMENT:
            return b""
        local = self._local(send)
        mine = self._performance
        recorded = as_recorded(send, mine.play, mine.mapped) if local is send else None
        return self._voice.message(local, recorded)

    def _framing(self, send: Send) -> str:
        """How the recorded event was framed: its fields and comments. On another binding an error has a name of its
        own there."""
        same = self._call.binding is self._performance.play.asked.binding
        return send.line.framing if send.line is not None and (same or send.what is not LineKind.ERROR) else ""

    def _local(self, send: Send) -> Send:
        """A card that comes by a call leads to the mock as well."""
        return with_card(send, self._call.operation, lambda card: self._cards.local(card, self._request.host))

    async def _break(self, send: Send) -> None:
        """Leave the client where the recording left it: without an end, or with a reset connection."""
        transport = self._request.transport
        if transport is None:
            return
        if send.what is LineKind.RESET:
            tcp.reset(transport)
            return
        if self._response is not None and send.after and send.value is not None:
            octets = _event(self._said(send), self._framing(send))[: send.after]
            await self._response.write(octets)
        transport.close()


def _silent() -> logging.Logger:
    """Octets that are no HTTP are answered with 400; a traceback for each of them would say nothing to anybody."""
    logger = logging.getLogger(__name__)
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    return logger


def _event(octets: bytes, framing: str, name: str = "") -> bytes:
    """An event, as the recorded one was framed; `name` is for one that was none."""
    if framing:
        return rebuild(framing, octets)
    head = f"event: {name}\r\n".encode() if name else b""
    return b"%sdata: %s\r\n\r\n" % (head, octets)


def _kept(headers: Headers) -> dict[str, str]:
    """Fields of a recorded response that are not the connection's own."""
    found = ((name.decode("latin-1"), value.decode("latin-1")) for name, value in headers)
    return {name: value for name, value in found if name.lower() not in _OF_TRANSPORT}


def _field(headers: Headers, name: str) -> str:
    return next((v.decode("latin-1") for n, v in headers if n.decode("latin-1").lower() == name), "")
