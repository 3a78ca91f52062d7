"""Calls to a stdio agent: its process is started behind `a2a-proxy stdio`, and all calls share its
pipe.

A pipe does not mark the end of a stream. A stream is over with a terminal state, a message or an
error, and, if the task is interrupted, after as many events as were recorded (manual/protocol.md
"Stdio streams").
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Sequence

import msgspec

from a2a_proxy.drive.plan import PlannedCall
from a2a_proxy.drive.request import (
    STDIO_FRAMING,
    CallError,
    CallTarget,
    DriveRequest,
    OpenCall,
    ReceivedMessage,
)
from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import EventKind, FrameKind
from a2a_proxy.model.wire import Direction, Framed, WireEvent
from a2a_proxy.protocol.json_shapes import UNREADABLE_ERRORS
from a2a_proxy.protocol.json_summary import summarise_leniently
from a2a_proxy.protocol.operations import STREAMING_OPERATIONS
from a2a_proxy.protocol.schema import JSON
from a2a_proxy.wire.stdio import StdioDecoder

_END_SECONDS = 5.0
"""Seconds for an agent to exit after its input is closed."""
_READ_SIZE = 65_536


class _RpcShape(msgspec.Struct):
    id: msgspec.Raw = msgspec.Raw()
    method: str = ""
    params: msgspec.Raw = msgspec.Raw()
    result: msgspec.Raw = msgspec.Raw()
    error: msgspec.Raw = msgspec.Raw()


_decode_shape = msgspec.json.Decoder(_RpcShape).decode


class StdioTransport:
    """One process, and the open calls on its pipe."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = tuple(command)
        self._process: asyncio.subprocess.Process | None = None
        self._start_lock = asyncio.Lock()
        self._reader_task: asyncio.Task[None] | None = None
        self._open_calls: dict[str, _StdioCall] = {}

    @property
    def pid(self) -> int:
        """Process id; 0 before the start."""
        return self._process.pid if self._process is not None else 0

    def open_call(self, step: PlannedCall, target: CallTarget, /) -> OpenCall:
        """Return a call on the pipe."""
        return _StdioCall(self, step, target.operation in STREAMING_OPERATIONS)

    async def send_request(self, call: _StdioCall, request: DriveRequest) -> None:
        """Write a request; messages with its id are dispatched to this call. Raises CallError."""
        pipe = await self._start_process()
        self._open_calls[request.rpc_id] = call
        try:
            # The message in its recorded framing, with the right length where the recorded length
            # was right.
            framing = request.framing or STDIO_FRAMING.format(version="")
            head, _, tail = framing.replace("\1", str(len(request.payload))).partition("\0")
            pipe.write(head.encode("latin-1") + request.payload + tail.encode("latin-1"))
            await pipe.drain()
        except (BrokenPipeError, ConnectionResetError) as wrong:
            raise CallError("the agent has closed its input") from wrong

    async def _start_process(self) -> asyncio.StreamWriter:
        async with self._start_lock:
            if self._process is None:
                pipe = asyncio.subprocess.PIPE
                nowhere = asyncio.subprocess.DEVNULL
                self._process = await asyncio.create_subprocess_exec(
                    *self._command, stdin=pipe, stdout=pipe, stderr=nowhere, start_new_session=True
                )
                self._reader_task = asyncio.ensure_future(self._read_output(self._process))
        assert self._process.stdin is not None
        return self._process.stdin

    async def _read_output(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        decoder, events = StdioDecoder(), list[WireEvent]()
        while data := await process.stdout.read(_READ_SIZE):
            decoder.feed(Direction.TO_CLIENT, data, time.monotonic_ns(), events)
            for event in events:
                if isinstance(event, Framed):
                    self._dispatch_message(event.data)
            events.clear()
        for call in self._open_calls.values():
            call.queue.put_nowait(None)

    def _dispatch_message(self, data: bytes) -> None:
        """Dispatch a message to its call; a message of no call is only in the recording."""
        try:
            shape = _decode_shape(data)
        except UNREADABLE_ERRORS:
            return
        call = self._open_calls.get(bytes(shape.id).decode("utf-8", "replace"))
        if call is None and shape.method:
            streams = [
                each for each in self._open_calls.values() if each.is_stream and not each.is_over
            ]
            call = streams[0] if len(streams) == 1 else None
        if call is not None and (shape.result or shape.error or shape.method):
            call.on_message(data, shape)

    async def close(self) -> None:
        """Close the agent's input, and terminate the process if it does not exit."""
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
        if self._reader_task is not None:
            await self._reader_task


class _StdioCall:
    def __init__(self, transport: StdioTransport, step: PlannedCall, streams: bool) -> None:
        self._transport = transport
        self._recorded_call = len(step.answers)
        self._count = 0
        self.is_stream = streams
        self.is_over = False
        self.queue: asyncio.Queue[ReceivedMessage | None] = asyncio.Queue()

    async def send_message(self, request: DriveRequest) -> None:
        """Write the message."""
        await self._transport.send_request(self, request)

    async def half_close(self) -> None:
        """Do nothing: a pipe has no half-close for one call."""

    async def cancel(self) -> None:
        """Stop reading: a pipe cannot cancel one call."""
        self.queue.put_nowait(None)

    async def iter_answers(self) -> AsyncIterator[ReceivedMessage]:
        """Yield the messages until the call or the pipe ends."""
        while (answer := await self.queue.get()) is not None:
            yield answer

    def on_message(self, data: bytes, shape: _RpcShape) -> None:
        """Handle a message with this call's id, or about its stream."""
        if self.is_over:
            return
        self._count += 1
        kind = (
            FrameKind.ERROR
            if shape.error
            else FrameKind.EVENT
            if self.is_stream
            else FrameKind.RESPONSE
        )
        self.queue.put_nowait(ReceivedMessage(data, JSON, kind))
        if self._is_last_answer(shape):
            self.is_over = True
            self.queue.put_nowait(None)

    def _is_last_answer(self, shape: _RpcShape) -> bool:
        if shape.error or not self.is_stream:
            return True
        try:
            event, *_, state = summarise_leniently(
                msgspec.json.decode(shape.params if shape.method else shape.result), True
            )[:6]
        except UNREADABLE_ERRORS:
            return False
        if event is EventKind.MESSAGE:
            return True
        task_state = (
            TaskState(state) if state in TaskState._value2member_map_ else TaskState.UNSPECIFIED
        )
        return task_state.terminal or (
            task_state.interrupted and self._count >= self._recorded_call
        )
