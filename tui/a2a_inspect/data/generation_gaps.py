"""Generations that a stream left out, and what became of them, in words for the screens."""

from __future__ import annotations

from a2a_proxy.model.task import MissedGenerations
from a2a_proxy.present import generations, text
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import ExchangeRow, make_key

GapWords = dict[tuple[str, int], str]
"""By task and the time at which it was noticed, ns: as the rule that finds it has them."""


def operation_of(recording: Recording, session: int, number: int) -> str:
    """What an exchange of a session did; empty where the recording does not have it."""
    row = recording.exchange(make_key(session, number))
    return make_visible(text.exchange_title(row.exchange)) if row is not None else ""


def missed_generation_words(recording: Recording, session: int, gap: MissedGenerations) -> str:
    """`generation 4 missed`, and where it is healed `, healed by #9 GetTask at 6`."""
    words = f"generation {generations.format_range(gap.first, gap.last)} missed"
    if not gap.healed:
        return words
    return f"{words}, {generations.healed_label(gap, lambda number: operation_of(recording, session, number))}"


def read_gaps(recording: Recording, row: ExchangeRow, until: int = 0) -> GapWords:
    """What this exchange left out of its tasks, as it was at some time, ns since the epoch; 0: as it is."""
    told: GapWords = {}
    for each in recording.task(row.exchange.task_id) if row.exchange.task_id else ():
        for gap in each.task.missed:
            if each.session == row.session and gap.exchange == row.exchange.id:
                open_still = not gap.healed or (until and gap.healed > until)
                words = missed_generation_words(recording, row.session, gap)
                told[each.task.task_id, gap.at] = f"{words.partition(',')[0]}, not healed" if open_still else words
    return told
