"""A script on stdin and stdout: JSON-RPC in frames with a Content-Length, or in lines where the client writes lines."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from a2a_proxy.model.chunk import Direction
from a2a_proxy.model.exchange import Binding
from a2a_proxy.model.wire import Framed, Line, WireEvent
from a2a_proxy.replay.core.miss import Miss
from a2a_proxy.replay.core.player_io import Send
from a2a_proxy.replay.core.script import LineKind
from a2a_proxy.replay.serve.incoming import BadRpc, Incoming
from a2a_proxy.replay.serve.outgoing import RpcResponseWriter, as_recorded, refusal_of, rpc_failure
from a2a_proxy.replay.serve.performance import ClientCall, ReplayPlayer
from a2a_proxy.wire.stdio_reader import PipeReader

_READ = 65536
_LINGER_SECONDS = 5.0
"""How long calls go on that are open when the client closes its end: an agent answers what it was asked."""


class StdioServer:
    """Serves one client, until it closes the pipe."""

    def __init__(self, stage: ReplayPlayer, incoming: Incoming, read_from: int = 0, write_to: int = 1) -> None:
        """`read_from` and `write_to` are descriptors."""
        self._stage = stage
        self._incoming = incoming
        self._read_from = read_from
        self._write_to = write_to
        self._calls: set[asyncio.Task[None]] = set()
        self._arrived: asyncio.Queue[bytes] = asyncio.Queue()
        self._write: Callable[[bytes], None] = self._blocking
        self._drain: asyncio.StreamWriter | None = None
        self._output = _Output()
        self._broken = asyncio.Event()

    async def run(self) -> None:
        """Until the client closes its end and what it asked is answered, or the recording's agent breaks off."""
        await self._open_output()
        loop = asyncio.get_running_loop()
        # A thread: the event loop waits for pipes and sockets only, and stdin may be a file.
        threading.Thread(target=self._read, args=(loop,), name="stdin", daemon=True).start()
        reading = asyncio.create_task(self._serve())
        broken = asyncio.create_task(self._broken.wait())
        await asyncio.wait((reading, broken), return_when=asyncio.FIRST_COMPLETED)
        for task in (reading, broken, *self._calls):
            task.cancel()
        await asyncio.gather(reading, broken, *self._calls, return_exceptions=True)
        if self._drain is not None:
            self._drain.close()  # what is written still goes out
            await asyncio.wait([asyncio.create_task(self._output.lost.wait())], timeout=_LINGER_SECONDS)

    async def _serve(self) -> None:
        reader = PipeReader(Direction.TO_AGENT)
        while data := await self._arrived.get():
            self._take(reader, data)
        rest: list[WireEvent] = []
        reader.finish(self._stage.clock(), rest)
        self._begin(rest)
        if self._calls:
            await asyncio.wait(self._calls, timeout=_LINGER_SECONDS)

    def _take(self, reader: PipeReader, data: bytes) -> None:
        events: list[WireEvent] = []
        reader.feed(data, self._stage.clock(), events)
        self._begin(events)

    def _begin(self, events: list[WireEvent]) -> None:
        for event in events:
            if isinstance(event, Framed):
                self._start(self._answer(event))
            elif isinstance(event, Line) and event.data.strip():
                self._start(self._refuse(BadRpc(-32700, "Parse error: this line is no JSON"), lines=True))

    def _start(self, answering: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(answering)
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)

    async def _answer(self, framed: Framed) -> None:
        lines = "\1" not in framed.framing and framed.framing.startswith("\0")
        try:
            call = self._incoming.rpc(framed.data, framed.headers, Binding.STDIO)
        except BadRpc as wrong:
            await self._refuse(wrong, lines=lines)
            return
        voice = RpcResponseWriter(call.id, call.asked.operation, call.asked.dialect)
        found = self._stage.begin(call.asked)
        if not isinstance(found, ClientCall):
            await self._put((voice.miss(found) if isinstance(found, Miss) else voice.refusal(found))[1], lines)
            return
        await self._play(found, voice, lines)

    async def _refuse(self, wrong: BadRpc, *, lines: bool) -> None:
        self._stage.refused("a message", Binding.STDIO, wrong.message)
        await self._put(rpc_failure(wrong.code, wrong.message), lines)

    async def _play(self, performance: ClientCall, voice: RpcResponseWriter, lines: bool) -> None:
        async with contextlib.aclosing(performance.sends()) as sends:
            async for send in sends:
                if send.what in (LineKind.RESET, LineKind.CUT):
                    self._broken.set()
                elif (octets := _said(send, performance, voice)) is not None:
                    await self._put(octets, lines)

    async def _put(self, octets: bytes, lines: bool) -> None:
        if lines:
            self._write(octets + b"\n")
        else:
            self._write(b"Content-Length: %d\r\nContent-Type: application/json\r\n\r\n%s" % (len(octets), octets))
        if self._drain is not None:
            with contextlib.suppress(ConnectionError):
                await self._drain.drain()

    async def _open_output(self) -> None:
        """Write without standing still where the descriptor is a pipe; a file takes what it is given."""
        mode = os.fstat(self._write_to).st_mode
        if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
            return  # nothing can wait for a file or device; uvloop aborts the process where it is asked to
        loop = asyncio.get_running_loop()
        try:
            pipe = os.fdopen(os.dup(self._write_to), "wb", buffering=0)
            transport, _ = await loop.connect_write_pipe(lambda: self._output, pipe)
        except (ValueError, OSError):
            return
        self._drain = asyncio.StreamWriter(transport, self._output, None, loop)
        self._write = self._drain.write

    def _blocking(self, octets: bytes) -> None:
        while octets:
            octets = octets[os.write(self._write_to, octets) :]

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        """In a thread: octets of the client, and an empty piece at the end."""
        data = b"x"
        while data:
            try:
                data = os.read(self._read_from, _READ)
            except OSError:
                data = b""
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens any more
                loop.call_soon_threadsafe(self._arrived.put_nowait, data)


class _Output(asyncio.streams.FlowControlMixin):
    """Knows when the pipe to the client is gone."""

    def __init__(self) -> None:
        super().__init__()
        self.lost = asyncio.Event()

    def connection_lost(self, exc: Exception | None) -> None:
        """Closed by us, or by the client."""
        super().connection_lost(exc)
        self.lost.set()


def _said(send: Send, performance: ClientCall, voice: RpcResponseWriter) -> bytes | None:
    """What goes out; None for an end, which a pipe does not tell."""
    if send.what is LineKind.MESSAGE:
        return voice.message(send, as_recorded(send, performance.play, performance.mapped))
    if send.what is LineKind.MISS and send.miss is not None:
        return voice.miss(send.miss)[1]
    told = refusal_of(send, performance.play.call, performance.mapped)
    return voice.refusal(told)[1] if told is not None else None
