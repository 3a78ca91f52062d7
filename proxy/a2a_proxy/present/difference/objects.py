"""A difference as JSON objects with stable names."""

from collections.abc import Iterator
from typing import Any

from a2a_proxy.present.text import exchange_object
from a2a_proxy.recording.difference.fields import DifferenceRow, format_path
from a2a_proxy.recording.difference.runs import CallPair, RunDifference
from a2a_proxy.recording.read.rows import ExchangeRow

AgentNames = dict[str, str]
"""A side: its `recording`, and the `place` in it."""


def difference_objects(
    left: AgentNames, right: AgentNames, difference: RunDifference, everything: bool
) -> Iterator[dict[str, Any]]:
    """Yield the verdict, then each task and each call with differences; with `everything` each
    call."""
    changes = [str(match.change or "same") for match in difference.matches]
    yield {
        "kind": "summary",
        "left": left,
        "right": right,
        "same": not difference.count,
        "differences": difference.count,
        "ignored": difference.ignored,
        "calls": {change: changes.count(change) for change in sorted(set(changes))},
        "cut": list(difference.cut),
    }
    for row in difference.tasks:
        if everything or row.counts:
            yield {"kind": "task", **_row_object(row)}
    for match in difference.matches:
        if match.change is not None or everything:
            yield _call_object(match, everything)


def _call_object(match: CallPair, everything: bool) -> dict[str, Any]:
    rows = match.difference.rows if match.difference is not None else ()
    return {
        "kind": "call",
        "change": str(match.change or "same"),
        "moved": match.moved,
        "left": _exchange_object(match.left),
        "right": _exchange_object(match.right),
        "differences": [_row_object(row) for row in rows if everything or row.counts],
        "cut": list(match.difference.cut) if match.difference is not None else [],
    }


def _exchange_object(row: ExchangeRow | None) -> dict[str, Any] | None:
    return None if row is None else {"session": row.session, **exchange_object(row.exchange)}


def _row_object(row: DifferenceRow) -> dict[str, Any]:
    """Return a row; absent members are left out."""
    made: dict[str, Any] = {"part": str(row.part), "change": str(row.change)}
    for name, path, frame in (
        ("left", row.left, row.frames[0]),
        ("right", row.right, row.frames[1]),
    ):
        if path is not None:
            made[f"{name}_path"] = format_path(path)
        if frame >= 0:
            made[f"{name}_frame"] = frame
    made |= {"left": row.before, "right": row.after}
    return {**made, "ignored": str(row.ignored)} if row.ignored else made
