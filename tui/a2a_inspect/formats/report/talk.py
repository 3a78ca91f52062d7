"""One conversation of the report: its exchanges, its rows with the frames behind them, its findings, then itself."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator

from msgspec.structs import replace

from a2a_inspect.data.frame_summary import flat
from a2a_inspect.data.notes import Notes
from a2a_inspect.formats.report import records
from a2a_inspect.formats.report.tables import Tables
from a2a_inspect.lanes.model import LaneRow, RowKind
from a2a_inspect.lanes.read import LaneConversation
from a2a_proxy.model.exchange import Exchange
from a2a_proxy.model.finding import Finding
from a2a_proxy.present import text
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import make_key

_Found = Callable[[int, Finding, int], None]
"""Told of each finding with its session, and the number of the row that it is about."""


class ReportConversation:
    """See the module."""

    def __init__(
        self, recording: Recording, talk: LaneConversation, notes: Notes, tables: Tables, found: _Found
    ) -> None:
        self._recording = recording
        self._talk = talk
        self._notes = notes
        self._tables = tables
        self._found = found
        self._numbers = sorted(talk.exchanges)
        self._records = {number: tables.count("exchange") + index for index, number in enumerate(self._numbers)}
        self._firsts: dict[int, int] = {}
        """Exchange -> the number of its first row."""
        self._waiting: dict[tuple[int, int], deque[int]] = {}
        """Exchange and frame -> the numbers of the findings about it that no row has shown yet."""
        self._shown: dict[int, int] = {}
        """Finding -> its row; one that is not drawn has none (see `lanes.read`)."""
        self._grave: Counter[str] = Counter()
        self.failed = 0
        """Exchanges that ended in an error."""
        self._begin = ""
        """What its first frame says."""
        self._outcome = ""
        """How its first exchange ended."""

    def write(self) -> None:
        """Write it. Raises RecordingError where the recording is damaged."""
        findings = self._tables.count("finding")
        for number, found in enumerate(self._findings(), findings):
            self._waiting.setdefault((found.exchange, found.seq), deque()).append(number)
        first = self._tables.count("row")
        for row in self._rows():
            self._row(row)
        for number, found in enumerate(self._findings(), findings):
            self._grave[found.severity.name.lower()] += 1
            row_number = self._shown.get(number, self._firsts.get(found.exchange, -1))
            self._found(self._talk.session, found, row_number)
        operations = list(dict.fromkeys(self._exchanges()))
        talk, start = self._talk, self._talk.order.start
        self._tables.add(
            "talk",
            {
                "title": talk.title,
                "session": talk.session,
                "began": text.utc(start) if talk.order.frames else "",
                "first": first,
                "rows": self._tables.count("row") - first,
                "frames": talk.order.frames,
                "begin": self._begin,
                "outcome": self._outcome,
                "findings": [findings, self._tables.count("finding")],
                "span": (talk.order.times[-1] - start) / 1e6 if talk.order.frames else 0,
                "lanes": [records.lane_record(lane) for lane in talk.lanes],
                "operations": operations[:8],
                "states": [records.states_of(row.task) for row in talk.tasks[:3]],
                "tasks": [records.task_record(self._recording, row, start) for row in talk.tasks],
                "exchanges": len(self._numbers),
                "grave": self._grave,
            },
        )

    def _exchanges(self) -> Iterator[str]:
        """Write them; gives their names. One that is not there has a record as well: they are counted."""
        for number in self._numbers:
            row = self._recording.exchange(make_key(self._talk.session, number))
            if row is None:
                self._tables.add("exchange", None)
                continue
            first = self._firsts.get(number, -1)
            self._tables.add("exchange", records.exchange_record(row, self._notes.at(number), first))
            standing = text.standing(row.exchange)
            self._outcome = self._outcome or " ".join(filter(None, (standing, row.exchange.error)))
            self.failed += standing == "error"
            yield text.title(row.exchange)

    def _findings(self) -> Iterator[Finding]:
        """In order of exchanges, as the diagram has them."""
        for number in self._numbers:
            yield from (row.finding for row in self._recording.findings(exchange=make_key(self._talk.session, number)))

    def _rows(self) -> Iterator[LaneRow]:
        """One by one: the block with the payload of a row is unpacked once for what it says and for the payload."""
        for index in range(len(self._talk.order)):
            yield from self._talk.rows(index, 1)

    def _row(self, row: LaneRow) -> None:
        number = self._tables.count("row")
        exchange = self._records.get(row.exchange, -1)
        more = -1
        if row.what is RowKind.FRAME:
            more = self._detail(row, number)
            self._begin = self._begin or self._words(row)
        elif row.what is RowKind.FINDING and (waiting := self._waiting.get((row.exchange, row.seq))):
            more = waiting.popleft()
            self._shown[more] = number
        self._tables.add("row", records.row_record(row, exchange, more))
        self._firsts.setdefault(row.exchange, number)

    def _words(self, row: LaneRow) -> str:
        """What a frame says, without the operation behind it (`lanes.read`), for the list of conversations."""
        exchange: Exchange | None = self._talk.exchange(row.exchange)
        title = f"  {make_visible(text.title(exchange))}" if exchange is not None else ""
        return flat(row.text.removesuffix(title).removeprefix("message user "))

    def _detail(self, row: LaneRow, number: int) -> int:
        """The frame of a row; -1 where it has gone meanwhile."""
        found = self._talk.frame(row.frame)
        if found is None:
            return -1
        exchange: Exchange | None = self._talk.exchange(row.exchange)
        try:
            frame = replace(found.frame, payload=self._recording.payload(found))
        except RecordingError as damage:
            frame = replace(found.frame, payload=damage.message.encode(), schema="text")
        notes = self._notes.at(row.exchange, row.seq)
        return self._tables.add("detail", records.detail_record(number, frame, exchange, notes))
