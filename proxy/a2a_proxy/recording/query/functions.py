"""SQL functions of the filter language, over one connection to a recording. Each returns 0 or 1, or
a text."""

import sqlite3
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from a2a_proxy.protocol.event import decode_payload
from a2a_proxy.protocol.schema import JSON
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.query import payload_tests as tests
from a2a_proxy.recording.query.tree import Op
from a2a_proxy.recording.store.codec import unpack_headers, unpack_ident, unpack_text
from a2a_proxy.recording.store.payloads import Payloads

MakeCauseReader = Callable[[], Callable[[int], str]]
"""Returns a function that returns the cause of the ending of a call by its key; empty if it ended
well."""

_TEXTUAL = (Op.HAS, Op.IS)
_PIECES_FLAG = 32
_MAX_CACHED_HEADERS = 256
"""Number of exchanges whose headers are cached, because frames of several exchanges alternate."""
_NS_PER_SECOND = 1_000_000_000
_CAUSE_SECONDS = 5.0
_MAX_CAUSES = 10_000


class QueryFunctions:
    """The functions of one connection, registered when created."""

    def __init__(
        self, db: sqlite3.Connection, payloads: Payloads, make_cause_reader: MakeCauseReader
    ) -> None:
        self._db = db
        self._make_cause_reader = make_cause_reader
        self._read_cause: Callable[[int], str] | None = None
        self._read_cause_at = 0.0
        self._causes: dict[int, str] = {}
        """Causes of endings by the key of the call: each of its frames asks for it."""
        self._payloads = payloads
        self._shapes: dict[int, tuple[str, int]] = {}
        self._parsed: tuple[int, Any] = (0, None)
        """Number and decoded payload of the most recently parsed frame: one expression may test it
        several times."""
        self._lines: dict[tuple[str, int, int], tuple[str, ...]] = {}
        """Recently read headers as `name: value`, of one side or of both."""
        self.trouble: BaseException | None = None
        """Cause of the last query's failure. SQLite itself only reports that a function failed."""
        for name, count, function in self._sql_functions():
            db.create_function(name, count, self._record_trouble(function), deterministic=True)

    def _sql_functions(self) -> Iterator[tuple[str, int, Callable[..., Any]]]:
        yield (
            "a2a_contains",
            2,
            lambda value, wanted: tests.matches_string(Op.HAS, wanted, _column_text(value)),
        )
        yield (
            "a2a_equals",
            2,
            lambda value, wanted: _column_text(value).casefold() == wanted.casefold(),
        )
        yield "a2a_begins", 2, lambda value, wanted: _column_text(value).startswith(wanted)
        yield (
            "a2a_matches",
            2,
            lambda value, wanted: (
                bool(text := _column_text(value)) and tests.matches_pattern(wanted, text)
            ),
        )
        yield "a2a_ident", 1, lambda value: unpack_ident(value).encode("utf-8", "replace").decode()
        yield "a2a_midnight", 1, _local_midnight
        yield "a2a_header", 6, self._matches_header
        yield "a2a_message", 6, self._message_id
        yield (
            "a2a_text",
            7,
            lambda op, wanted, *at: (
                bool(p := self._read_payload(*at)) and tests.matches_text(op, wanted, p)
            ),
        )
        yield "a2a_json", 8, self._matches_json
        yield "a2a_part", 7, self._matches_part
        yield "a2a_facet", 8, self._matches_facet
        yield "a2a_ending", 1, self._find_cause

    def start_query(self) -> None:
        """Begin a query on the present contents: traffic that was recorded since the last one may
        explain other calls. While queries follow each other, as of a list that is followed, what
        was read for the last one is kept for a moment."""
        if time.monotonic() - self._read_cause_at > _CAUSE_SECONDS:
            self._read_cause = None
            self._causes.clear()

    def _find_cause(self, key: int) -> str:
        if self._read_cause is None:
            self._read_cause = self._make_cause_reader()
            self._read_cause_at = time.monotonic()
        if key not in self._causes:
            if len(self._causes) >= _MAX_CAUSES:
                self._causes.clear()
            self._causes[key] = self._read_cause(key)
        return self._causes[key]

    def _record_trouble(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            try:
                found = function(*arguments)
            except RecordingError:
                return 0  # this row is damaged, but the others can still be searched
            except BaseException as wrong:  # also Ctrl-C, which SQLite would take for an error
                self.trouble = wrong
                raise
            return int(found) if isinstance(found, bool) else found

        return call

    def _shape_of(self, number: int) -> tuple[str, int]:
        known = self._shapes.get(number)
        if known is None:
            find = (
                "SELECT text.value, flags FROM shape LEFT JOIN text ON text.id = shape.schema "
                "WHERE shape.id = ?"
            )
            row = self._db.execute(find, (number,)).fetchone()
            if row is None:
                raise RecordingError(
                    f"shape {number} of the recording is missing", "the file is damaged"
                )
            known = self._shapes[number] = (row[0] or "", row[1])
        return known

    def _read_payload(
        self, frame: int, shape: int, block: int | None, offset: int | None, size: int | None
    ) -> bytes:
        data = self._payloads.read(block, offset, size)
        return (
            self._payloads.read_whole(frame, data)
            if self._shape_of(shape)[1] & _PIECES_FLAG
            else data
        )

    def _parsed_payload(self, frame: int, shape: int, *at: int | None) -> Any:
        if self._parsed[0] != frame:
            data = self._read_payload(frame, shape, *at)
            self._parsed = (frame, decode_payload(data, self._shape_of(shape)[0]) if data else None)
        return self._parsed[1]

    def _message_id(self, message: int | str | bytes | None, *at: int) -> str:
        if isinstance(message, int):
            return self._read_payload(*at)[message : message + 36].decode("utf-8", "replace")
        return unpack_ident(message).encode("utf-8", "replace").decode()

    def _matches_json(self, path: str, op: str, wanted: str, *at: int) -> bool:
        if (
            op in _TEXTUAL
            and self._shape_of(at[1])[0] == JSON
            and not tests.DECIMAL.fullmatch(wanted)
        ):
            data = self._read_payload(*at)  # searching the raw text costs a tenth of parsing it
            if not tests.matches_text(Op.HAS, wanted, data):
                return False
        value = self._parsed_payload(*at)
        return value is not None and any(
            tests.matches_leaf(op, wanted, each)
            for each in tests.values_at_path(value, tests.path_steps(path))
        )

    def _may_have(self, what: str, at: tuple[int, ...]) -> bool:
        """Whether the payload may match. JSON that does not contain such a name need not be
        parsed."""
        return self._shape_of(at[1])[0] != JSON or tests.has_any_name(what, self._read_payload(*at))

    def _matches_part(self, op: str, wanted: str, *at: int) -> bool:
        if not self._may_have("part" if op == "*" else wanted, at):
            return False
        found = {tests.part_kind(part) for part in tests.find_parts(self._parsed_payload(*at))} - {
            ""
        }
        if op == "*":
            return bool(found)
        return bool(found & {"raw", "url"}) if wanted == "file" else wanted in found

    def _matches_facet(self, what: str, op: str, wanted: str, *at: int) -> bool:
        if not self._may_have(what, at):
            return False
        found = tests.find_facets(what, self._parsed_payload(*at))
        if what == "mime" and op == Op.HAS:
            return any(each.lower().startswith(wanted.lower()) for each in found)
        return any(tests.matches_string(op, wanted, each) for each in found)

    def _matches_header(
        self,
        side: str,
        op: str,
        wanted: str,
        block: int | None,
        offset: int | None,
        size: int | None,
    ) -> bool:
        if not block:
            return False
        place = (side, block, offset or 0)
        lines = self._lines.get(place)
        if lines is None:
            request, response, trailers = unpack_headers(self._payloads.read(block, offset, size))
            fields = (() if side == "resp" else request) + (
                () if side == "req" else response + trailers
            )
            lines = tuple(f"{n.decode('latin-1')}: {v.decode('latin-1')}" for n, v in fields)
            self._lines[place] = lines
            if len(self._lines) > _MAX_CACHED_HEADERS:
                del self._lines[next(iter(self._lines))]
        if op == Op.IS:
            return any(line.partition(": ")[0].lower() == wanted.lower() for line in lines)
        return any(tests.matches_string(op, wanted, line) for line in lines)


def _column_text(value: Any) -> str:
    """Return a column of texts as str, whatever its type."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, int):
        return str(value)
    return unpack_text(value).encode("utf-8", "replace").decode()


def _local_midnight(started: int) -> int:
    """Return the local midnight before a time, in ns since the epoch."""
    day = datetime.fromtimestamp(started // _NS_PER_SECOND).replace(
        hour=0, minute=0, second=0, microsecond=0
    )
    return int(day.timestamp()) * _NS_PER_SECOND
