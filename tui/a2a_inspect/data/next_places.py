"""Search for the next finding, error or matching frame. The functions are queries for
`RecordingSource.run_query`."""

from collections.abc import Callable

from a2a_proxy.model.values import Severity
from a2a_proxy.recording.query.tree import Node
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import key_bounds, make_key, split_key

_ROWS_PER_QUERY = 250
"""Rows per query."""

FramePosition = tuple[int, int]
"""Key of an exchange and `seq` of its frame; -1 for the exchange as a whole."""


def next_finding(
    recording: Recording,
    start: FramePosition,
    step: int,
    is_listed: Callable[[int], bool],
    least: Severity = Severity.INFO,
) -> FramePosition | None:
    """Return the nearest finding of at least a severity after or before this position, in an
    exchange for which `is_listed` is true.
    """
    sign, order = (">", "ASC") if step > 0 else ("<", "DESC")
    query = (
        "SELECT DISTINCT session, exchange, seq FROM finding WHERE exchange > 0 AND (session, "
        f"exchange, seq) {sign} (?, ?, ?) AND severity >= ? ORDER BY session {order}, exchange "
        f"{order}, seq {order} LIMIT {_ROWS_PER_QUERY}"
    )  # in the order of the index `finding_place`
    after = (*split_key(start[0]), start[1])
    while rows := recording.db.execute(query, (*after, least)).fetchall():
        for session, exchange, seq in rows:
            if is_listed(found := make_key(session, exchange)):
                return found, seq
        after = rows[-1]
    return None


def next_error(
    recording: Recording, start: FramePosition, is_listed: Callable[[int], bool]
) -> tuple[FramePosition, bool] | None:
    """Return the nearest error after this position and whether it is a finding: otherwise the call
    failed there.

    Only exchanges for which `is_listed` is true are searched.
    """
    finding = next_finding(recording, start, 1, is_listed, Severity.ERROR)
    failure = _next_failure(recording, start, is_listed)
    found = min((each for each in (finding, failure) if each is not None), default=None)
    return None if found is None else (found, found == finding)


def _next_failure(
    recording: Recording, start: FramePosition, is_listed: Callable[[int], bool]
) -> FramePosition | None:
    """Return the first error frame of the nearest failed exchange after this position; `seq` -1 if
    it has none."""
    from a2a_proxy.recording.query.columns import ENDED_BADLY
    from a2a_proxy.recording.query.parser import parse_expression

    query = (
        f"SELECT id FROM exchange e WHERE id >= ? AND {ENDED_BADLY} ORDER BY id LIMIT "
        f"{_ROWS_PER_QUERY}"
    )
    first, error = start[0], parse_expression("err")
    while rows := recording.db.execute(query, (first,)).fetchall():
        for (key,) in rows:
            if is_listed(key):
                found = next_match(recording, error, (key, -1), 1) or (key, -1)
                if found > start:
                    return found
        first = rows[-1][0] + 1
    return None


def next_match(
    recording: Recording, node: Node, start: FramePosition, step: int
) -> FramePosition | None:
    """Return the nearest matching frame of one exchange after or before this position; -1 precedes
    all frames."""
    from a2a_proxy.recording.query.sql import Rows

    session, exchange = split_key(start[0])
    sign, order = (">", "ASC") if step > 0 else ("<", "DESC")
    query = (
        f"SELECT id, seq FROM frame WHERE session = ? AND exchange = ? AND seq {sign} ? ORDER BY "
        f"seq {order} LIMIT {_ROWS_PER_QUERY}"
    )
    seq = start[1]
    while rows := recording.db.execute(query, (session, exchange, seq)).fetchall():
        found = set(
            recording.get_queryable().filter_ids(node, Rows.FRAMES, [row[0] for row in rows])
        )
        for number, each in rows:
            if number in found:
                return make_key(session, exchange), each
        seq = rows[-1][1]
    return None


def frame_index(recording: Recording, position: FramePosition) -> int:
    """Return the index of a frame among those of its exchange."""
    query = "SELECT count(*) FROM frame WHERE session = ? AND exchange = ? AND seq < ?"
    return int(recording.db.execute(query, (*split_key(position[0]), position[1])).fetchone()[0])


def next_frame_of_task(
    recording: Recording, start: FramePosition, step: int
) -> FramePosition | None:
    """Return the nearest frame of the same task, in this exchange or in the next one of the task in
    this session."""
    session, exchange = split_key(start[0])
    sign, order = (">", "ASC") if step > 0 else ("<", "DESC")
    nearest = (
        f"SELECT seq FROM frame WHERE session = ? AND exchange = ? AND seq {sign} ? ORDER BY seq "
        f"{order} LIMIT 1"
    )
    found = recording.db.execute(nearest, (session, exchange, start[1])).fetchone()
    if found is not None:
        return start[0], found[0]
    beside = (
        f"SELECT id FROM exchange WHERE id {sign} ?1 AND id > ?2 AND id < ?3 AND task <> 0"
        f" AND task = (SELECT task FROM exchange WHERE id = ?1) ORDER BY id {order}"
    )
    for (number,) in recording.db.execute(beside, (start[0], *key_bounds(session))).fetchall():
        end = -1 if step > 0 else 1 << 40
        found = recording.db.execute(nearest, (session, split_key(number)[1], end)).fetchone()
        if found is not None:
            return number, found[0]
    return None
