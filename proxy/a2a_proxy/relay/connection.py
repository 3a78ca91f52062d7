"""One connection: the client on one side, the agent on the other, octets forwarded first and captured second.

Parses nothing. The one look at the octets is whether they begin as HTTP/2 does. Where something is to be changed, an
editor (`edits`) stands between the two sides; the copy is still what each peer sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Protocol, cast

import msgspec

from a2a_proxy.model.chunk import ChunkKind, ConnectionFacts, DialFacts, Direction
from a2a_proxy.relay import tcp
from a2a_proxy.relay.clock import Clock
from a2a_proxy.relay.dial import DialError, dial
from a2a_proxy.relay.edit_line import EditLine, WorkQueue, editor_for, note_of, record_of
from a2a_proxy.relay.edits.edit import ConsoleNote, EditFact, EditPlan
from a2a_proxy.relay.listener_state import ListenerState, Tell
from a2a_proxy.relay.route import Upstream
from a2a_proxy.relay.tls import HTTP1, HTTP2, Tls
from a2a_proxy.wire.detect import PREFACE

SILENT_SECONDS = 1.0
"""How long a client may say nothing before the upstream is chosen without it."""
FLUSH_SECONDS = 1.0
"""How long octets sent before a reset may take to arrive before the reset follows them."""
FLUSH_POLL_SECONDS = 0.002
REFUSAL_SECONDS = 5.0
"""How long a client may take to say what it speaks, where there is no upstream to hear it."""
LINGER_SECONDS = 1.0
"""How long a refused client may take to read its answer and close."""
MAX_BUFFERED = 128 * 1024
"""Octets of a client that are kept until its agent has proved to speak HTTP/2."""
HALF_CLOSE_SECONDS = 5.0
"""How long an upstream behind TLS may take to answer a client that has sent FIN."""
HALF_CLOSE_POLL_SECONDS = 0.1
ANSWERED_NS = 500_000_000
"""An upstream that spoke last, this long ago, has answered."""

_OPEN, _DIALED, _DATA, _EOF = ChunkKind.OPEN, ChunkKind.DIALED, ChunkKind.DATA, ChunkKind.EOF
_RESET, _CLOSED, _OURS, _EDIT = ChunkKind.RESET, ChunkKind.CLOSED, ChunkKind.OURS, ChunkKind.EDIT

Append = Callable[[ChunkKind, Direction, int, int, bytes], None]
Forward = Callable[[bytes], list[EditFact] | None]
"""Sends octets on; gives what was changed in them."""


class RefusalResponder(Protocol):
    """Answers a client that has no upstream (`refusal`)."""

    done: bool
    """Nothing more will be said."""

    def feed(self, data: bytes) -> bytes:
        """What to say to these octets of the client."""


class RelayContext(msgspec.Struct, frozen=True):
    """What all pairs of a relay share."""

    loop: asyncio.AbstractEventLoop
    work: WorkQueue
    append: Append
    clock: Clock
    closed: Callable[[ProxyConnection], None]
    """Told once when both sides of a pair are gone."""
    tls: Tls
    tell: Tell


class Leg(asyncio.Protocol):
    """One half of a pair: what its peer sends goes to the other side."""

    __slots__ = (
        "_append",
        "_clock",
        "_number",
        "broken",
        "delayed",
        "direction",
        "ended",
        "forward",
        "full",
        "last",
        "lost",
        "octets",
        "pair",
        "shut",
        "tls",
        "transport",
    )

    def __init__(self, pair: ProxyConnection, direction: Direction, forward: Forward) -> None:
        self.pair = pair
        self.direction = direction
        self.forward = forward
        self.transport: asyncio.Transport | None = None
        self.octets = 0
        """Received from this peer."""
        self.last = 0
        """When the peer last sent something, ns."""
        self.ended = False
        """The peer sent FIN."""
        self.lost = False
        """The connection is gone."""
        self.broken = False
        """It is gone, and this relay did not close it."""
        self.delayed = False
        """Bytes of this peer wait for the next turn of the event loop to be edited."""
        self.full = False
        """The peer does not read as fast as it is sent to."""
        self.shut = False
        """FIN was sent to the peer."""
        self.tls = False
        """The peer is spoken to over TLS, which knows no half-close here."""
        self._number = pair.number
        self._append = pair.around.append
        self._clock = pair.around.clock

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection to the peer stands."""
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but name
        self.tls = transport.get_extra_info("ssl_object") is not None
        tcp.tune(self.transport)
        self.pair.made(self)

    def data_received(self, data: bytes) -> None:
        """Forward, then capture. The time comes first: the receiver may act before this process runs again."""
        self.last = at = self._clock()
        edits = self.forward(data)
        self.octets += len(data)
        self._append(_DATA, self.direction, self._number, at, data)
        if edits:
            self.pair.edited(edits)

    def eof_received(self) -> bool:
        """FIN of the peer; the other direction stays open."""
        if not self.ended:
            self.ended = True
            self.record(_EOF)
            self.pair.ended(self)
        return not self.tls

    def connection_lost(self, exc: Exception | None) -> None:
        """Closed by us (`exc` is None), or broken."""
        self.lost, self.broken = True, exc is not None
        if exc is not None:
            assert self.transport is not None
            rest = b"" if self.ended or self.tls else tcp.rest_of(self.transport)
            if rest:
                self.data_received(rest)
            self.record(_RESET, str(exc).encode(errors="replace"))
        self.pair.gone(self)

    def pause_writing(self) -> None:
        """The peer reads slowly: its sender must wait."""
        self.full = True
        self.pair.other(self).pause()

    def resume_writing(self) -> None:
        """The peer has read most of it."""
        self.full = False
        self.pair.other(self).resume()

    def pause(self) -> None:
        """Stop reading from this peer."""
        if self.alive:
            self.transport.pause_reading()  # type: ignore[union-attr]

    def resume(self) -> None:
        """Read again, where nothing else keeps this peer waiting. Not after FIN, which uvloop would report twice."""
        if self.alive and not self.ended and not self.delayed:
            self.transport.resume_reading()  # type: ignore[union-attr]

    @property
    def alive(self) -> bool:
        """There is a transport that takes octets."""
        return self.transport is not None and not self.transport.is_closing()

    @property
    def waiting(self) -> int:
        """Octets written to this peer that the kernel has not taken yet."""
        return self.transport.get_write_buffer_size() if self.alive else 0  # type: ignore[union-attr]

    def record(self, kind: ChunkKind, data: bytes = b"") -> None:
        """Append a record of this direction."""
        self._append(kind, self.direction, self._number, self._clock(), data)

    def write(self, data: bytes) -> None:
        """Send octets to the peer, if it still takes any."""
        if self.alive and not self.shut:
            self.transport.write(data)  # type: ignore[union-attr]

    def write_eof(self) -> None:
        """Send FIN after what is waiting."""
        if self.alive and not self.tls:
            self.shut = True
            self.transport.write_eof()  # type: ignore[union-attr]

    def leave_out(self) -> None:
        """Append nothing more of this peer."""
        self._append = _nowhere

    def close(self) -> None:
        """Close after what is waiting is sent."""
        if self.transport is not None:
            self.transport.close()

    def reset(self) -> None:
        """Close with RST, at once."""
        if self.transport is not None and not self.lost:
            tcp.reset(self.transport)


