"""From the journal into the observer: records in order, those left out that have killed earlier recorders."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec

from a2a_proxy.capture.journal_reader import JournalReader
from a2a_proxy.capture.record_format import RECORD_HEADER, Position
from a2a_proxy.model.chunk import Chunk
from a2a_proxy.model.observation import Observation
from a2a_proxy.observer import Observer
from a2a_proxy.recorder.crashes import CrashHistory
from a2a_proxy.redaction import Redactor

READ_BYTES = 1 << 20
"""Bytes of journal decoded before the clock is looked at again."""
PIECE = 1 << 17
"""Bytes read at once."""
MOST = 10_000
"""Observations after which no more is read: a message may be as short as five bytes, and what is made of each is held
in memory until it is stored."""
_SILENCE_MARGIN = 500_000_000
"""ns after which a record has surely been written to the journal and read."""
_ABANDON_REASON = "a record of it has ended the recorder three times"


class DecoderSnapshot(msgspec.Struct):
    """The decoders at a position, as it lies in a file beside the journal. It holds credentials."""

    position: Position
    observer: dict[str, object]
    at: int = 0
    """Time of the last record before it, ns."""


class JournalPump:
    """One observer and the place in the journal up to which it has read."""

    def __init__(
        self, folder: Path, crashes: CrashHistory, observer: Observer, position: Position | None = None
    ) -> None:
        self.crashes = crashes
        self.observer = observer
        self.reader = JournalReader(folder, position) if position is not None else JournalReader(folder)
        self.last_at = 0
        """Time of the last record read, ns; 0 before the first."""
        self._read_at = time.monotonic_ns()

    @classmethod
    def restore(cls, folder: Path, crashes: CrashHistory, snapshot: bytes, redactor: Redactor) -> JournalPump:
        """Go on from where `save` was called. Raises msgspec.MsgspecError, or others, where `snapshot` is damaged."""
        saved = msgspec.msgpack.decode(snapshot, type=DecoderSnapshot, strict=False)
        pump = cls(folder, crashes, Observer.restore(saved.observer, redactor), saved.position)
        pump.last_at = saved.at
        return pump

    def save(self) -> bytes:
        """The decoders as they are now, and where they are."""
        return msgspec.msgpack.encode(DecoderSnapshot(self.reader.position, self.observer.save(), self.last_at))

    def decode_next(self, out: list[Observation], until: Position | None = None, max_bytes: int = READ_BYTES) -> bool:
        """Decode the next records, up to `bytes` of them, none beyond `until`; False where there are none now."""
        reader, observer = self.reader, self.observer
        abandoned = self.crashes.next_abandoned(reader.position)
        if abandoned == reader.position:
            chunks = reader.read(1)
            for chunk in chunks:
                observer.abandon(chunk.connection, chunk.at, _ABANDON_REASON, out)
        else:
            stop = min((at for at in (abandoned, until) if at is not None), default=None)
            observer.hold_rules()
            chunks = self._read(max_bytes, stop, out)
            observer.judge_held(out)
        if chunks:
            self.last_at, self._read_at = chunks[-1].at, time.monotonic_ns()
        return bool(chunks)

    def _read(self, size: int, stop: Position | None, out: list[Observation]) -> list[Chunk]:
        """Feed the next records to the observer; the last ones of them."""
        most = len(out) + MOST
        last: list[Chunk] = []
        while size > 0 and len(out) < most and (chunks := self.reader.read(min(size, PIECE), stop)):
            for chunk in chunks:
                self.observer.feed(chunk, out)
                size -= len(chunk.data) + RECORD_HEADER.size
            last = chunks
        return last

    def tick(self, out: list[Observation]) -> None:
        """The journal has been read to its end: rules may judge silence.

        The time is that of the last record and what has passed since it was read: the relay's clock, not this one's.
        """
        if self.last_at:
            self.observer.tick(self.last_at + time.monotonic_ns() - self._read_at - _SILENCE_MARGIN, out)

    def catch_up(self, committed: Position) -> None:
        """Decode again what is stored already, to bring the decoders where they were; the results are dropped."""
        while self.reader.position < committed and self.decode_next([], committed):
            pass
        self.observer.changes()
