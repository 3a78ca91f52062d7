"""Changes of a task's state, and their legality (manual/protocol.md "State transitions")."""

from enum import StrEnum

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.transitions import TransitionTable


class Change(StrEnum):
    """Meaning of a state that follows another one."""

    LEGAL = "yes"
    PROGRESS = "progress"
    """The state is the same."""
    BACK = "suspicious"
    """The task started already, and is SUBMITTED (A2A-STATE-002)."""
    ANSWERED = "after a message"
    """The task waits for input: without a message of a client this is A2A-STATE-003."""
    LEAVES_END = "no"
    """The task ended in another state (A2A-STATE-001)."""
    REPEATS_END = "the same again"


NEW = TaskState.UNSPECIFIED
"""The state of a task that has shown none."""
UNKNOWN = TaskState(9)
"""Stands for all numbers that A2A does not define."""
_S, _W, _I, _A = (
    TaskState.SUBMITTED,
    TaskState.WORKING,
    TaskState.INPUT_REQUIRED,
    TaskState.AUTH_REQUIRED,
)
_C, _F, _X, _R = TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED, TaskState.REJECTED
_COLUMNS = (_S, _W, _I, _A, _C, _F, _X, _R, UNKNOWN)
_yes, _same, _back, _said = Change.LEGAL, Change.PROGRESS, Change.BACK, Change.ANSWERED
_no, _end = Change.LEAVES_END, Change.REPEATS_END
_ROWS = {
    # from   SUBMITTED WORKING INPUT  AUTH   COMPL. FAILED CANCEL REJECT unknown
    NEW: (_yes, _yes, _yes, _yes, _yes, _yes, _yes, _yes, _yes),
    _S: (_same, _yes, _yes, _yes, _yes, _yes, _yes, _yes, _yes),
    _W: (_back, _same, _yes, _yes, _yes, _yes, _yes, _yes, _yes),
    _I: (_back, _said, _same, _yes, _said, _yes, _yes, _yes, _yes),
    _A: (_back, _yes, _yes, _same, _yes, _yes, _yes, _yes, _yes),
    _C: (_no, _no, _no, _no, _end, _no, _no, _no, _no),
    _F: (_no, _no, _no, _no, _no, _end, _no, _no, _no),
    _X: (_no, _no, _no, _no, _no, _no, _end, _no, _no),
    _R: (_no, _no, _no, _no, _no, _no, _no, _end, _no),
    UNKNOWN: (_back, _yes, _yes, _yes, _yes, _yes, _yes, _yes, _yes),
}
TRANSITIONS: TransitionTable[int, int, Change] = TransitionTable(
    {
        (int(before), int(state)): row[at]
        for before, row in _ROWS.items()
        for at, state in enumerate(_COLUMNS)
    }
)
"""State before and state shown -> what it means; the next state is the one shown. Undefined:
UNSPECIFIED is never a state that follows."""


def change_of(before: int, state: int) -> Change:
    """Return what `state` means after `before`, which is 0 if the task had shown none. Numbers that
    A2A does not define are equal to `UNKNOWN`. Raises UndefinedTransitionError if `state` is 0."""
    return TRANSITIONS[
        before if 0 <= before < UNKNOWN else _UNKNOWN, state if 0 <= state < UNKNOWN else _UNKNOWN
    ]


_UNKNOWN = int(UNKNOWN)
