"""One conversation of the report: its exchanges, its rows with their frames, its findings, and its
own record."""

from collections import Counter, deque
from collections.abc import Callable, Iterator

from msgspec.structs import replace

from a2a_inspect.data.frame_summary import flatten_line_ends
from a2a_inspect.data.notes import SessionNotes
from a2a_inspect.formats.report import records
from a2a_inspect.formats.report.tables import RecordTables
from a2a_inspect.formats.report.tallies import CallTallies
from a2a_inspect.lanes.model import LaneRow, LaneRowKind
from a2a_inspect.lanes.read import LaneConversation
from a2a_proxy.model.values import Exchange, Finding
from a2a_proxy.present import text
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.read.endings import EndingReader
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import make_key

_FindingListener = Callable[[int, Finding, int], None]
"""Called for each finding with its session and the number of its row."""


class ReportConversation:
    """Writes one conversation."""

    def __init__(
        self,
        recording: Recording,
        conversation: LaneConversation,
        notes: SessionNotes,
        tables: RecordTables,
        tallies: CallTallies,
        add_finding: _FindingListener,
        endings: EndingReader,
    ) -> None:
        self._recording = recording
        self._conversation = conversation
        self._notes = notes
        self._tables = tables
        self._tallies = tallies
        self._add_finding = add_finding
        self._endings = endings
        self._exchange_numbers = sorted(conversation.exchanges)
        self._record_numbers = {
            number: tables.count_records("exchange") + index
            for index, number in enumerate(self._exchange_numbers)
        }
        self._first_rows: dict[int, int] = {}
        """Exchange -> number of its first row."""
        self._unshown_findings: dict[tuple[int, int], deque[int]] = {}
        """Exchange and frame -> numbers of the findings about it that no row has shown yet."""
        self._finding_rows: dict[int, int] = {}
        """Finding -> its row; findings that are not drawn are missing (see `lanes.read`)."""
        self._severity_counts: Counter[str] = Counter()
        self.failed_exchanges = 0
        """Number of exchanges that ended in an error."""
        self._first_words = ""
        """Summary of the first frame."""
        self._outcome = ""
        """Outcome of the first exchange."""

    def write(self) -> None:
        """Write the conversation. Raises RecordingError if the recording is damaged."""
        findings = self._tables.count_records("finding")
        for number, found in enumerate(self._read_findings(), findings):
            self._unshown_findings.setdefault((found.exchange, found.seq), deque()).append(number)
        first = self._tables.count_records("row")
        # One by one, so that a block is decompressed once for a row's summary and its payload.
        for row in self._conversation.iterate_rows(1):
            self._write_row(row)
        for number, found in enumerate(self._read_findings(), findings):
            self._severity_counts[found.severity.name.lower()] += 1
            row_number = self._finding_rows.get(number, self._first_rows.get(found.exchange, -1))
            self._add_finding(self._conversation.session, found, row_number)
        operations = list(dict.fromkeys(self._write_exchanges()))
        talk, start = self._conversation, self._conversation.order.start
        for task in talk.tasks:
            first_row = (
                self._first_rows.get(task.task.exchanges[0], -1) if task.task.exchanges else -1
            )
            self._tables.add("task", records.task_summary(task, first_row))
        self._tables.add(
            "talk",
            {
                "title": talk.title,
                "session": talk.session,
                "began": text.format_utc(start) if talk.order.frames else "",
                "first": first,
                "rows": self._tables.count_records("row") - first,
                "frames": talk.order.frames,
                "begin": self._first_words,
                "outcome": self._outcome,
                "findings": [findings, self._tables.count_records("finding")],
                "span": (talk.order.times[-1] - start) / 1e6 if talk.order.frames else 0,
                "lanes": [records.lane_record(lane) for lane in talk.lanes],
                "operations": operations[:8],
                "states": [records.state_names(row.task) for row in talk.tasks[:3]],
                "tasks": [records.task_record(self._recording, row, start) for row in talk.tasks],
                "exchanges": len(self._exchange_numbers),
                "grave": self._severity_counts,
            },
        )

    def _write_exchanges(self) -> Iterator[str]:
        """Write the exchanges and yield their names.

        A missing exchange has a record too, because records are numbered consecutively.
        """
        for number in self._exchange_numbers:
            row = self._recording.read_exchange(make_key(self._conversation.session, number))
            if row is None:
                self._tables.add("exchange", None)
                continue
            first = self._first_rows.get(number, -1)
            self._tables.add(
                "exchange",
                records.exchange_record(
                    row, self._notes.line_at(number), first, self._endings.read(row)
                ),
            )
            self._tallies.add_exchange(row, first)
            standing = text.outcome_label(row.exchange)
            self._outcome = self._outcome or " ".join(filter(None, (standing, row.exchange.error)))
            self.failed_exchanges += standing == "error"
            yield text.exchange_title(row.exchange)

    def _read_findings(self) -> Iterator[Finding]:
        """Yield the findings by exchange, in the order of the diagram."""
        for number in self._exchange_numbers:
            yield from (
                row.finding
                for row in self._recording.read_findings(
                    exchange=make_key(self._conversation.session, number)
                )
            )

    def _write_row(self, row: LaneRow) -> None:
        number = self._tables.count_records("row")
        exchange = self._record_numbers.get(row.exchange, -1)
        more = -1
        if row.what is LaneRowKind.FRAME:
            more = self._write_detail(row, number)
            self._first_words = self._first_words or self._frame_words(row)
        elif row.what is LaneRowKind.FINDING and (
            waiting := self._unshown_findings.get((row.exchange, row.seq))
        ):
            more = waiting.popleft()
            self._finding_rows[more] = number
        self._tables.add("row", records.row_record(row, exchange, more))
        self._first_rows.setdefault(row.exchange, number)

    def _frame_words(self, row: LaneRow) -> str:
        """Return the summary of a frame without its operation (see `lanes.read`), for the list of
        conversations."""
        exchange: Exchange | None = self._conversation.read_exchange(row.exchange)
        title = f"  {make_visible(text.exchange_title(exchange))}" if exchange is not None else ""
        return flatten_line_ends(row.text.removesuffix(title).removeprefix("message user "))

    def _write_detail(self, row: LaneRow, number: int) -> int:
        """Write the frame of a row and return its number; -1 if the frame has been deleted
        meanwhile."""
        found = self._conversation.read_frame(row.frame)
        if found is None:
            return -1
        exchange: Exchange | None = self._conversation.read_exchange(row.exchange)
        try:
            frame = replace(found.frame, payload=self._recording.read_payload(found))
        except RecordingError as damage:
            frame = replace(found.frame, payload=damage.message.encode(), schema="text")
        notes = self._notes.line_at(row.exchange, row.seq)
        return self._tables.add("detail", records.detail_record(number, frame, exchange, notes))
