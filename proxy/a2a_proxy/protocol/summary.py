"""Summaries of frames: the ids, state and flags that the index of a recording needs.

A summary is a plain tuple in the order of `Frame`'s fields from `event` to `final`, so the hot path
creates only one object.
"""

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import EventKind

Summary = tuple[EventKind, str, str, str, str, int, int, bool, bool, bool]
"""event, task_id, context_id, message_id, artifact_id, state, generation, append, last_chunk,
final."""

NO_SUMMARY: Summary = (EventKind.NONE, "", "", "", "", 0, 0, False, False, False)
UNKNOWN_SUMMARY: Summary = (EventKind.UNKNOWN, "", "", "", "", 0, 0, False, False, False)


def make_summary(
    event: EventKind = EventKind.NONE,
    task_id: str = "",
    context_id: str = "",
    message_id: str = "",
    generation: int = 0,
) -> Summary:
    """Return a summary with the members that requests have."""
    return (event, task_id, context_id, message_id, "", 0, generation, False, False, False)


STATE_NUMBERS: dict[str, int] = {f"TASK_STATE_{state.name}": int(state) for state in TaskState}
STATE_NUMBERS |= {state.label: int(state) for state in TaskState}
STATE_NUMBERS |= {"TASK_STATE_CANCELLED": 5, "cancelled": 5, "unknown": 0}
"""Every spelling of a state (manual/protocol.md "Task states") -> its number."""

STATE_LABELS: tuple[str, ...] = tuple(state.label for state in TaskState)
"""State number -> label for people."""


def state_number(value: object) -> int:
    """Return the number of a state in any spelling, also as a number or in another case; 0 if it is
    not a state."""
    if isinstance(value, str) and value.isdecimal():
        value = int(value)
    if isinstance(value, str):
        return (
            STATE_NUMBERS.get(value)
            or STATE_NUMBERS.get(value.upper())
            or STATE_NUMBERS.get(value.lower().replace("_", "-"), 0)
        )
    return value if isinstance(value, int) and 0 < value < len(STATE_LABELS) else 0


def generation_number(value: object) -> int:
    """Return an int64 in ProtoJSON form (decimal string or number, Q-31) as a number; 0 if it is
    not an int64."""
    return generation_or_none(value) or 0


def generation_or_none(value: object) -> int | None:
    """Return an int64 in ProtoJSON form as a number, so that 0 is valid; None if it is absent, null
    or not an int64."""
    if (
        isinstance(value, str)
        and value.isascii()
        and value.removeprefix("-").isdigit()
        and len(value) <= 20
    ):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if -(2**63) <= value < 2**63 else None


def to_int64(value: object) -> int:
    """Return an integer that fits 64 bits, the limit of every store; 0 for any other value."""
    return value if isinstance(value, int) and -(2**63) <= value < 2**63 else 0
