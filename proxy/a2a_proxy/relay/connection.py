"""One relayed connection: the client leg and the agent leg. Bytes are forwarded first and captured
second.

Parses nothing, except that it checks whether the client's bytes begin with the HTTP/2 preface, with
a TLS handshake or with a request for a forward proxy, and whether those of an agent that sends
first may be HTTP/2. Where traffic is edited, an editor (`edits`) is between the two legs; the
captured copy still holds the bytes that each peer sent.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, cast

import msgspec

from a2a_proxy.http import PREFACE
from a2a_proxy.model.wire import (
    ChunkKind,
    ClientProcess,
    ConnectionFacts,
    DialFacts,
    Direction,
    PassedFacts,
    TlsFacts,
)
from a2a_proxy.relay import tcp
from a2a_proxy.relay.clock import Clock
from a2a_proxy.relay.connection_editing import (
    ConnectionEditing,
    WorkQueue,
    Write,
    encode_edit_record,
    make_editor,
    note_for_edit,
)
from a2a_proxy.relay.dial import DialError, IsRefused, dial_upstream
from a2a_proxy.relay.early_upstream import EarlyUpstream
from a2a_proxy.relay.edits.edit import ConsoleNote, EditFact, Editor, EditPlan
from a2a_proxy.relay.held_bytes import HeldBytes
from a2a_proxy.relay.listener_state import ListenerState, ShowNote
from a2a_proxy.relay.problem import unreachable
from a2a_proxy.relay.refusal_responder import RefusalResponder
from a2a_proxy.relay.route import Upstream
from a2a_proxy.relay.tls import (
    HTTP1,
    HTTP2,
    PASS_HINT,
    Tls,
    describe_upstream,
    explain_handshake_error,
)
from a2a_proxy.wire.detect import TLS_BYTE, ProtocolKind

if TYPE_CHECKING:
    from a2a_proxy.relay.upstream_proxy import UpstreamProxy

SILENT_CLIENT_SECONDS = 1.0
"""Seconds that a client may send nothing before the upstream is chosen without its first bytes, or
before it gets the first bytes of the agent."""
FLUSH_SECONDS = 1.0
"""Seconds that bytes sent before a reset may take to be delivered before the reset is passed on."""
FLUSH_POLL_SECONDS = 0.002
REFUSAL_SECONDS = 5.0
"""Seconds that a client may take to show which protocol it speaks, and to send the body of its
request, if the upstream cannot be reached."""
LINGER_SECONDS = 1.0
"""Seconds that a refused client may take to read the response and close."""
MAX_BUFFERED = 128 * 1024
"""Bytes of a client that are kept until the agent has sent the first ones, and bytes of an agent
that are held until its client sends the first ones."""
LARGE_READ = 64 * 1024
"""Bytes of a read that count as work, because they take as long as many messages: uvloop reads up
to 32 times 256 kB from one peer in one turn of the event loop."""
READ_SHIFT = 8
"""Such a read costs one unit of work for each 2 ** READ_SHIFT bytes."""
HANDSHAKE_FAILED = "TLS handshake failed: "
"""How the reason of a connection begins that ended in its TLS handshake."""

_PROXY_REQUEST = re.compile(rb"CONNECT |[A-Z]{3,10} https?://")
"""The beginning of a request that only a forward proxy can answer (RFC 9112, 3.2)."""

_SETTINGS_HEAD = b"\x04\0\0\0\0\0"
"""Type, flags and stream of the first frame of an HTTP/2 server. Its length, before them, is below
65,536 bytes."""

_OPEN, _DIALED, _DATA, _EOF = ChunkKind.OPEN, ChunkKind.DIALED, ChunkKind.DATA, ChunkKind.EOF
_RESET, _CLOSED, _OURS, _EDIT = ChunkKind.RESET, ChunkKind.CLOSED, ChunkKind.OURS, ChunkKind.EDIT
_PASSED = ChunkKind.PASSED
_CUT = b"TLS ended by the agent without close_notify"

Append = Callable[[ChunkKind, Direction, int, int, bytes], None]
Forward = Callable[[bytes], list[EditFact] | None]
"""Forwards bytes and returns the edits made in them."""


class RelayContext(msgspec.Struct, frozen=True):
    """Objects shared by all connections of a relay."""

    loop: asyncio.AbstractEventLoop
    work: WorkQueue
    held: HeldBytes
    append: Append
    clock: Clock
    on_closed: Callable[[ProxyConnection], None]
    """Called once for each connection when both of its legs are closed."""
    tls: Tls
    show_note: ShowNote
    is_own: IsRefused
    """Whether this process listens on one of the addresses, with this port."""
    process_of: Callable[[str], ClientProcess | None]
    """Returns the process of the client at an address (`host:port`), or None."""
    proxy: UpstreamProxy | None = None
    """Another proxy through which upstreams are dialled."""


class Leg(asyncio.Protocol):
    """One leg of a connection: bytes received from its peer are forwarded to the other leg."""

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
        "is_cut",
        "is_full",
        "is_lost",
        "is_reading",
        "last_received_at",
        "received_bytes",
        "rests",
        "tls",
        "transport",
    )

    def __init__(self, connection: ProxyConnection, direction: Direction, forward: Forward) -> None:
        self.connection = connection
        self.direction = direction
        self.forward = forward
        self.transport: asyncio.Transport | None = None
        self.received_bytes = 0
        """Bytes received from this peer."""
        self.last_received_at = 0
        """Time of the peer's latest bytes, in ns."""
        self.fin_received = False
        """Whether the peer sent FIN."""
        self.is_lost = False
        """Whether the leg is closed."""
        self.broken = False
        """Whether the leg was closed by an error and not by the relay."""
        self.delayed = False
        """Whether bytes of this peer wait for a later turn of the event loop to be edited."""
        self.is_full = False
        """Whether the peer reads more slowly than bytes are sent to it."""
        self.is_reading = True
        """Whether bytes of the peer are wanted."""
        self.rests = False
        """Whether they are not only because the work of this turn of the event loop is spent."""
        self.fin_sent = False
        """Whether FIN was sent to the peer."""
        self.tls = False
        """Whether this leg uses TLS."""
        self.is_cut = False
        """Whether the peer ended TLS without close_notify, so that its last bytes may be
        missing."""
        self._connection_number = connection.number
        self._append = connection.context.append
        self._clock = connection.context.clock

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the leg: the connection to the peer is established."""
        self.transport = cast(
            asyncio.Transport, transport
        )  # uvloop's transport has the same interface
        self.tls = transport.get_extra_info("ssl_object") is not None
        tcp.tune_socket(self.transport)
        self.connection.on_leg_connected(self)

    def data_received(self, data: bytes) -> None:
        """Forward bytes, then capture them. The time is taken first: the receiver may act before
        this process runs again."""
        self.last_received_at = at = self._clock()
        edits, size = self.forward(data), len(data)
        self.received_bytes += size
        if edits:
            self.connection.record_faults(edits, at)
        self._append(_DATA, self.direction, self._connection_number, at, data)
        if edits:
            self.connection.record_edits(edits)
        if size >= LARGE_READ:
            self._account_for_read(size)

    def _account_for_read(self, size: int) -> None:
        """Read no more in this turn of the event loop if its work is spent."""
        work = self.connection.context.work
        work.spend(size >> READ_SHIFT)
        if work.left <= 0 and self.is_reading:
            self.pause_reading()
            self.rests = True
            work.add(self._end_rest)

    def _end_rest(self) -> int:
        if self.rests:
            self.resume_reading()
        return 0

    def eof_received(self) -> bool:
        """Pass on the peer's FIN; the other direction stays open."""
        if not self.fin_received:
            self.fin_received = True
            self.is_cut = tcp.is_cut(self.transport)
            if self.is_cut and self.direction is Direction.TO_CLIENT:
                self.record_chunk(_RESET, _CUT)
            else:  # many clients send no close_notify, and no request ends with the connection
                self.record_chunk(_EOF)
            self.connection.on_fin(self)
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Handle the end of the leg: closed by the relay (`exc` is None) or broken."""
        self.is_lost, self.broken = True, exc is not None
        if exc is not None:
            assert self.transport is not None
            rest = b"" if self.fin_received or self.tls else tcp.read_unread(self.transport)
            if rest:
                self.data_received(rest)
            reason = (
                self.connection.on_tls_error(self, exc) if isinstance(exc, ssl.SSLError) else ""
            )
            self.record_chunk(_RESET, (reason or str(exc)).encode(errors="replace"))
        self.connection.on_leg_lost(self)

    def pause_writing(self) -> None:
        """Stop reading from the other peer, because this one reads slowly."""
        self.is_full = True
        self.connection.other_leg(self).pause_reading()

    def resume_writing(self) -> None:
        """Read from the other peer again, because this one has caught up."""
        self.is_full = False
        self.connection.other_leg(self).resume_reading()

    def pause_reading(self) -> None:
        """Stop reading from this peer."""
        self.is_reading = self.rests = False
        if self.is_alive:
            self.transport.pause_reading()  # type: ignore[union-attr]

    def resume_reading(self) -> None:
        """Read from this peer again unless its bytes still wait to be edited. Not after FIN,
        because uvloop would report the FIN twice."""
        if self.is_alive and not self.fin_received and not self.delayed:
            self.is_reading, self.rests = True, False
            self.transport.resume_reading()  # type: ignore[union-attr]

    @property
    def is_alive(self) -> bool:
        """Whether the leg has a transport that accepts bytes."""
        return self.transport is not None and not self.transport.is_closing()

    @property
    def buffered_bytes(self) -> int:
        """Bytes written to this peer that the kernel has not taken yet."""
        return self.transport.get_write_buffer_size() if self.is_alive else 0  # type: ignore[union-attr]

    def record_chunk(self, kind: ChunkKind, data: bytes = b"") -> None:
        """Append a journal record of this direction."""
        self._append(kind, self.direction, self._connection_number, self._clock(), data)

    def write(self, data: bytes) -> None:
        """Send bytes to the peer unless the leg is closed."""
        if self.is_alive and not self.fin_sent:
            self.transport.write(data)  # type: ignore[union-attr]

    def write_eof(self, *, cut: bool = False) -> None:
        """Send FIN after the buffered bytes; with `cut` a TLS peer reads that bytes may be
        missing."""
        if self.is_alive:
            self.fin_sent = True
            tcp.write_eof(self.transport, cut=cut)  # type: ignore[arg-type]

    def leave_unread(self) -> None:
        """Append no bytes of this peer to the journal."""
        append = self._append

        def append_others(
            kind: ChunkKind, direction: Direction, connection: int, at: int, data: bytes
        ) -> None:
            if kind is not _DATA:
                append(kind, direction, connection, at, data)

        self._append = append_others

    def stop_recording(self) -> None:
        """Append no more records of this peer."""
        self._append = _ignore_record

    def close(self) -> None:
        """Close the leg after its buffered bytes are sent."""
        if self.transport is not None:
            self.transport.close()

    def abort(self) -> None:
        """Close the leg with RST at once."""
        if self.transport is not None and not self.is_lost:
            tcp.reset_connection(self.transport)


class ProxyConnection:
    """A client connection and the upstream connection opened for it."""

    def __init__(
        self,
        number: int,
        listener: ListenerState,
        context: RelayContext,
        early: EarlyUpstream | None = None,
    ) -> None:
        """Create the connection. It dials an upstream after the client's leg is established, unless
        `early` is there: an upstream that was dialled before.
        """
        self.number = number
        self.context = context
        self._listener = listener
        self._route = listener.route
        self._early = early
        self.client_tls: TlsFacts | None = None
        """The TLS handshake with the client, set before its leg is connected; None without TLS."""
        self._upstream = listener.route.upstream if early is None else early.upstream
        self.client = Leg(self, Direction.TO_AGENT, self._hold_client_data)
        self.agent = Leg(self, Direction.TO_CLIENT, _discard_data)
        self._held_data: list[bytes] = []
        self._dial_task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._refusal: RefusalResponder | None = None
        self._refusal_reason = ""
        self._refused_request = b""
        self._is_finished = False
        self._unread_kind: ProtocolKind | None = None
        """What the connection carries if its bytes are not recorded."""
        self._edit_plan: EditPlan | None = None
        self._editing: ConnectionEditing | None = None
        self._is_refused = False
        """Whether an editor has refused bytes of a peer. Those that get its answer may refuse too,
        which is no news."""
        self._first_bytes = b""
        """The client's first bytes while they do not yet identify its protocol."""
        self._first_agent_data = bytearray()
        """The beginning of HTTP/2 that the agent sent before the client, if an editor must see
        it."""
        self._unanswered_data: bytearray | None = bytearray()
        """All bytes that were forwarded to the agent while it has sent none; None if they are not
        kept."""
        self._later_forwards: tuple[Forward, Forward] = (_discard_data, _discard_data)
        """How bytes of the client and of the agent are forwarded after the agent's first ones, if
        the client's are kept until then."""

    def leave_unread(self, kind: ProtocolKind) -> None:
        """Record the number of bytes instead of the bytes. Must be called before the client's leg
        is established."""
        self._unread_kind = kind
        self.client.leave_unread()
        self.agent.leave_unread()

    def refuse(self, reason: str, request: bytes = b"") -> None:
        """Refuse the client instead of dialling. Must be called before the client's leg is
        established. `request` are bytes of the client that were taken from its socket."""
        self._refusal_reason, self._refused_request = reason, request

    def other_leg(self, leg: Leg) -> Leg:
        """Return the opposite leg."""
        return self.agent if leg is self.client else self.client

    @property
    def quiet_since(self) -> int | None:
        """Time in ns since when the connection is idle with the agent's bytes as the latest, or
        None while the client waits for a response."""
        return (
            self.agent.last_received_at
            if self.agent.last_received_at >= self.client.last_received_at
            else None
        )

    def close(self) -> None:
        """Close both legs after their buffered bytes are sent."""
        self.client.close()
        self.agent.close()

    def abort(self) -> None:
        """Reset both legs at once."""
        self.client.abort()
        self.agent.abort()

    # Start: choose an upstream, dial it, and hold the client's bytes meanwhile.

    def on_leg_connected(self, leg: Leg) -> None:
        """Continue after one leg is established: choose the upstream, or join the two legs."""
        assert leg.transport is not None
        if leg is self.client:
            self._on_client_connected(leg.transport)
        elif self.client.is_lost:
            leg.abort()
        else:
            self._join_agent(leg.transport)

    def _on_client_connected(self, transport: asyncio.Transport) -> None:
        facts = self._facts(
            tcp.socket_name(transport, "peername"), tcp.socket_name(transport, "sockname")
        )
        self.client.record_chunk(_OPEN, msgspec.json.encode(facts))
        if self._refusal_reason:
            self._refuse_client(self._refusal_reason)
            if self._refused_request:
                self.client.data_received(self._refused_request)
            return
        if self._early is not None:
            self._early.hand_over(self.agent)
            if not self.client.is_full:
                self.agent.resume_reading()
            return
        if self._listener.grpc is None and not self._route.upstream.tls:
            self._start_dial(self._route.upstream)
            return
        self.client.forward = self._choose_upstream
        if (
            not self._route.upstream.tls
        ):  # over TLS the handshake depends on the protocol that the client speaks
            self._timer = self.context.loop.call_later(
                SILENT_CLIENT_SECONDS, self._start_dial, self._route.upstream
            )

    def _facts(self, client: str, listen: str) -> ConnectionFacts:
        return ConnectionFacts(
            client,
            listen,
            self._route.upstream.text,
            tls=self.client_tls,
            forwarded=self._listener.forwarded,
            deliverer=self._listener.deliverer,
            client_process=self.context.process_of(client),
        )

    def _choose_upstream(self, data: bytes) -> None:
        self._held_data.append(data)
        begin = b"".join(self._held_data)[: len(PREFACE)]
        if begin == PREFACE:
            self._start_dial(self._listener.grpc or self._route.upstream, HTTP2)
        elif begin[0] == TLS_BYTE and self._route.upstream.tls and not self.client.tls:
            self._refuse_tls_client()
        elif not PREFACE.startswith(begin):
            self._start_dial(self._route.upstream)

    def _refuse_tls_client(self) -> None:
        """Refuse a client that speaks TLS where only plain text is taken. An upstream with TLS of
        its own would wait for bytes that it can read."""
        assert self.client.transport is not None
        where = tcp.socket_name(self.client.transport, "sockname")
        self.context.show_note(
            ConsoleNote(
                f"a client speaks TLS at {where}, which takes plain text only",
                "to take TLS there: --tls; or let the client use http://",
                loud=True,
            )
        )
        self._refuse_client("the client speaks TLS, and the proxy takes plain text only")

    def _hold_client_data(self, data: bytes) -> None:
        # The transport ignores a pause in connection_made (uvloop, CPython 3.11), so bytes may
        # always arrive.
        self._held_data.append(data)
        self.client.pause_reading()

    def _start_dial(self, upstream: Upstream, protocol: str = HTTP1) -> None:
        self._cancel_timer()
        self._upstream = upstream
        self.client.forward = self._hold_client_data
        if self._held_data:
            self.client.pause_reading()
        self._dial_task = self.context.loop.create_task(self._try_dial(upstream, protocol))

    async def _try_dial(self, upstream: Upstream, protocol: str) -> None:
        try:
            await dial_upstream(
                upstream,
                lambda: self.agent,
                tls=self.context.tls,
                protocols=(protocol,),
                is_refused=self.context.is_own
                if self._listener.forwarded or self.context.proxy
                else None,
                proxy=self.context.proxy,
            )
        except DialError as error:
            if self.agent.transport is None:
                if upstream.tls or error.hint:
                    self.context.show_note(
                        ConsoleNote(
                            f"no connection to {upstream.text}: {error}", error.hint, loud=True
                        )
                    )
                self._refuse_client(str(error))

    def _join_agent(self, agent: asyncio.Transport) -> None:
        facts = DialFacts(
            self._upstream.address,
            peer=tcp.socket_name(agent, "peername"),
            tls=describe_upstream(agent.get_extra_info("ssl_object"), self._upstream.host)
            if self.agent.tls
            else msgspec.UNSET,
        )
        self.client.record_chunk(_DIALED, msgspec.json.encode(facts))
        assert self.client.transport is not None
        listen = tcp.socket_name(self.client.transport, "sockname")
        self._edit_plan = self._listener.plan_edits(
            self._upstream, listen, self.client.transport, agent, tls=self.client.tls
        )
        self.client.forward, self.agent.forward = (
            self._forward_first_data,
            self.client.transport.write,
        )
        if self._edit_plan is not None:
            self.agent.forward = self._hold_agent_data
        if self._held_data:
            data = b"".join(self._held_data)
            self._held_data.clear()
            self._record_late_edits(self.client.forward(data) or [])
        if self.client.fin_received:
            self._pass_eof(self.client)
        elif not self.agent.is_full:
            self.client.resume_reading()

    def _forward_first_data(self, data: bytes) -> list[EditFact] | None:
        """Forward the client's first bytes, which identify its protocol. Fewer bytes than a preface
        are held, and only if the connection may be edited."""
        begin = self._first_bytes + data
        if _PROXY_REQUEST.match(begin) and not self._listener.forwarded:
            self._tell_proxy_client(begin)
        if self._edit_plan is not None and len(begin) < len(PREFACE) and PREFACE.startswith(begin):
            self._first_bytes = begin
            return None
        self._first_bytes = b""
        assert self.agent.transport is not None
        assert self.client.transport is not None
        http2 = begin.startswith(PREFACE)
        self.client.forward, self.agent.forward = plain = (
            self.agent.transport.write,
            self.client.transport.write,
        )
        if self._edit_plan is not None:
            self._editing = self._make_editing(http2, self._edit_plan, plain)
            self.client.forward, self.agent.forward = (
                self._editing.forward_to_agent,
                self._editing.forward_to_client,
            )
        if (http2 or self.agent.tls) and not self.agent.received_bytes:
            self._later_forwards = self.client.forward, self.agent.forward
            self.client.forward = self._forward_unanswered
            self.agent.forward = partial(self._forward_first_answer, http2 and not self.agent.tls)
        else:
            self._unanswered_data = None
        if self._first_agent_data:  # SETTINGS, which the editor must see too
            self._cancel_timer()
            self.record_edits(self.agent.forward(bytes(self._first_agent_data)))
            self._first_agent_data.clear()
            if not self.client.is_full:
                self.agent.resume_reading()
        return self.client.forward(begin)

    def _hold_agent_data(self, data: bytes) -> None:
        """Hold the first bytes of an agent that sends before the client while they may be HTTP/2,
        for a moment: its client begins without them. Other bytes are what the client waits for."""
        if not self._first_agent_data:
            self._timer = self.context.loop.call_later(
                SILENT_CLIENT_SECONDS, self._release_agent_data
            )
        self._first_agent_data += data
        held = self._first_agent_data
        if held[0] or not _SETTINGS_HEAD.startswith(held[3 : 3 + len(_SETTINGS_HEAD)]):
            self._release_agent_data()
        elif len(held) > MAX_BUFFERED:
            self.agent.pause_reading()

    def _release_agent_data(self) -> None:
        """Forward what the agent sent before the client, and what it sends until the client
        sends."""
        self._cancel_timer()
        held = bytes(self._first_agent_data)
        self._first_agent_data.clear()
        self.agent.forward = self.client.write
        if held:
            self.client.write(held)
            if not self.client.is_full:
                self.agent.resume_reading()

    def _make_editing(
        self, http2: bool, plan: EditPlan, plain: tuple[Write, Write]
    ) -> ConnectionEditing:
        context, guarded = self.context, (self.agent.write, self.client.write)
        editor: Editor
        on_edits: Callable[[list[EditFact]], None] = self.record_edits
        if plan.faults is None:
            editor = make_editor(http2, plan)
        else:
            from a2a_proxy.relay.fault_editing import make_fault_editor

            editor, plain, on_edits = (
                make_fault_editor(http2, plan, plan.faults),
                guarded,
                self._record_late_edits,
            )
        delay, loop = self._delay_reading, context.loop
        return ConnectionEditing(
            editor, loop, context.work, context.held, plain, guarded, on_edits, delay
        )

    def _tell_proxy_client(self, begin: bytes) -> None:
        """Tell the user that a client takes a listener for a forward proxy; the agent answers
        it."""
        assert self.client.transport is not None
        where = tcp.socket_name(self.client.transport, "sockname")
        method = begin.partition(b" ")[0].decode("ascii")
        self.context.show_note(
            ConsoleNote(
                f"a client uses {where} as its HTTP proxy ({method}), but that port leads to one "
                f"agent",
                "for clients with HTTP_PROXY: --forward :PORT; else let the client call that port "
                "itself",
                loud=True,
            )
        )

    def record_faults(self, facts: list[EditFact], at: int) -> None:
        """Append records of faults that concern bytes received at `at` (ns). They must precede
        these bytes in the journal: the recorder marks events while it decodes them."""
        for fact in facts:
            if fact.kind == "fault" and (data := encode_edit_record(fact)) is not None:
                self.context.append(_EDIT, fact.direction, self.number, at, data)

    def _record_late_edits(self, facts: list[EditFact]) -> None:
        """Record edits of bytes that are in the journal already."""
        self.record_faults(facts, self.context.clock())
        self.record_edits(facts)

    def record_edits(self, facts: list[EditFact] | None) -> None:
        """Append EDIT records and show notes for an editor's results, and remove an editor that has
        ended. Faults of events are already recorded."""
        for fact in facts or ():
            if fact.kind == "fault":
                continue
            if fact.kind == "answer":
                self.agent.record_chunk(_OURS, fact.detail["data"])
                continue
            leg = self.client if fact.direction is Direction.TO_AGENT else self.agent
            if (data := encode_edit_record(fact)) is not None:
                leg.record_chunk(_EDIT, data)
            if not self._is_refused and (note := note_for_edit(fact)) is not None:
                self.context.show_note(note)
                self._is_refused = fact.kind == "ended"
            if fact.kind == "fault-end" and "reset" in fact.detail:
                self._end_by_fault(reset=fact.detail["reset"])
                return
        if self._editing is not None and not self._editing.is_active:
            editing, self._editing = self._editing, None
            self._forward_unedited()
            editing.finish()

    def _end_by_fault(self, *, reset: bool) -> None:
        """End the connection with the client because of a fault; that with the agent ends with
        it."""
        self._stop_editing()
        self.client.forward = self.agent.forward = _discard_data
        if reset:
            self._reset_when_sent(self.client, self.context.loop.time() + FLUSH_SECONDS)
        else:
            self.client.close()

    def _delay_reading(self, direction: Direction, delayed: bool) -> None:
        """Stop or resume reading from a sender. While its bytes wait to be edited, no more are
        read; its FIN or close is passed on after them."""
        side = self.client if direction is Direction.TO_AGENT else self.agent
        side.delayed = delayed
        if delayed:
            side.pause_reading()
            return
        if side.fin_received:
            self._pass_eof(side)
        if side.is_lost:
            self.on_leg_lost(side)
        elif not self.other_leg(side).is_full:
            side.resume_reading()

    # An upstream that does not speak HTTP/2 shows this with its first byte, before the client has
    # sent a request. One that refuses TLS 1.3 for want of a certificate may do so after the
    # client's request. Both clients get a response.

    def _forward_unanswered(self, data: bytes) -> list[EditFact] | None:
        if self._unanswered_data is not None:
            self._unanswered_data += data
            if len(self._unanswered_data) > MAX_BUFFERED:
                self._unanswered_data = None
        return self._later_forwards[0](data)

    def _forward_first_answer(self, must_be_http2: bool, data: bytes) -> list[EditFact] | None:
        if (
            must_be_http2 and data[0]
        ):  # SETTINGS must be first, and its length is below 65,536 bytes
            line = data.partition(b"\n")[0][:60].decode("ascii", "backslashreplace").strip()
            hint = "if the agent has another port for gRPC, name it with --upstream-grpc"
            if self._drop_agent(
                f"it does not speak HTTP/2 without TLS (h2c), its first line is {line!r}; {hint}"
            ):
                return None
        self._unanswered_data = None
        self.client.forward, self.agent.forward = self._later_forwards
        return self.agent.forward(data)

    def _drop_agent(self, reason: str) -> bool:
        """Refuse the client in place of an agent to which its bytes were forwarded. Return whether
        that is possible."""
        if self._unanswered_data is None or not self.client.is_alive:
            return False
        self._stop_editing()
        self.agent.stop_recording()
        self.agent.forward = _discard_data
        self.agent.close()
        self.agent = Leg(self, Direction.TO_CLIENT, _discard_data)
        self._held_data = [self._first_bytes + self._unanswered_data]
        self._first_bytes, self._unanswered_data = b"", None
        self._refuse_client(reason)
        return True

    # End: the end of one leg is passed on to the other.

    def on_fin(self, leg: Leg) -> None:
        """Handle the FIN sent by the peer of `leg`."""
        if leg is not self.client and leg is not self.agent:
            return  # the leg of an agent that was dropped for a refusal
        other = self.other_leg(leg)
        if self._refusal_reason:
            self._answer_refused_client()
            self._end_refusal()
        elif self._dial_task is None and self.agent.transport is None:
            self._start_dial(
                self._route.upstream
            )  # none is chosen yet, and the client sends nothing more
        elif other.transport is not None:
            self._pass_eof(leg)

    def _pass_eof(self, leg: Leg) -> None:
        other = self.other_leg(leg)
        if not leg.delayed:
            self._flush_held_data(leg)
        if leg.delayed:
            return
        other.write_eof(cut=leg.is_cut)
        if other.fin_received and not other.delayed:
            self.close()

    def _flush_held_data(self, leg: Leg) -> None:
        """Forward the held bytes of `leg`, because its peer sends no more. An agent's first bytes
        wait for the client's no longer."""
        if leg is self.client and self._first_bytes:
            begin, self._first_bytes = self._first_bytes, b""
            self.agent.write(begin)
        if self.agent.forward == self._hold_agent_data:
            self._release_agent_data()
        if self._editing is not None:
            self.record_edits(self._editing.feed_eof(leg.direction))

    def on_tls_error(self, leg: Leg, error: ssl.SSLError) -> str:
        """Tell the user and the client why an upstream refused TLS after the handshake, as for a
        missing certificate with TLS 1.3, and return the reason for the recording; empty for other
        errors."""
        if leg is not self.agent or leg.received_bytes:
            return ""
        reason = explain_handshake_error(error, self._upstream, ())
        text = f"no connection to {self._upstream.text}: {reason}"
        opened = f"{PASS_HINT}{self._upstream.host}" if self._early is not None else ""
        self.context.show_note(
            ConsoleNote(text, "; ".join(filter(None, (reason.hint, opened))), loud=True)
        )
        self._drop_agent(str(reason))
        return f"{HANDSHAKE_FAILED}{str(reason).removeprefix('the TLS handshake failed: ')}"

    def record_failed_handshake(self, client: str, listen: str, reason: str) -> None:
        """Record a client that connected from `client` to `listen` (both `host:port`), and whose
        TLS handshake failed. Such a connection has no legs."""
        self.client.record_chunk(_OPEN, msgspec.json.encode(self._facts(client, listen)))
        self.client.record_chunk(_RESET, f"{HANDSHAKE_FAILED}{reason}".encode(errors="replace"))
        self._finish_connection()

    def on_leg_lost(self, leg: Leg) -> None:
        """Handle a closed leg."""
        if leg is not self.client and leg is not self.agent:
            return  # the leg of an agent that was dropped for a refusal
        self._cancel_timer()
        other = self.other_leg(leg)
        other.forward = _discard_data
        if not leg.delayed:
            self._flush_held_data(leg)
        if leg.delayed and other.is_alive:
            other.pause_reading()
            return
        leg.forward = _discard_data
        if self._dial_task is not None and self.agent.transport is None:
            self._dial_task.cancel()
        if other.transport is None or other.is_lost:
            self._finish_connection()
        elif leg.broken:
            other.pause_reading()
            self._reset_when_sent(other, self.context.loop.time() + FLUSH_SECONDS)
        elif not other.transport.is_closing():
            other.close()

    def _reset_when_sent(self, leg: Leg, deadline: float) -> None:
        """Reset a leg once the peer has received all bytes, or at the deadline: RST makes the
        kernel discard unsent bytes."""
        if leg.is_lost or leg.transport is None:
            return
        loop = self.context.loop
        if loop.time() < deadline and tcp.unsent_bytes(leg.transport):
            loop.call_later(FLUSH_POLL_SECONDS, self._reset_when_sent, leg, deadline)
        else:
            leg.abort()

    def _finish_connection(self) -> None:
        if not self._is_finished:
            self._is_finished = True
            self._stop_editing()
            if self._unread_kind is not None:
                for leg in (self.client, self.agent):
                    facts = PassedFacts(leg.received_bytes, str(self._unread_kind))
                    leg.record_chunk(_PASSED, msgspec.json.encode(facts))
            self.client.record_chunk(_CLOSED)
            self.context.on_closed(self)

    def _stop_editing(self) -> None:
        if self._editing is not None:
            self._editing.stop()
            self._editing = None
            self.client.delayed = self.agent.delayed = False

    def _forward_unedited(self) -> None:
        assert self.agent.transport is not None
        assert self.client.transport is not None
        to_agent, to_client = self.agent.transport.write, self.client.transport.write
        if self._unanswered_data is not None:
            self._later_forwards = to_agent, to_client
            return
        if self.client.forward is not _discard_data:
            self.client.forward = to_agent
        if self.agent.forward is not _discard_data:
            self.agent.forward = to_client

    # No upstream: report this to the client in its own protocol.

    def _refuse_client(self, reason: str) -> None:
        self._refusal_reason = reason
        self.client.record_chunk(
            _DIALED, msgspec.json.encode(DialFacts(self._upstream.address, error=reason))
        )
        self.client.forward = self._hold_refused_data
        self._timer = self.context.loop.call_later(REFUSAL_SECONDS, self._end_refusal)
        self._answer_refused_client()
        if self.client.fin_received:
            self._end_refusal()
        self.client.resume_reading()

    def _hold_refused_data(self, data: bytes) -> None:
        self._held_data.append(data)
        self.context.loop.call_soon(
            self._answer_refused_client
        )  # the client's bytes are captured first

    def _answer_refused_client(self) -> None:
        from a2a_proxy.relay.refusal import make_refusal

        data = b"".join(self._held_data)
        if not self.client.is_alive or not data:
            return
        if self._refusal is None:
            self._refusal = make_refusal(
                data,
                unreachable(
                    self._upstream.address, self._refusal_reason, self._listener.upstream_label
                ),
            )
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
            self.agent.record_chunk(_OURS, data)

    def _end_refusal(self) -> None:
        """Answer a refused client whose request does not become complete, and close."""
        answer = b"" if self._refusal is None else self._refusal.finish()
        self._write_refusal(answer)
        if answer and not self.client.fin_received:
            self._close_refused_client()
        else:
            self.client.close()

    def _close_refused_client(self) -> None:
        """Close a refused client with FIN, and read from it for a moment: RST would make a client
        that still sends lose the response."""
        self._cancel_timer()
        self.client.forward = _discard_data
        self.client.write_eof()
        self._timer = self.context.loop.call_later(LINGER_SECONDS, self.client.close)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _ignore_record(
    kind: ChunkKind, direction: Direction, connection: int, at: int, data: bytes
) -> None:
    """Ignore a record (for `Leg.stop_recording`)."""


def _discard_data(_: bytes) -> None:
    """Discard bytes that have no receiver any more."""
