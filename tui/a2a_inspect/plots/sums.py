"""Statistics of recordings: calls by kind, errors, findings.

SQLite counts; computing ranks temporarily takes 8 bytes per call.
"""

from __future__ import annotations

import itertools
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from a2a_inspect.data.matching_tasks import matching_tasks
from a2a_inspect.plots.measures import (
    FINDING_MATCHES,
    KIND_COLUMNS,
    CallKind,
    SessionSelection,
    call_kind,
    query_rows,
    read_distributions,
)
from a2a_proxy.model.event import state_label
from a2a_proxy.model.values import Severity
from a2a_proxy.protocol.finding_totals import count_occurrences
from a2a_proxy.recording.query.columns import ZERO
from a2a_proxy.recording.query.sql import Rows
from a2a_proxy.recording.read.multi_reader import MultiReader
from a2a_proxy.recording.read.outcome_sql import COUNTED_FINDING, OUTCOME
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.store.codec import unpack_text

_CALL_TOTALS = f"""SELECT {KIND_COLUMNS}, {OUTCOME} AS outcome,
    count(*), sum(e.events), sum(e.bytes_to_agent), sum(e.bytes_to_client)
  FROM exchange e WHERE {{where}} GROUP BY e.operation, e.binding, e.dialect, outcome"""
_CALL_KINDS = f"""SELECT e.operation, e.binding, e.dialect, {KIND_COLUMNS}
  FROM (SELECT DISTINCT operation, binding, dialect FROM exchange) e"""
_DURATIONS = f"""SELECT e.operation, e.binding, e.dialect, max(e.[end] - {ZERO}, 0)
  FROM exchange e WHERE e.[end] IS NOT NULL AND [which] AND {{where}}"""
_ERROR_COUNTS = (
    "SELECT e.error, count(*) FROM exchange e WHERE length(e.error) AND {where} GROUP BY e.error"
)
_FINDING_COUNTS = f"""SELECT (SELECT value FROM text WHERE id = x.rule) AS rule, x.severity,
    count(*) FROM finding x WHERE x.session IN ({{own}}) AND {COUNTED_FINDING} AND [of]
  GROUP BY x.rule, x.severity"""
_FRAME_COUNT = "SELECT count(*) FROM frame f WHERE {where}"

TaskStateCounts = list[tuple[str, int]]
"""State and number of tasks in it, the most frequent first."""


class DurationRanks(msgspec.Struct, frozen=True):
    """Percentiles of a duration, ns, by nearest rank, so that each is a measured time."""

    p50: int
    p95: int
    p99: int
    max: int


class CallStatistics(msgspec.Struct):
    """All exchanges of one kind."""

    outcomes: dict[str, int] = {}
    events: int = 0
    bytes_to_agent: int = 0
    bytes_to_client: int = 0
    first: DurationRanks | None = None
    """Time from the end of the request to the first event; of streams."""
    took: DurationRanks | None = None
    """Time from the end of the request to the end of the exchange; of closed exchanges."""
    bins: list[int] = []
    """Distribution of `took`, see `measures.read_distributions`."""

    @property
    def count(self) -> int:
        """Number of exchanges."""
        return sum(self.outcomes.values())


class RecordingTotals(msgspec.Struct):
    """Statistics of recordings, or of the parts that match an expression."""

    frames: int
    calls: dict[CallKind, CallStatistics]
    """The most frequent kind first."""
    errors: list[tuple[str, int]]
    """Error text and number of occurrences, the most frequent first."""
    findings: list[tuple[str, Severity, int]]
    """Rule, severity and number of findings, repetitions that are not listed included; the most
    severe first."""


def distinct_parts(several: MultiReader) -> list[SessionSelection]:
    """Return the files, each with its sessions of which no other file has more."""
    return [(member.recording, own) for member, own in several.own_sessions()]


def whole_recording(recording: Recording) -> list[SessionSelection]:
    """Return one file with all its sessions."""
    return [(recording, {row.id for row in recording.read_sessions()})]


