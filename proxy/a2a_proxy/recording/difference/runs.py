"""Differences between two runs: the matching of their calls, and the differences of each pair.

Calls are matched by operation, request and order: first calls with equal requests, then the calls
between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from a2a_proxy.model.event import state_label
from a2a_proxy.model.values import Exchange, Task
from a2a_proxy.recording.difference.exchanges import Difference, compare_exchanges
from a2a_proxy.recording.difference.fields import (
    CanonicalFields,
    DifferenceRow,
    Ignored,
    ValueChange,
)
from a2a_proxy.recording.difference.ids import LEFT, RIGHT, PairedIds
from a2a_proxy.recording.difference.sequences import Aligned, Pair, align_sequences
from a2a_proxy.recording.difference.structure import ValueReducer, measure_likeness
from a2a_proxy.recording.difference.view import read_request
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import ExchangeRow

MAX_CALLS = 20_000
"""Maximum number of calls of a side that are compared."""
_MAX_KEPT_CALLS = 1000
"""Number of calls whose differences are kept; for further calls only their number is."""
_MAX_KEPT_ROWS = 50_000
"""Number of rows that are kept, about 30 MB; beyond it, rows of canonical fields are only
counted."""

Watch = Callable[[int, int], bool]
"""Called with the steps done and the total number of steps as far as known. Returning False ends
the comparison."""


class ComparisonStopped(Exception):
    """The watcher ended the comparison."""


class ComparedRun(msgspec.Struct):
    """Calls of one side, in order."""

    recording: Recording
    rows: list[ExchangeRow]
    more: bool = False
    """Whether there are more calls, which are not compared."""


class CallPair(msgspec.Struct):
    """A call on the left with its partner on the right, or a call that only one side has."""

    left: ExchangeRow | None
    right: ExchangeRow | None
    moved: bool = False
    """Whether its position in the order differs."""
    overlaps: bool = False
    """Whether another call ran at the same time: then its position does not count."""
    difference: Difference | None = None
    """None for a call that only one side has, and if there are too many to keep."""
    inside: int = 0
    """Number of differences that count between the two."""
    ignored: int = 0
    """Number of differences in canonical fields."""

    @property
    def count(self) -> int:
        """Number of differences that count, including a missing partner or a different order."""
        alone = self.left is None or self.right is None
        return self.inside + (alone or (self.moved and not self.overlaps))

    @property
    def change(self) -> ValueChange | None:
        """The kind of change, or None if the call is unchanged."""
        if self.left is None or self.right is None:
            return ValueChange.RIGHT if self.left is None else ValueChange.LEFT
        if self.inside:
            return ValueChange.CHANGED
        return ValueChange.MOVED if self.count else None


class RunDifference(msgspec.Struct):
    """Two runs side by side."""

    matches: list[CallPair]
    """In the order of the left side. A call that only the right side has follows its predecessor
    there."""
    tasks: list[DifferenceRow]
    """Differences in the course of tasks, with the paths `(task id, "states")` and so on."""
    cut: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """Number of differences that count, in all calls and tasks."""
        return sum(match.count for match in self.matches) + sum(row.counts for row in self.tasks)

    @property
    def ignored(self) -> int:
        """Number of differences in canonical fields."""
        return sum(match.ignored for match in self.matches) + sum(
            not row.counts for row in self.tasks
        )


def take_run(recording: Recording, rows: Iterable[ExchangeRow]) -> ComparedRun:
    """Return a run of the first MAX_CALLS calls."""
    first_rows: list[ExchangeRow] = []
    for row in rows:
        if len(first_rows) == MAX_CALLS:
            return ComparedRun(recording, first_rows, more=True)
        first_rows.append(row)
    return ComparedRun(recording, first_rows)


def compare_runs(
    left: ComparedRun, right: ComparedRun, ids: PairedIds | None = None, watch: Watch | None = None
) -> RunDifference:
    """Match the calls of two runs and compare each pair, in order, so that identifiers keep their
    partners.

    Raises RecordingError, or ComparisonStopped if `watch` returned False.
    """
    ids = ids or PairedIds()
    cut = [f"only the first {MAX_CALLS} calls are compared"] if left.more or right.more else []
    step = _make_step(
        watch, len(left.rows) + len(right.rows) + max(len(left.rows), len(right.rows))
    )
    found = _match_calls(left, right, ids, step)
    if found.coarse:
        cut.append("too many calls to match them exactly")
    matches = list(_pairs_in_order(left, right, found))
    kept = _KeptDifferences()
    for match in matches:
        step()
        if match.left is None or match.right is None:
            continue
        difference = compare_exchanges(
            (left.recording, match.left), (right.recording, match.right), ids
        )
        match.inside, match.ignored = difference.count, difference.ignored
        match.difference = kept.keep_difference(difference)
        cut += difference.cut
    cut += kept.cut
    return RunDifference(matches, list(_compare_tasks(left, right, ids)), tuple(dict.fromkeys(cut)))


class _KeptDifferences:
    """Limits the differences of calls that are kept."""

    def __init__(self) -> None:
        self._calls = 0
        self._rows = 0
        self.cut: list[str] = []

    def keep_difference(self, found: Difference) -> Difference | None:
        """Return the difference if it is kept, without ignored rows if there are too many rows, or
        None."""
        self._rows += len(found.rows)
        self._calls += bool(found.count)
        if found.count and self._calls > _MAX_KEPT_CALLS:
            self.cut = [
                f"differences are shown for the first {_MAX_KEPT_CALLS} calls that have any"
            ]
            return None
        if self._rows <= _MAX_KEPT_ROWS:
            return found
        return msgspec.structs.replace(found, rows=tuple(row for row in found.rows if row.counts))


def _make_step(watch: Watch | None, of: int) -> Callable[[], None]:
    """Return the function to call before each call that is read or compared. It raises
    ComparisonStopped."""
    done = 0

    def step() -> None:
        nonlocal done
        if watch is not None and not watch(min(done, of), of):
            raise ComparisonStopped
        done += 1

    return step


def _match_calls(
    left: ComparedRun, right: ComparedRun, ids: PairedIds, step: Callable[[], None]
) -> Aligned:
    sides: list[list[_CallKey]] = [[], []]
    for side, run in ((LEFT, left), (RIGHT, right)):
        for row in run.rows:
            step()
            sides[side].append(_CallKey(run.recording, row, ids, side))

    def alike(i: int, j: int) -> int:
        return measure_likeness(sides[0][i].leaves, sides[1][j].leaves)

    return align_sequences(
        [call.token for call in sides[0]], [call.token for call in sides[1]], alike
    )


class _CallKey:
    """Key by which a call is matched."""

    def __init__(self, recording: Recording, row: ExchangeRow, ids: PairedIds, side: int) -> None:
        exchange = row.exchange
        reduced = ValueReducer(ids, CanonicalFields(plain=not exchange.operation), side)
        request: Any = read_request(recording, row)
        self._name = exchange.operation or f"{exchange.method} {exchange.target.partition('?')[0]}"
        item = reduced.reduce_item(request)
        self.token = self._name.encode("utf-8", "surrogatepass") + b" " + item.token
        outcome = (
            ("error", bool(exchange.error)),
            *(("state", state) for state in exchange.states),
        )
        self.leaves = (self._name, item.leaves[1] | frozenset(outcome))


def _pairs_in_order(left: ComparedRun, right: ComparedRun, aligned: Aligned) -> Iterator[CallPair]:
    """Yield pairs by position on the left. A call that only the right side has follows its
    predecessor there."""
    moved = dict(aligned.moved)
    partner: dict[int, Pair] = {j: (i, j) for i, j in (*aligned.pairs, *aligned.moved)}
    steady = dict(aligned.pairs)
    busy = _overlapping_calls(left.rows), _overlapping_calls(right.rows)
    at = 0
    for i, row in enumerate(left.rows):
        if i in steady:
            yield from _right_only_pairs(right, partner, at, steady[i])
            at = steady[i] + 1
        j = steady.get(i, moved.get(i))
        if j is None:
            yield CallPair(row, None)
        else:
            yield CallPair(row, right.rows[j], i in moved, i in busy[0] or j in busy[1])
    yield from _right_only_pairs(right, partner, at, len(right.rows))


def _right_only_pairs(
    right: ComparedRun, partner: dict[int, Pair], first: int, last: int
) -> Iterator[CallPair]:
    return (CallPair(None, right.rows[j]) for j in range(first, last) if j not in partner)


def _overlapping_calls(rows: list[ExchangeRow]) -> set[int]:
    """Return the calls that ran while another one did."""
    found: set[int] = set()
    longest, end = -1, 0
    for number, row in enumerate(rows):
        if longest >= 0 and row.exchange.started < end:
            found |= {longest, number}
        ended = _end_time(row.exchange)
        if ended > end:
            longest, end = number, ended
    return found


def _end_time(exchange: Exchange) -> int:
    return exchange.closed or max(exchange.last_event, exchange.started) + 1


def _compare_tasks(
    left: ComparedRun, right: ComparedRun, ids: PairedIds
) -> Iterator[DifferenceRow]:
    """Yield differences of tasks that both sides have. Other tasks show up as differences of
    calls."""
    mine, other = _tasks_of_run(left), _tasks_of_run(right)
    for name, task in mine.items():
        twin = other.get(ids.find_partner(LEFT, "task", name) or "")
        if twin is None:
            continue
        before, after = _task_values(task), _task_values(twin)
        for fact, value in before.items():
            if value != after[fact]:
                yield DifferenceRow(
                    ValueChange.CHANGED, (name, fact), (twin.task_id, fact), value, after[fact]
                )
        if task.generation != twin.generation:
            paths = (name, "generation"), (twin.task_id, "generation")
            absent = Ignored.NOT if task.generation and twin.generation else Ignored.DIALECT
            yield DifferenceRow(
                ValueChange.CHANGED, *paths, task.generation, twin.generation, absent
            )


def _task_values(task: Task) -> dict[str, Any]:
    return {
        "states": " > ".join(state_label(number) for _, number in task.states),
        "missed": [[run.first, run.last] for run in task.gaps],
    }


def _tasks_of_run(run: ComparedRun) -> dict[str, Task]:
    """Return the tasks of the run's calls."""
    run_keys = {(row.session, row.exchange.id) for row in run.rows}
    return {
        row.task.task_id: row.task
        for row in run.recording.read_tasks()
        if any((row.session, number) in run_keys for number in row.task.exchanges)
    }
