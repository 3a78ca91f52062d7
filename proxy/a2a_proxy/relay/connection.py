"""One connection: the client on one side, the agent on the other, bytes forwarded first and captured second.

Parses nothing. The one look at the bytes is whether they begin as HTTP/2 does. Where something is to be changed, an
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
from a2a_proxy.relay.edit_line import EditLine, WorkQueue, encode_edit_record, make_editor, note_for_edit
from a2a_proxy.relay.edits.edit import ConsoleNote, EditFact, EditPlan
from a2a_proxy.relay.listener_state import ListenerState, ShowNote
from a2a_proxy.relay.route import Upstream
from a2a_proxy.relay.tls import HTTP1, HTTP2, Tls
from a2a_proxy.wire.detect import PREFACE

SILENT_CLIENT_SECONDS = 1.0
"""How long a client may say nothing before the upstream is chosen without it."""
FLUSH_SECONDS = 1.0
"""How long bytes sent before a reset may take to arrive before the reset follows them."""
FLUSH_POLL_SECONDS = 0.002
REFUSAL_SECONDS = 5.0
"""How long a client may take to say what it speaks, where there is no upstream to hear it."""
LINGER_SECONDS = 1.0
"""How long a refused client may take to read its answer and close."""
MAX_BUFFERED = 128 * 1024
"""Bytes of a client that are kept until its agent has proved to speak HTTP/2."""
HALF_CLOSE_SECONDS = 5.0
"""How long an upstream behind TLS may take to answer a client that has sent FIN."""
HALF_CLOSE_POLL_SECONDS = 0.1
QUIET_AFTER_ANSWER_NS = 500_000_000
"""An upstream that spoke last, this long ago, has answered."""

_OPEN, _DIALED, _DATA, _EOF = ChunkKind.OPEN, ChunkKind.DIALED, ChunkKind.DATA, ChunkKind.EOF
_RESET, _CLOSED, _OURS, _EDIT = ChunkKind.RESET, ChunkKind.CLOSED, ChunkKind.OURS, ChunkKind.EDIT

Append = Callable[[ChunkKind, Direction, int, int, bytes], None]
Forward = Callable[[bytes], list[EditFact] | None]
"""Sends bytes on; gives what was changed in them."""


class RefusalResponder(Protocol):
    """Answers a client that has no upstream (`refusal`)."""

    is_done: bool
    """Nothing more will be said."""

    def feed(self, data: bytes) -> bytes:
        """What to say to these bytes of the client."""


class RelayContext(msgspec.Struct, frozen=True):
    """What all pairs of a relay share."""

    loop: asyncio.AbstractEventLoop
    work: WorkQueue
    append: Append
    clock: Clock
    on_closed: Callable[[ProxyConnection], None]
    """Told once when both sides of a pair are gone."""
    tls: Tls
    show_note: ShowNote


class Leg(asyncio.Protocol):
    """One half of a pair: what its peer sends goes to the other side."""

    __slots__ = (
        "_append",
        "_clock",
        "_connection_number",
        "broken",
        "connection",
        "delayed",
        "direction",
        "fin_received",
        "fin_sent",
        "forward",
        "is_full",
        "is_lost",
        "last_received_at",
        "received_bytes",
        "tls",
        "transport",
    )

    def __init__(self, connection: ProxyConnection, direction: Direction, forward: Forward) -> None:
        self.connection = connection
        self.direction = direction
        self.forward = forward
        self.transport: asyncio.Transport | None = None
        self.received_bytes = 0
        """Received from this peer."""
        self.last_received_at = 0
        """When the peer last sent something, ns."""
        self.fin_received = False
        """The peer sent FIN."""
        self.is_lost = False
        """The connection is gone."""
        self.broken = False
        """It is gone, and this relay did not close it."""
        self.delayed = False
        """Bytes of this peer wait for the next turn of the event loop to be edited."""
        self.is_full = False
        """The peer does not read as fast as it is sent to."""
        self.fin_sent = False
        """FIN was sent to the peer."""
        self.tls = False
        """The peer is spoken to over TLS, which knows no half-close here."""
        self._connection_number = connection.number
        self._append = connection.context.append
        self._clock = connection.context.clock

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection to the peer stands."""
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but name
        self.tls = transport.get_extra_info("ssl_object") is not None
        tcp.tune_socket(self.transport)
        self.connection.on_leg_connected(self)

    def data_received(self, data: bytes) -> None:
        """Forward, then capture. The time comes first: the receiver may act before this process runs again."""
        self.last_received_at = at = self._clock()
        edits = self.forward(data)
        self.received_bytes += len(data)
        self._append(_DATA, self.direction, self._connection_number, at, data)
        if edits:
            self.connection.record_edits(edits)

    def eof_received(self) -> bool:
        """FIN of the peer; the other direction stays open."""
        if not self.fin_received:
            self.fin_received = True
            self.record(_EOF)
            self.connection.on_fin(self)
        return not self.tls

    def connection_lost(self, exc: Exception | None) -> None:
        """Closed by us (`exc` is None), or broken."""
        self.is_lost, self.broken = True, exc is not None
        if exc is not None:
            assert self.transport is not None
            rest = b"" if self.fin_received or self.tls else tcp.read_unread(self.transport)
            if rest:
                self.data_received(rest)
            self.record(_RESET, str(exc).encode(errors="replace"))
        self.connection.on_leg_lost(self)

    def pause_writing(self) -> None:
        """The peer reads slowly: its sender must wait."""
        self.is_full = True
        self.connection.other_leg(self).pause()

    def resume_writing(self) -> None:
        """The peer has read most of it."""
        self.is_full = False
        self.connection.other_leg(self).resume()

    def pause(self) -> None:
        """Stop reading from this peer."""
        if self.is_alive:
            self.transport.pause_reading()  # type: ignore[union-attr]

    def resume(self) -> None:
        """Read again, where nothing else keeps this peer waiting. Not after FIN, which uvloop would report twice."""
        if self.is_alive and not self.fin_received and not self.delayed:
            self.transport.resume_reading()  # type: ignore[union-attr]

    @property
    def is_alive(self) -> bool:
        """There is a transport that takes bytes."""
        return self.transport is not None and not self.transport.is_closing()

    @property
    def buffered_bytes(self) -> int:
        """Bytes written to this peer that the kernel has not taken yet."""
        return self.transport.get_write_buffer_size() if self.is_alive else 0  # type: ignore[union-attr]

    def record(self, kind: ChunkKind, data: bytes = b"") -> None:
        """Append a record of this direction."""
        self._append(kind, self.direction, self._connection_number, self._clock(), data)

    def write(self, data: bytes) -> None:
        """Send bytes to the peer, if it still takes any."""
        if self.is_alive and not self.fin_sent:
            self.transport.write(data)  # type: ignore[union-attr]

    def write_eof(self) -> None:
        """Send FIN after what is waiting."""
        if self.is_alive and not self.tls:
            self.fin_sent = True
            self.transport.write_eof()  # type: ignore[union-attr]

    def stop_recording(self) -> None:
        """Append nothing more of this peer."""
        self._append = _ignore_record

    def close(self) -> None:
        """Close after what is waiting is sent."""
        if self.transport is not None:
            self.transport.close()

    def reset(self) -> None:
        """Close with RST, at once."""
        if self.transport is not None and not self.is_lost:
            tcp.reset_connection(self.transport)


