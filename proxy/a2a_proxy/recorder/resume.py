"""The starting state of a recorder: the decoders of an earlier one, or the recording's facts if
they are lost.

Reads the snapshot and the recording, decodes nothing new.
"""

import contextlib
from pathlib import Path

import msgspec

from a2a_proxy.capture.file_layout import SessionFile
from a2a_proxy.capture.record_format import START_POSITION, Position
from a2a_proxy.cards.verify import CardVerifier
from a2a_proxy.model.values import (
    Binding,
    Changes,
    Connection,
    EventKind,
    Exchange,
    Finding,
    Observation,
    Severity,
)
from a2a_proxy.observer import DECODERS_LOST, Observer
from a2a_proxy.protocol.bindings.card import place_of_card
from a2a_proxy.protocol.completeness import find_gaps
from a2a_proxy.protocol.event import decode_payload
from a2a_proxy.protocol.operations import CARD_OPERATIONS
from a2a_proxy.recorder.crashes import CrashHistory
from a2a_proxy.recorder.pump import JournalPump
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.write.writer import Writer
from a2a_proxy.redaction import Redactor

_BEGINNING_FILE = "late"


class ResumePoint(msgspec.Struct):
    """A pump at the position of the recording."""

    pump: JournalPump
    observations: list[Observation] = []
    """Observations to store first."""
    needs_commit: bool = False
    """Whether the pump's position and snapshot differ from the committed ones and must be committed
    first."""
    begins_at: int = 0
    """If the recording lacks the session's beginning, the time it starts at, ns; else 0."""


def snapshot_name(position: Position) -> str:
    """Return the file name of the decoders' snapshot at this position."""
    return f"snapshot-{position[0]:06d}-{position[1]}"


def resume_pump(
    folder: Path,
    session: SessionFile,
    writer: Writer,
    crashes: CrashHistory,
    redactor: Redactor,
) -> ResumePoint:
    """Continue at the end of the recording, with decoders that follow the options of the session.
    Raises RecordingError."""
    path, cards = session.recording, load_verifier(session.options.card_keys)
    observer = Observer(redactor, session.options.live, cards=cards)
    committed, name = writer.position, writer.snapshot
    is_new_recording = committed is None
    if is_new_recording:  # a recording younger than the journal: an earlier one was deleted
        name = _oldest_snapshot(folder)
    if name is None:
        pump = JournalPump(folder, crashes, observer)
    else:
        try:
            pump = JournalPump.restore(folder, crashes, (folder / name).read_bytes(), redactor)
            pump.observer.card_verifier = cards
        except Exception as wrong:  # a damaged file can raise anything
            fresh = JournalPump(folder, crashes, observer, committed or _parse_position(name))
            return _resume_without_decoders(path, writer, fresh, wrong, session.started)
    if committed is not None:
        pump.catch_up(committed)
        _reload_tasks(path, writer.session, pump)
        return ResumePoint(pump, _unstored_silence_findings(path, writer.session, pump))
    if name is None:
        return ResumePoint(pump)
    pump.observer.mark_all_changed()
    return ResumePoint(pump, needs_commit=True, begins_at=pump.last_at or session.started)


def load_verifier(path: str) -> CardVerifier:
    """Return the verifier of signed cards with the keys of a file; without a path, it has no keys.

    The command line has checked the file. A recorder that starts again after the file has changed
    must not fail, so its signatures then say why they are not verified.
    """
    if not path:
        return CardVerifier()
    from a2a_proxy.cards.keys import KeyFileError, parse_keys

    try:
        return CardVerifier(parse_keys(Path(path).read_bytes()).keys)
    except (OSError, KeyFileError):
        return CardVerifier(reason="the file of --card-keys can no longer be read")


def _oldest_snapshot(folder: Path) -> str | None:
    return min((path.name for path in folder.glob("snapshot-*")), key=_parse_position, default=None)


def _reload_tasks(path: str, session: int, pump: JournalPump) -> None:
    with Recording(path) as stored:
        pump.observer.load_tasks([row.task for row in stored.read_tasks(session)])


def _unstored_silence_findings(path: str, session: int, pump: JournalPump) -> list[Observation]:
    """Return the rules' findings about silence at the time of the last stored finding that are not
    stored yet."""
    with Recording(path) as stored:
        stored_findings = [row.finding for row in stored.read_findings(session)]
    if not stored_findings:
        return []
    last = max(finding.at for finding in stored_findings)
    out: list[Observation] = []
    pump.observer.tick(last + 1, out)
    return [each for each in out if each.at == last and each not in stored_findings]


