"""Calls to a stdio agent: its process is started behind `a2a-proxy stdio`, and all calls share its pipe.

Nothing on a pipe says that a stream is over: it is with a terminal state, a message or an error, and where the task is
interrupted after as many events as were recorded (manual/protocol.md "Stdio streams").
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Sequence

import msgspec

from a2a_proxy.drive.call import CallError, OpenCall, ReceivedMessage
from a2a_proxy.drive.plan import PlannedCall
from a2a_proxy.drive.request import DriveRequest
from a2a_proxy.drive.target import CallTarget
from a2a_proxy.drive.translate import FRAMING
from a2a_proxy.model.chunk import Direction
from a2a_proxy.model.event import TaskState
from a2a_proxy.model.frame import EventKind, FrameKind
from a2a_proxy.model.wire import Framed, WireEvent
from a2a_proxy.protocol.json_shapes import UNREADABLE
from a2a_proxy.protocol.json_summary import lenient_result
from a2a_proxy.protocol.operations import STREAMS
from a2a_proxy.protocol.schema import JSON
from a2a_proxy.wire.stdio import StdioDecoder

_END_SECONDS = 5.0
"""How long an agent may take to end when its input is closed."""
_READ = 65_536


class _RpcShape(msgspec.Struct):
    id: msgspec.Raw = msgspec.Raw()
    method: str = ""
    params: msgspec.Raw = msgspec.Raw()
    result: msgspec.Raw = msgspec.Raw()
    error: msgspec.Raw = msgspec.Raw()


_shape = msgspec.json.Decoder(_RpcShape).decode


class StdioWire:
    """One process, and the calls that are open on its pipe."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = tuple(command)
        self._process: asyncio.subprocess.Process | None = None
        self._starting = asyncio.Lock()
        self._reading: asyncio.Task[None] | None = None
        self._open: dict[str, _StdioCall] = {}

    @property
    def pid(self) -> int:
        """Of the process; 0 before it is started."""
        return self._process.pid if self._process is not None else 0

    def line(self, step: PlannedCall, speech: CallTarget, /) -> OpenCall:
        """A call on the pipe."""
        return _StdioCall(self, step, speech.operation in STREAMS)

    async def send(self, call: _StdioCall, request: DriveRequest) -> None:
        """Write a request; what comes back with its id is for this call. Raises LineError."""
        pipe = await self._started()
        self._open[request.rpc_id] = call
        try:
            pipe.write(_framed(request))
            await pipe.drain()
        except (BrokenPipeError, ConnectionResetError) as wrong:
            raise CallError("the agent reads no more") from wrong

    async def _started(self) -> asyncio.StreamWriter:
        async with self._starting:
            if self._process is None:
                pipe = asyncio.subprocess.PIPE
                nowhere = asyncio.subprocess.DEVNULL
                self._process = await asyncio.create_subprocess_exec(
                    *self._command, stdin=pipe, stdout=pipe, stderr=nowhere, start_new_session=True
                )
                self._reading = asyncio.ensure_future(self._read(self._process))
        assert self._process.stdin is not None
        return self._process.stdin

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        decoder, events = StdioDecoder(), list[WireEvent]()
        while octets := await process.stdout.read(_READ):
            decoder.feed(Direction.TO_CLIENT, octets, time.monotonic_ns(), events)
            for event in events:
                if isinstance(event, Framed):
                    self._take(event.data)
            events.clear()
        for call in self._open.values():
            call.queue.put_nowait(None)

    def _take(self, octets: bytes) -> None:
        """Hand a message to its call; what belongs to none is in the recording."""
        try:
            shape = _shape(octets)
        except UNREADABLE:
            return
        call = self._open.get(bytes(shape.id).decode("utf-8", "replace"))
        if call is None and shape.method:
            streams = [each for each in self._open.values() if each.streams and not each.over]
            call = streams[0] if len(streams) == 1 else None
        if call is not None and (shape.result or shape.error or shape.method):
            call.take(octets, shape)

    async def close(self) -> None:
        """Close the agent's input, and end it where it does not end of itself."""
        process = self._process
        if process is None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            async with asyncio.timeout(_END_SECONDS):
                await process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            await process.wait()
        if self._reading is not None:
            await self._reading


class _StdioCall:
    def __init__(self, wire: StdioWire, step: PlannedCall, streams: bool) -> None:
        self._wire = wire
        self._recorded = len(step.answers)
        self._count = 0
        self.streams = streams
        self.over = False
        self.queue: asyncio.Queue[ReceivedMessage | None] = asyncio.Queue()

    async def say(self, request: DriveRequest) -> None:
        """Write it."""
        await self._wire.send(self, request)

    async def end(self) -> None:
        """A pipe has no half-close of one call."""

    async def cancel(self) -> None:
        """Nor a way to break one off: nobody listens any more."""
        self.queue.put_nowait(None)

    async def answers(self) -> AsyncIterator[ReceivedMessage]:
        """Until the call is over, or the pipe is."""
        while (heard := await self.queue.get()) is not None:
            yield heard

    def take(self, octets: bytes, shape: _RpcShape) -> None:
        """A message of the agent with this call's id, or about its stream."""
        if self.over:
            return
        self._count += 1
        kind = FrameKind.ERROR if shape.error else FrameKind.EVENT if self.streams else FrameKind.RESPONSE
        self.queue.put_nowait(ReceivedMessage(octets, JSON, kind))
        if self._ends(shape):
            self.over = True
            self.queue.put_nowait(None)

    def _ends(self, shape: _RpcShape) -> bool:
        if shape.error or not self.streams:
            return True
        try:
            event, *_, state = lenient_result(
                msgspec.json.decode(shape.params if shape.method else shape.result), True
            )[:6]
        except UNREADABLE:
            return False
        if event is EventKind.MESSAGE:
            return True
        known = TaskState(state) if state in TaskState._value2member_map_ else TaskState.UNSPECIFIED
        return known.terminal or (known.interrupted and self._count >= self._recorded)


def _framed(request: DriveRequest) -> bytes:
    """The message as it stood on the recorded pipe, with a length that is right where that one was."""
    framing = request.framing or FRAMING.format(version="")
    head, _, tail = framing.replace("\1", str(len(request.payload))).partition("\0")
    return head.encode("latin-1") + request.payload + tail.encode("latin-1")
