"""gRPC over raw octets: messages come from the project's own descriptors, statuses and trailers from the recording."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import grpc

from a2a_proto import RenderError
from a2a_proxy.model.exchange import Binding
from a2a_proxy.model.wire import Headers
from a2a_proxy.protocol.errors import GRPC_STATUS, binary_value
from a2a_proxy.replay.convert.errors import DETAILS, ReplayError
from a2a_proxy.replay.convert.form import Json
from a2a_proxy.replay.core.miss import Miss
from a2a_proxy.replay.core.player_io import Send
from a2a_proxy.replay.core.script import LineKind
from a2a_proxy.replay.serve.incoming import Incoming, request_schema
from a2a_proxy.replay.serve.outgoing import GrpcEnd, grpc_miss, grpc_refusal, octets, refusal_of, with_card
from a2a_proxy.replay.serve.performance import ClientCall, ReplayPlayer

_CODES: dict[int, grpc.StatusCode] = {code.value[0]: code for code in grpc.StatusCode}
_OF_TRANSPORT = frozenset({"content-type", "te", "date", "server", "trailer", "connection", "keep-alive"})
_UNBOUNDED = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
_STOP_SECONDS = 0.2
_CANCEL_SECONDS = 0.02
_EOF: Any = grpc.aio.EOF  # type: ignore[attr-defined]  # not in the stubs


class GrpcServer:
    """A server on a free port of loopback."""

    def __init__(self, stage: ReplayPlayer, incoming: Incoming, local: Callable[[Json], Json]) -> None:
        """`local` gives a card the URLs of the mock."""
        self._stage = stage
        self._incoming = incoming
        self._local = local
        self._server: grpc.aio.Server | None = None
        self.port = 0

    async def start(self) -> None:
        """Listen."""
        self._server = grpc.aio.server(options=_UNBOUNDED)
        self._server.add_generic_rpc_handlers((_Handler(self._stage, self._incoming, self._local),))
        self.port = self._server.add_insecure_port("127.0.0.1:0")
        await self._server.start()

    async def stop(self) -> None:
        """End what is open."""
        if self._server is not None:
            await self._server.stop(_STOP_SECONDS)


class _Handler(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # generic in the stubs only
    """Every method is served as a stream of both sides: on the wire a unary call is one with a message each."""

    def __init__(self, stage: ReplayPlayer, incoming: Incoming, local: Callable[[Json], Json]) -> None:
        self._stage = stage
        self._incoming = incoming
        self._local = local

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[bytes, bytes] | None:
        """The handler of one call."""
        method = handler_call_details.method

        async def behaviour(_requests: Any, context: Any) -> None:
            await _Served(self._stage, self._incoming, self._local, method, context).run()

        return grpc.stream_stream_rpc_method_handler(behaviour)


class _Served:
    """One call."""

    def __init__(
        self, stage: ReplayPlayer, incoming: Incoming, local: Callable[[Json], Json], method: str, context: Any
    ) -> None:
        self._stage = stage
        self._incoming = incoming
        self._local = local
        self._method = method
        self._context = context

    async def run(self) -> None:
        """From the client's first message to the status."""
        try:
            await self._serve()
        except Exception as wrong:
            self._stage.failed(self._method, Binding.GRPC, wrong)
            self._end(GrpcEnd(GRPC_STATUS.index("INTERNAL"), f"{type(wrong).__name__}: {wrong}"))

    async def _serve(self) -> None:
        context = self._context
        first = await context.read()
        octets_in = b"" if first is _EOF else first
        asked, _ = self._incoming.grpc(self._method, octets_in, _headers(context.invocation_metadata()))
        performance = self._stage.begin(asked)
        if isinstance(performance, Miss):
            if self._stage.behind is not None:
                await self._stage.behind.grpc(self._method, octets_in, context)
            else:
                self._end(grpc_miss(performance))
            return
        if isinstance(performance, ReplayError):
            self._end(grpc_refusal(performance, asked.dialect))
            return
        listening = asyncio.create_task(self._listen(performance)) if performance.play.call.live else None
        try:
            await self._play(performance)
        finally:
            if listening is not None:
                listening.cancel()

    async def _play(self, performance: ClientCall) -> None:
        call, context = performance.play.call, self._context
        same = call.binding is Binding.GRPC
        if same and not call.trailers_only and call.answer_headers:
            await context.send_initial_metadata(_metadata(call.answer_headers))
        async with contextlib.aclosing(performance.sends()) as sends:
            async for send in sends:
                if send.what is not LineKind.MESSAGE:
                    self._end(self._ending(send, performance, same))
                    performance.answered()  # an error is the end here, whatever followed it there
                    break
                try:
                    message = octets(with_card(send, call.operation, self._local), performance.play)
                except RenderError as wrong:
                    self._end(GrpcEnd(GRPC_STATUS.index("INTERNAL"), f"{call.place} has no protobuf form: {wrong}"))
                    return
                await context.write(message)

    def _ending(self, send: Send, performance: ClientCall, same: bool) -> GrpcEnd:
        call = performance.play.call
        if send.what is LineKind.MISS and send.miss is not None:
            return grpc_miss(send.miss)
        told = refusal_of(send, call, performance.mapped)
        if told is None:
            return GrpcEnd(0, trailing=_metadata(send.trailers) if same else ())
        end = grpc_refusal(told, performance.play.asked.dialect)
        if not same:
            return end
        status = send.status if send.status > 0 else end.status
        kept = _metadata(send.trailers or call.answer_headers)
        recorded = dict(kept).get(DETAILS)
        details = end.trailing or (((DETAILS, recorded),) if recorded is not None else ())
        others = tuple(pair for pair in kept if pair[0] != DETAILS)
        return GrpcEnd(status, end.message, (*others, *details))

    def _end(self, end: GrpcEnd) -> None:
        context = self._context
        context.set_code(_CODES.get(end.status, grpc.StatusCode.UNKNOWN))
        context.set_details(end.message)
        context.set_trailing_metadata(end.trailing)

    async def _listen(self, performance: ClientCall) -> None:
        """What the client says after its first message."""
        asked = performance.play.asked
        while (found := await self._context.read()) is not _EOF:
            schema = request_schema(asked.operation, asked.dialect, found, performance.play.call.live_payload)
            performance.heard(self._incoming.message(asked.operation, asked.dialect, found, schema))
        # A call that is broken off reads as ended too, a moment before it is known to be cancelled.
        await asyncio.sleep(_CANCEL_SECONDS)
        if not self._context.cancelled():
            performance.client_ended()


def _headers(metadata: Any) -> Headers:
    """Invocation metadata as octets."""
    return tuple((str(name).encode("latin-1"), _octets(value)) for name, value in metadata or ())


def _octets(value: Any) -> bytes:
    return bytes(value) if isinstance(value, bytes) else str(value).encode("utf-8", "replace")


def _metadata(headers: Headers) -> tuple[tuple[str, str | bytes], ...]:
    """Recorded headers or trailers as metadata, without what gRPC itself says."""
    return tuple(pair for name, value in headers if (pair := _pair(name, value)) is not None)


def _pair(name: bytes, value: bytes) -> tuple[str, str | bytes] | None:
    key = name.decode("latin-1").lower()
    if key in _OF_TRANSPORT or key.startswith(":") or (key.startswith("grpc-") and key != DETAILS):
        return None
    if key.endswith("-bin"):
        return key, binary_value(value)
    try:
        return key, value.decode("ascii")
    except UnicodeDecodeError:  # no gRPC library sends such metadata
        return None
