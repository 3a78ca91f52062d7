"""Segments of a recorded session with their content, rebuilt from its frames by the code that also
builds them live.

So turns without rows are included.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple
from zlib import crc32

import msgspec

from a2a_proxy.model.values import (
    AGENT,
    Changes,
    Connection,
    Exchange,
    Frame,
    Handoff,
    Interruption,
    Segment,
)
from a2a_proxy.protocol.segments.content import FrameContent, Media, ToolEvent, content_of_frame
from a2a_proxy.protocol.segments.state import SegmentState
from a2a_proxy.protocol.segments.tracker import SegmentTracker
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import SessionRow, make_key

_MAX_CACHED_EXCHANGES = 4096
"""Number of exchanges that are cached."""
_CHANGES_INTERVAL = 1000
"""Frames between two collections of changes."""
_MAX_TEXT = 65_536
"""Maximum number of characters that are kept of a segment's text."""
_MAX_MARKS = 4096
"""Maximum number of texts and blobs of a segment that are recognized again."""


class ClientExchange(NamedTuple):
    """An exchange with what the segment tracker needs to know of its client."""

    exchange: Exchange
    client: str
    """The address; empty if it is not known."""
    client_ports: tuple[int, ...]
    """TCP ports on which the client's process listens."""

    @classmethod
    def on_connection(cls, exchange: Exchange, connection: Connection | None) -> ClientExchange:
        """Return an exchange on this connection."""
        process = connection.client_process if connection is not None else None
        return cls(
            exchange,
            connection.client if connection is not None else "",
            process.ports if process is not None else (),
        )


class SegmentEvent(msgspec.Struct, frozen=True):
    """A tool event or a piece of media, with its time (ns) and frame."""

    at: int
    exchange: int
    seq: int
    what: Media | ToolEvent


class SegmentContent(msgspec.Struct):
    """The content of a segment."""

    text: str = ""
    """Text, cut at `_MAX_TEXT`. Text of one artifact or message is one line."""
    source: str = ""
    """The artifact or message of the last text."""
    characters: int = 0
    output_characters: int = 0
    """Number of characters of output."""
    heard: list[SegmentEvent] = []
    """Tools and media, in order."""
    marks: dict[int, int] = {}
    """Time of the first appearance (ns) by the CRC-32 of each text and blob."""
    gaps: list[int] = []
    """Pauses between its frames, in ns."""
    last: int = 0
    """Time of its last frame, in ns."""

    def add(self, frame: Frame, content: FrameContent, *, output: bool) -> None:
        """Add the content of one frame."""
        for source, text in content.texts:
            if self.text and source != self.source:
                self.text += "\n"
            self.source = source
            self.characters += len(text)
            self.output_characters += len(text) if output else 0
            if len(self.text) < _MAX_TEXT:
                self.text += text[: _MAX_TEXT - len(self.text)]
            self._add_mark(text.encode("utf-8", "surrogatepass"), frame.at)
        for each in content.media:
            self.heard.append(SegmentEvent(frame.at, frame.exchange, frame.seq, each))
            self._add_mark(each.data or each.url.encode(), frame.at)
        self.heard += [
            SegmentEvent(frame.at, frame.exchange, frame.seq, tool) for tool in content.tools
        ]

    def _add_mark(self, data: bytes, at: int) -> None:
        if data and len(self.marks) < _MAX_MARKS:
            self.marks.setdefault(crc32(data), at)


class Conversations(msgspec.Struct):
    """All segments, interruptions and hand-offs of one session, with their contents."""

    segments: list[Segment]
    interruptions: list[Interruption]
    handoffs: list[Handoff]
    contents: dict[int, SegmentContent]
    """By the number of the segment."""


def read_conversations(recording: Recording, session: SessionRow) -> Conversations:
    """Build the segments of a session and read their content. Raises RecordingError."""
    tracker = SegmentTracker(include_unary=True)
    segments: dict[int, Segment] = {}
    interruptions: dict[int, Interruption] = {}
    handoffs: dict[int, Handoff] = {}
    contents: dict[int, SegmentContent] = {}
    outputs: dict[int, int] = {}
    for count, (frame, exchange, segment) in enumerate(_replay_frames(recording, session, tracker)):
        if segment is not None:
            known = contents.setdefault(segment.id, SegmentContent())
            output = segment.speaker == AGENT and segment.outputs > outputs.get(segment.id, 0)
            outputs[segment.id] = segment.outputs
            if segment.frames > 1:
                known.gaps.append(frame.at - known.last)
            known.last = frame.at
            if output or segment.speaker != AGENT:
                known.add(
                    frame,
                    content_of_frame(frame, exchange.dialect, exchange.operation),
                    output=output,
                )
        if count % _CHANGES_INTERVAL == 0:
            _collect_changes(tracker, segments, interruptions, handoffs)
    _collect_changes(tracker, segments, interruptions, handoffs)
    return Conversations(
        [segments[number] for number in sorted(segments)],
        [interruptions[number] for number in sorted(interruptions)],
        [handoffs[number] for number in sorted(handoffs)],
        contents,
    )


def _collect_changes(
    tracker: SegmentTracker,
    segments: dict[int, Segment],
    interruptions: dict[int, Interruption],
    handoffs: dict[int, Handoff],
) -> None:
    cut, broken, handed = tracker.pop_changes()
    segments.update((each.id, each) for each in cut)
    interruptions.update((each.id, each) for each in broken)
    handoffs.update((each.id, each) for each in handed)


def rebuild_segments(recording: Recording, session: SessionRow) -> Iterator[Changes]:
    """Yield the segments of a session in portions, as a recorder would have stored them."""
    tracker = SegmentTracker()
    for count, _ in enumerate(_replay_frames(recording, session, tracker), 1):
        if count % _CHANGES_INTERVAL == 0:
            yield Changes([], [], [], *tracker.pop_changes())
    yield Changes([], [], [], *tracker.pop_changes())


def _replay_frames(
    recording: Recording, session: SessionRow, tracker: SegmentTracker
) -> Iterator[tuple[Frame, Exchange, SegmentState | None]]:
    """Apply all frames of exchanges and yield each with its exchange and segment. End the session
    if it has ended."""
    exchanges = _ClientExchanges(recording, session.id)
    last = session.facts.started
    for row in recording.frames_after(0, session=session.id):
        frame = row.frame
        last = max(last, frame.at)
        found = exchanges.find(frame.exchange) if frame.exchange else None
        if found is None:
            continue
        talk = tracker.apply_frame(frame, found.exchange, found)
        yield frame, found.exchange, talk.said if talk is not None else None
    if session.how:
        tracker.end_session(max(session.ended, last))


class _ClientExchanges:
    """Cache of the exchanges with their clients."""

    def __init__(self, recording: Recording, session: int) -> None:
        self._recording = recording
        self._session = session
        self._cache: dict[int, ClientExchange | None] = {}

    def find(self, number: int) -> ClientExchange | None:
        """Return the exchange with this number, or None if the recording does not have it."""
        if number in self._cache:
            return self._cache[number]
        found = self._cache[number] = self._read_exchange(number)
        if len(self._cache) > _MAX_CACHED_EXCHANGES:
            del self._cache[next(iter(self._cache))]
        return found

    def _read_exchange(self, number: int) -> ClientExchange | None:
        row = self._recording.read_exchange(make_key(self._session, number), headers=False)
        if row is None:
            return None
        line = self._recording.read_connection(make_key(self._session, row.exchange.connection))
        return ClientExchange.on_connection(
            row.exchange, line.connection if line is not None else None
        )
