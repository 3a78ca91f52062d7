"""`a2a-inspect tail`: print the newest frames of all exchanges in order of storing, and new ones as
they are stored."""

import heapq
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from a2a_inspect.commands.show import ARROWS
from a2a_inspect.data.finding_words import finding_words
from a2a_inspect.data.frame_objects import frame_object
from a2a_inspect.data.recording_choice import open_recordings
from a2a_inspect.signals import interrupt_on_signals
from a2a_proxy.cli.errors import print_error
from a2a_proxy.cli.streams import is_reader_gone
from a2a_proxy.model.values import Binding, Exchange, Frame
from a2a_proxy.present import text
from a2a_proxy.present.output import print_line
from a2a_proxy.present.text import finding_object
from a2a_proxy.protocol.describe import describe_frame
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.recording.query.parser import parse_expression
from a2a_proxy.recording.query.sql import Rows
from a2a_proxy.recording.read.cursor import RowCursor
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import FindingRow, FrameRow, make_key

POLL_INTERVAL = 0.1
"""Seconds between polls of a recording that may grow; the recorder commits at the same interval."""
_MAX_CACHED_EXCHANGES = 4096
"""Exchanges whose operation is cached."""
_FRAMES_PER_QUERY = 512
"""Frames per query."""


class TailOptions(msgspec.Struct, frozen=True):
    """Options of the tail command."""

    count: int
    """Number of past frames."""
    follow: bool
    as_json: bool
    where: str = ""
    """Filter expression: only frames that match when they are stored."""


def print_tail(
    paths: Sequence[Path], options: TailOptions, sleep: Callable[[float], None] = time.sleep
) -> None:
    """Print the last frames, and with `follow` new ones within `POLL_INTERVAL` of their storing.

    Following ends with Ctrl-C, SIGTERM or SIGHUP. Entries of several recordings are ordered by
    time: first all of the past, then the entries of each poll.

    Raises:
        UserError: a recording cannot be opened, or the filter is not valid.
    """
    parse_expression(options.where)
    with interrupt_on_signals():
        _follow_recordings(paths, options, sleep)


def _follow_recordings(
    paths: Sequence[Path], options: TailOptions, sleep: Callable[[float], None]
) -> None:
    if options.follow:
        for path in paths:
            if not _wait_for_file(path, sleep):
                return
    with open_recordings(paths, settled=not options.follow) as several:
        names = [member.name if len(several.members) > 1 else "" for member in several.members]
        width = max(map(len, names))
        followers = [
            _Follower(member.recording, options, make_visible(name).ljust(width), own)
            for name, (member, own) in zip(names, several.own_sessions(), strict=True)
        ]
        _print_entries(
            _entries_from_frame(
                _merge_by_time(each.read_past() for each in followers), options.count
            )
        )
        while options.follow:
            sleep(POLL_INTERVAL)
            if is_reader_gone():
                return
            _print_entries(
                _merge_by_time(each.read_new() for each in followers if each.has_changed())
            )


class TailEntry(NamedTuple):
    """Lines that are printed together: a frame with its findings, or a finding alone."""

    at: int
    """Time in ns since the epoch."""
    lines: list[str]
    is_frame: bool


def _merge_by_time(entry_groups: Iterable[Iterable[TailEntry]]) -> Iterator[TailEntry]:
    return heapq.merge(*entry_groups, key=lambda entry: entry.at)


def _entries_from_frame(entries: Iterable[TailEntry], count: int) -> list[TailEntry]:
    """Yield the entries from the `count`th last frame on."""
    entry_list = list(entries)
    frames = [place for place, entry in enumerate(entry_list) if entry.is_frame]
    return entry_list[frames[-count] :] if 0 < count < len(frames) else entry_list


def _print_entries(entries: Iterable[TailEntry]) -> None:
    for entry in entries:
        for line in entry.lines:
            print_line(line, flush=True)


def _wait_for_file(path: Path, sleep: Callable[[float], None]) -> bool:
    """Wait until a proxy has created the recording; return False if stdout was closed meanwhile."""
    if not path.exists():
        print_error("a2a-inspect", f"{path} does not exist yet: waiting for it", "Ctrl-C ends this")
    while not path.exists():
        if is_reader_gone():
            return False
        sleep(POLL_INTERVAL)
    return True