def compute_totals(parts: Sequence[SessionSelection], where: str = "") -> RecordingTotals:
    """Count all exchanges, or those that match an expression, with their findings and the matching
    frames.

    Raises:
        RecordingError: a file cannot be read.
        QueryError: the expression is not valid.
    """
    calls: dict[CallKind, CallStatistics] = {}
    frames = 0
    errors: Counter[str] = Counter()
    findings: Counter[tuple[str, Severity]] = Counter()
    first, took = _Durations("first_event", "e.flags & 1"), _Durations("closed", "1")
    of = (
        FINDING_MATCHES if where.strip() else "1"
    )  # without a filter, findings about connections are counted too
    for part in parts:
        _count_calls(part, where, calls)
        first.add_part(part, where)
        took.add_part(part, where)
        errors.update(
            {
                unpack_text(error): n
                for error, n in query_rows(part, _ERROR_COUNTS, where, Rows.EXCHANGES)
            }
        )
        found = query_rows(part, _FINDING_COUNTS.replace("[of]", of), where, Rows.EXCHANGES)
        findings.update({(unpack_text(rule), Severity(severity)): n for rule, severity, n in found})
        if not where.strip():
            recording, sessions = part
            for total in itertools.chain.from_iterable(map(recording.finding_totals, sessions)):
                findings[total.rule, total.severity] += count_occurrences(total) - 1
        frames += next(iter(query_rows(part, _FRAME_COUNT, where, Rows.FRAMES)))[0]
    bins = read_distributions(parts, where)
    for kind, each in calls.items():
        each.first, each.took, each.bins = (
            first.compute_ranks(kind),
            took.compute_ranks(kind),
            bins.get(kind, []),
        )
    return RecordingTotals(
        frames=frames,
        calls=dict(sorted(calls.items(), key=lambda item: (-item[1].count, item[0]))),
        errors=sorted(errors.items(), key=lambda item: (-item[1], item[0])),
        findings=sorted(
            ((*what, n) for what, n in findings.items()),
            key=lambda each: (-each[1], -each[2], each[0]),
        ),
    )


def count_task_states(several: MultiReader, where: str = "") -> TaskStateCounts:
    """Count each task once, by the state in the session with its latest news; with an expression,
    only tasks touched by a match.
    """
    states = several.task_states() if not where.strip() else _count_matching_tasks(several, where)
    return [
        (state_label(state) or "unknown", n)
        for state, n in sorted(states.items(), key=lambda i: (-i[1], i[0]))
    ]


def _count_matching_tasks(several: MultiReader, where: str) -> Counter[int]:
    kept: set[tuple[int, int]] = set()
    for member in several.members:
        rows = matching_tasks(member.recording, member.recording.read_tasks(), where)
        kept.update((member.number, row.id) for row in rows)
    return Counter(
        max((each.row for each in sightings), key=lambda row: row.task.last).task.state
        for sightings in several.read_tasks()
        if any((each.member.number, each.row.id) in kept for each in sightings)
    )


def _count_calls(part: SessionSelection, where: str, calls: dict[CallKind, CallStatistics]) -> None:
    for *kind, outcome, count, events, to_agent, to_client in query_rows(
        part, _CALL_TOTALS, where, Rows.EXCHANGES
    ):
        of = calls.setdefault(call_kind(kind), CallStatistics())
        of.outcomes[outcome] = of.outcomes.get(outcome, 0) + count
        of.events += events
        of.bytes_to_agent += to_agent
        of.bytes_to_client += to_client


class _Durations:
    """Durations of a measure by kind of call, ns. All values are kept because ranks need them."""

    def __init__(self, end_column: str, condition: str) -> None:
        self._query = _DURATIONS.replace("[end]", end_column).replace("[which]", condition)
        self._by_kind: dict[CallKind, array[int]] = {}

    def add_part(self, part: SessionSelection, where: str) -> None:
        """Add the durations of one file."""
        names = {
            tuple(row[:3]): call_kind(row[3:])
            for row in map(list, query_rows(part, _CALL_KINDS, "", Rows.EXCHANGES))
        }
        for operation, binding, dialect, length in query_rows(
            part, self._query, where, Rows.EXCHANGES
        ):
            kind = names[operation, binding, dialect]
            self._by_kind.setdefault(kind, array("q")).append(length)

    def compute_ranks(self, kind: CallKind) -> DurationRanks | None:
        """Return the percentiles; None without calls of this kind."""
        return rank_durations(self._by_kind.pop(kind, ()))


def rank_durations(durations: Iterable[int]) -> DurationRanks | None:
    """Return the percentiles of durations in ns; None if there are none."""
    lengths = sorted(durations)
    if not lengths:
        return None
    return DurationRanks(
        *(lengths[(len(lengths) * percent + 99) // 100 - 1] for percent in (50, 95, 99, 100))
    )
