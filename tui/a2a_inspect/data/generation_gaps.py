"""Missed generations of a stream and how they were healed, in words for the screens."""

from a2a_proxy.model.values import MissedGenerations
from a2a_proxy.present import generations, text
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import ExchangeRow, make_key

GapWords = dict[tuple[str, int], str]
"""Words by task id and detection time (ns), the key that the rule uses too."""


def operation_of(recording: Recording, session: int, number: int) -> str:
    """Return the operation of an exchange; empty if the recording does not have the exchange."""
    row = recording.read_exchange(make_key(session, number))
    return make_visible(text.exchange_title(row.exchange)) if row is not None else ""


def missed_generation_words(recording: Recording, session: int, gap: MissedGenerations) -> str:
    """Return `generation 4 missed`, with `, healed by #9 GetTask at 6` if it was healed."""
    if gap.is_explained:
        missed = generations.missed_label(
            gap, lambda number: operation_of(recording, session, number)
        )
        return f"generation {missed}"
    words = f"generation {generations.format_range(gap.first, gap.last)} missed"
    if not gap.healed:
        return words
    healed = generations.healed_label(
        gap, lambda number: operation_of(recording, session, number), noun=""
    )
    return f"{words}, {healed}"


def read_gaps(recording: Recording, row: ExchangeRow, until: int = 0) -> GapWords:
    """Return the missed generations of this exchange as known at `until`, ns since the epoch; 0: as
    known now."""
    gap_words: GapWords = {}
    for each in recording.read_task(row.exchange.task_id) if row.exchange.task_id else ():
        for gap in each.task.gaps:
            if each.session == row.session and gap.exchange == row.exchange.id:
                open_still = not gap.healed or (until and gap.healed > until)
                words = missed_generation_words(recording, row.session, gap)
                gap_words[each.task.task_id, gap.at] = (
                    f"{words.partition(',')[0]}, not healed" if open_still else words
                )
    return gap_words