class _Follower:
    """Cursors into the frames and the findings of a recording."""

    def __init__(
        self, recording: Recording, options: TailOptions, name: str, own_sessions: set[int]
    ) -> None:
        self._recording = recording
        self._options = options
        self._name = name
        """Short name of the file; empty for a single file."""
        self._skipped_sessions = {
            session.id for session in recording.read_sessions()
        } - own_sessions
        """Sessions of which another file has more."""
        self._frame_cursor, self._finding_cursor = (
            RowCursor(recording, "frame"),
            RowCursor(recording, "finding"),
        )
        self._version = recording.data_version()
        self._exchanges: dict[int, Exchange] = {}

    def has_changed(self) -> bool:
        """Return whether the recording has changed since the last call."""
        before, self._version = self._version, self._recording.data_version()
        return before != self._version

    def read_past(self) -> Iterator[TailEntry]:
        """Yield the last matching frames, with the findings since the first of them."""
        newest, found = (self._newest_row(table) for table in ("frame", "finding"))
        first = self._first_frame(newest)
        if first:
            row = self._recording.read_frame(first, payload=False)
            found = self._last_finding_before(row, found) if row is not None else found
        self._frame_cursor.start_at(first - 1 if first else newest)
        self._finding_cursor.start_at(found)
        return self.read_new()

    def _newest_row(self, table: str) -> int:
        return int(
            self._recording.db.execute(f"SELECT coalesce(max(id), 0) FROM {table}").fetchone()[0]
        )

    def _first_frame(self, newest: int) -> int:
        """Return the id of the `count`th last matching frame, searching from the end; 0 if there is
        none."""
        first, rest, window = 0, self._options.count, max(self._options.count, _FRAMES_PER_QUERY)
        last = newest
        while rest > 0:
            query = "SELECT id FROM frame WHERE id <= ? ORDER BY id DESC LIMIT ?"
            ids = [row[0] for row in self._recording.db.execute(query, (last, window))]
            numbers = self._matching_frames(ids)[-rest:]
            first, rest = (numbers[0] if numbers else first), rest - len(numbers)
            if len(ids) < window:
                break
            last = ids[-1] - 1
        return first

    def _matching_frames(self, frames: list[int]) -> list[int]:
        """Return the matching frames among these, in order."""
        if not self._options.where:
            return sorted(frames)
        return self._recording.get_queryable().filter_ids(self._options.where, Rows.FRAMES, frames)

    def _last_finding_before(self, first: FrameRow, newest_finding: int) -> int:
        """Return the id of the last finding, up to `newest_finding`, stored before those from
        `first` on."""
        earlier = (
            "SELECT coalesce(max(id), 0) FROM finding WHERE session < ? OR (session = ? AND at < ?)"
        )
        at = first.frame.at - self._session_start(first.session)
        return min(
            int(
                self._recording.db.execute(earlier, (first.session, first.session, at)).fetchone()[
                    0
                ]
            ),
            newest_finding,
        )

    def _session_start(self, session: int) -> int:
        row = self._recording.read_session(session)
        return row.facts.started if row is not None else 0

    def read_new(self) -> Iterator[TailEntry]:
        """Yield the entries stored since the last call: each finding below its frame, the others
        after all frames.

        Findings are read first, so that the frames they refer to are present when the frames are
        read.
        """
        found: dict[tuple[int, int, int], list[FindingRow]] = {}
        for each in self._recording.read_findings(after=self._finding_cursor.begin_look()):
            self._finding_cursor.advance_to(each.id, each.session)
            if each.session not in self._skipped_sessions:
                found.setdefault(
                    (each.session, each.finding.exchange, each.finding.seq), []
                ).append(each)
        self._finding_cursor.end_look()
        at = 0
        for row, matches in self._new_frames():
            about = (
                found.pop((row.session, row.frame.exchange, row.frame.seq), [])
                if row.frame.exchange
                else []
            )
            if row.session in self._skipped_sessions or not matches:
                continue
            at = row.frame.at
            yield TailEntry(at, [self._format_frame(row), *map(self._format_finding, about)], True)
        self._frame_cursor.end_look()
        for rest in found.values():
            if self._is_finding_selected(rest[0]):
                yield TailEntry(
                    max(at, rest[0].finding.at), list(map(self._format_finding, rest)), False
                )

    def _new_frames(self) -> Iterator[tuple[FrameRow, bool]]:
        """Yield each new frame and whether it matches. Each row is read once; payloads only for
        matches."""
        after = self._frame_cursor.begin_look()
        while rows := list(self._recording.frames_after(after, _FRAMES_PER_QUERY, payloads=False)):
            matching = set(self._matching_frames([row.id for row in rows]))
            for row in rows:
                self._frame_cursor.advance_to(row.id, row.session)
                if row.id not in matching:
                    yield row, False
                    continue
                payload = self._recording.read_payload(row)
                yield (
                    msgspec.structs.replace(
                        row, frame=msgspec.structs.replace(row.frame, payload=payload)
                    ),
                    True,
                )
            after = rows[-1].id

    def _is_finding_selected(self, row: FindingRow) -> bool:
        """Return whether the exchange of a finding matches the filter. Findings about connections
        match no filter."""
        if not self._options.where:
            return True
        if not row.finding.exchange:
            return False
        exchange = make_key(row.session, row.finding.exchange)
        return bool(
            self._recording.get_queryable().filter_ids(
                self._options.where, Rows.EXCHANGES, [exchange]
            )
        )

    def _format_frame(self, row: FrameRow) -> str:
        return (
            self._json_line(self._frame_object(row))
            if self._options.as_json
            else self._prefix_file_name(self._frame_line(row))
        )

    def _format_finding(self, row: FindingRow) -> str:
        return (
            self._json_line({"session": row.session, "finding": finding_object(row.finding)})
            if self._options.as_json
            else self._prefix_file_name(_finding_line(row))
        )

    def _json_line(self, values: dict[str, object]) -> str:
        return json.dumps({"file": self._recording.path, **values} if self._name else values)

    def _prefix_file_name(self, text_line: str) -> str:
        return f"{self._name}  {text_line}" if self._name else text_line

    def _frame_line(self, row: FrameRow) -> str:
        frame, exchange = row.frame, self._exchange_of_frame(row)
        place = (
            f"#{frame.exchange}.{frame.seq}" if frame.exchange else f"connection {frame.connection}"
        )
        title = make_visible(text.exchange_title(exchange)) if exchange is not None else ""
        return "  ".join(
            part
            for part in (
                text.format_time(frame.at),
                f"{place:<8}",
                title,
                f"{ARROWS[frame.direction]} {_describe_frame(frame, exchange)}",
            )
            if part
        )

    def _frame_object(self, row: FrameRow) -> dict[str, object]:
        exchange = self._exchange_of_frame(row)
        about: dict[str, object] = {"session": row.session, "connection": row.frame.connection}
        if exchange is not None:
            about |= {
                "exchange": exchange.id,
                "operation": exchange.operation,
                "binding": str(exchange.binding),
            }
        return {**about, **frame_object(row.frame, exchange or _NO_EXCHANGE)}

    def _exchange_of_frame(self, row: FrameRow) -> Exchange | None:
        """Return the exchange of a frame, as it was when first read."""
        if not row.frame.exchange:
            return None
        number = make_key(row.session, row.frame.exchange)
        if number not in self._exchanges:
            if len(self._exchanges) >= _MAX_CACHED_EXCHANGES:
                self._exchanges.clear()
            found = self._recording.read_exchange(number)
            if found is None:
                return None
            self._exchanges[number] = found.exchange
        return self._exchanges[number]


_NO_EXCHANGE = Exchange(id=0, connection=0, stream=0, binding=Binding.OTHER, started=0)


def _describe_frame(frame: Frame, exchange: Exchange | None) -> str:
    about = exchange or _NO_EXCHANGE
    return describe_frame(
        frame, frame.payload, about.operation, about.dialect, about.extensions, about.binding
    )


def _finding_line(row: FindingRow) -> str:
    finding = row.finding
    place = text.finding_location(finding) or f"connection {finding.connection}"
    return f"{text.format_time(finding.at)}  {place:<8}  {finding_words(finding)}"
