"""Values that a reader returns: the model's values with their keys in the file, and the facts of a
session."""

import msgspec

from a2a_proxy.model.values import (
    Connection,
    Exchange,
    Finding,
    Frame,
    Handoff,
    Interruption,
    Note,
    Segment,
    Task,
)
from a2a_proxy.protocol.completeness import UNENDED, split_completeness
from a2a_proxy.recording.store.schema import SESSION_SHIFT


class SessionFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The facts known when a run of the proxy begins."""

    uuid: str
    tool: str
    """Name and version: `a2a-proxy 0.1.0`."""
    started: int
    """ns since the Unix epoch."""
    command: tuple[str, ...] = ()
    """The command line, redacted."""
    listens: tuple[str, ...] = ()
    upstreams: tuple[str, ...] = ()
    """As the user wrote them, without user info; parallel to `listens`."""
    names: tuple[str, ...] = ()
    """Names that the user gave to the agents, parallel to `listens`; empty if there are none."""
    clock: str = ""
    """How the times were taken: `utc+02:00, monotonic from start`."""
    pid: int = 0
    """Process id of the relay; 0 if there is none."""
    redaction: tuple[str, ...] = ()
    """Redactions besides credentials, and exceptions, as words of a policy; of all rounds
    together."""
    faults: tuple[str, ...] = ()
    """Faults that the proxy made on purpose, as the user wrote them."""


class SessionRow(msgspec.Struct, frozen=True, kw_only=True):
    """One session as stored in the file."""

    id: int
    facts: SessionFacts
    ended: int = 0
    """ns; 0 while it runs."""
    how: str = ""
    """`clean` or `unclean`; empty while it runs, or if unknown."""
    complete: str = ""
    """The text of `completeness.CaptureGaps.describe`; empty while it runs."""
    lost: int = 0
    """Bytes that were relayed but not captured."""
    edits: int = 0
    position: tuple[int, int] | None = None
    """Number of the journal segment and byte offset up to which everything is stored; None before
    the first commit."""
    snapshot: str | None = None
    """Name of the decoder snapshot of that position."""

    @property
    def missing_text(self) -> str:
        """What the capture lacks, in words; empty if it is complete."""
        return split_completeness(self.complete)[0] if self.complete else UNENDED

    @property
    def choice_text(self) -> str:
        """What a person left out of the capture or of this file, in words; empty if nothing."""
        return split_completeness(self.complete)[1]


class ConnectionRow(msgspec.Struct, frozen=True):
    """A connection and its key."""

    key: int
    session: int
    connection: Connection


class ExchangeRow(msgspec.Struct, frozen=True):
    """An exchange and its key."""

    key: int
    session: int
    exchange: Exchange


class FrameRow(msgspec.Struct, frozen=True):
    """A frame, its id (in order of storing) and the address of its payload."""

    id: int
    session: int
    frame: Frame
    """Its `payload` is empty if the reader was called without payloads;
    `Recording.read_payload(row)` returns it."""
    block: int = 0
    """0 if no part of the payload is in a block."""
    offset: int = 0
    size: int = 0
    """Bytes in the block: the whole payload, or the remainder without its pieces."""
    pieces: bool = False

    @property
    def exchange_key(self) -> int:
        """Key of its exchange; 0 for a frame of the connection itself."""
        return self.frame.exchange and make_key(self.session, self.frame.exchange)


class TaskRow(msgspec.Struct, frozen=True):
    """A task of one session and its key."""

    id: int
    session: int
    task: Task


class FindingRow(msgspec.Struct, frozen=True):
    """A finding and its key."""

    id: int
    session: int
    finding: Finding


class NoteRow(msgspec.Struct, frozen=True):
    """A note and its key."""

    id: int
    session: int
    note: Note


class SegmentRow(msgspec.Struct, frozen=True):
    """A segment and its key."""

    key: int
    session: int
    segment: Segment


class InterruptionRow(msgspec.Struct, frozen=True):
    """An interruption and its key."""

    key: int
    session: int
    interruption: Interruption


class HandoffRow(msgspec.Struct, frozen=True):
    """A hand-off and its key."""

    key: int
    session: int
    handoff: Handoff


class Counts(msgspec.Struct, frozen=True):
    """Numbers of rows of a recording, or of one session."""

    sessions: int = 0
    connections: int = 0
    exchanges: int = 0
    frames: int = 0
    tasks: int = 0
    findings: int = 0


def make_key(session: int, number: int) -> int:
    """Return the key of an exchange or connection: one integer that orders by session, then by
    number."""
    return session << SESSION_SHIFT | number


def key_bounds(session: int) -> tuple[int, int]:
    """Return a key below all keys of a session, and one above."""
    return make_key(session, 0), make_key(session + 1, 0)


def split_key(row_key: int) -> tuple[int, int]:
    """Return the session and the number of a key."""
    return row_key >> SESSION_SHIFT, row_key & ((1 << SESSION_SHIFT) - 1)


def label_place(
    session: int, exchange: int = 0, seq: int = -1, *, with_session: bool = False
) -> str:
    """Return a place for people: `#2`, its frame `#2.5`, `#3:2.5` in session 3, `session 1` without
    an exchange.

    The number of session 1 is left out, except with `with_session`.
    """
    if not exchange:
        return f"session {session}"
    number = f"#{session}:{exchange}" if with_session or session > 1 else f"#{exchange}"
    return f"{number}.{seq}" if seq >= 0 else number
