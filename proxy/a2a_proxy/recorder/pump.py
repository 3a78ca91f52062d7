"""Feeds the journal into the observer: records in order, without those that have killed earlier
recorders."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec

from a2a_proxy.capture.journal_reader import JournalReader
from a2a_proxy.capture.record_format import RECORD_HEADER, Position
from a2a_proxy.model.saved_state import decode_state, encode_state
from a2a_proxy.model.values import Observation
from a2a_proxy.model.wire import Chunk
from a2a_proxy.observer import Observer, ObserverState
from a2a_proxy.recorder.crashes import CrashHistory
from a2a_proxy.redaction import Redactor

READ_BYTES = 1 << 20
"""Bytes of journal decoded between two reads of the clock."""
PIECE = 1 << 17
"""Bytes read at once."""
MOST = 10_000
"""Observations after which no more records are read: a message may be as short as five bytes, and
its observations are held in memory until they are stored."""
_SILENCE_MARGIN = 500_000_000
"""ns after which a record has certainly been written to the journal and read."""
_ABANDON_REASON = "one of its records has killed the recorder three times"


class DecoderSnapshot(msgspec.Struct):
    """The decoders at a position, as stored in a file next to the journal. It holds credentials."""

    position: Position
    observer: ObserverState
    at: int = 0
    """Time of the last record before it, ns."""


class JournalPump:
    """An observer and its position in the journal."""

    def __init__(
        self,
        folder: Path,
        crashes: CrashHistory,
        observer: Observer,
        position: Position | None = None,
    ) -> None:
        self.crashes = crashes
        self.observer = observer
        self.reader = (
            JournalReader(folder, position) if position is not None else JournalReader(folder)
        )
        self.last_at = 0
        """Time of the last record read, ns; 0 before the first."""
        self._read_at = time.monotonic_ns()
        self.decoded_bytes = 0
        """Bytes of records decoded by this object."""

    @classmethod
    def restore(
        cls, folder: Path, crashes: CrashHistory, snapshot: bytes, redactor: Redactor
    ) -> JournalPump:
        """Continue from the state that `save` returned.

        Raises msgspec.MsgspecError or others if `snapshot` is damaged.
        """
        saved = decode_state(snapshot, DecoderSnapshot)
        pump = cls(folder, crashes, Observer.restore(saved.observer, redactor), saved.position)
        pump.last_at = saved.at
        return pump

    def save(self) -> bytes:
        """Return the current state of the decoders and their position."""
        return encode_state(
            DecoderSnapshot(self.reader.position, self.observer.save(), self.last_at)
        )

    def decode_next(
        self, out: list[Observation], until: Position | None = None, max_bytes: int = READ_BYTES
    ) -> bool:
        """Decode the next records, up to `max_bytes` and not beyond `until`; return False if they
        do not exist yet."""
        reader, observer = self.reader, self.observer
        abandoned = self.crashes.next_abandoned(reader.position)
        if abandoned == reader.position:
            chunks = reader.read(1)
            for chunk in chunks:
                observer.abandon_connection(chunk.connection, chunk.at, _ABANDON_REASON, out)
        else:
            stop = min((at for at in (abandoned, until) if at is not None), default=None)
            observer.hold_rules()
            chunks = self._read_records(max_bytes, stop, out)
            observer.judge_held(out)
        if chunks:
            self.last_at, self._read_at = chunks[-1].at, time.monotonic_ns()
        return bool(chunks)

    def _read_records(
        self, size: int, stop: Position | None, out: list[Observation]
    ) -> list[Chunk]:
        """Feed the next records to the observer and return the last batch of them."""
        most = len(out) + MOST
        last: list[Chunk] = []
        while size > 0 and len(out) < most and (chunks := self.reader.read(min(size, PIECE), stop)):
            for chunk in chunks:
                self.observer.feed(chunk, out)
                length = len(chunk.data) + RECORD_HEADER.size
                size -= length
                self.decoded_bytes += length
            last = chunks
        return last

    def tick(self, out: list[Observation]) -> None:
        """Let the rules judge silence: the journal has been read to its end.

        The time is that of the last record plus the time since it was read, so it follows the
        relay's clock, not this one.
        """
        if self.last_at:
            self.observer.tick(
                self.last_at + time.monotonic_ns() - self._read_at - _SILENCE_MARGIN, out
            )

    def catch_up(self, committed: Position) -> None:
        """Decode records that are stored already, to restore the decoders' state; the results are
        dropped."""
        while self.reader.position < committed and self.decode_next([], committed):
            pass
        self.observer.pop_changes()
