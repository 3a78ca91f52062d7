"""`a2a-inspect tail`: the newest frames of all exchanges in order of storing, and those that are still to come."""

from __future__ import annotations

import heapq
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from a2a_inspect.commands.session import finding_words
from a2a_inspect.commands.show import ARROWS, frame_object
from a2a_inspect.data.recording_choice import opened_several, reading
from a2a_inspect.signals import in_order
from a2a_proxy.cli.console import finding_object
from a2a_proxy.cli.errors import tell
from a2a_proxy.cli.streams import reader_gone
from a2a_proxy.model.exchange import Binding, Exchange
from a2a_proxy.model.frame import Frame
from a2a_proxy.present import text
from a2a_proxy.protocol.describe import describe_frame
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.recording.query.parser import parse
from a2a_proxy.recording.query.sql import Rows
from a2a_proxy.recording.read.cursor import RowCursor
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import FindingRow, FrameRow, make_key

POLL = 0.1
"""Seconds between looks at a recording that may grow: the recorder commits as often."""
_REMEMBERED = 4096
"""Exchanges whose operation is kept."""
_WINDOW = 512
"""Frames that are asked for at a time."""


class TailOptions(msgspec.Struct, frozen=True):
    """What was asked for."""

    count: int
    """Frames of the past."""
    follow: bool
    as_json: bool
    where: str = ""
    """An expression of the filter language: only frames that match when they are stored."""


def tail(paths: Sequence[Path], wanted: TailOptions, sleep: Callable[[float], None] = time.sleep) -> None:
    """Print the last frames, and with `follow` each further one within `POLL` of its being stored, until interrupted
    by Ctrl-C, SIGTERM or SIGHUP.

    What several recordings have is in the order of time: the past all of it, then what each look finds.

    Raises:
        UserError: a recording cannot be opened, or the filter is wrong.
    """
    with reading():
        parse(wanted.where)
    with in_order():
        _tail(paths, wanted, sleep)


def _tail(paths: Sequence[Path], wanted: TailOptions, sleep: Callable[[float], None]) -> None:
    if wanted.follow:
        for path in paths:
            if not _there(path, sleep):
                return
    with opened_several(paths, settled=not wanted.follow) as several:
        names = [member.name if len(several.members) > 1 else "" for member in several.members]
        width = max(map(len, names))
        followers = [
            _Follower(member.recording, wanted, make_visible(name).ljust(width), own)
            for member, name, own in zip(several.members, names, several.own_sessions(), strict=True)
        ]
        _print(_last(_by_time(each.past() for each in followers), wanted.count))
        while wanted.follow:
            sleep(POLL)
            if reader_gone():
                return
            _print(_by_time(each.more() for each in followers if each.changed()))


class TailEntry(NamedTuple):
    """What is printed together: a frame with what was found about it, or a finding alone."""

    at: int
    """ns since the epoch."""
    lines: list[str]
    frame: bool


def _by_time(groups: Iterable[Iterable[TailEntry]]) -> Iterator[TailEntry]:
    return heapq.merge(*groups, key=lambda said: said.at)


def _last(groups: Iterable[TailEntry], count: int) -> list[TailEntry]:
    """From the `count`th frame before the end on."""
    kept = list(groups)
    frames = [place for place, said in enumerate(kept) if said.frame]
    return kept[frames[-count] :] if 0 < count < len(frames) else kept


def _print(groups: Iterable[TailEntry]) -> None:
    for said in groups:
        for line in said.lines:
            print(line, flush=True)


def _there(path: Path, sleep: Callable[[float], None]) -> bool:
    """Wait until a proxy has made the recording; False where nobody reads what we would say."""
    if not path.exists():
        tell("a2a-inspect", f"there is no recording {path} yet: waiting", "Ctrl-C ends this")
    while not path.exists():
        if reader_gone():
            return False
        sleep(POLL)
    return True


