"""The interface of the pure core: captured chunks in, observations out.

The observer never raises because of a peer's bytes, does no I/O and never reads the clock. Saved
and restored at any chunk, it yields the same observations, so a recorder that died can be replaced
without loss or repetition.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from a2a_proxy.cards.verify import CardVerifier
from a2a_proxy.model.option import LiveMode
from a2a_proxy.model.saved_state import State
from a2a_proxy.model.values import (
    OPAQUE_COUNTERS,
    Binding,
    Changes,
    Connection,
    ConnectionTls,
    EventKind,
    Exchange,
    Finding,
    Frame,
    Observation,
    Severity,
    Task,
)
from a2a_proxy.model.wire import (
    Chunk,
    ChunkKind,
    ConnectionFacts,
    Control,
    Cut,
    DialFacts,
    Direction,
    ExitFacts,
    PassedFacts,
    TlsFacts,
    Undecodable,
    WireEvent,
)
from a2a_proxy.protocol.artifact_chunks import ArtifactChunk, find_only_chunk
from a2a_proxy.protocol.completeness import CaptureGaps, Gap, find_gaps, unread_reason
from a2a_proxy.protocol.conversation import (
    ConnectionConversation,
    ConnectionLink,
    SessionContext,
    open_conversation,
)
from a2a_proxy.protocol.event import decode_payload
from a2a_proxy.protocol.exchange import ExchangeState
from a2a_proxy.protocol.segments.tracker import SegmentsState, SegmentTracker
from a2a_proxy.protocol.status_summary import A2AMessage
from a2a_proxy.protocol.task import FollowedTask, TaskTracker
from a2a_proxy.redaction import Redactor, RedactorState
from a2a_proxy.redaction.metadata_only import withhold_payload
from a2a_proxy.rules.run.engine import Engine, EngineState, FrameOrEnd
from a2a_proxy.wire.connection import ConnectionDecoder
from a2a_proxy.wire.stdio import StdioDecoder

_OPEN, _DATA, _OURS, _TO_CLIENT = (
    ChunkKind.OPEN,
    ChunkKind.DATA,
    ChunkKind.OURS,
    Direction.TO_CLIENT,
)
_TLS_REASON, _HANDSHAKE_FAILED = b"TLS ", b"TLS handshake failed: "
"""How the texts of RESET records begin that name a reason of TLS."""
_INTERRUPTING_KINDS = frozenset({ChunkKind.EOF, ChunkKind.RESET, ChunkKind.LOST})
_CARD_EVENT, _ARTIFACT = EventKind.CARD, EventKind.ARTIFACT
"""Bound here because looking up `EventKind.CARD` for each frame costs 0.1 us (CPython 3.11)."""
_GROUP = 16
"""Frames that are delivered together: their payloads are searched for secrets in one pass."""
_OWN_ANSWER = -1
"""The place of a fault that made the proxy respond: it concerns the next frame of the proxy."""
DECODERS_LOST = "the state of the decoders was lost"
"""Why a connection is opaque of which only the recording is known."""
_CAPTURE_BEHIND = "the disk was too slow"
_PASSED_REASONS = {"tls": "TLS that --intercept does not open", "opaque": "neither HTTP nor TLS"}
"""Why the relay recorded only the number of the bytes, by `PassedFacts.kind`."""
_MAX_MARKS = 10_000
"""Faults of one connection whose events have not been decoded; the oldest is forgotten first."""


class _EditRecord(msgspec.Struct, frozen=True):
    """The members of an EDIT record that the observer uses."""

    kind: str = ""
    after: str = ""
    stream: int = 0
    offset: int = 0
    note: str = ""


class _ObservedConnection(State):
    """One connection: its decoders and the facts about the connection itself."""

    number: int
    opened: int
    facts: ConnectionFacts
    wire: ConnectionDecoder
    conversation: ConnectionConversation
    upstream_tls: TlsFacts | None = None
    dialed: int = 0
    peer: str = ""
    closed: int = 0
    how: str = ""
    bytes: list[int] = msgspec.field(default_factory=lambda: [0, 0])
    lost: int = 0
    kind: str = ""
    """The kind detected before the decoders were lost; empty if they were not lost."""
    counters: Counter[str] = msgspec.field(default_factory=Counter)
    """The counters of the lost decoders, and of bytes that the relay did not record."""
    unread_reason: str = ""
    """Why bytes of the connection are not decoded; empty if they are."""
    is_unread_by_choice: bool = False
    marks: list[tuple[int, str]] = []
    """Faults that concern events of the agent: a byte of the event, and the note for its frame."""

    def add_unread_reason(self, reason: str) -> None:
        """Keep the first reason why bytes of the connection are not decoded."""
        self.unread_reason = self.unread_reason or reason

    def mark_frame(self, frame: Frame) -> Frame:
        """Return a frame with the notes of the faults that concern it."""
        if frame.direction is Direction.TO_AGENT:
            return frame
        begin, end = (_OWN_ANSWER, _OWN_ANSWER + 1) if frame.ours else (frame.start, frame.end)
        notes = [note for place, note in self.marks if begin <= place < end]
        if not notes:
            return frame
        self.marks = [each for each in self.marks if not begin <= each[0] < end]
        return msgspec.structs.replace(frame, note="; ".join(filter(None, (frame.note, *notes))))

    @staticmethod
    def adopt_recorded(known: Connection, shared: SessionContext) -> _ObservedConnection:
        """Return a connection known only from the recording; it is opaque from here."""
        connection = _open_connection(known.id, known.opened, known.facts, shared)
        connection.dialed, connection.peer, connection.how, connection.lost = (
            known.dialed,
            known.peer,
            known.how,
            known.lost_bytes,
        )
        connection.bytes = [known.bytes_to_agent, known.bytes_to_client]
        connection.kind, connection.counters = known.kind or "opaque", Counter(known.counters)
        connection.unread_reason = DECODERS_LOST
        connection.upstream_tls = known.tls.upstream if known.tls is not None else None
        connection.wire.feed_loss(Direction.TO_AGENT, known.opened, [])
        return connection

    def snapshot(self) -> Connection:
        """Return the current facts about the connection."""
        return Connection(
            id=self.number,
            client=self.facts.client,
            listen=self.facts.listen,
            upstream=self.facts.upstream,
            opened=self.opened,
            kind=self.kind or self.wire.protocol,
            dialed=self.dialed,
            peer=self.peer,
            closed=self.closed,
            how=self.how,
            bytes_to_agent=self.bytes[Direction.TO_AGENT],
            bytes_to_client=self.bytes[Direction.TO_CLIENT],
            lost_bytes=self.lost,
            counters=dict(self.counters + Counter(self.wire.counters)),
            client_process=self.facts.client_process,
            tls=ConnectionTls(self.facts.tls, self.upstream_tls)
            if self.facts.tls or self.upstream_tls
            else None,
        )


def _open_connection(
    number: int, opened: int, facts: ConnectionFacts, shared: SessionContext
) -> _ObservedConnection:
    wire = ConnectionDecoder(facts.transport)
    return _ObservedConnection(
        number, opened, facts, wire, open_conversation(number, facts, shared)
    )


class ObserverState(msgspec.Struct):
    """What an observer knows. It holds credentials: write it to a 0600 file only, never to a
    recording."""

    session_context: SessionContext
    redactor: RedactorState
    tasks: list[FollowedTask]
    """Only the latest; all others reload from the recording (`load_tasks`)."""
    segments: SegmentsState
    rules: EngineState
    connections: dict[int, _ObservedConnection]
    edits: int
    lost: int
    gaps: CaptureGaps


class _RedactedSource:
    """Redacted facts about one connection, for the rules."""

    def __init__(self, connection: _ObservedConnection, redactor: Redactor) -> None:
        self.connection = connection
        self._redactor = redactor

    def get_exchange(self, number: int) -> Exchange:
        """Return the current state of the exchange, redacted."""
        found = self.connection.conversation.find_exchange(number)
        assert found is not None
        return self._redactor.redact_exchange(found.snapshot())

    def call_of(self, number: int) -> tuple[Binding, str, int, str]:
        """Return the exchange's binding, operation, start time (ns) and agent."""
        found = self.connection.conversation.find_exchange(number)
        assert found is not None
        return (
            found.binding,
            found.operation,
            found.started,
            self._redactor.redact_text(found.agent),
        )

    def closed_at(self, number: int) -> int:
        """Return the time the exchange closed, ns; 0 while it is open."""
        found = self.connection.conversation.find_exchange(number)
        return found.closed if found is not None else 0

    def get_facts(self, connection: int) -> ConnectionFacts:  # noqa: ARG002 - there is only one
        """Return the addresses of the connection, redacted."""
        facts, text = self.connection.facts, self._redactor.redact_text
        addresses = text(facts.client), text(facts.listen), text(facts.upstream)
        process, deliverer = (
            self._redactor.redact_process(facts.client_process),
            text(facts.deliverer),
        )
        return ConnectionFacts(*addresses, facts.transport, process, deliverer=deliverer)


