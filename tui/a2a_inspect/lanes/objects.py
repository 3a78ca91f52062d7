"""Rows of a swimlane as JSON with stable names: times in UTC, durations in ns, without unknown members."""

from __future__ import annotations

from collections.abc import Sequence

from a2a_inspect.lanes.model import LaneRow, PartyLane, RowKind
from a2a_proxy.present import text


def lanes_object(session: int, title: str, lanes: Sequence[PartyLane]) -> dict[str, object]:
    """Return the first line: the parties."""
    named = [{"name": lane.name, "part": str(lane.role)} for lane in lanes]
    return {"what": "lanes", "session": session, "title": title, "lanes": named}


def row_object(row: LaneRow, lanes: Sequence[PartyLane]) -> dict[str, object]:
    """Return one row. `from` and `to` are names of lanes; `about` is the lane of a row that is not a message."""
    facts: dict[str, object] = {"what": str(row.what), "session": row.session, "at": text.format_utc(row.at)}
    facts["since_start_ns"] = row.since_start
    if row.what is RowKind.PAUSE:
        return {**facts, "length_ns": row.since_before}
    if row.exchange:
        facts["exchange"] = row.exchange
    if row.seq >= 0:
        facts["seq"] = row.seq
    if row.what is RowKind.FRAME:
        facts |= {
            "since_before_ns": row.since_before,
            "kind": row.kind.name.lower() if row.kind is not None else None,
            "from": lanes[row.source].name,
            "to": lanes[row.target].name,
        }
    else:
        facts["about"] = lanes[row.source].name
    if row.severity is not None:
        facts["severity"] = row.severity.name.lower()
    return {**facts, "text": row.text}
