"""Speed of the screen on a large recording, in a pseudo terminal: opening, moving, following,
memory."""

from __future__ import annotations

import bisect
import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO

import msgspec
from feeding import feeding
from journals import Made
from terminal import Terminal

from a2a_proxy.recording.read.reader import Recording

HERE = Path(__file__).parent
DOWN, PAGE_DOWN, HOME, END, ESCAPE = b"\x1b[B", b"\x1b[6~", b"\x1b[H", b"\x1b[F", b"\x1b"
_TYPED = 0.1
"""Seconds between the last letter of a filter and Enter, short enough that the filter is not
applied by itself."""
_PER_SECOND = 30
"""Keys per second of a held key, as terminals repeat it."""
_ROWS = r"Send\w*Message"


class Paint(msgspec.Struct, frozen=True):
    """The state of the screen after a redraw; see `watched`."""

    at: float
    cursor: int
    total: int
    read: bool


class Pause(msgspec.Struct, frozen=True):
    """The event loop was blocked; see `watched`."""

    at: float
    took: float
    worked: float


class Moved(msgspec.Struct, frozen=True):
    """Key presses of one kind; seconds, one value per key."""

    name: str
    painted: tuple[float, ...]
    """Until the cursor was on its new row on the screen."""
    read: tuple[float, ...]
    """Until the content of that row was shown too."""
    pause: float
    """The longest pause of the event loop meanwhile."""
    worked: float
    """The largest processor time of its thread in one of the pauses, which is work of the program
    itself."""


class Looked(msgspec.Struct, frozen=True):
    """One run of the program."""

    moves: tuple[Moved, ...]
    mib: float
    """Peak memory."""
    filters: dict[str, float] = {}
    """Filters: seconds from Enter until the first rows were shown."""
    grown: int = 0
    """Rows by which the list grew."""


def opening(recording: Path, folder: Path) -> tuple[float, float]:
    """Return the seconds from the start of the process to the first rows on the screen, and its
    processor time meanwhile.

    The program is compiled to bytecode in `folder`, like every installed program.
    """
    compiled = {"PYTHONPYCACHEPREFIX": str(folder / "compiled"), "PYTHONDONTWRITEBYTECODE": ""}
    command = [str(Path(sys.executable).with_name("a2a-inspect")), str(recording)]
    if not (folder / "compiled").exists():
        with contextlib.closing(Terminal(command, **compiled)) as first:
            first.until(_ROWS, first.began)
    terminal = Terminal(command, **compiled)
    with contextlib.closing(terminal):
        return terminal.until(_ROWS, terminal.began) - terminal.began, terminal.worked()


def moving(recording: Path, folder: Path, seconds: float) -> Looked:
    """Press and hold keys over a recording that does not change."""
    with _watched(recording, folder / "moving.log") as looker:
        looker.settle(lambda paint: paint.cursor == paint.total - 1 and paint.read)
        looker.jump(HOME, lambda paint: paint.cursor == 0)
        page = looker.step(PAGE_DOWN)
        moves = [looker.held("Page Down held", PAGE_DOWN, page, seconds)]
        moves.append(looker.jumps("Home and End by turns", seconds))
        looker.jump(HOME, lambda paint: paint.cursor == 0)
        moves.append(looker.held("Down held", DOWN, 1, seconds))
        filters = {each: looker.filtered(each) for each in _filters(recording)}
        return Looked(tuple(moves), looker.terminal.resident_mib(), filters)


def _filters(recording: Path) -> tuple[str, ...]:
    """Return filters with early matches, with matches only at the end, and with matches in
    payloads. Each matches some rows, none matches all."""
    with Recording(recording) as opened:
        return (
            "op:SendMessage",
            "kind:artifact",
            f"task:{list(opened.read_tasks())[-1].task.task_id}",
            "the",
        )


def following(recording: Path, made: Made, folder: Path, rate: float, seconds: float) -> Looked:
    """Measure the same while a recorder writes `rate` messages per second; the recording has one
    more session afterwards."""
    with _watched(recording, folder / "following.log") as looker:
        before = looker.settle(lambda paint: paint.cursor == paint.total - 1 and paint.read)
        with feeding(made, folder / "fed", recording, rate) as done:
            looker.settle(
                lambda paint: paint.total > before.total and paint.cursor == paint.total - 1
            )
            moves = [looker.idle("following, no key", seconds)]
            moves.append(looker.jumps("Home and End by turns", seconds))
            looker.jump(HOME, lambda paint: paint.cursor == 0)
            moves.append(looker.held("Down held", DOWN, 1, seconds))
            if done.is_set():
                raise RuntimeError("the journal was too short: nothing was followed at the end")
        grown = looker.settle(lambda paint: paint.read).total - before.total
        return Looked(tuple(moves), looker.terminal.resident_mib(), grown)


@contextlib.contextmanager
def _watched(recording: Path, log: Path) -> Iterator[_Looker]:
    terminal = Terminal([sys.executable, str(HERE / "watched.py"), str(recording), str(log)])
    with contextlib.closing(terminal):
        terminal.until(_ROWS, terminal.began)
        with log.open() as lines:
            yield _Looker(terminal, lines)