class ProxyConnection:
    """A client connection and the upstream connection made for it."""

    def __init__(self, number: int, way: ListenerState, around: RelayContext) -> None:
        self.number = number
        self.around = around
        self._way = way
        self._route = way.route
        self._upstream = way.route.upstream
        self.client = Leg(self, Direction.TO_AGENT, self._hold)
        self.agent = Leg(self, Direction.TO_CLIENT, _discard)
        self._held: list[bytes] = []
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._refusal: RefusalResponder | None = None
        self._why = ""
        self._done = False
        self._plan: EditPlan | None = None
        self._line: EditLine | None = None
        self._begin = b""
        """What the client said first, while that does not tell its protocol."""
        self._said: bytearray | None = None
        """All that the client said, while the agent has not proved to speak HTTP/2."""

    def other(self, side: Leg) -> Leg:
        """The side across."""
        return self.agent if side is self.client else self.client

    @property
    def quiet_since(self) -> int | None:
        """Since when nothing moves and the agent spoke last, ns; None while a client waits for it."""
        return self.agent.last if self.agent.last >= self.client.last else None

    def close(self) -> None:
        """Close both sides after what is waiting is sent."""
        self.client.close()
        self.agent.close()

    def abort(self) -> None:
        """Break both sides, at once."""
        self.client.reset()
        self.agent.reset()

    # Beginning: choose an upstream, dial it, hold what the client says meanwhile.

    def made(self, side: Leg) -> None:
        """A side stands."""
        assert side.transport is not None
        if side is self.client:
            self._open(side.transport)
        elif self.client.lost:
            side.reset()
        else:
            self._splice(side.transport)

    def _open(self, transport: asyncio.Transport) -> None:
        facts = ConnectionFacts(
            tcp.name_of(transport, "peername"), tcp.name_of(transport, "sockname"), self._route.upstream.text
        )
        self.client.record(_OPEN, msgspec.json.encode(facts))
        if self._way.grpc is None and not self._route.upstream.tls:
            self._dial(self._route.upstream)
            return
        self.client.forward = self._choose
        if not self._route.upstream.tls:  # over TLS the handshake says what the client will speak
            self._timer = self.around.loop.call_later(SILENT_SECONDS, self._dial, self._route.upstream)

    def _choose(self, data: bytes) -> None:
        self._held.append(data)
        begin = b"".join(self._held)[: len(PREFACE)]
        if begin == PREFACE:
            self._dial(self._way.grpc or self._route.upstream, HTTP2)
        elif not PREFACE.startswith(begin):
            self._dial(self._route.upstream)

    def _hold(self, data: bytes) -> None:
        # The transport ignores a pause in connection_made (uvloop, CPython 3.11), so something always may come.
        self._held.append(data)
        self.client.pause()

    def _dial(self, upstream: Upstream, protocol: str = HTTP1) -> None:
        self._cancel_timer()
        self._upstream = upstream
        self.client.forward = self._hold
        if self._held:
            self.client.pause()
        self._task = self.around.loop.create_task(self._try(upstream, protocol))

    async def _try(self, upstream: Upstream, protocol: str) -> None:
        try:
            await dial(upstream, lambda: self.agent, tls=self.around.tls, protocol=protocol)
        except DialError as error:
            if self.agent.transport is None:
                if upstream.tls:
                    self.around.tell(ConsoleNote(f"no connection to {upstream.text}: {error}", error.hint, loud=True))
                self._refuse(str(error))

    def _splice(self, agent: asyncio.Transport) -> None:
        facts = DialFacts(self._upstream.address, peer=tcp.name_of(agent, "peername"))
        self.client.record(_DIALED, msgspec.json.encode(facts))
        assert self.client.transport is not None
        self._plan = self._way.plan(self._upstream, tcp.name_of(self.client.transport, "sockname"))
        self.client.forward, self.agent.forward = self._first, self.client.transport.write
        if self._held:
            data = b"".join(self._held)
            self._held.clear()
            self.edited(self.client.forward(data))
        if self.client.ended:
            self._pass_eof(self.client)
        elif not self.agent.full:
            self.client.resume()

    def _first(self, data: bytes) -> list[EditFact] | None:
        """The client's first octets tell its protocol. Held are less than a preface, and only where something may be
        changed."""
        begin = self._begin + data
        if self._plan is not None and len(begin) < len(PREFACE) and PREFACE.startswith(begin):
            self._begin = begin
            return None
        self._begin = b""
        assert self.agent.transport is not None
        assert self.client.transport is not None
        http2 = begin.startswith(PREFACE)
        self.client.forward, self.agent.forward = plain = self.agent.transport.write, self.client.transport.write
        if self._plan is not None:
            guarded, loop, work = (self.agent.write, self.client.write), self.around.loop, self.around.work
            editor = editor_for(http2, self._plan)
            self._line = EditLine(editor, loop, work, plain, guarded, self.edited, self._delay)
            self.client.forward, self.agent.forward = self._line.to_agent, self._line.to_client
        if http2 and not self.agent.tls and not self.agent.octets:
            self._said = bytearray()
            to_agent, to_client = self.client.forward, self.agent.forward
            self.client.forward = partial(self._note_said, to_agent)
            self.agent.forward = partial(self._verify, to_agent, to_client)
        return self.client.forward(begin)

    def edited(self, facts: list[EditFact] | None) -> None:
        """An editor changed something, or wanted to."""
        for fact in facts or ():
            side = self.client if fact.direction is Direction.TO_AGENT else self.agent
            if (data := record_of(fact)) is not None:
                side.record(_EDIT, data)
            if (note := note_of(fact)) is not None:
                self.around.tell(note)
        if self._line is not None and not self._line.active:
            line, self._line = self._line, None
            self._forward_plainly()
            line.finish()

    def _delay(self, direction: Direction, delayed: bool) -> None:
        """While received bytes wait to be edited no more are read; what their sender did after them follows them."""
        side = self.client if direction is Direction.TO_AGENT else self.agent
        side.delayed = delayed
        if delayed:
            side.pause()
            return
        if side.ended:
            self._pass_eof(side)
        if side.lost:
            self.gone(side)
        elif not self.other(side).full:
            side.resume()

    # An upstream that does not speak HTTP/2 shows it with its first octet, before the client has sent a request.

    def _note_said(self, forward: Forward, data: bytes) -> list[EditFact] | None:
        if self._said is not None:
            self._said += data
            if len(self._said) > MAX_BUFFERED:
                self._said = None
        return forward(data)

    def _verify(self, to_agent: Forward, to_client: Forward, data: bytes) -> list[EditFact] | None:
        said, self._said = self._said, None
        if data[0] and said is not None:  # SETTINGS comes first, and is never so long
            self._leave_agent(said, data)
            return None
        self.client.forward, self.agent.forward = to_agent, to_client
        return to_client(data)

    def _leave_agent(self, said: bytearray, answer: bytes) -> None:
        self._stop_editing()
        self.agent.leave_out()
        self.agent.forward = _discard
        self.agent.close()
        self.agent = Leg(self, Direction.TO_CLIENT, _discard)
        self._held = [bytes(said)]
        line = answer.partition(b"\n")[0][:60].decode("ascii", "backslashreplace").strip()
        hint = "if the agent has another port for gRPC, name it with --upstream-grpc"
        self._refuse(f"it does not speak HTTP/2 without TLS (h2c), it answers {line!r}; {hint}")

    # End: what one side does, the other side sees.

    def ended(self, side: Leg) -> None:
        """The peer of `side` sent FIN."""
        if side is not self.client and side is not self.agent:
            return  # left behind by a refusal
        other = self.other(side)
        if self._task is None:  # still choosing: it will say nothing more
            self._dial(self._route.upstream)
        elif self._why:
            self._answer()
            self.client.close()
        elif other.transport is not None:
            self._pass_eof(side)

    def _pass_eof(self, side: Leg) -> None:
        if side.delayed:
            return
        other = self.other(side)
        self._flush(side)
        other.write_eof()
        if other.ended:
            if not other.delayed:
                self.close()
        elif other.tls:
            self._close_when_answered(self.around.loop.time() + HALF_CLOSE_SECONDS)

    def _flush(self, side: Leg) -> None:
        """The peer of `side` sends no more: what is held of it goes on."""
        if side is self.client and self._begin:
            begin, self._begin = self._begin, b""
            self.agent.write(begin)
        if self._line is not None:
            self.edited(self._line.eof(side.direction))

    def _close_when_answered(self, deadline: float) -> None:
        """A client that sent FIN mostly has closed. Over TLS that cannot be passed on alone, so the upstream is closed
        when it spoke last, or has had its time to answer."""
        if self.agent.lost:
            return
        now = self.around.loop.time()
        quiet = self.quiet_since
        if now >= deadline or (quiet is not None and self.around.clock() - quiet >= ANSWERED_NS):
            self.close()
        else:
            self.around.loop.call_later(HALF_CLOSE_POLL_SECONDS, self._close_when_answered, deadline)

    def gone(self, side: Leg) -> None:
        """A connection is no more."""
        if side is not self.client and side is not self.agent:
            return  # left behind by a refusal
        self._cancel_timer()
        other = self.other(side)
        other.forward = _discard
        if side.delayed and other.alive:
            other.pause()
            return
        self._flush(side)
        side.forward = _discard
        if self._task is not None and self.agent.transport is None:
            self._task.cancel()
        if other.transport is None or other.lost:
            self._finish()
        elif side.broken:
            other.pause()
            self._reset_when_sent(other, self.around.loop.time() + FLUSH_SECONDS)
        elif not other.transport.is_closing():
            other.close()

    def _reset_when_sent(self, side: Leg, deadline: float) -> None:
        """RST makes the kernel forget what it has not sent, so it waits until the peer has it all, if it takes it."""
        if side.lost or side.transport is None:
            return
        loop = self.around.loop
        if loop.time() < deadline and tcp.unsent(side.transport):
            loop.call_later(FLUSH_POLL_SECONDS, self._reset_when_sent, side, deadline)
        else:
            side.reset()

    def _finish(self) -> None:
        if not self._done:
            self._done = True
            self._stop_editing()
            self.client.record(_CLOSED)
            self.around.closed(self)

    def _stop_editing(self) -> None:
        if self._line is not None:
            self._line.stop()
            self._line = None
            self.client.delayed = self.agent.delayed = False

    def _forward_plainly(self) -> None:
        if self.client.forward is not _discard and self.agent.transport is not None:
            self.client.forward = self.agent.transport.write
        if self.agent.forward is not _discard and self.client.transport is not None:
            self.agent.forward = self.client.transport.write

    # No upstream: say so in the client's own words.

    def _refuse(self, why: str) -> None:
        self._why = why
        self.client.record(_DIALED, msgspec.json.encode(DialFacts(self._upstream.address, error=why)))
        self.client.forward = self._listen
        self._timer = self.around.loop.call_later(REFUSAL_SECONDS, self.client.close)
        self._answer()
        if self.client.ended:
            self.client.close()
        self.client.resume()

    def _listen(self, data: bytes) -> None:
        self._held.append(data)
        self.around.loop.call_soon(self._answer)  # so that the client's octets are captured before ours

    def _answer(self) -> None:
        from a2a_proxy.relay.refusal import refusal_for

        data = b"".join(self._held)
        if not self.client.alive or not data:
            return
        if self._refusal is None:
            self._refusal = refusal_for(data, self._upstream.address, self._why)
        if self._refusal is None:
            self._held = [data]
            return
        self._held.clear()
        self._say(self._refusal.feed(data))
        if self._refusal.done:
            self._leave()

    def _say(self, data: bytes) -> None:
        if data and self.client.transport is not None:
            self.client.transport.write(data)
            self.agent.record(_OURS, data)

    def _leave(self) -> None:
        """A client that still sends would lose the answer to a RST: it gets a FIN, and a moment."""
        self._cancel_timer()
        self.client.forward = _discard
        self.client.write_eof()
        self._timer = self.around.loop.call_later(LINGER_SECONDS, self.client.close)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _nowhere(kind: ChunkKind, direction: Direction, connection: int, at: int, data: bytes) -> None:
    """For `Side.leave_out`."""


def _discard(_: bytes) -> None:
    """Where octets go that nobody is left to read."""
