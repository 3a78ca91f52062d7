"""`a2a-inspect tail`: the newest frames of all exchanges in order of storing, and those that are still to come."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from a2a_inspect.commands.session import finding_words
from a2a_inspect.commands.show import ARROWS, frame_object
from a2a_inspect.place import chosen, opened
from a2a_proxy.cli import text
from a2a_proxy.cli.console import finding_object
from a2a_proxy.cli.errors import tell
from a2a_proxy.model.exchange import Binding, Exchange
from a2a_proxy.model.frame import Frame
from a2a_proxy.protocol.describe import describe
from a2a_proxy.protocol.text import visible
from a2a_proxy.recording.reader import Recording
from a2a_proxy.recording.rows import FindingRow, FrameRow, key

POLL = 0.1
"""Seconds between looks at a recording that may grow: the recorder commits as often."""
_REMEMBERED = 4096
"""Exchanges whose operation is kept."""


class Tail(msgspec.Struct, frozen=True):
    """What was asked for."""

    count: int
    """Frames of the past."""
    follow: bool
    as_json: bool


def tail(path: Path | None, wanted: Tail, sleep: Callable[[float], None] = time.sleep) -> None:
    """Print the last frames, and with `follow` each further one within `POLL` of its being stored, until interrupted.

    Raises:
        UserError: the recording cannot be opened.
    """
    if wanted.follow and path is not None:
        _await(path, sleep)
    with opened(chosen(path)) as recording:
        follower = _Follower(recording, wanted)
        follower.past()
        seen = recording.data_version()
        while wanted.follow:
            sleep(POLL)
            if (now := recording.data_version()) != seen:
                seen = now
                follower.more()


def _await(path: Path, sleep: Callable[[float], None]) -> None:
    """Wait until a proxy has made the recording."""
    if not path.exists():
        tell("a2a-inspect", f"there is no recording {path} yet: waiting", "Ctrl-C ends this")
    while not path.exists():
        sleep(POLL)


class _Follower:
    """Cursors into the frames and the findings of a recording."""

    def __init__(self, recording: Recording, wanted: Tail) -> None:
        self._recording = recording
        self._wanted = wanted
        self._frame = self._finding = 0
        self._exchanges: dict[int, Exchange] = {}

    def past(self) -> None:
        """The last frames, with what was found since the first of them."""
        last = "SELECT coalesce(max(id), 0) FROM {}"
        newest, found = (int(self._recording.db.execute(last.format(of)).fetchone()[0]) for of in ("frame", "finding"))
        self._frame, self._finding = max(newest - self._wanted.count, 0), found
        if self._wanted.count:
            self._finding = self._before(
                next(self._recording.frames_after(self._frame, 1, payloads=False), None), found
            )
        self.more()

    def _before(self, first: FrameRow | None, found: int) -> int:
        """The last finding that was stored before those about `first` and later frames."""
        if first is None:
            return found
        earlier = "SELECT coalesce(max(id), 0) FROM finding WHERE session < ? OR (session = ? AND at < ?)"
        at = first.frame.at - self._started(first.session)
        return int(self._recording.db.execute(earlier, (first.session, first.session, at)).fetchone()[0])

    def _started(self, session: int) -> int:
        row = self._recording.session(session)
        return row.facts.started if row is not None else 0

    def more(self) -> None:
        """What has been stored since: each finding under its frame, the others after all frames.

        Findings are read first, so the frames that they are about are there when those are read.
        """
        found: dict[tuple[int, int, int], list[FindingRow]] = {}
        for each in self._recording.findings(after=self._finding):
            self._finding = each.id
            found.setdefault((each.session, each.finding.exchange, each.finding.seq), []).append(each)
        for row in self._recording.frames_after(self._frame):
            self._frame = row.id
            self._print(self._frame_object(row) if self._wanted.as_json else self._frame_line(row))
            if row.frame.exchange:
                self._tell(found.pop((row.session, row.frame.exchange, row.frame.seq), []))
        for rest in found.values():
            self._tell(rest)

    def _tell(self, found: list[FindingRow]) -> None:
        for row in found:
            self._print(_finding_object(row) if self._wanted.as_json else _finding_line(row))

    def _print(self, said: str | dict[str, object]) -> None:
        print(said if isinstance(said, str) else json.dumps(said), flush=True)

    def _frame_line(self, row: FrameRow) -> str:
        frame, exchange = row.frame, self._exchange(row)
        place = f"#{frame.exchange}.{frame.seq}" if frame.exchange else f"connection {frame.connection}"
        title = visible(text.title(exchange)) if exchange is not None else ""
        return "  ".join(
            part
            for part in (
                text.clock(frame.at),
                f"{place:<8}",
                title,
                f"{ARROWS[frame.direction]} {_said(frame, exchange)}",
            )
            if part
        )

    def _frame_object(self, row: FrameRow) -> dict[str, object]:
        exchange = self._exchange(row)
        about: dict[str, object] = {"session": row.session, "connection": row.frame.connection}
        if exchange is not None:
            about |= {"exchange": exchange.id, "operation": exchange.operation, "binding": str(exchange.binding)}
        return {**about, **frame_object(row.frame, exchange or _NO_EXCHANGE)}

    def _exchange(self, row: FrameRow) -> Exchange | None:
        """The exchange of a frame, as it was when it was looked at first."""
        if not row.frame.exchange:
            return None
        number = key(row.session, row.frame.exchange)
        if number not in self._exchanges:
            if len(self._exchanges) >= _REMEMBERED:
                self._exchanges.clear()
            found = self._recording.exchange(number)
            if found is None:
                return None
            self._exchanges[number] = found.exchange
        return self._exchanges[number]


_NO_EXCHANGE = Exchange(id=0, connection=0, stream=0, binding=Binding.OTHER, started=0)


def _said(frame: Frame, exchange: Exchange | None) -> str:
    about = exchange or _NO_EXCHANGE
    return describe(frame, frame.payload, about.operation, about.dialect)


def _finding_line(row: FindingRow) -> str:
    finding = row.finding
    place = text.place(finding) or f"connection {finding.connection}"
    return f"{text.clock(finding.at)}  {place:<8}  {finding_words(finding)}"


def _finding_object(row: FindingRow) -> dict[str, object]:
    return {"session": row.session, "finding": finding_object(row.finding)}