_Emitted = tuple[_ObservedConnection, Frame | Finding | ExchangeState, A2AMessage | None]
"""A frame or a finding of a conversation, or an exchange that has ended; what was read of the
payload."""


class Observer:
    """Decodes one session: all its connections and the state they share."""

    def __init__(
        self,
        redactor: Redactor,
        live: LiveMode = "auto",
        rules: Engine | None = None,
        cards: CardVerifier | None = None,
    ) -> None:
        """Create an observer. `live` is the payload family of SendLiveMessage if the user has set
        it; without `rules` all rules run; without `cards` signatures of cards are read but not
        verified.
        """
        self.card_verifier = cards or CardVerifier()
        self._redactor = redactor
        self._session_context = SessionContext(live=live)
        self._connections: dict[int, _ObservedConnection] = {}
        self._changed_connections: set[int] = set()
        self._closed_connections: list[_ObservedConnection] = []
        self._cut_exchanges: list[Exchange] = []
        """Closed exchanges of adopted connections; reported once."""
        self.tasks = TaskTracker()
        self._segments = SegmentTracker(redactor.redact_text)
        self._rules = Engine() if rules is None else rules
        self._undelivered: list[_Emitted] = []
        """What conversations have emitted and was not delivered, in order."""
        self._collects = False
        """Whether the frames of the current chunk are delivered together with those of the next
        one."""
        self._ended: dict[int, tuple[Exchange, Exchange, int]] = {}
        """Exchanges that ended since the last `pop_changes`, the same redacted, and the redactor's
        `change_count`."""
        self._held_for_rules: list[FrameOrEnd] | None = None
        """Frames and closed exchanges that the rules have not seen yet, in order; None if the rules
        see each one at once."""
        self.ended = False
        """Whether the session's END record has been read."""
        self.edits = 0
        """Number of chunks that the proxy changed while relaying them."""
        self.lost = 0
        """Bytes that were relayed but not captured, over all connections."""
        self.gaps = CaptureGaps()
        """Places of these bytes, and of bytes that were not decoded."""

    def feed(self, chunk: Chunk, out: list[Observation]) -> None:
        """Decode one chunk and append frames and findings to `out` in wire order. Never raises."""
        try:
            self._decode_chunk(chunk, out)
        except Exception as error:  # a bug in the decoders costs one connection, not the recording
            self.abandon_connection(
                chunk.connection, chunk.at, f"{type(error).__name__}: {error}"[:300], out
            )

    def _decode_chunk(self, chunk: Chunk, out: list[Observation]) -> None:
        kind = chunk.kind
        # Frames are applied with the state of their exchange as it is then: all events of an agent
        # may be decoded by then, but nothing of a client that followed them.
        self._collects = (
            self._held_for_rules is not None and kind is _DATA and chunk.direction is _TO_CLIENT
        )
        if self._undelivered and not self._collects:
            self._deliver(out)
        if not chunk.connection:
            self._apply_session_record(chunk, out)
            return
        connection = self._connections.get(chunk.connection)
        if connection is None:
            if (
                kind is not _OPEN
            ):  # the connection's beginning was not captured, so the rest cannot be decoded
                self.lost += len(chunk.data) if kind is _DATA or kind is _OURS else 0
                return
            connection = self._open_connection(chunk)
        self._changed_connections.add(chunk.connection)
        if kind is _DATA or kind is _OURS:
            self._decode_data(connection, chunk, out)
        elif kind is ChunkKind.DIALED:
            self._apply_dial_record(connection, chunk)
        elif kind is ChunkKind.CLOSED:
            self._close_connection(connection, chunk, out)
        elif kind is ChunkKind.EDIT:
            self.edits += 1
            self._apply_edit_record(connection, chunk, out)
        elif kind is ChunkKind.PASSED:
            passed = msgspec.json.decode(chunk.data, type=PassedFacts)
            connection.bytes[chunk.direction] += passed.bytes
            connection.counters[OPAQUE_COUNTERS[chunk.direction]] += passed.bytes
            connection.kind, connection.is_unread_by_choice = passed.kind, passed.kind == "tls"
            connection.unread_reason = _PASSED_REASONS[passed.kind]
        elif kind in _INTERRUPTING_KINDS:
            self._apply_interruption(connection, chunk, out)
        elif connection.wire.stdio is not None:
            self._apply_process_record(connection, connection.wire.stdio, chunk, out)

    def _apply_edit_record(
        self, connection: _ObservedConnection, chunk: Chunk, out: list[Observation]
    ) -> None:
        """Keep the `traceparent` that the proxy sent for a call: the trace continues there.
        Recorded once per call. Keep the faults that concern the next bytes, and end an exchange
        that a fault has ended."""
        edit = msgspec.json.decode(chunk.data, type=_EditRecord)
        if edit.kind == "fault":
            connection.marks = [*connection.marks, (edit.offset, edit.note)][-_MAX_MARKS:]
            if edit.stream:
                connection.conversation.expect_fault_end(edit.stream)
        elif edit.kind == "fault-end":
            frames: list[Frame | Finding] = []
            connection.conversation.end_by_fault(edit.stream, edit.note, chunk.at, frames)
            self._take_conversation(connection, frames, out)
        exchange = (
            connection.conversation.set_sent_traceparent(edit.stream, edit.after)
            if edit.kind == "traceparent"
            else None
        )
        if exchange is not None:
            self._segments.learn_sent_trace(exchange)

    def _apply_session_record(self, chunk: Chunk, out: list[Observation]) -> None:
        """Apply a record about the session itself: its end, or lost journal data that may affect
        every open connection."""
        if chunk.kind is ChunkKind.END:
            self.ended = True
            self._segments.end_session(chunk.at)
            self.judge_held(out)
            self._rules.end_session(chunk.at, out)
            return
        lost = msgspec.json.decode(chunk.data)
        self.lost += int(lost.get("bytes", 0))
        if lost.get("damage"):
            out.append(Finding("RECORDER", Severity.WARNING, chunk.at, lost["damage"]))
            for number in sorted(self._connections):
                self._make_opaque(number, chunk.at, lost["damage"], out)

    def _make_opaque(self, number: int, at: int, reason: str, out: list[Observation]) -> None:
        self._changed_connections.add(number)
        self._connections[number].add_unread_reason(reason)
        for direction in Direction:
            self._apply_interruption(
                self._connections[number],
                Chunk(number, ChunkKind.LOST, direction, at, b'{"bytes":0}'),
                out,
            )

    def _open_connection(self, chunk: Chunk) -> _ObservedConnection:
        facts = msgspec.json.decode(chunk.data, type=ConnectionFacts)
        connection = _open_connection(chunk.connection, chunk.at, facts, self._session_context)
        self._connections[chunk.connection] = connection
        return connection

    def _apply_dial_record(self, connection: _ObservedConnection, chunk: Chunk) -> None:
        facts = msgspec.json.decode(chunk.data, type=DialFacts)
        connection.dialed = chunk.at
        connection.peer = facts.peer or ""
        connection.upstream_tls = facts.tls or None
        if facts.error is not None:
            connection.how = f"refused: {facts.error}"

    def _decode_data(
        self, connection: _ObservedConnection, chunk: Chunk, out: list[Observation]
    ) -> None:
        connection.bytes[chunk.direction] += len(chunk.data)
        events: list[WireEvent] = []
        feed = connection.wire.feed if chunk.kind is _DATA else connection.wire.feed_ours
        feed(chunk.direction, chunk.data, chunk.at, events)
        if events:
            connection.conversation.ours = chunk.kind is _OURS
            self._feed_conversation(connection, events, out)

    def _apply_process_record(
        self,
        connection: _ObservedConnection,
        wire: StdioDecoder,
        chunk: Chunk,
        out: list[Observation],
    ) -> None:
        """Apply a record about a stdio agent's process: stderr output, a signal, or its exit."""
        events: list[WireEvent] = []
        if chunk.kind is ChunkKind.LOG:
            wire.feed_log(chunk.data, chunk.at, events)
        elif chunk.kind is ChunkKind.SIGNAL:
            wire.on_signal(chunk.data.decode("ascii", "replace"), chunk.at, events)
        elif chunk.kind is ChunkKind.EXITED:
            facts = msgspec.json.decode(chunk.data, type=ExitFacts)
            before = f"{connection.how}, then " if connection.how not in ("", "agent eof") else ""
            connection.how = f"{before}agent {facts.description}"
            wire.on_exit(msgspec.to_builtins(facts), chunk.at, events)
        self._feed_conversation(connection, events, out)

    def _apply_interruption(
        self, connection: _ObservedConnection, chunk: Chunk, out: list[Observation]
    ) -> None:
        events: list[WireEvent] = []
        who = "client" if chunk.direction is Direction.TO_AGENT else "agent"
        if chunk.kind is ChunkKind.EOF:
            connection.how = connection.how or f"{who} eof"
            connection.wire.feed_eof(chunk.direction, chunk.at, events)
        elif chunk.kind is ChunkKind.RESET:
            reason = (
                chunk.data.decode("utf-8", "replace")
                if chunk.data.startswith(_TLS_REASON)
                else f"{who} reset"
            )
            connection.how = connection.how or reason
            if chunk.data.startswith(_HANDSHAKE_FAILED):
                finding = Finding("HANDSHAKE", Severity.WARNING, chunk.at, reason, chunk.connection)
                out.append(self._redactor.redact_finding(finding))
            connection.wire.feed_reset(chunk.direction, chunk.at, events)
        else:
            record = msgspec.json.decode(chunk.data)
            if lost := int(record.get("bytes", 0)):
                connection.lost += lost
                self.lost += lost
                why = f"were not captured: {record.get('reason') or _CAPTURE_BEHIND}"
                offset = connection.bytes[chunk.direction]
                self.gaps.add(Gap(connection.number, chunk.direction, offset, lost, why))
            connection.add_unread_reason("bytes before them were not captured")
            connection.wire.feed_loss(chunk.direction, chunk.at, events)
        self._feed_conversation(connection, events, out)

    def _close_connection(
        self, connection: _ObservedConnection, chunk: Chunk, out: list[Observation]
    ) -> None:
        connection.closed = chunk.at
        connection.how = connection.how or "closed"
        self._cut_open_streams(connection, chunk.at, "proxy stopped", out)
        connection.conversation.close_calls(chunk.at)
        if connection.unread_reason:
            why = self._redactor.redact_text(connection.unread_reason)
            for gap in find_gaps(
                connection.snapshot(), why, is_chosen=connection.is_unread_by_choice
            ):
                self.gaps.add(gap)
        self._take_conversation(connection, [], out)
        del self._connections[chunk.connection]
        self._changed_connections.discard(chunk.connection)
        self._closed_connections.append(connection)

    def _cut_open_streams(
        self, connection: _ObservedConnection, at: int, how: str, out: list[Observation]
    ) -> None:
        """Report the exchanges still open on this connection as cut by the proxy (`how`, a
        `Cut.how`), not by a peer."""
        if not connection.wire.kind:
            return
        events: list[WireEvent] = []
        connection.wire.feed_loss(Direction.TO_CLIENT, at, events)
        cuts = [
            msgspec.structs.replace(each, how=how) if type(each) is Cut else each for each in events
        ]
        self._feed_conversation(connection, cuts, out)

    def _feed_conversation(
        self, connection: _ObservedConnection, events: list[WireEvent], out: list[Observation]
    ) -> None:
        for event in events:
            if type(event) is Control or type(event) is Undecodable:
                connection.add_unread_reason(unread_reason(event))
                if type(event) is Control and event.name in ("goaway", "close"):
                    who = "client" if event.direction is Direction.TO_AGENT else "agent"
                    code = event.detail.get("code", "") if event.name == "close" else ""
                    connection.how = connection.how or f"{who} {event.name} {code}".rstrip()
        frames: list[Frame | Finding] = []
        connection.conversation.feed(events, frames)
        self._take_conversation(connection, frames, out)

    def _take_conversation(
        self, connection: _ObservedConnection, frames: list[Frame | Finding], out: list[Observation]
    ) -> None:
        """Deliver frames of a conversation, and the exchanges that have ended; later, if more is
        collected first."""
        undelivered, link = self._undelivered, connection.conversation.link
        for frame in frames:
            read = link.messages.pop((frame.exchange, frame.seq), None)
            undelivered.append((connection, frame, read))
        for exchange in connection.conversation.pop_closed_exchanges():
            undelivered.append((connection, exchange, None))
        if not self._collects or len(undelivered) >= _GROUP:
            self._deliver(out)

    def _deliver(self, out: list[Observation]) -> None:
        """Redact what conversations have emitted, apply it to tasks and segments, judge it and
        append it to `out`, in small groups.

        No code after this sees a secret. Frames that follow one with a secret in the same group are
        examined singly. Status updates, the most common frames, are decoded once, for redaction and
        for the rules.
        """
        items, self._undelivered = self._undelivered, []
        for start in range(0, len(items), _GROUP):
            self._deliver_group(items[start : start + _GROUP], out)

    def _deliver_group(self, items: list[_Emitted], out: list[Observation]) -> None:
        redact, rules, held = self._redactor, self._rules, self._held_for_rules
        redact_frame, apply_to_task, apply_to_segments = (
            redact.redact_frame,
            self.tasks.apply_frame,
            self._segments.apply_frame,
        )
        strings: list[tuple[bytes, ...] | None] = []
        chunks: list[ArtifactChunk | None] = []
        for _, each, message in items:
            content = message.content if message is not None else None
            strings.append(message.strings() if message is not None else None)
            chunks.append(
                content
                if type(content) is ArtifactChunk
                else find_only_chunk(each)
                if type(each) is Frame and each.event is _ARTIFACT
                else None
            )
        sieved = redact.sieve_frames([each for _, each, _ in items], strings, chunks)
        source = None
        number, exchange = 0, None
        for (connection, each, message), known, chunk in zip(items, strings, chunks, strict=True):
            try:
                if type(each) is not Frame:
                    self._deliver_other(each, out)
                    continue
                if each.exchange != number:
                    number = each.exchange
                    exchange = connection.conversation.find_exchange(number) if number else None
                frame = connection.mark_frame(each) if connection.marks else each
                if frame.event is _CARD_EVENT:
                    if exchange is not None and not frame.ours:
                        exchange.card_signatures = self.card_verifier.read_frame(
                            frame, exchange.binding
                        )
                    if isinstance(card := decode_payload(frame.payload, frame.schema), dict):
                        redact.learn_card(card)
                raw, frame = frame, redact_frame(frame, exchange, sieved, known, chunk)

                if exchange is not None:
                    facts = connection.facts
                    if facts.forwarded and exchange.binding is Binding.OTHER:
                        frame = withhold_payload(
                            frame
                        )  # clients send all their HTTP to a forward proxy
                    if frame.task_id:
                        apply_to_task(frame, exchange, chunk if frame is raw else None)
                    apply_to_segments(frame, exchange, facts)
                out.append(frame)
                if source is None or source.connection is not connection:
                    source = _RedactedSource(connection, redact)
                judged = frame, source, message if frame is raw else None
                if held is None:
                    rules.judge_block([judged], out)
                else:
                    held.append(judged)
            except Exception as error:  # a bug costs one connection, not those whose frames follow
                at = each.closed if isinstance(each, ExchangeState) else each.at
                self.abandon_connection(
                    connection.number, at, f"{type(error).__name__}: {error}"[:300], out
                )

    def _deliver_other(self, each: Frame | Finding | ExchangeState, out: list[Observation]) -> None:
        """Deliver a finding of the decoders, or the end of an exchange."""
        if isinstance(each, Finding):
            out.append(self._redactor.redact_finding(each))
            return
        assert isinstance(each, ExchangeState)
        exchange = each.snapshot()
        over = self._redactor.redact_exchange(exchange)
        self._ended[each.id] = exchange, over, self._redactor.change_count
        if self._held_for_rules is None:
            self._rules.on_exchange_closed(over, out)
        else:
            self._held_for_rules.append(over)

    def hold_rules(self) -> None:
        """Hold frames back from the rules until `judge_held` is called.

        Decoding many frames first and judging them afterwards takes less time per frame, because
        the code and data of each step stay in the processor's caches.
        """
        if self._held_for_rules is None:
            self._held_for_rules = []

    def judge_held(self, out: list[Observation]) -> None:
        """Run the rules on the held frames. From now on the rules see each frame at once."""
        self._collects = False
        self._deliver(out)
        held, self._held_for_rules = self._held_for_rules, None
        if held:
            self._rules.judge_block(held, out)

    def pop_new_receivers(self) -> list[str]:
        """Return the receivers of push notifications that clients configured since the last call,
        redacted."""
        return [
            self._redactor.redact_text(receiver)
            for receiver in self._session_context.pop_new_receivers()
        ]

    def pop_changes(self) -> Changes:
        """Return a snapshot of everything that changed since the last call."""
        connections = self._closed_connections + [
            self._connections[number] for number in sorted(self._changed_connections)
        ]
        self._closed_connections, self._changed_connections = [], set()
        cut, self._cut_exchanges = self._cut_exchanges, []
        redact = self._redactor
        segments, interruptions, handoffs = self._segments.pop_changes()
        exchanges = [
            self._redact_exchange(each)
            for connection in connections
            for each in connection.conversation.pop_changed_exchanges()
        ]
        self._ended.clear()
        return Changes(
            connections=[redact.redact_connection(line.snapshot()) for line in connections],
            exchanges=cut + exchanges,
            tasks=[redact.redact_task(task) for task in self.tasks.pop_changed_tasks()],
            segments=segments,
            interruptions=interruptions,
            handoffs=handoffs,
            healed=[
                (redact.redact_text(task_id), missed)
                for task_id, missed in self.tasks.pop_healed_gaps()
            ],
        )

    def _redact_exchange(self, exchange: Exchange) -> Exchange:
        """Redact an exchange that has changed; not again if it was redacted at its end."""
        before, clean, count = self._ended.get(exchange.id, (None, exchange, 0))
        if before == exchange and count == self._redactor.change_count:
            return clean
        return self._redactor.redact_exchange(exchange)

    def interrupt_session(self, at: int, out: list[Observation]) -> None:
        """End a session without an END record: the relay died.

        Open connections close as `proxy killed` at `at` (ns).
        """
        for number in sorted(self._connections):
            connection = self._connections[number]
            connection.how = connection.how or "proxy killed"
            try:
                self._cut_open_streams(connection, at, "proxy killed", out)
            except Exception as error:  # as in `feed`
                self.abandon_connection(number, at, f"{type(error).__name__}: {error}"[:300], out)
            self.feed(Chunk(number, ChunkKind.CLOSED, Direction.TO_AGENT, at), out)
        self._segments.end_session(at)
        self._rules.end_session(at, out)

    def tick(self, at: int, out: list[Observation]) -> None:
        """Judge silence at `at` (ns). Everything captured before must have been fed."""
        self._segments.tick(at)
        self._rules.tick(at, out)

    def load_tasks(self, tasks: list[Task]) -> None:
        """Add the tasks that a recording already holds; tasks already known from their first event
        stay unchanged."""
        self.tasks.load(tasks)
        self._rules.load(tasks)

    def learn_card(self, agent: str, card: object, upstream: str, place: str | None) -> None:
        """Add the contents of a card of `agent` (decoded JSON) that the recording has from an
        earlier run; arguments as of `SessionContext.learn_card`."""
        self._session_context.learn_card(agent, card, upstream, place)
        if isinstance(card, dict):
            self._redactor.learn_card(card)

    def adopt_recorded(
        self, connections: list[Connection], exchanges: list[Exchange], last: int, at: int
    ) -> None:
        """Continue after decoders were lost at `at` (ns).

        The open `connections` of a recording are opaque from here, its open `exchanges` are cut,
        and new exchanges are numbered from `last` + 1.
        """
        self._session_context.skip_exchanges_to(last)
        for known in connections:
            self._connections[known.id] = _ObservedConnection.adopt_recorded(
                known, self._session_context
            )
            self._changed_connections.add(known.id)
        self._cut_exchanges = [
            msgspec.structs.replace(each, closed=at, how="connection lost") for each in exchanges
        ]

    def adopt_segments(self, cut: Changes, last: tuple[int, int, int], at: int) -> None:
        """Do the same for segments, interruptions and hand-offs: those in `cut` are closed,
        numbering continues from `last`."""
        self._segments.adopt_recorded(cut, last, at)

    def mark_all_changed(self) -> None:
        """Mark everything that is open as changed, so that the next `pop_changes` writes it to a
        recording that lacks it."""
        self._changed_connections |= set(self._connections)
        for connection in self._connections.values():
            connection.conversation.mark_all_changed()
        self.tasks.mark_all_changed()
        self._segments.mark_open_changed()

    def abandon_connection(self, number: int, at: int, reason: str, out: list[Observation]) -> None:
        """Make a connection opaque from here, with one finding: decoding it fails, or has killed
        the recorder."""
        self._collects = False
        self._deliver(out)
        if number in self._connections:
            try:
                self._make_opaque(number, at, reason, out)
            except Exception:  # even that failed: use a new decoder that reads nothing
                wire = self._connections[number].wire = ConnectionDecoder()
                wire.feed_loss(Direction.TO_AGENT, at, [])
        summary = f"connection {number} is opaque from here: {reason}"
        out.append(
            self._redactor.redact_finding(
                Finding("RECORDER", Severity.WARNING, at, summary, number)
            )
        )

    def save(self) -> ObserverState:
        """Return the state for `restore`. It shares objects with this observer."""
        return ObserverState(
            self._session_context,
            self._redactor.save(),
            self.tasks.latest_records,
            self._segments.save(),
            self._rules.save(),
            self._connections,
            self.edits,
            self.lost,
            self.gaps,
        )

    @classmethod
    def restore(cls, state: ObserverState, redactor: Redactor) -> Observer:
        """Return the observer whose state was saved, except for older tasks."""
        redactor.restore(state.redactor)
        observer = cls(redactor)
        observer._session_context = state.session_context
        observer.tasks.add_records(state.tasks)
        observer._segments = SegmentTracker.restore(state.segments, redactor.redact_text)
        observer._rules = Engine.restore(state.rules)
        observer._connections = state.connections
        for number, each in state.connections.items():
            each.conversation.attach(ConnectionLink(number, each.facts, state.session_context))
        observer.edits = state.edits
        observer.lost = state.lost
        observer.gaps = state.gaps
        return observer
