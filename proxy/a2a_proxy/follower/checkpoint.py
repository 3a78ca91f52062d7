"""A follower's position, in an unnamed file that survives the process, so that the next process
continues from it.

The file has two slots; the last bit of the number at its beginning selects the valid one. So a
process that is killed at any moment leaves a consistent state. The program that started the
follower reads the marks as they change.
"""

import os
import struct

import msgspec

from a2a_proxy.recording.read.cursor import Fingerprint

_EPOCH_FORMAT = struct.Struct("<Q")
_MARK_FORMAT = struct.Struct("<QQQQQ")
_SLOTS = (4096, 1 << 30)
"""Offsets of the slots; the gap between them uses no disk space."""
_LENGTH_AT = _MARK_FORMAT.size
_STATE_AT = _MARK_FORMAT.size + _EPOCH_FORMAT.size


class CallMark(msgspec.Struct, frozen=True):
    """The values that change with each call."""

    done: int = 0
    """Items of the batch that were handed over; of a batch taken as a whole, the count of its
    consumer."""
    calls: int = 0
    """Calls made so far, over all processes."""
    errors: int = 0
    """Failed calls."""
    frame: int = 0
    """Id of the last frame that was passed."""
    since: int = 0
    """Start of the current call, ns of the monotonic clock; 0 between calls."""


class TableProgress(msgspec.Struct):
    """Progress in one table of segments, interruptions or hand-offs."""

    top: int = 0
    """The highest number seen."""
    seen: bytes = b""
    """Bit set of the numbers seen up to `top`, which is the lowest bit."""
    open: list[int] = []
    """Numbers of the rows that have not ended."""


class SessionCursor(msgspec.Struct):
    """Progress in one session."""

    frame: int = 0
    """Id of the last frame."""
    finding: int = 0
    """Id of the last finding."""
    own_frame: int = 0
    """Id of the last frame of this session; `frame` may belong to another session, which may be
    pruned."""
    own_finding: int = 0
    frame_print: Fingerprint = ()
    """Fingerprint of the row `frame`, because its number may be assigned again."""
    finding_print: Fingerprint = ()
    exchange: int = 0
    """Key of the last known exchange: all up to it are closed and reported, or in `open`."""
    open: list[int] = []
    """Keys of the exchanges whose end is not reported yet."""
    parts: dict[int, TableProgress] = {}
    """The same for segments, interruptions and hand-offs, by kind."""
    at: int = 0
    """Time of the newest frame, ns."""
    over: bool = False
    """Whether there will be no more rows."""


class PendingBatch(msgspec.Struct):
    """A batch that is being handed over."""

    session: int
    items: list[tuple[int, int]]
    """Kind and number of each row."""
    after: SessionCursor
    """The session's cursor after all of them are handed over."""


class FollowerState(msgspec.Struct):
    """Everything a new process needs."""

    file: tuple[int, int] | None = None
    """Device and inode of the recording; None before it was opened."""
    cursors: dict[int, SessionCursor] = {}
    batch: PendingBatch | None = None
    notes: dict[int, int] = {}
    """Values that a consumer keeps across processes, by the key of a call."""


_decode = msgspec.msgpack.Decoder(FollowerState)


class CheckpointFile:
    """Reads and writes the checkpoint file of a descriptor."""

    def __init__(self, descriptor: int) -> None:
        self._file = descriptor

    def load(self) -> FollowerState:
        """Return the last stored state, or an empty one."""
        start = self._slot_offset(self._read_epoch())
        length = self._read_number(start + _LENGTH_AT)
        return (
            _decode.decode(os.pread(self._file, length, start + _STATE_AT))
            if length
            else FollowerState()
        )

    def store_state(self, state: FollowerState, mark: CallMark) -> None:
        """Replace the state and the mark atomically."""
        epoch = self._read_epoch() + 1
        start, data = self._slot_offset(epoch), msgspec.msgpack.encode(state)
        os.pwrite(self._file, _pack_mark(mark) + _EPOCH_FORMAT.pack(len(data)) + data, start)
        os.pwrite(self._file, _EPOCH_FORMAT.pack(epoch), 0)

    def store_mark(self, mark: CallMark) -> None:
        """Replace the mark."""
        os.pwrite(self._file, _pack_mark(mark), self._slot_offset(self._read_epoch()))

    def read_mark(self) -> CallMark:
        """Return the current mark."""
        data = os.pread(self._file, _MARK_FORMAT.size, self._slot_offset(self._read_epoch()))
        return CallMark(*_MARK_FORMAT.unpack(data.ljust(_MARK_FORMAT.size, b"\0")))

    def _read_epoch(self) -> int:
        return self._read_number(0)

    def _read_number(self, at: int) -> int:
        data: tuple[int] = _EPOCH_FORMAT.unpack(
            os.pread(self._file, _EPOCH_FORMAT.size, at).ljust(_EPOCH_FORMAT.size, b"\0")
        )
        return data[0]

    def _slot_offset(self, epoch: int) -> int:
        return _SLOTS[epoch & 1]


def _pack_mark(mark: CallMark) -> bytes:
    return _MARK_FORMAT.pack(mark.done, mark.calls, mark.errors, mark.frame, mark.since)
