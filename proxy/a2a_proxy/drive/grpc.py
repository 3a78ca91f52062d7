"""Calls over gRPC: octets as they are, messages in either direction whenever their time has come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc

from a2a_proxy.drive.call import CallError, OpenCall, ReceivedMessage
from a2a_proxy.drive.plan import PlannedCall
from a2a_proxy.drive.request import DriveRequest
from a2a_proxy.drive.route import DriveRoutes
from a2a_proxy.drive.target import CallTarget
from a2a_proxy.model.exchange import Binding
from a2a_proxy.model.frame import FrameKind
from a2a_proxy.model.wire import Headers
from a2a_proxy.protocol.errors import binary_value
from a2a_proxy.protocol.operations import BY_NAME, messages
from a2a_proxy.protocol.schema import BYTES, line_of, schema_of

_RESERVED = (b"grpc-", b":")
_OF_CARRIER = frozenset({b"content-type", b"user-agent", b"te"})
_OPTIONS = (("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1), ("grpc.enable_retries", 0))


class GrpcWire:
    """All gRPC calls of a drive, over one channel."""

    def __init__(self, routes: DriveRoutes) -> None:
        route = routes.route(Binding.GRPC)
        options = (*_OPTIONS, ("grpc.default_authority", route.authority))
        self._channel = grpc.aio.insecure_channel(route.address, options=options)

    def line(self, step: PlannedCall, speech: CallTarget, /) -> OpenCall:
        """A call of the recorded method, or of the one that does the same in another dialect."""
        return _GrpcCall(self._channel, _schema_of_answers(step, speech))

    async def close(self) -> None:
        """Close the channel."""
        await self._channel.close(None)


class _GrpcCall:
    def __init__(self, channel: grpc.aio.Channel, schema: str) -> None:
        self._channel = channel
        self._schema = schema
        self._call: Any = None

    async def say(self, request: DriveRequest) -> None:
        """The first message opens the call. Raises LineError where the agent has ended it."""
        if self._call is None:
            method: Any = self._channel.stream_stream(request.target, _same, _same)
            self._call = method(metadata=_metadata(request.headers))
        try:
            await self._call.write(request.payload)
        except (grpc.RpcError, asyncio.InvalidStateError) as wrong:
            raise CallError(f"not sent: the call was over: {await self._status()}") from wrong

    async def end(self) -> None:
        """Half-close."""
        try:
            await self._call.done_writing()
        except (grpc.RpcError, asyncio.InvalidStateError):
            return  # it is over: there is nothing to be closed

    async def _status(self) -> str:
        """How the call ended, in words."""
        code = await self._call.code()
        return f"{code.name} {await self._call.details()}".strip()

    async def cancel(self) -> None:
        """RST_STREAM."""
        if self._call is not None:
            self._call.cancel()

    async def answers(self) -> AsyncIterator[ReceivedMessage]:
        """Messages until the trailers; what the status says is in the recording of the drive."""
        try:
            while (octets := await self._call.read()) is not grpc.aio.EOF:  # type: ignore[attr-defined]  # not in the stubs
                yield ReceivedMessage(octets, self._schema, FrameKind.EVENT)
        except grpc.RpcError:
            return


def _same(data: bytes) -> bytes:
    return data


def _metadata(headers: Headers) -> tuple[tuple[str, str | bytes], ...]:
    made: list[tuple[str, str | bytes]] = []
    for name, value in headers:
        low = name.lower()
        if low in _OF_CARRIER or low.startswith(_RESERVED):
            continue
        said = binary_value(value) if low.endswith(b"-bin") else value.decode("latin-1")
        made.append((low.decode("latin-1"), said))
    return tuple(made)


def _schema_of_answers(step: PlannedCall, speech: CallTarget) -> str:
    """How the live agent's messages are read: as the recorded ones were, else as the table says."""
    if not speech.translated and step.answers:
        return step.answers[0].schema
    operation = BY_NAME.get(speech.operation)
    if operation is None:
        return BYTES
    return schema_of(line_of(speech.dialect), messages(operation, speech.dialect)[1])
