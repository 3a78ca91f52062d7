"""What a reader gives back: the model's values, each with its key in the file. And the facts of a session."""

from __future__ import annotations

import msgspec

from a2a_proxy.model.exchange import Connection, Exchange
from a2a_proxy.model.finding import Finding
from a2a_proxy.model.frame import Frame
from a2a_proxy.model.note import Note
from a2a_proxy.model.segment import Handoff, Interruption, Segment
from a2a_proxy.model.task import Task
from a2a_proxy.recording.store.schema import SESSION_SHIFT


class SessionFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known when a run of the proxy begins."""

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
    clock: str = ""
    """How the times were taken, in words: `utc+02:00, monotonic from start`."""
    pid: int = 0
    """The relay's process; 0 where there is none."""
    redaction: tuple[str, ...] = ()
    """What was taken out besides credentials, or left in, as words of a policy; of several rounds all."""


SELECTION_PREFIX = "only "
"""How `SessionRow.complete` begins, or goes on after `; `, where a person chose what of the session is here."""


class SessionRow(msgspec.Struct, frozen=True, kw_only=True):
    """One session as the file has it."""

    id: int
    facts: SessionFacts
    ended: int = 0
    """ns; 0 while it runs."""
    how: str = ""
    """`clean` or `unclean`; empty while it runs, or where nobody has said."""
    complete: str = ""
    """`complete`, or what is missing in words; empty while it runs."""
    lost: int = 0
    """Bytes that passed and were not captured."""
    edits: int = 0
    position: tuple[int, int] | None = None
    """Journal segment and offset up to which all is stored; None before the first."""
    snapshot: str | None = None
    """Name of the decoder snapshot of that position."""

    @property
    def missing_text(self) -> str:
        """What the capture lacks, in words: calls that were left out whole, on purpose, are no lack."""
        if self.complete == "complete" or self.complete.startswith(SELECTION_PREFIX):
            return ""
        return self.complete.partition(f"; {SELECTION_PREFIX}")[0]


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
    """A frame, its id (in order of storing) and where its payload is."""

    id: int
    session: int
    frame: Frame
    """Its `payload` is empty where the reader was asked to leave it out; `Recording.payload(row)` gets it."""
    block: int = 0
    """0 where no byte of it is in a block."""
    offset: int = 0
    size: int = 0
    """Bytes in the block: all of the payload, or what the pieces leave."""
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
    """How much a recording, or one session of it, holds."""

    sessions: int = 0
    connections: int = 0
    exchanges: int = 0
    frames: int = 0
    tasks: int = 0
    findings: int = 0


def make_key(session: int, number: int) -> int:
    """The key of an exchange or connection: one integer that orders by session, then by number."""
    return session << SESSION_SHIFT | number


def split_key(row_key: int) -> tuple[int, int]:
    """Session and number of a key."""
    return row_key >> SESSION_SHIFT, row_key & ((1 << SESSION_SHIFT) - 1)
