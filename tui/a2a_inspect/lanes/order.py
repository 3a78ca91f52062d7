"""Order of the rows: frames by time, with marks and pauses between them. Holds two integers per row
and no objects.

An entry is the id of a frame, 0 for a pause, or -1-n for mark n.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Sequence
from enum import IntEnum
from itertools import chain
from typing import NamedTuple

from msgspec.structs import replace

from a2a_inspect.lanes.model import LaneMark, LaneRowKind
from a2a_proxy.model.values import IDLE
from a2a_proxy.present import text

PAUSE_ENTRY = 0
"""The entry of a pause."""


class TurnEffect(IntEnum):
    """Effect of a frame on whose turn it is."""

    NEITHER = 0
    ASKS_INPUT = 1
    """The agent waits for input."""
    ASKS_AUTH = 2
    """The agent waits for authorisation."""
    SAYS = 3
    """The client sends a message to the agent."""


_WAIT_TURNS = (TurnEffect.ASKS_INPUT, TurnEffect.ASKS_AUTH)


class FrameKey(NamedTuple):
    """Facts about a frame that are known before its payload is read."""

    id: int
    at: int
    exchange: int
    seq: int
    task: int
    """Number that identifies the task; 0 if the frame names none."""
    turns: TurnEffect


class RowOrder:
    """The order of the rows. Add the frames by time, then call `finish`."""

    def __init__(self, marks: Iterable[LaneMark] = ()) -> None:
        self.entries = array("q")
        self.times = array("q")
        """Time of each entry; for entries other than frames, the time of the preceding frame."""
        self.marks: list[LaneMark] = []
        self.frames = 0
        self._mark_indexes = array("q")
        """Entry index of each mark."""
        self._marks_by_frame: dict[tuple[int, int], list[LaneMark]] = {}
        floating: list[LaneMark] = []
        for mark in marks:
            of = (
                self._marks_by_frame.setdefault((mark.exchange, mark.seq), [])
                if mark.seq >= 0
                else floating
            )
            of.append(mark)
        self._free_marks = deque(sorted(floating, key=lambda mark: mark.at))
        self._open_waits: dict[tuple[int, int], int] = {}
        """Task and exchange -> the mark of the agent's current wait."""
        self._last_time = 0

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def start(self) -> int:
        """Time of the first frame, ns; 0 without frames."""
        return self.times[0] if self.times else 0

    def add_frame(self, frame: FrameKey) -> None:
        """Add the next frame."""
        while self._free_marks and self._free_marks[0].at < frame.at:
            self._append_mark(self._free_marks.popleft())
        here = (
            self._marks_by_frame.pop((frame.exchange, frame.seq), ())
            if self._marks_by_frame
            else ()
        )
        if self.frames and frame.at - self._last_time >= IDLE:
            self._append_entry(PAUSE_ENTRY)
        if frame.turns is TurnEffect.SAYS and self._open_waits:
            self._end_waits(frame)
        self._last_time = self._last_time if self.frames else frame.at
        for mark in here:
            if mark.what is LaneRowKind.TURN:
                self._append_mark(mark)
        self.entries.append(frame.id)
        self.times.append(frame.at)
        self._last_time = frame.at
        self.frames += 1
        for mark in here:
            if mark.what is not LaneRowKind.TURN:
                self._append_mark(mark)
        if frame.turns in _WAIT_TURNS:
            self._begin_wait(frame)

    def finish(self) -> None:
        """Append the marks that belong to no frame."""
        unplaced = chain(self._free_marks, *self._marks_by_frame.values())
        for mark in sorted(unplaced, key=lambda each: each.at):
            self._append_mark(mark)
        self._free_marks.clear()
        self._marks_by_frame.clear()

    def frame_before(self, index: int) -> int:
        """Return the time of the frame before this entry, ns; for the first entry its own time."""
        return self.times[max(index - 1, 0)]

    def pause_length(self, index: int) -> int:
        """Return the length of the pause at this entry, ns."""
        after = next(at for at in range(index + 1, len(self.entries)) if self.entries[at] > 0)
        return self.times[after] - self.times[index]

    def next_mark(self, index: int, by: int, whats: Sequence[LaneRowKind]) -> int | None:
        """Return the nearest entry after (`by` 1) or before (-1) this entry whose kind is one of
        these."""
        after = (
            bisect_right(self._mark_indexes, index)
            if by > 0
            else bisect_left(self._mark_indexes, index) - 1
        )
        numbers = range(after, len(self._mark_indexes)) if by > 0 else range(after, -1, -1)
        return next((self._mark_indexes[n] for n in numbers if self.marks[n].what in whats), None)

    def index_of(self, frame: int) -> int | None:
        """Return the index of the frame with this id."""
        try:
            return self.entries.index(frame)
        except ValueError:
            return None

    def _append_entry(self, value: int) -> None:
        self.entries.append(value)
        self.times.append(self._last_time)

    def _append_mark(self, mark: LaneMark) -> None:
        self.marks.append(mark)
        self._mark_indexes.append(len(self.entries))
        self._last_time = self._last_time or mark.at
        self._append_entry(-len(self.marks))

    def _begin_wait(self, frame: FrameKey) -> None:
        if any(frame.task == task for task, _ in self._open_waits):
            return  # repeated, on another stream or in the answer to a poll
        what = "authorisation" if frame.turns is TurnEffect.ASKS_AUTH else "input"
        self._open_waits[frame.task, frame.exchange] = len(self.marks)
        self._append_mark(
            LaneMark(LaneRowKind.WAIT, frame.at, frame.exchange, frame.seq, f"waits for {what}")
        )

    def _end_waits(self, frame: FrameKey) -> None:
        for task, exchange in list(self._open_waits):
            if frame.task == task or frame.exchange == exchange:
                number = self._open_waits.pop((task, exchange))
                mark = self.marks[number]
                words = mark.text.replace(
                    "waits", f"waited {text.format_duration(frame.at - mark.at)}", 1
                )
                self.marks[number] = replace(mark, text=words)
