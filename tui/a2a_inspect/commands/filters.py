"""The filter language for the commands: matching frames, the SQL of a filter, and the message when
nothing matches."""

import re
from collections.abc import Iterable

from a2a_proxy.present.output import print_line, print_note
from a2a_proxy.present.text import format_count
from a2a_proxy.protocol.text import shell_line
from a2a_proxy.recording.query.sql import Rows
from a2a_proxy.recording.query.tree import Node
from a2a_proxy.recording.read.reader import Recording

_FAILED_CALLS = re.compile(r"(?<![\w:.\"/-])err(?![\w:.\"/-])")
"""The word `err` of an expression."""


def explain_filter(recording: Recording, where: str) -> None:
    """Print the SQL that lists the exchanges, its bound values, and SQLite's query plan."""
    for line in explain_lines(recording, where):
        print_line(line)


def explain_lines(recording: Recording, where: str | Node) -> list[str]:
    """Return the lines that `explain_filter` prints."""
    explanation = recording.get_queryable().explain_expression(where, Rows.EXCHANGES)
    lines = [
        f"filter  {explanation.text or 'none'}",
        f"sql     {explanation.sql}",
        f"values  {', '.join(map(repr, explanation.params))}",
    ]
    return lines + [
        f"{'' if number else 'plan':8}{line}" for number, line in enumerate(explanation.plan)
    ]


def matching_frames(recording: Recording, session: int, where: str) -> dict[int, set[int]] | None:
    """Return keys of exchanges with the numbers of their matching frames; None without a filter."""
    if not where:
        return None
    frame_numbers: dict[int, set[int]] = {}
    for row in recording.find_frames(where, session, payloads=False):
        if row.frame.exchange:
            frame_numbers.setdefault(row.exchange_key, set()).add(row.frame.seq)
    return frame_numbers


def print_no_match(where: str, recordings: Iterable[Recording] = ()) -> None:
    """Print that nothing matches. This is a result, not an error.

    If the expression contains `err`, which selects failed calls, and none of the `recordings` has a
    match, exchanges with findings of severity error may be meant: their number and filter are
    printed as well.
    """
    print_note(f"nothing matches {where}")
    other = _FAILED_CALLS.sub("sev:error", where)
    if other == where:
        return
    count = sum(
        1 for each in recordings for _ in each.get_queryable().select_ids(other, Rows.EXCHANGES)
    )
    if count:
        exchanges = f"{format_count(count, 'exchange')} {'has' if count == 1 else 'have'}"
        print_note(f"{exchanges} findings of severity error: {shell_line('-f', other)}")