def _resume_without_decoders(
    path: str, writer: Writer, pump: JournalPump, wrong: Exception, at: int
) -> ResumePoint:
    """Make open connections opaque from here, with one finding; connections that open later are
    decoded."""
    summary = (
        f"open connections are opaque from here: the decoders' state cannot be read "
        f"({type(wrong).__name__}: {wrong})"
    )
    with Recording(path) as stored:
        facts = _read_stored_facts(stored, writer.session, pump.observer)
    at = max(
        [
            at,
            *(each.opened for each in facts.connections),
            *(each.started for each in facts.exchanges),
        ]
    )
    pump.observer.adopt_recorded(facts.connections, facts.exchanges, facts.last_exchange, at)
    pump.observer.adopt_segments(facts.open_segments, facts.last_segment_numbers, at)
    _reload_tasks(path, writer.session, pump)
    found = Finding("RECORDER", Severity.WARNING, at, summary[:300])
    return ResumePoint(
        pump, [found], needs_commit=True, begins_at=at if writer.position is None else 0
    )


class _StoredFacts(msgspec.Struct):
    """A recording's facts about a session."""

    connections: list[Connection]
    """The open connections."""
    exchanges: list[Exchange]
    """The open exchanges."""
    last_exchange: int = 0
    """Highest exchange number."""
    open_segments: Changes = msgspec.field(default_factory=lambda: Changes([], [], []))
    """The open segments, interruptions and hand-offs."""
    last_segment_numbers: tuple[int, int, int] = (0, 0, 0)
    """Highest number of each of the three."""


def _read_stored_facts(stored: Recording, session: int, observer: Observer) -> _StoredFacts:
    """Return the stored facts, and teach `observer` the cards, which declare the names of fields
    with secrets."""
    facts = _StoredFacts([], [])
    upstreams: dict[int, str] = {}
    for row in stored.read_connections(session):
        upstreams[row.connection.id] = row.connection.upstream
        observer.lost += row.connection.lost_bytes
        if not row.connection.closed:
            facts.connections.append(row.connection)
            continue
        for gap in find_gaps(row.connection, DECODERS_LOST):
            observer.gaps.add(gap)
    for each in stored.read_exchanges(session):
        exchange = each.exchange
        facts.last_exchange = max(facts.last_exchange, exchange.id)
        if not exchange.closed:
            facts.exchanges.append(exchange)
        if exchange.operation in CARD_OPERATIONS:
            for frame in (found.frame for found in stored.read_frames(each.key)):
                if frame.event is EventKind.CARD:
                    observer.learn_card(
                        exchange.agent,
                        decode_payload(frame.payload, frame.schema),
                        upstreams.get(exchange.connection, ""),
                        place_of_card(exchange.target)[0]
                        if exchange.binding is Binding.CARD
                        else None,
                    )
    _read_segments(stored, session, facts)
    return facts


def _read_segments(stored: Recording, session: int, facts: _StoredFacts) -> None:
    open_now, segments, interruptions, handoffs = Changes([], [], []), 0, 0, 0
    for segment in (row.segment for row in stored.read_segments(session)):
        segments = segment.id
        if not segment.ended:
            open_now.segments.append(segment)
    for broken in (row.interruption for row in stored.read_interruptions(session)):
        interruptions = broken.id
        if not broken.ended:
            open_now.interruptions.append(broken)
    for handoff in (row.handoff for row in stored.read_handoffs(session)):
        handoffs = handoff.id
        if not handoff.ended:
            open_now.handoffs.append(handoff)
    facts.open_segments, facts.last_segment_numbers = open_now, (segments, interruptions, handoffs)


def _parse_position(name: str) -> Position:
    """Return the position in a snapshot's name."""
    words = name.split("-")
    return (
        (int(words[1]), int(words[2]))
        if len(words) == 3 and words[1].isdigit() and words[2].isdigit()
        else START_POSITION
    )


def write_beginning(folder: Path, at: int) -> None:
    """Note next to the journal that the recording begins only at `at` (ns)."""
    with contextlib.suppress(OSError):
        (folder / _BEGINNING_FILE).write_text(str(at))


def read_beginning(folder: Path) -> int:
    """Return the time the recording begins, ns; 0 if it has the whole session."""
    try:
        return int((folder / _BEGINNING_FILE).read_text())
    except (OSError, ValueError):
        return 0
