"""Server of a script on stdin and stdout: JSON-RPC in frames with a Content-Length, or in lines if
the client sends lines."""

import asyncio
import contextlib
import os
import stat
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from a2a_proxy.model.values import Binding
from a2a_proxy.model.wire import Direction, Framed, Line, WireEvent
from a2a_proxy.replay.core.miss import Miss
from a2a_proxy.replay.core.script import LineKind, PlayerSend
from a2a_proxy.replay.serve.incoming import RequestReader, RpcParseError
from a2a_proxy.replay.serve.outgoing import (
    RpcResponseWriter,
    error_of,
    escape_json,
    recorded_form,
    rpc_failure,
)
from a2a_proxy.replay.serve.performance import ClientCall, ReplayPlayer
from a2a_proxy.wire.stdio_reader import PipeReader

_READ_SIZE = 65536
_LINGER_SECONDS = 5.0
"""Seconds for which calls that are open when the client closes its end continue, because an agent
answers them too."""


class StdioServer:
    """Serves one client until it closes the pipe."""

    def __init__(
        self, replay: ReplayPlayer, incoming: RequestReader, read_from: int = 0, write_to: int = 1
    ) -> None:
        """`read_from` and `write_to` are file descriptors."""
        self._replay = replay
        self._incoming = incoming
        self._read_from = read_from
        self._write_to = write_to
        self._calls: set[asyncio.Task[None]] = set()
        self._client_data: asyncio.Queue[bytes] = asyncio.Queue()
        self._write_output: Callable[[bytes], None] = self._write_blocking
        self._output_writer: asyncio.StreamWriter | None = None
        self._output = _OutputPipe()
        self._broken = asyncio.Event()

    async def run(self) -> None:
        """Serve until the client closes its end and its calls are answered, or until the recorded
        agent breaks off."""
        await self._open_output()
        loop = asyncio.get_running_loop()
        # A thread, because the event loop can wait only for pipes and sockets, and stdin may be a
        # file.
        threading.Thread(target=self._read_input, args=(loop,), name="stdin", daemon=True).start()
        reading = asyncio.create_task(self._serve_client())
        broken = asyncio.create_task(self._broken.wait())
        await asyncio.wait((reading, broken), return_when=asyncio.FIRST_COMPLETED)
        for task in (reading, broken, *self._calls):
            task.cancel()
        await asyncio.gather(reading, broken, *self._calls, return_exceptions=True)
        if self._output_writer is not None:
            self._output_writer.close()  # pending output is still written
            await asyncio.wait(
                [asyncio.create_task(self._output.closed.wait())], timeout=_LINGER_SECONDS
            )

    async def _serve_client(self) -> None:
        reader = PipeReader(Direction.TO_AGENT)
        while data := await self._client_data.get():
            events: list[WireEvent] = []
            reader.feed(data, self._replay.clock(), events)
            self._begin_calls(events)
        rest: list[WireEvent] = []
        reader.finish(self._replay.clock(), rest)
        self._begin_calls(rest)
        if self._calls:
            await asyncio.wait(self._calls, timeout=_LINGER_SECONDS)

    def _begin_calls(self, events: list[WireEvent]) -> None:
        for event in events:
            if isinstance(event, Framed):
                self._start_task(self._answer_call(event))
            elif isinstance(event, Line) and event.data.strip():
                self._start_task(
                    self._refuse_message(
                        RpcParseError(-32700, "Parse error: this line is not JSON"), lines=True
                    )
                )

    def _start_task(self, answering: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(answering)
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)

    async def _answer_call(self, framed: Framed) -> None:
        lines = "\1" not in framed.framing and framed.framing.startswith("\0")
        try:
            call = self._incoming.read_rpc(framed.data, framed.headers, Binding.STDIO)
        except RpcParseError as wrong:
            await self._refuse_message(wrong, lines=lines)
            return
        writer = RpcResponseWriter(call.id, call.request.operation, call.request.dialect)
        found = self._replay.begin_call(call.request)
        if not isinstance(found, ClientCall):
            await self._write_message(
                (
                    writer.encode_miss(found)
                    if isinstance(found, Miss)
                    else writer.encode_refusal(found)
                )[1],
                lines,
            )
            return
        await self._play_call(found, writer, lines)

    async def _refuse_message(self, wrong: RpcParseError, *, lines: bool) -> None:
        self._replay.report_refusal("a message", Binding.STDIO, wrong.message)
        await self._write_message(rpc_failure(wrong.code, wrong.message), lines)

    async def _play_call(
        self, client_call: ClientCall, writer: RpcResponseWriter, lines: bool
    ) -> None:
        async with contextlib.aclosing(client_call.iter_sends()) as sends:
            async for send in sends:
                if send.what in (LineKind.RESET, LineKind.CUT):
                    self._broken.set()
                elif (data := encode_rpc_send(send, client_call, writer)) is not None:
                    await self._write_message(data, lines)

    async def _write_message(self, data: bytes, lines: bool) -> None:
        if lines:
            self._write_output(data + b"\n")
        else:
            self._write_output(
                b"Content-Length: %d\r\nContent-Type: application/json\r\n\r\n%s"
                % (len(data), data)
            )
        if self._output_writer is not None:
            with contextlib.suppress(ConnectionError):
                await self._output_writer.drain()

    async def _open_output(self) -> None:
        """Use non-blocking writes if the descriptor is a pipe; writes to a file do not block."""
        mode = os.fstat(self._write_to).st_mode
        if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
            return  # files and devices cannot be polled; uvloop aborts the process on the attempt
        loop = asyncio.get_running_loop()
        try:
            pipe = os.fdopen(os.dup(self._write_to), "wb", buffering=0)
            transport, _ = await loop.connect_write_pipe(lambda: self._output, pipe)
        except (ValueError, OSError):
            return
        self._output_writer = asyncio.StreamWriter(transport, self._output, None, loop)
        self._write_output = self._output_writer.write

    def _write_blocking(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._write_to, data) :]

    def _read_input(self, loop: asyncio.AbstractEventLoop) -> None:
        """Read the client's bytes in a thread, and queue an empty piece at the end."""
        data = b"x"
        while data:
            try:
                data = os.read(self._read_from, _READ_SIZE)
            except OSError:
                data = b""
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._client_data.put_nowait, data)


class _OutputPipe(asyncio.streams.FlowControlMixin):
    """Notes when the pipe to the client is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.closed = asyncio.Event()

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that the pipe was closed, by this process or by the client."""
        super().connection_lost(exc)
        self.closed.set()


def encode_rpc_send(
    send: PlayerSend, client_call: ClientCall, writer: RpcResponseWriter
) -> bytes | None:
    """Encode a send; None for an end, which is not a JSON-RPC response."""
    if send.what is LineKind.MESSAGE:
        return writer.encode_message(
            send, recorded_form(send, client_call.playback, client_call.to_live_value)
        )
    if send.what is LineKind.MISS and send.miss is not None:
        return writer.encode_miss(send.miss)[1]
    error = error_of(send, client_call.playback.call, client_call.to_live_value)
    return escape_json(send, writer.encode_refusal(error)[1]) if error is not None else None
