"""Where a follower is, in a file without a name that outlives the process: the next one goes on from there.

The file has two slots; the number at its beginning says by its last bit which one is valid. So a process that is killed
at any moment leaves a state that was true. Whoever started the follower reads the marks as they change.
"""

from __future__ import annotations

import os
import struct

import msgspec

from a2a_proxy.recording.read.cursor import Fingerprint

_EPOCH_FORMAT = struct.Struct("<Q")
_MARK_FORMAT = struct.Struct("<QQQQQ")
_SLOTS = (4096, 1 << 30)
"""Where they begin; what lies between takes no room on the disk."""
_LENGTH_AT = _MARK_FORMAT.size
_STATE_AT = _MARK_FORMAT.size + _EPOCH_FORMAT.size


class CallMark(msgspec.Struct, frozen=True):
    """What changes with each call."""

    done: int = 0
    """Items of the batch that have been handed over; of one that is taken as a whole, what its consumer counts."""
    calls: int = 0
    """Calls made since the beginning, over all processes."""
    errors: int = 0
    """Those that failed."""
    frame: int = 0
    """Id of the last frame that was passed."""
    since: int = 0
    """When the call that is being made began, ns of the monotonic clock; 0 between calls."""


class TableProgress(msgspec.Struct):
    """What is known of one table of segments, interruptions or hand-offs."""

    top: int = 0
    """The highest number that was seen."""
    seen: bytes = b""
    """Which of the numbers up to it were seen: one bit each, the lowest that of `top`."""
    open: list[int] = []
    """Numbers of those that have not ended."""


class SessionCursor(msgspec.Struct):
    """How far one session has been followed."""

    frame: int = 0
    """Id of the last frame."""
    finding: int = 0
    """Id of the last finding."""
    own_frame: int = 0
    """Id of the last frame of this session; `frame` may be one of another session, and that may be pruned."""
    own_finding: int = 0
    frame_print: Fingerprint = ()
    """Which row `frame` was: its number may be given out again."""
    finding_print: Fingerprint = ()
    exchange: int = 0
    """Key of the last exchange that is known: those up to it are over and told, or in `open`."""
    open: list[int] = []
    """Keys of the exchanges whose end is still to be told."""
    parts: dict[int, TableProgress] = {}
    """The same for segments, interruptions and hand-offs, by kind."""
    at: int = 0
    """Time of the newest frame, ns."""
    over: bool = False
    """There will be nothing more."""


class PendingBatch(msgspec.Struct):
    """A batch on its way."""

    session: int
    items: list[tuple[int, int]]
    """Kind, and the row's number."""
    after: SessionCursor
    """Where the session is when all of them have been handed over."""


class FollowerState(msgspec.Struct):
    """All that a new process needs."""

    file: tuple[int, int] | None = None
    """Device and inode of the recording; None before it was opened."""
    cursors: dict[int, SessionCursor] = {}
    batch: PendingBatch | None = None
    notes: dict[int, int] = {}
    """What a consumer wants to know again, by the key of a call."""


_decode = msgspec.msgpack.Decoder(FollowerState)


class CheckpointFile:
    """Reads and writes the file behind a descriptor."""

    def __init__(self, descriptor: int) -> None:
        self._file = descriptor

    def load(self) -> FollowerState:
        """The state that was stored last; an empty one at first."""
        start = self._slot_offset(self._read_epoch())
        length = self._read_number(start + _LENGTH_AT)
        return _decode.decode(os.pread(self._file, length, start + _STATE_AT)) if length else FollowerState()

    def store(self, state: FollowerState, mark: CallMark) -> None:
        """Replace the state and the mark, both or neither."""
        epoch = self._read_epoch() + 1
        start, data = self._slot_offset(epoch), msgspec.msgpack.encode(state)
        os.pwrite(self._file, _pack_mark(mark) + _EPOCH_FORMAT.pack(len(data)) + data, start)
        os.pwrite(self._file, _EPOCH_FORMAT.pack(epoch), 0)

    def mark(self, mark: CallMark) -> None:
        """Replace the mark."""
        os.pwrite(self._file, _pack_mark(mark), self._slot_offset(self._read_epoch()))

    def read_mark(self) -> CallMark:
        """The mark as it is now."""
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