class _Follower:
    """Cursors into the frames and the findings of a recording."""

    def __init__(self, recording: Recording, wanted: TailOptions, name: str, own: set[int]) -> None:
        self._recording = recording
        self._wanted = wanted
        self._name = name
        """Of the file; empty where there is one alone."""
        self._elsewhere = {session.id for session in recording.sessions()} - own
        """Sessions of which another file has more."""
        self._frame, self._finding = RowCursor(recording, "frame"), RowCursor(recording, "finding")
        self._version = recording.data_version()
        self._exchanges: dict[int, Exchange] = {}

    def changed(self) -> bool:
        """Somebody has written since the last time."""
        before, self._version = self._version, self._recording.data_version()
        return before != self._version

    def past(self) -> Iterator[TailEntry]:
        """The last frames that match, with what was found since the first of them."""
        newest, found = (self._newest(table) for table in ("frame", "finding"))
        first = self._first(newest)
        if first:
            row = self._recording.frame(first, payload=False)
            found = self._before(row, found) if row is not None else found
        self._frame.start_at(first - 1 if first else newest)
        self._finding.start_at(found)
        return self.more()

    def _newest(self, table: str) -> int:
        return int(self._recording.db.execute(f"SELECT coalesce(max(id), 0) FROM {table}").fetchone()[0])

    def _first(self, newest: int) -> int:
        """The `count`th frame before the end, of those that match: the end is looked at first. 0 where none is wanted,
        or there is none."""
        first, left, window = 0, self._wanted.count, max(self._wanted.count, _WINDOW)
        last = newest
        while left > 0:
            query = "SELECT id FROM frame WHERE id <= ? ORDER BY id DESC LIMIT ?"
            ids = [row[0] for row in self._recording.db.execute(query, (last, window))]
            kept = self._matching(ids)[-left:]
            first, left = (kept[0] if kept else first), left - len(kept)
            if len(ids) < window:
                break
            last = ids[-1] - 1
        return first

    def _matching(self, frames: list[int]) -> list[int]:
        """Those of these frames that match, in order."""
        if not self._wanted.where:
            return sorted(frames)
        return self._recording.queryable().filter_ids(self._wanted.where, Rows.FRAMES, frames)

    def _before(self, first: FrameRow, found: int) -> int:
        """The last finding, up to `found`, that was stored before those about `first` and later frames."""
        earlier = "SELECT coalesce(max(id), 0) FROM finding WHERE session < ? OR (session = ? AND at < ?)"
        at = first.frame.at - self._started(first.session)
        return min(int(self._recording.db.execute(earlier, (first.session, first.session, at)).fetchone()[0]), found)

    def _started(self, session: int) -> int:
        row = self._recording.session(session)
        return row.facts.started if row is not None else 0

    def more(self) -> Iterator[TailEntry]:
        """What has been stored since: each finding under its frame, the others after all frames.

        Findings are read first, so the frames that they are about are there when those are read.
        """
        found: dict[tuple[int, int, int], list[FindingRow]] = {}
        for each in self._recording.findings(after=self._finding.begin_look()):
            self._finding.advance(each.id, each.session)
            if each.session not in self._elsewhere:
                found.setdefault((each.session, each.finding.exchange, each.finding.seq), []).append(each)
        self._finding.end_look()
        at = 0
        for row, matches in self._frames():
            about = found.pop((row.session, row.frame.exchange, row.frame.seq), []) if row.frame.exchange else []
            if row.session in self._elsewhere or not matches:
                continue
            at = row.frame.at
            yield TailEntry(at, [self._frame_said(row), *map(self._finding_said, about)], True)
        self._frame.end_look()
        for rest in found.values():
            if self._concerns(rest[0]):
                yield TailEntry(max(at, rest[0].finding.at), list(map(self._finding_said, rest)), False)

    def _frames(self) -> Iterator[tuple[FrameRow, bool]]:
        """What has been stored since, and whether it matches; each row is looked at once, payloads of those that do."""
        after = self._frame.begin_look()
        while rows := list(self._recording.frames_after(after, _WINDOW, payloads=False)):
            kept = set(self._matching([row.id for row in rows]))
            for row in rows:
                self._frame.advance(row.id, row.session)
                if row.id not in kept:
                    yield row, False
                    continue
                payload = self._recording.payload(row)
                yield msgspec.structs.replace(row, frame=msgspec.structs.replace(row.frame, payload=payload)), True
            after = rows[-1].id

    def _concerns(self, row: FindingRow) -> bool:
        """With a filter: the exchange that a finding is about matches; findings of connections do not."""
        if not self._wanted.where:
            return True
        if not row.finding.exchange:
            return False
        exchange = make_key(row.session, row.finding.exchange)
        return bool(self._recording.queryable().filter_ids(self._wanted.where, Rows.EXCHANGES, [exchange]))

    def _frame_said(self, row: FrameRow) -> str:
        return self._json(self._frame_object(row)) if self._wanted.as_json else self._line(self._frame_line(row))

    def _finding_said(self, row: FindingRow) -> str:
        return self._json(_finding_object(row)) if self._wanted.as_json else self._line(_finding_line(row))

    def _json(self, told: dict[str, object]) -> str:
        return json.dumps({"file": self._recording.path, **told} if self._name else told)

    def _line(self, told: str) -> str:
        return f"{self._name}  {told}" if self._name else told

    def _frame_line(self, row: FrameRow) -> str:
        frame, exchange = row.frame, self._exchange(row)
        place = f"#{frame.exchange}.{frame.seq}" if frame.exchange else f"connection {frame.connection}"
        title = make_visible(text.title(exchange)) if exchange is not None else ""
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
        number = make_key(row.session, row.frame.exchange)
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
    return describe_frame(frame, frame.payload, about.operation, about.dialect)


def _finding_line(row: FindingRow) -> str:
    finding = row.finding
    place = text.place(finding) or f"connection {finding.connection}"
    return f"{text.clock(finding.at)}  {place:<8}  {finding_words(finding)}"


def _finding_object(row: FindingRow) -> dict[str, object]:
    return {"session": row.session, "finding": finding_object(row.finding)}