def _past(row: int) -> Callable[[Paint], bool]:
    return lambda paint: paint.cursor >= min(row, paint.total - 1)


def _read(there: Callable[[Paint], bool]) -> Callable[[Paint], bool]:
    return lambda paint: there(paint) and paint.read


class _Looker:
    """A user with a stopwatch."""

    def __init__(self, terminal: Terminal, log: TextIO) -> None:
        self.terminal = terminal
        self._log = log
        self._rest = ""
        self._painted: list[Paint] = []
        self._pauses: list[Pause] = []

    def step(self, key: bytes) -> int:
        """Return the number of rows by which a key moves the cursor away from the first row."""
        before = self._paints(0.0)[-1].cursor
        self.terminal.press(key)
        return self.settle(lambda paint: paint.cursor != before and paint.read).cursor - before

    def jump(self, key: bytes, there: Callable[[Paint], bool]) -> tuple[float, float]:
        """Press a key; return the seconds until the cursor was on its new row, and until that row
        was read."""
        pressed = self.terminal.press(key)
        self.settle(lambda paint: paint.at > pressed and there(paint) and paint.read)
        return self._took(pressed, there)

    def jumps(self, name: str, seconds: float) -> Moved:
        """Jump to the first row and to the last one in turns."""
        began, took = time.monotonic(), []
        while time.monotonic() - began < seconds:
            took.append(self.jump(HOME, lambda paint: paint.cursor == 0))
            time.sleep(0.2)
            took.append(self.jump(END, lambda paint: paint.cursor == paint.total - 1))
            time.sleep(0.2)
        return self._moved(name, began, took)

    def held(self, name: str, key: bytes, rows: int, seconds: float) -> Moved:
        """Hold a key that moves by that many rows."""
        first, began, pressed = self._paints(0.0)[-1].cursor, time.monotonic(), []
        for turn in range(int(seconds * _PER_SECOND)):
            time.sleep(max(began + turn / _PER_SECOND - time.monotonic(), 0))
            pressed.append(self.terminal.press(key))
        last = first + rows * len(pressed)
        self.settle(_read(_past(last)))
        took = [self._took(at, _past(first + rows * turn)) for turn, at in enumerate(pressed, 1)]
        return self._moved(name, began, took)

    def filtered(self, text: str) -> float:
        """Enter a filter; return the seconds from Enter until its first rows were shown. Then
        remove it."""
        total = self._paints(0.0)[-1].total

        def left(paint: Paint) -> bool:
            return paint.at > pressed and paint.total < total and paint.read

        self.terminal.press(b"/" + text.encode())
        time.sleep(_TYPED)
        pressed = self.terminal.press(b"\r")
        self.settle(left)
        found = next(filter(left, self._paints(pressed)))
        for _ in range(2):  # the first Esc may stop a search that still runs
            self.terminal.press(ESCAPE)
            time.sleep(1)
        self.settle(lambda paint: paint.total == total and paint.read)
        return found.at - pressed

    def idle(self, name: str, seconds: float) -> Moved:
        """Wait without input."""
        began = time.monotonic()
        time.sleep(seconds)
        return self._moved(name, began, [])

    def settle(self, there: Callable[[Paint], bool], wait: float = 60.0) -> Paint:
        """Wait until the last redraw is on the screen. Raises RuntimeError if it does not become
        stable."""
        deadline = time.monotonic() + wait
        while time.monotonic() < deadline:
            paints = self._paints(0.0)
            if paints and there(paints[-1]):
                return paints[-1]
            time.sleep(0.02)
        raise RuntimeError(f"the screen did not come to it; at last {self._paints(0.0)[-1:]}")

    def _took(self, pressed: float, there: Callable[[Paint], bool]) -> tuple[float, float]:
        after = [paint for paint in self._paints(pressed) if there(paint)]
        return after[0].at - pressed, next(paint.at for paint in after if paint.read) - pressed

    def _moved(self, name: str, began: float, took: list[tuple[float, float]]) -> Moved:
        self._listen()
        pauses = [pause for pause in self._pauses if pause.at > began]
        return Moved(
            name,
            tuple(painted for painted, _ in took),
            tuple(read for _, read in took),
            max((pause.took for pause in pauses), default=0.0),
            max((pause.worked for pause in pauses), default=0.0),
        )

    def _paints(self, since: float) -> list[Paint]:
        self._listen()
        return self._painted[bisect.bisect(self._painted, since, key=lambda paint: paint.at) :]

    def _listen(self) -> None:
        """Read the new lines; an incomplete line is read the next time."""
        *lines, self._rest = (self._rest + self._log.read()).split("\n")
        for kind, *words in map(str.split, lines):
            numbers = [float(word) for word in words]
            if kind == "paint":
                self._painted.append(
                    Paint(numbers[0], int(numbers[1]), int(numbers[2]), bool(numbers[3]))
                )
            else:
                self._pauses.append(Pause(*numbers))
