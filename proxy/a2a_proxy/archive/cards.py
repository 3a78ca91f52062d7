"""The preceding agent card: the last card of an agent that a session received before the selected calls.

Without the card, rules about cards and a replay of the recording would lack the description of the agent.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow.compute as pc

from a2a_proxy.archive.manifest import Manifest
from a2a_proxy.archive.ranges import ParquetFiles
from a2a_proxy.archive.rows import times_as_numbers

_CARD_COLUMNS = ["time", "agent", "event", "exchange"]


def cards_before(files: ParquetFiles, parts: Iterable[Manifest], first: dict[str, int]) -> set[int]:
    """Return the numbers of the calls that fetched the cards.

    `first` maps an agent to the time of its first selected call, in ns. `parts` are the segments of one session, the
    newest first. Raises ArchiveError if a segment cannot be read.
    """
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
    """Return the number of the last card call of `agent` in a segment at or before `before` (ns), or None.

    Frames of cards name no task, so they are last in a file, sorted by frame number.
    """
    for group in reversed(range(len(part.frames.groups))):
        rows = times_as_numbers(files.read(part, "frames", [group], _CARD_COLUMNS))
        rows = rows.filter(pc.and_(pc.equal(rows.column("event"), "card"), pc.equal(rows.column("agent"), agent)))
        rows = rows.filter(pc.less_equal(rows.column("time"), before))
        if rows.num_rows:
            return int(rows.column("exchange")[-1].as_py())
    return None
