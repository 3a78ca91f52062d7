"""Calls over gRPC: recorded bytes, sent in either direction as soon as they are due."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc

from a2a_proxy.drive.plan import PlannedCall
from a2a_proxy.drive.request import CallError, CallTarget, DriveRequest, OpenCall, ReceivedMessage
from a2a_proxy.drive.route import DriveRoutes
from a2a_proxy.model.values import Binding, FrameKind
from a2a_proxy.protocol.errors import decode_binary_value
from a2a_proxy.protocol.operations import OPERATION_BY_NAME, message_names
from a2a_proxy.protocol.schema import BYTES, schema_of, schema_set_of

_RESERVED_PREFIXES = (b"grpc-", b":")
_CARRIER_FIELDS = frozenset({b"content-type", b"user-agent", b"te"})
_CHANNEL_OPTIONS = (
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.enable_retries", 0),
)


class GrpcTransport:
    """All gRPC calls of a drive, over one channel."""

    def __init__(self, routes: DriveRoutes) -> None:
        route = routes.route_of(Binding.GRPC)
        options = (*_CHANNEL_OPTIONS, ("grpc.default_authority", route.authority))
        self._channel = grpc.aio.insecure_channel(route.address, options=options)

    def open_call(self, step: PlannedCall, target: CallTarget, /) -> OpenCall:
        """Return a call of the recorded method, or of the same operation in another dialect."""
        return _GrpcCall(self._channel, _schema_of_answers(step, target))

    async def close(self) -> None:
        """Close the channel."""
        await self._channel.close(None)


class _GrpcCall:
    def __init__(self, channel: grpc.aio.Channel, schema: str) -> None:
        self._channel = channel
        self._schema = schema
        self._call: Any = None

    async def send_message(self, request: DriveRequest) -> None:
        """Send a message; the first one opens the call. Raises CallError if the agent has ended the
        call."""
        if self._call is None:
            method: Any = self._channel.stream_stream(request.target, _pass_bytes, _pass_bytes)
            metadata: list[tuple[str, str | bytes]] = []
            for name, value in request.headers:
                low = name.lower()
                if low in _CARRIER_FIELDS or low.startswith(_RESERVED_PREFIXES):
                    continue
                text = (
                    decode_binary_value(value) if low.endswith(b"-bin") else value.decode("latin-1")
                )
                metadata.append((low.decode("latin-1"), text))
            self._call = method(metadata=tuple(metadata))
        try:
            await self._call.write(request.payload)
        except (grpc.RpcError, asyncio.InvalidStateError) as wrong:
            raise CallError(f"not sent: the call was over: {await self._status_text()}") from wrong

    async def half_close(self) -> None:
        """Half-close the call."""
        try:
            await self._call.done_writing()
        except (grpc.RpcError, asyncio.InvalidStateError):
            return  # the call is over

    async def _status_text(self) -> str:
        """Return the status of the call as text."""
        code = await self._call.code()
        return f"{code.name} {await self._call.details()}".strip()

    async def cancel(self) -> None:
        """Cancel the call with RST_STREAM."""
        if self._call is not None:
            self._call.cancel()

    async def iter_answers(self) -> AsyncIterator[ReceivedMessage]:
        """Yield the messages until the trailers; the status is in the recording of the drive."""
        try:
            while (data := await self._call.read()) is not grpc.aio.EOF:  # type: ignore[attr-defined]  # not in the stubs
                yield ReceivedMessage(data, self._schema, FrameKind.EVENT)
        except grpc.RpcError:
            return


def _pass_bytes(data: bytes) -> bytes:
    return data


def _schema_of_answers(step: PlannedCall, target: CallTarget) -> str:
    """Return the schema of the live agent's messages: that of the recorded answers, else from the
    operation table."""
    if not target.is_translated and step.answers:
        return step.answers[0].schema
    operation = OPERATION_BY_NAME.get(target.operation)
    if operation is None:
        return BYTES
    return schema_of(schema_set_of(target.dialect), message_names(operation, target.dialect)[1])
