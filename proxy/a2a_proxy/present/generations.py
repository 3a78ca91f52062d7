"""Format generations for the console, `ls`, `show` and the screens, and as JSON."""

from collections.abc import Callable, Iterator

from a2a_proxy.model.values import Exchange, MissedGenerations, MissedReason, Support, Task
from a2a_proxy.present import text

_MAX_SHOWN_RANGES = 8
"""Ranges and gaps in a line; of more, the last ones are shown."""


def format_range(first: int, last: int) -> str:
    """Return a range: `4`, or `4-6`."""
    return str(first) if first == last else f"{first}-{last}"


def requested_generations(exchange: Exchange) -> str:
    """Return the generation condition of a call and the result of a long poll; empty if it has no
    condition."""
    above = exchange.current_generation
    if above is None:
        return (
            ""
            if exchange.generation_match is None
            else f"if the generation is {exchange.generation_match}"
        )
    if exchange.waits:
        return f"for a generation above {above}"
    waited, got = f"waited for a generation above {above}", exchange.generation
    if not exchange.events:
        return waited
    if got == above:
        return f"{waited}, still {got}"
    return f"{waited}, got {got or 'none'}" + (", an older one" if 0 < got < above else "")


def generations_line(task: Task, operation: Callable[[int], str]) -> str:
    """Return a task's generations: `generations 1-3 5-9, 4 missed on #1, healed by #7 GetTask at
    generation 6`.

    `operation` returns the operation of an exchange. Empty if the task has no numbers and was not
    asked for them.
    """
    if not task.generation:
        return "no generations: the agent sends none" if task.support is Support.NO else ""
    some = task.seen[-_MAX_SHOWN_RANGES:]
    ranges = " ".join(format_range(first, last) for first, last in some)
    parts = [f"generations {'… ' if len(some) < len(task.seen) else ''}{ranges}"]
    parts += [f"{format_range(first, last)} not seen" for first, last in _unseen_ranges(task)][
        -_MAX_SHOWN_RANGES:
    ]
    parts += [missed_label(each, operation) for each in task.missed[-_MAX_SHOWN_RANGES:]]
    if len(task.missed) > _MAX_SHOWN_RANGES:
        parts.append(f"{len(task.missed) - _MAX_SHOWN_RANGES} more gaps before")
    if task.support is Support.NO:
        parts.append("one number on two events: clients cannot rely on them")
    return ", ".join(parts)


def _unseen_ranges(task: Task) -> Iterator[tuple[int, int]]:
    """Yield the ranges between the seen generations that are not gaps of a stream: they passed
    while no stream was open."""
    for (_, before), (after, _) in zip(task.seen, task.seen[1:], strict=False):
        first = before + 1
        for gap in sorted(task.missed, key=lambda each: each.first):
            if gap.last < first or gap.first >= after:
                continue
            if gap.first > first:
                yield first, gap.first - 1
            first = max(first, gap.last + 1)
        if first < after:
            yield first, after - 1


def missed_label(gap: MissedGenerations, operation: Callable[[int], str]) -> str:
    """Return a run in words: `4 missed on #1, healed by #7 GetTask at generation 6`, or
    `4 is probably the client's message in #3`."""
    if gap.is_explained:
        return f"{format_range(gap.first, gap.last)} {_explain_gap(gap)}"
    where = f" on #{gap.exchange}" if gap.exchange else ""
    if gap.reason is MissedReason.DROPPED:
        healed = f", {healed_label(gap, operation, '')}" if gap.healed else ""
        return f"{format_range(gap.first, gap.last)} dropped by us{where}{healed}"
    return f"{format_range(gap.first, gap.last)} missed{where}" + (
        f", {healed_label(gap, operation)}" if gap.healed else ""
    )


def _explain_gap(gap: MissedGenerations) -> str:
    one = gap.first == gap.last
    if gap.reason is MissedReason.MESSAGE:
        what = "is probably the client's message" if one else "are probably the client's messages"
    elif gap.message:
        what = "is the client's message" if one else "are the client's messages"
    else:
        return (
            f"{'is' if one else 'are'} no event: the timeline shows another kind of entry or a "
            f"message sent elsewhere"
        )
    return f"{what} in #{gap.message}"


def healed_label(
    gap: MissedGenerations, operation: Callable[[int], str], noun: str = "generation "
) -> str:
    """Return how a gap was repaired: `healed by #7 GetTask at generation 6`."""
    if not gap.by:
        return "received on another stream"
    if gap.by == gap.exchange:
        return f"healed on the same stream at {noun}{gap.generation}"
    return (
        f"healed by {' '.join(filter(None, (f'#{gap.by}', operation(gap.by))))} at "
        f"{noun}{gap.generation}"
    )


def generations_object(task: Task) -> dict[str, object] | None:
    """Return the same as JSON with stable names, or None if nothing is known."""
    if not task.generation and not task.support:
        return None
    return {
        "support": task.support.name.lower(),
        "seen": [list(each) for each in task.seen],
        "missed": [
            {
                "first": gap.first,
                "last": gap.last,
                "at": text.format_utc(gap.at),
                "exchange": gap.exchange or None,
                "healed": text.format_utc(gap.healed) if gap.healed else None,
                "healed_by": gap.by or None,
                "healed_at_generation": gap.generation or None,
                "reason": gap.reason.name.lower(),
                "message": gap.message or None,
            }
            for gap in task.missed
        ],
    }
