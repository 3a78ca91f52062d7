"""gRPC server over raw bytes. Messages are encoded with the project's own descriptors; statuses and
trailers are recorded."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import grpc

from a2a_proto import RenderError
from a2a_proxy.model.values import Binding
from a2a_proxy.model.wire import Headers
from a2a_proxy.protocol.canonical import Json
from a2a_proxy.protocol.errors import GRPC_STATUS_NAMES, decode_binary_value
from a2a_proxy.protocol.operations import GRPC_METHODS
from a2a_proxy.replay.convert.errors import DETAILS, ReplayError
from a2a_proxy.replay.core.miss import Miss
from a2a_proxy.replay.core.script import LineKind, PlayerSend, RecordedCall
from a2a_proxy.replay.serve.incoming import RequestReader, request_schema
from a2a_proxy.replay.serve.outgoing import (
    GrpcEnd,
    encode_grpc_message,
    error_of,
    grpc_miss,
    grpc_refusal,
    localise_sent_card,
)
from a2a_proxy.replay.serve.performance import ClientCall, ReplayPlayer

_STATUS_CODES: dict[int, grpc.StatusCode] = {code.value[0]: code for code in grpc.StatusCode}
_TRANSPORT_FIELDS = frozenset(
    {"content-type", "te", "date", "server", "trailer", "connection", "keep-alive"}
)
_CHANNEL_OPTIONS = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
_STOP_SECONDS = 0.2
_CANCEL_SECONDS = 0.02
_FIRST_MESSAGE_SECONDS = 0.1
"""Seconds after which a client that has sent no message is taken to wait for the initial
metadata."""
_EOF: Any = grpc.aio.EOF  # type: ignore[attr-defined]  # not in the stubs


class GrpcServer:
    """A gRPC server on a free port of loopback."""

    def __init__(
        self, replay: ReplayPlayer, incoming: RequestReader, local: Callable[[Json], Json]
    ) -> None:
        """`local` puts the URLs of the mock into a card."""
        self._replay = replay
        self._incoming = incoming
        self._local = local
        self._server: grpc.aio.Server | None = None
        self.port = 0

    async def start(self) -> None:
        """Start to listen."""
        self._server = grpc.aio.server(options=_CHANNEL_OPTIONS)
        self._server.add_generic_rpc_handlers(
            (_GrpcHandler(self._replay, self._incoming, self._local),)
        )
        self.port = self._server.add_insecure_port("127.0.0.1:0")
        await self._server.start()

    async def stop(self) -> None:
        """Stop, and end open calls."""
        if self._server is not None:
            await self._server.stop(_STOP_SECONDS)


class _GrpcHandler(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # generic in the stubs only
    """Serves every method as bidirectional streaming: on the wire a unary call is a stream with one
    message each way."""

    def __init__(
        self, replay: ReplayPlayer, incoming: RequestReader, local: Callable[[Json], Json]
    ) -> None:
        self._replay = replay
        self._incoming = incoming
        self._local = local

    def service(
        self, handler_call_details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler[bytes, bytes] | None:
        """Return the handler of one call."""
        method = handler_call_details.method

        async def behaviour(_requests: Any, context: Any) -> None:
            await _GrpcServerCall(self._replay, self._incoming, self._local, method, context).run()

        return grpc.stream_stream_rpc_method_handler(behaviour)


class _GrpcServerCall:
    """One call."""

    def __init__(
        self,
        replay: ReplayPlayer,
        incoming: RequestReader,
        local: Callable[[Json], Json],
        method: str,
        context: Any,
    ) -> None:
        self._replay = replay
        self._incoming = incoming
        self._local = local
        self._method = method
        self._context = context
        self._has_sent_headers = False

    async def run(self) -> None:
        """Serve the call from its first message to its status."""
        try:
            await self._serve_call()
        except Exception as wrong:
            self._replay.report_failure(self._method, Binding.GRPC, wrong)
            self._set_status(
                GrpcEnd(GRPC_STATUS_NAMES.index("INTERNAL"), f"{type(wrong).__name__}: {wrong}")
            )

    async def _serve_call(self) -> None:
        context = self._context
        first = await self._read_first_message()
        request_data = None if first is _EOF else first
        request, _ = self._incoming.read_grpc(
            self._method, request_data, _headers_of_metadata(context.invocation_metadata())
        )
        client_call = self._replay.begin_call(request)
        if isinstance(client_call, Miss):
            if self._replay.passthrough is not None:
                await self._replay.passthrough.forward_grpc(
                    self._method, request_data or b"", context
                )
            else:
                self._set_status(grpc_miss(client_call))
            return
        if isinstance(client_call, ReplayError):
            self._set_status(grpc_refusal(client_call, request.dialect))
            return
        listening = (
            asyncio.create_task(self._read_client_messages(client_call))
            if client_call.playback.call.is_live
            else None
        )
        try:
            await self._send_answers(client_call)
        finally:
            if listening is not None:
                listening.cancel()

    async def _read_first_message(self) -> Any:
        """Read the first message. A client that sends none until it has the initial metadata gets
        that of the call recorded next, if its agent sent it so early."""
        reading = asyncio.ensure_future(self._context.read())
        try:
            operation, _ = GRPC_METHODS.get(self._method, (None, None))
            early = (
                self._replay.player.find_early_headers(operation.name)
                if operation is not None
                else None
            )
            if (
                early is not None
                and not (await asyncio.wait((reading,), timeout=_FIRST_MESSAGE_SECONDS))[0]
            ):
                await self._send_headers(early)
            return await reading
        finally:
            reading.cancel()

    async def _send_headers(self, call: RecordedCall) -> None:
        """Send the recorded initial metadata, once."""
        if not self._has_sent_headers:
            self._has_sent_headers = True
            await self._context.send_initial_metadata(_metadata_of_headers(call.answer_headers))

    async def _send_answers(self, client_call: ClientCall) -> None:
        call, context = client_call.playback.call, self._context
        same = call.binding is Binding.GRPC
        if same and not call.trailers_only and call.answer_headers:
            await self._send_headers(call)
        async with contextlib.aclosing(client_call.iter_sends()) as sends:
            async for send in sends:
                if send.what is not LineKind.MESSAGE:
                    self._set_status(self._grpc_end_of(send, client_call, same))
                    # an error ends a gRPC call, whatever was recorded after it
                    client_call.mark_answered()
                    break
                try:
                    message = encode_grpc_message(
                        localise_sent_card(send, call.operation, self._local), client_call.playback
                    )
                except RenderError as wrong:
                    self._set_status(
                        GrpcEnd(
                            GRPC_STATUS_NAMES.index("INTERNAL"),
                            f"{call.place} has no protobuf form: {wrong}",
                        )
                    )
                    return
                await context.write(message)

    def _grpc_end_of(self, send: PlayerSend, client_call: ClientCall, same: bool) -> GrpcEnd:
        call = client_call.playback.call
        if send.what is LineKind.MISS and send.miss is not None:
            return grpc_miss(send.miss)
        error = error_of(send, call, client_call.to_live_value)
        if error is None:
            return GrpcEnd(0, trailing=_metadata_of_headers(send.trailers) if same else ())
        end = grpc_refusal(error, client_call.playback.request.dialect)
        if not same:
            return end
        status = send.status if send.status > 0 else end.status
        metadata = _metadata_of_headers(send.trailers or call.answer_headers)
        recorded = dict(metadata).get(DETAILS)
        details = end.trailing or (((DETAILS, recorded),) if recorded is not None else ())
        others = tuple(pair for pair in metadata if pair[0] != DETAILS)
        return GrpcEnd(status, end.message, (*others, *details))

    def _set_status(self, end: GrpcEnd) -> None:
        context = self._context
        context.set_code(_STATUS_CODES.get(end.status, grpc.StatusCode.UNKNOWN))
        context.set_details(end.message)
        context.set_trailing_metadata(end.trailing)

    async def _read_client_messages(self, client_call: ClientCall) -> None:
        """Read the client's messages after the first one."""
        request = client_call.playback.request
        while (found := await self._context.read()) is not _EOF:
            schema = request_schema(
                request.operation, request.dialect, found, client_call.playback.call.live_payload
            )
            client_call.on_client_message(
                self._incoming.read_message(request.operation, request.dialect, found, schema)
            )
        # A cancelled call reads as ended, a moment before its cancellation is known.
        await asyncio.sleep(_CANCEL_SECONDS)
        if not self._context.cancelled():
            client_call.on_half_close()


def _headers_of_metadata(metadata: Any) -> Headers:
    """Return invocation metadata as bytes."""
    return tuple(
        (str(name).encode("latin-1"), _metadata_bytes(value)) for name, value in metadata or ()
    )


def _metadata_bytes(value: Any) -> bytes:
    return bytes(value) if isinstance(value, bytes) else str(value).encode("utf-8", "replace")


def _metadata_of_headers(headers: Headers) -> tuple[tuple[str, str | bytes], ...]:
    """Return recorded headers or trailers as metadata, without those that gRPC sets itself."""
    return tuple(
        pair for name, value in headers if (pair := _metadata_pair(name, value)) is not None
    )


def _metadata_pair(name: bytes, value: bytes) -> tuple[str, str | bytes] | None:
    key = name.decode("latin-1").lower()
    if (
        key in _TRANSPORT_FIELDS
        or key.startswith(":")
        or (key.startswith("grpc-") and key != DETAILS)
    ):
        return None
    if key.endswith("-bin"):
        return key, decode_binary_value(value)
    try:
        return key, value.decode("ascii")
    except UnicodeDecodeError:  # gRPC libraries cannot send such metadata
        return None
