"""The agent card that went before: the last one that a session saw of an agent before the calls that are wanted of it.

Without it rules about cards, and whoever replays a recording, would know nothing of the agent.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow.compute as pc

from a2a_proxy.archive.manifest import Manifest
from a2a_proxy.archive.ranges import ParquetFiles
from a2a_proxy.archive.rows import times_as_numbers

_CARD_COLUMNS = ["time", "agent", "event", "exchange"]


def cards_before(files: ParquetFiles, parts: Iterable[Manifest], first: dict[str, int]) -> set[int]:
    """The calls that brought them. `first`: by agent the time of the first wanted call, ns; `parts`: segments of one
    session, the newest first. Raises ArchiveError."""
    left, found = dict(first), set[int]()
    for part in parts:
        for agent, before in list(left.items()):
            call = _last_card_call(files, part, agent, before) if _may_contain_card(part, agent, before) else None
            if call is not None:
                found.add(call)
                del left[agent]
    return found


def _may_contain_card(part: Manifest, agent: str, before: int) -> bool:
    return part.cut.since <= before and (part.cards is None or agent in part.cards)


def _last_card_call(files: ParquetFiles, part: Manifest, agent: str, before: int) -> int | None:
    """Frames of cards name no task: they come last in a file, in their order."""
    for group in reversed(range(len(part.frames.groups))):
        rows = times_as_numbers(files.read(part, "frames", [group], _CARD_COLUMNS))
        rows = rows.filter(pc.and_(pc.equal(rows.column("event"), "card"), pc.equal(rows.column("agent"), agent)))
        rows = rows.filter(pc.less_equal(rows.column("time"), before))
        if rows.num_rows:
            return int(rows.column("exchange")[-1].as_py())
    return None
