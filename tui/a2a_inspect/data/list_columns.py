"""Columns of the list of exchanges that a user chooses: fields of filters, headers and JSON paths.

A cell is read for one page of rows at a time. Of long exchanges only the first frames are read, of
large payloads nothing, so a cell costs the same in every recording.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from a2a_inspect.data.first_words import decode_frame, first_text
from a2a_proxy.model.errors import UserError
from a2a_proxy.model.event import state_label
from a2a_proxy.model.values import EventKind, Exchange, Finding, Frame
from a2a_proxy.model.wire import Direction
from a2a_proxy.present import text
from a2a_proxy.protocol.outcome import FAILED_OUTCOMES
from a2a_proxy.recording.query.columns import GAP
from a2a_proxy.recording.query.errors import QueryError, suggest_word
from a2a_proxy.recording.query.tree import Match
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import ExchangeRow, FrameRow, make_key

STANDARD_COLUMNS = (
    "time",
    "outcome",
    "operation",
    "binding",
    "task",
    "found",
    "events",
    "took",
    "states",
    "ending",
)
"""Columns of the list, by their lower-case titles."""
MAX_COLUMNS = 20
_MAX_FRAMES = 24
"""Frames of an exchange that are read for its cells."""
_MAX_FINDINGS = 20
_MAX_VALUES = 8
"""Different values in a cell."""
_MAX_CELL = 200
"""Characters of a cell."""
_WORD = re.compile(r'(?:"(?:[^"\\]|\\.)*"|\[[^\]]*\]|[^,"\[])+')
_HINT = (
    "a column is a title of the list, a field of filters, header:NAME or a JSON path, for example"
    " time,operation,ttfe,header:content-type"
)
_LATE_FIELDS = frozenset({"finding", "sev", "rule", "gap", "note", "bookmark"})
"""Fields that can change after the end of an exchange."""
_MAX_KEPT_CELLS = 20_000
_FLAGS = ("gap", "err", "bookmark")


class UserColumn(msgspec.Struct, frozen=True):
    """A column that the user named."""

    name: str
    """The column as it was written."""
    field: str
    """A standard column, a field of the filters, or a JSON path in canonical spelling."""
    side: str = ""
    """`req` or `resp`: only messages of the client, or of the agent."""
    header: str = ""
    """Name of the header, for the field `header`."""

    @property
    def is_standard(self) -> bool:
        """Whether the list has the column by itself."""
        return self.field in STANDARD_COLUMNS and not self.side

    @property
    def title(self) -> str:
        """The title of the column: `TTFE`, `content-type`, `$.params.message.role`."""
        if self.header:
            return f"{self.side}.{self.header}".removeprefix(".")
        return self.name if self.field.startswith("$") else self.name.upper()


def parse_columns(words: str) -> tuple[UserColumn, ...]:
    """Parse the names of columns, separated by commas; none for an empty text.

    Raises:
        UserError: a name is not a column, or there are too many.
    """
    names = [name.strip() for name in _WORD.findall(words)]
    columns = tuple(dict.fromkeys(_parse_column(name) for name in names if name))
    if len(columns) > MAX_COLUMNS:
        raise UserError(f"{len(columns)} columns are too many", f"name at most {MAX_COLUMNS}")
    return columns


def _parse_column(name: str) -> UserColumn:
    from a2a_proxy.recording.query.fields import FIELDS
    from a2a_proxy.recording.query.parser import parse_expression

    title = name.lower()
    if title in STANDARD_COLUMNS:
        return UserColumn(title, title)
    field = name.partition(".")[2] if name.startswith(("req.", "resp.")) else name
    if field.rstrip(":") == "header":
        raise UserError(
            f"{name} is not a column: the name of the header is missing",
            "write header:content-type",
        )
    value = {"header": "", **dict.fromkeys(_FLAGS, ":yes")}.get(field.partition(":")[0], ":*")
    try:
        node = parse_expression(name + value)
    except QueryError as wrong:
        near = (
            ""
            if "did you mean" in wrong.message
            else suggest_word(field, (*STANDARD_COLUMNS, *FIELDS))
        )
        raise UserError(f"{name} is not a column: {wrong.message}{near}", _HINT) from wrong
    if not isinstance(node, Match):
        raise UserError(f"{name} is not a column", _HINT)
    if node.field == "header":
        return UserColumn(name, "header", node.side, str(node.value).lower())
    return UserColumn(name, node.field, node.side)


class ColumnReader:
    """Reads the cells of columns. Cells of finished exchanges that cannot change are kept for a
    while."""

    def __init__(self, columns: Sequence[UserColumn]) -> None:
        self.columns = columns
        self._recording: Recording | None = None
        self._kept: dict[tuple[int, str], str] = {}
        """Cells by the key of the exchange and the name of the column."""

    def read_cells(
        self, recording: Recording, rows: Iterable[ExchangeRow]
    ) -> list[tuple[str, ...]]:
        """Return the cells of each row, one for each column; that of a standard column is empty."""
        if recording is not self._recording or len(self._kept) > _MAX_KEPT_CELLS:
            self._recording, self._kept = recording, {}
        return [self._read_row(_ExchangeFacts(recording, row)) for row in rows]

    def _read_row(self, facts: _ExchangeFacts) -> tuple[str, ...]:
        return tuple(
            "" if each.is_standard else self._read_cell(facts, each) for each in self.columns
        )

    def _read_cell(self, facts: _ExchangeFacts, column: UserColumn) -> str:
        if not facts.exchange.closed or column.field in _LATE_FIELDS:
            return _cell(facts, column)
        place = facts.row.key, column.name
        if place not in self._kept:
            self._kept[place] = _cell(facts, column)
        return self._kept[place]


class _ExchangeFacts:
    """What the columns of one row need; everything is read at most once."""

    def __init__(self, recording: Recording, row: ExchangeRow) -> None:
        self.recording = recording
        self.row = row
        self.exchange: Exchange = row.exchange
        self._frames: list[FrameRow] | None = None
        self._values: dict[int, Any] = {}
        self._findings: list[Finding] | None = None

    def exchange_with_headers(self) -> Exchange:
        """Return the exchange with its headers, which the rows of lists do not have."""
        row = self.recording.read_exchange(self.row.key)
        return row.exchange if row is not None else self.exchange

    def frames(self, side: str) -> Iterator[FrameRow]:
        """Yield the first frames of the exchange, of one side or of both, without payloads."""
        if self._frames is None:
            self._frames = list(
                self.recording.read_frames(self.row.key, limit=_MAX_FRAMES, payloads=False)
            )
        wanted = {"req": Direction.TO_AGENT, "resp": Direction.TO_CLIENT}.get(side)
        return (each for each in self._frames if wanted is None or each.frame.direction is wanted)

    def payloads(self, side: str) -> Iterator[Any]:
        """Yield the decoded payloads of those frames that can be decoded."""
        for row in self.frames(side):
            if row.id not in self._values:
                self._values[row.id] = decode_frame(self.recording, row)
            if (value := self._values[row.id]) is not None:
                yield value

    def findings(self) -> list[Finding]:
        """Return the first findings about the exchange and its frames."""
        if self._findings is None:
            rows = self.recording.read_findings(exchange=self.row.key, limit=_MAX_FINDINGS)
            self._findings = [row.finding for row in rows]
        return self._findings

    def client(self) -> str:
        """Return the address of its client."""
        row = self.recording.read_connection(make_key(self.row.session, self.exchange.connection))
        return row.connection.client if row is not None else ""

    def note(self) -> tuple[str, bool]:
        """Return the note about the exchange, and whether it is bookmarked."""
        query = "SELECT body, bookmark FROM note WHERE (session, exchange, seq) = (?, ?, -1)"
        found = self.recording.db.execute(query, (self.row.session, self.exchange.id)).fetchone()
        return (found[0], bool(found[1])) if found is not None else ("", False)


def _cell(facts: _ExchangeFacts, column: UserColumn) -> str:
    """Return the different values of a column, in order, in one line."""
    if column.header:
        values: Iterable[str] = _header_values(facts.exchange_with_headers(), column)
    elif column.field.startswith("$"):
        values = _path_values(facts, column)
    else:
        values = _FIELD_VALUES[column.field](facts, column.side)
    found: dict[str, None] = {}
    for value in values:
        if value:
            found[value[:_MAX_CELL]] = None
            if len(found) == _MAX_VALUES:
                break
    return ", ".join(found)[:_MAX_CELL]


def _header_values(exchange: Exchange, column: UserColumn) -> Iterator[str]:
    request, response = exchange.request_headers, (*exchange.response_headers, *exchange.trailers)
    fields = {"req": request, "resp": response}.get(column.side, (*request, *response))
    wanted = column.header.encode("latin-1", "replace")
    return (value.decode("latin-1") for name, value in fields if name.lower() == wanted)


def _path_values(facts: _ExchangeFacts, column: UserColumn) -> Iterator[str]:
    from a2a_proxy.recording.query.payload_tests import path_steps, values_at_path

    for payload in facts.payloads(column.side):
        for value in values_at_path(payload, path_steps(column.field)):
            yield value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _facet_values(what: str) -> Callable[[_ExchangeFacts, str], Iterator[str]]:
    def values(facts: _ExchangeFacts, side: str) -> Iterator[str]:
        from a2a_proxy.recording.query.payload_tests import find_facets

        return (each for payload in facts.payloads(side) for each in find_facets(what, payload))

    return values


def _part_values(facts: _ExchangeFacts, side: str) -> Iterator[str]:
    from a2a_proxy.recording.query.payload_tests import find_parts, part_kind

    return (part_kind(part) for payload in facts.payloads(side) for part in find_parts(payload))


def _text_values(facts: _ExchangeFacts, side: str) -> Iterator[str]:
    """Yield the text of the first part that has one."""
    words = (first_text(payload, _MAX_CELL) for payload in facts.payloads(side))
    return iter([next(filter(None, words), "")])


def _extension_values(facts: _ExchangeFacts, side: str) -> Iterator[str]:
    if side != "resp":
        yield from (each.strip() for each in facts.exchange.extensions.split(","))
    yield from _facet_values("ext")(facts, side)


def _frame_values(value: Callable[[Frame], str]) -> Callable[[_ExchangeFacts, str], Iterator[str]]:
    return lambda facts, side: (value(row.frame) for row in facts.frames(side))


def _finding_values(
    value: Callable[[Finding], str],
) -> Callable[[_ExchangeFacts, str], Iterator[str]]:
    return lambda facts, _: (value(each) for each in facts.findings())


def _exchange_value(
    value: Callable[[Exchange], object],
) -> Callable[[_ExchangeFacts, str], Iterator[str]]:
    return lambda facts, _: iter((str(value(facts.exchange) or ""),))


def _frame_kind(frame: Frame) -> str:
    return (
        (frame.event if frame.event is not EventKind.NONE else frame.kind)
        .name.lower()
        .replace("_", "-")
    )


def _severity_values(facts: _ExchangeFacts, _side: str) -> Iterator[str]:
    severities = [each.severity for each in facts.findings()]
    return iter((max(severities).name.lower(),) if severities else ())


def _size_values(facts: _ExchangeFacts, side: str) -> Iterator[str]:
    """Yield the size of the largest payload."""
    size = max((row.frame.size for row in facts.frames(side)), default=0)
    return iter((text.format_size(size),) if size else ())


def _first_event_time(exchange: Exchange) -> str:
    if not exchange.first_event:
        return ""
    return text.format_duration(max(exchange.first_event - text.latency_origin(exchange), 0))


def _generation_values(facts: _ExchangeFacts, side: str) -> Iterator[str]:
    return (str(row.frame.generation or "") for row in facts.frames(side))


def _note_values(facts: _ExchangeFacts, _side: str) -> Iterator[str]:
    yield facts.note()[0]
    yield from (row.frame.note for row in facts.frames(""))


_FIELD_VALUES: dict[str, Callable[[_ExchangeFacts, str], Iterable[str]]] = {
    "op": _exchange_value(text.exchange_title),
    "binding": _exchange_value(lambda exchange: exchange.binding),
    "dir": _frame_values(lambda frame: frame.direction.name.lower().replace("_", "-")),
    "kind": _frame_values(_frame_kind),
    "task": lambda facts, side: _ids(
        facts, side, lambda frame: frame.task_id, facts.exchange.task_id
    ),
    "ctx": lambda facts, side: _ids(
        facts, side, lambda frame: frame.context_id, facts.exchange.context_id
    ),
    "msg": _frame_values(lambda frame: text.shorten_id(frame.message_id)),
    "state": _frame_values(lambda frame: state_label(frame.state)),
    "part": _part_values,
    "mime": _facet_values("mime"),
    "ext": _extension_values,
    "ver": _exchange_value(lambda exchange: exchange.dialect),
    "code": _exchange_value(lambda exchange: exchange.error_code),
    "status": _exchange_value(lambda exchange: exchange.status),
    "gen": _generation_values,
    "gap": _finding_values(lambda finding: "yes" if finding.rule == GAP else ""),
    "err": _exchange_value(
        lambda exchange: "yes" if text.outcome_of(exchange) in FAILED_OUTCOMES else ""
    ),
    "outcome": _exchange_value(text.outcome_label),
    "finding": _finding_values(lambda finding: finding.summary),
    "sev": _severity_values,
    "rule": _finding_values(lambda finding: finding.rule),
    "agent": _exchange_value(lambda exchange: exchange.agent),
    "peer": lambda facts, _: (facts.client(),),
    "meta": _facet_values("meta"),
    "size": _size_values,
    "dur": _exchange_value(text.duration_cell),
    "ttfe": _exchange_value(_first_event_time),
    "t": _exchange_value(lambda exchange: text.format_time(exchange.started)),
    "rec": lambda facts, _: (str(facts.row.session),),
    "src": _frame_values(lambda frame: "proxy" if frame.ours else "peer"),
    "trace": _exchange_value(lambda exchange: text.shorten_id(exchange.trace_context[3:35])),
    "note": _note_values,
    "bookmark": lambda facts, _: ("yes" if facts.note()[1] else "",),
    "text": _text_values,
}
"""The values of each field of the filters except `header`, by the side of the messages."""


def _ids(
    facts: _ExchangeFacts, side: str, value: Callable[[Frame], str], whole: str
) -> Iterator[str]:
    """Yield the id of the exchange, or with a side those of its messages."""
    if not side:
        yield text.shorten_id(whole)
    else:
        yield from (text.shorten_id(value(row.frame)) for row in facts.frames(side))
