"""Where a recorder begins: the decoders as an earlier one left them, or what the recording tells where they are gone.

Reads the snapshot and the recording, decodes nothing new.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import msgspec

from a2a_proxy.capture.record_format import START, Position
from a2a_proxy.model.exchange import Connection, Exchange, LiveMode
from a2a_proxy.model.finding import Finding, Severity
from a2a_proxy.model.frame import EventKind
from a2a_proxy.model.observation import Changes, Observation
from a2a_proxy.observer import Observer
from a2a_proxy.protocol.event import decode_payload
from a2a_proxy.protocol.operations import CARD_OPERATIONS
from a2a_proxy.recorder.crashes import Crashes
from a2a_proxy.recorder.pump import JournalPump
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.write.writer import Writer
from a2a_proxy.redaction import Redactor

_LATE = "late"


class ResumePoint(msgspec.Struct):
    """A feed that is where the recording is."""

    feed: JournalPump
    out: list[Observation] = []
    """What is to be stored first."""
    unsaved: bool = False
    """The committed position and snapshot are not those of this feed: both are to be committed before anything else."""
    late: int = 0
    """Where the recording lacks what came before: the time it begins at, ns; else 0."""


def snapshot_name(position: Position) -> str:
    """The file in which the decoders at this position are."""
    return f"snapshot-{position[0]:06d}-{position[1]}"


def resume(
    folder: Path, path: str, writer: Writer, crashes: Crashes, redactor: Redactor, at: int, live: LiveMode
) -> ResumePoint:
    """Go on where the recording ends; `at` is the time of it as far as known, ns, `live` what the user
    said of live streams. Raises RecordingError."""
    committed, name = writer.position, writer.snapshot
    younger = committed is None
    if younger:  # a recording younger than the journal: an earlier one was deleted
        name = _oldest_snapshot(folder)
    if name is None:
        feed = JournalPump(folder, crashes, Observer(redactor, live))
    else:
        try:
            feed = JournalPump.restore(folder, crashes, (folder / name).read_bytes(), redactor)
        except Exception as wrong:  # whatever a damaged file leads to
            fresh = JournalPump(folder, crashes, Observer(redactor, live), committed or _position_of(name))
            return _without_decoders(path, writer, fresh, wrong, at)
    if committed is not None:
        feed.catch_up(committed)
        _reload_tasks(path, writer.session, feed)
        return ResumePoint(feed, _of_silence(path, writer.session, feed))
    if name is None:
        return ResumePoint(feed)
    feed.observer.touch()
    return ResumePoint(feed, unsaved=True, late=feed.last_at or at)


def _oldest_snapshot(folder: Path) -> str | None:
    return min((path.name for path in folder.glob("snapshot-*")), key=_position_of, default=None)


def _reload_tasks(path: str, session: int, feed: JournalPump) -> None:
    with Recording(path) as stored:
        feed.observer.load_tasks([row.task for row in stored.tasks(session)])


def _of_silence(path: str, session: int, feed: JournalPump) -> list[Observation]:
    """What rules find up to the last finding stored, those that are stored left out: silence led to them, no record."""
    with Recording(path) as stored:
        known = [row.finding for row in stored.findings(session)]
    if not known:
        return []
    last = max(finding.at for finding in known)
    out: list[Observation] = []
    feed.observer.tick(last + 1, out)
    return [each for each in out if each.at == last and each not in known]


def _without_decoders(path: str, writer: Writer, feed: JournalPump, wrong: Exception, at: int) -> ResumePoint:
    """Connections that are open are opaque from here, with one finding; those that open later are read."""
    summary = (
        f"open connections are opaque from here: the decoders' state cannot be read ({type(wrong).__name__}: {wrong})"
    )
    with Recording(path) as stored:
        known = _read(stored, writer.session, feed.observer)
    at = max([at, *(each.opened for each in known.connections), *(each.started for each in known.exchanges)])
    feed.observer.adopt(known.connections, known.exchanges, known.last, at)
    feed.observer.adopt_segments(known.cut, known.cuts, at)
    _reload_tasks(path, writer.session, feed)
    found = Finding("RECORDER", Severity.WARNING, at, summary[:300])
    return ResumePoint(feed, [found], unsaved=True, late=at if writer.position is None else 0)


class _StoredFacts(msgspec.Struct):
    """What a recording tells of a session."""

    connections: list[Connection]
    """Those that are open."""
    exchanges: list[Exchange]
    """Those that are open."""
    last: int = 0
    """Highest number of an exchange."""
    cut: Changes = msgspec.field(default_factory=lambda: Changes([], [], []))
    """Segments, interruptions and hand-offs that are open."""
    cuts: tuple[int, int, int] = (0, 0, 0)
    """Highest number of each of them."""


def _read(stored: Recording, session: int, observer: Observer) -> _StoredFacts:
    """Also teaches `observer` the cards: what they said of names that hold secrets must not be forgotten."""
    known = _StoredFacts([], [])
    upstreams: dict[int, str] = {}
    for row in stored.connections(session):
        upstreams[row.connection.id] = row.connection.upstream
        if not row.connection.closed:
            known.connections.append(row.connection)
    for each in stored.exchanges(session):
        exchange = each.exchange
        known.last = max(known.last, exchange.id)
        if not exchange.closed:
            known.exchanges.append(exchange)
        if exchange.operation in CARD_OPERATIONS:
            for frame in (found.frame for found in stored.frames(each.key)):
                if frame.event is EventKind.CARD:
                    observer.learn_card(upstreams.get(exchange.connection, ""), decode_payload(frame.payload, frame.schema))
    _read_cuts(stored, session, known)
    return known


def _read_cuts(stored: Recording, session: int, known: _StoredFacts) -> None:
    open_now, segments, interruptions, handoffs = Changes([], [], []), 0, 0, 0
    for segment in (row.segment for row in stored.segments(session)):
        segments = segment.id
        if not segment.ended:
            open_now.segments.append(segment)
    for broken in (row.interruption for row in stored.interruptions(session)):
        interruptions = broken.id
        if not broken.ended:
            open_now.interruptions.append(broken)
    for handoff in (row.handoff for row in stored.handoffs(session)):
        handoffs = handoff.id
        if not handoff.ended:
            open_now.handoffs.append(handoff)
    known.cut, known.cuts = open_now, (segments, interruptions, handoffs)


def _position_of(name: str) -> Position:
    """Of a snapshot, by its name."""
    words = name.split("-")
    return (int(words[1]), int(words[2])) if len(words) == 3 and words[1].isdigit() and words[2].isdigit() else START


def write_late(folder: Path, at: int) -> None:
    """Remember beside the journal that the recording begins at `at` (ns) only."""
    with contextlib.suppress(OSError):
        (folder / _LATE).write_text(str(at))


def read_late(folder: Path) -> int:
    """When the recording begins, ns; 0 where it has all of the session."""
    try:
        return int((folder / _LATE).read_text())
    except (OSError, ValueError):
        return 0