class ProxyConnection:
    """A client connection and the upstream connection made for it."""

    def __init__(self, number: int, listener: ListenerState, context: RelayContext) -> None:
        self.number = number
        self.context = context
        self._listener = listener
        self._route = listener.route
        self._upstream = listener.route.upstream
        self.client = Leg(self, Direction.TO_AGENT, self._hold_client_data)
        self.agent = Leg(self, Direction.TO_CLIENT, _discard_data)
        self._held_data: list[bytes] = []
        self._dial_task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._refusal: RefusalResponder | None = None
        self._refusal_reason = ""
        self._is_finished = False
        self._edit_plan: EditPlan | None = None
        self._edit_line: EditLine | None = None
        self._first_bytes = b""
        """What the client said first, while that does not tell its protocol."""
        self._unverified_data: bytearray | None = None
        """All that the client said, while the agent has not proved to speak HTTP/2."""

    def other_leg(self, leg: Leg) -> Leg:
        """The side across."""
        return self.agent if leg is self.client else self.client

    @property
    def quiet_since(self) -> int | None:
        """Since when nothing moves and the agent spoke last, ns; None while a client waits for it."""
        return self.agent.last_received_at if self.agent.last_received_at >= self.client.last_received_at else None

    def close(self) -> None:
        """Close both sides after what is waiting is sent."""
        self.client.close()
        self.agent.close()

    def abort(self) -> None:
        """Break both sides, at once."""
        self.client.reset()
        self.agent.reset()

    # Beginning: choose an upstream, dial it, hold what the client says meanwhile.

    def on_leg_connected(self, leg: Leg) -> None:
        """A side stands."""
        assert leg.transport is not None
        if leg is self.client:
            self._on_client_connected(leg.transport)
        elif self.client.is_lost:
            leg.reset()
        else:
            self._splice(leg.transport)

    def _on_client_connected(self, transport: asyncio.Transport) -> None:
        facts = ConnectionFacts(
            tcp.socket_name(transport, "peername"), tcp.socket_name(transport, "sockname"), self._route.upstream.text
        )
        self.client.record(_OPEN, msgspec.json.encode(facts))
        if self._listener.grpc is None and not self._route.upstream.tls:
            self._start_dial(self._route.upstream)
            return
        self.client.forward = self._choose_upstream
        if not self._route.upstream.tls:  # over TLS the handshake says what the client will speak
            self._timer = self.context.loop.call_later(SILENT_CLIENT_SECONDS, self._start_dial, self._route.upstream)

    def _choose_upstream(self, data: bytes) -> None:
        self._held_data.append(data)
        begin = b"".join(self._held_data)[: len(PREFACE)]
        if begin == PREFACE:
            self._start_dial(self._listener.grpc or self._route.upstream, HTTP2)
        elif not PREFACE.startswith(begin):
            self._start_dial(self._route.upstream)

    def _hold_client_data(self, data: bytes) -> None:
        # The transport ignores a pause in connection_made (uvloop, CPython 3.11), so something always may come.
        self._held_data.append(data)
        self.client.pause()

    def _start_dial(self, upstream: Upstream, protocol: str = HTTP1) -> None:
        self._cancel_timer()
        self._upstream = upstream
        self.client.forward = self._hold_client_data
        if self._held_data:
            self.client.pause()
        self._dial_task = self.context.loop.create_task(self._try_dial(upstream, protocol))

    async def _try_dial(self, upstream: Upstream, protocol: str) -> None:
        try:
            await dial(upstream, lambda: self.agent, tls=self.context.tls, protocol=protocol)
        except DialError as error:
            if self.agent.transport is None:
                if upstream.tls:
                    self.context.show_note(
                        ConsoleNote(f"no connection to {upstream.text}: {error}", error.hint, loud=True)
                    )
                self._refuse_client(str(error))

    def _splice(self, agent: asyncio.Transport) -> None:
        facts = DialFacts(self._upstream.address, peer=tcp.socket_name(agent, "peername"))
        self.client.record(_DIALED, msgspec.json.encode(facts))
        assert self.client.transport is not None
        self._edit_plan = self._listener.plan_edits(self._upstream, tcp.socket_name(self.client.transport, "sockname"))
        self.client.forward, self.agent.forward = self._forward_first_data, self.client.transport.write
        if self._held_data:
            data = b"".join(self._held_data)
            self._held_data.clear()
            self.record_edits(self.client.forward(data))
        if self.client.fin_received:
            self._pass_eof(self.client)
        elif not self.agent.is_full:
            self.client.resume()

    def _forward_first_data(self, data: bytes) -> list[EditFact] | None:
        """The client's first bytes tell its protocol. Held are less than a preface, and only where something may be
        changed."""
        begin = self._first_bytes + data
        if self._edit_plan is not None and len(begin) < len(PREFACE) and PREFACE.startswith(begin):
            self._first_bytes = begin
            return None
        self._first_bytes = b""
        assert self.agent.transport is not None
        assert self.client.transport is not None
        http2 = begin.startswith(PREFACE)
        self.client.forward, self.agent.forward = plain = self.agent.transport.write, self.client.transport.write
        if self._edit_plan is not None:
            guarded, loop, work = (self.agent.write, self.client.write), self.context.loop, self.context.work
            editor = make_editor(http2, self._edit_plan)
            self._edit_line = EditLine(editor, loop, work, plain, guarded, self.record_edits, self._delay)
            self.client.forward, self.agent.forward = (
                self._edit_line.forward_to_agent,
                self._edit_line.forward_to_client,
            )
        if http2 and not self.agent.tls and not self.agent.received_bytes:
            self._unverified_data = bytearray()
            to_agent, to_client = self.client.forward, self.agent.forward
            self.client.forward = partial(self._forward_unverified, to_agent)
            self.agent.forward = partial(self._verify_http2, to_agent, to_client)
        return self.client.forward(begin)

    def record_edits(self, facts: list[EditFact] | None) -> None:
        """An editor changed something, or wanted to."""
        for fact in facts or ():
            leg = self.client if fact.direction is Direction.TO_AGENT else self.agent
            if (data := encode_edit_record(fact)) is not None:
                leg.record(_EDIT, data)
            if (note := note_for_edit(fact)) is not None:
                self.context.show_note(note)
        if self._edit_line is not None and not self._edit_line.is_active:
            line, self._edit_line = self._edit_line, None
            self._forward_unedited()
            line.finish()

    def _delay(self, direction: Direction, delayed: bool) -> None:
        """While received bytes wait to be edited no more are read; what their sender did after them follows them."""
        side = self.client if direction is Direction.TO_AGENT else self.agent
        side.delayed = delayed
        if delayed:
            side.pause()
            return
        if side.fin_received:
            self._pass_eof(side)
        if side.is_lost:
            self.on_leg_lost(side)
        elif not self.other_leg(side).is_full:
            side.resume()

    # An upstream that does not speak HTTP/2 shows it with its first byte, before the client has sent a request.

    def _forward_unverified(self, forward: Forward, data: bytes) -> list[EditFact] | None:
        if self._unverified_data is not None:
            self._unverified_data += data
            if len(self._unverified_data) > MAX_BUFFERED:
                self._unverified_data = None
        return forward(data)

    def _verify_http2(self, to_agent: Forward, to_client: Forward, data: bytes) -> list[EditFact] | None:
        client_data, self._unverified_data = self._unverified_data, None
        if data[0] and client_data is not None:  # SETTINGS comes first, and is never so long
            self._drop_agent(client_data, data)
            return None
        self.client.forward, self.agent.forward = to_agent, to_client
        return to_client(data)

    def _drop_agent(self, client_data: bytearray, answer: bytes) -> None:
        self._stop_editing()
        self.agent.stop_recording()
        self.agent.forward = _discard_data
        self.agent.close()
        self.agent = Leg(self, Direction.TO_CLIENT, _discard_data)
        self._held_data = [bytes(client_data)]
        line = answer.partition(b"\n")[0][:60].decode("ascii", "backslashreplace").strip()
        hint = "if the agent has another port for gRPC, name it with --upstream-grpc"
        self._refuse_client(f"it does not speak HTTP/2 without TLS (h2c), it answers {line!r}; {hint}")

    # End: what one side does, the other side sees.

    def on_fin(self, leg: Leg) -> None:
        """The peer of `leg` sent FIN."""
        if leg is not self.client and leg is not self.agent:
            return  # left behind by a refusal
        other = self.other_leg(leg)
        if self._dial_task is None:  # still choosing: it will say nothing more
            self._start_dial(self._route.upstream)
        elif self._refusal_reason:
            self._answer_refused_client()
            self.client.close()
        elif other.transport is not None:
            self._pass_eof(leg)

    def _pass_eof(self, leg: Leg) -> None:
        if leg.delayed:
            return
        other = self.other_leg(leg)
        self._flush_held_data(leg)
        other.write_eof()
        if other.fin_received:
            if not other.delayed:
                self.close()
        elif other.tls:
            self._close_when_answered(self.context.loop.time() + HALF_CLOSE_SECONDS)

    def _flush_held_data(self, leg: Leg) -> None:
        """The peer of `leg` sends no more: what is held of it goes on."""
        if leg is self.client and self._first_bytes:
            begin, self._first_bytes = self._first_bytes, b""
            self.agent.write(begin)
        if self._edit_line is not None:
            self.record_edits(self._edit_line.eof(leg.direction))

    def _close_when_answered(self, deadline: float) -> None:
        """A client that sent FIN mostly has closed. Over TLS that cannot be passed on alone, so the upstream is closed
        when it spoke last, or has had its time to answer."""
        if self.agent.is_lost:
            return
        now = self.context.loop.time()
        quiet = self.quiet_since
        if now >= deadline or (quiet is not None and self.context.clock() - quiet >= QUIET_AFTER_ANSWER_NS):
            self.close()
        else:
            self.context.loop.call_later(HALF_CLOSE_POLL_SECONDS, self._close_when_answered, deadline)

    def on_leg_lost(self, leg: Leg) -> None:
        """A connection is no more."""
        if leg is not self.client and leg is not self.agent:
            return  # left behind by a refusal
        self._cancel_timer()
        other = self.other_leg(leg)
        other.forward = _discard_data
        if leg.delayed and other.is_alive:
            other.pause()
            return
        self._flush_held_data(leg)
        leg.forward = _discard_data
        if self._dial_task is not None and self.agent.transport is None:
            self._dial_task.cancel()
        if other.transport is None or other.is_lost:
            self._finish_connection()
        elif leg.broken:
            other.pause()
            self._reset_when_sent(other, self.context.loop.time() + FLUSH_SECONDS)
        elif not other.transport.is_closing():
            other.close()

    def _reset_when_sent(self, leg: Leg, deadline: float) -> None:
        """RST makes the kernel forget what it has not sent, so it waits until the peer has it all, if it takes it."""
        if leg.is_lost or leg.transport is None:
            return
        loop = self.context.loop
        if loop.time() < deadline and tcp.unsent_bytes(leg.transport):
            loop.call_later(FLUSH_POLL_SECONDS, self._reset_when_sent, leg, deadline)
        else:
            leg.reset()

    def _finish_connection(self) -> None:
        if not self._is_finished:
            self._is_finished = True
            self._stop_editing()
            self.client.record(_CLOSED)
            self.context.on_closed(self)

    def _stop_editing(self) -> None:
        if self._edit_line is not None:
            self._edit_line.stop()
            self._edit_line = None
            self.client.delayed = self.agent.delayed = False

    def _forward_unedited(self) -> None:
        if self.client.forward is not _discard_data and self.agent.transport is not None:
            self.client.forward = self.agent.transport.write
        if self.agent.forward is not _discard_data and self.client.transport is not None:
            self.agent.forward = self.client.transport.write

    # No upstream: say so in the client's own words.

    def _refuse_client(self, reason: str) -> None:
        self._refusal_reason = reason
        self.client.record(_DIALED, msgspec.json.encode(DialFacts(self._upstream.address, error=reason)))
        self.client.forward = self._hold_refused_data
        self._timer = self.context.loop.call_later(REFUSAL_SECONDS, self.client.close)
        self._answer_refused_client()
        if self.client.fin_received:
            self.client.close()
        self.client.resume()

    def _hold_refused_data(self, data: bytes) -> None:
        self._held_data.append(data)
        self.context.loop.call_soon(self._answer_refused_client)  # so that the client's bytes are captured before ours

    def _answer_refused_client(self) -> None:
        from a2a_proxy.relay.refusal import make_refusal

        data = b"".join(self._held_data)
        if not self.client.is_alive or not data:
            return
        if self._refusal is None:
            self._refusal = make_refusal(data, self._upstream.address, self._refusal_reason)
        if self._refusal is None:
            self._held_data = [data]
            return
        self._held_data.clear()
        self._write_refusal(self._refusal.feed(data))
        if self._refusal.is_done:
            self._close_refused_client()

    def _write_refusal(self, data: bytes) -> None:
        if data and self.client.transport is not None:
            self.client.transport.write(data)
            self.agent.record(_OURS, data)

    def _close_refused_client(self) -> None:
        """A client that still sends would lose the answer to a RST: it gets a FIN, and a moment."""
        self._cancel_timer()
        self.client.forward = _discard_data
        self.client.write_eof()
        self._timer = self.context.loop.call_later(LINGER_SECONDS, self.client.close)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _ignore_record(kind: ChunkKind, direction: Direction, connection: int, at: int, data: bytes) -> None:
    """For `Leg.stop_recording`."""


def _discard_data(_: bytes) -> None:
    """Where bytes go that nobody is left to read."""
