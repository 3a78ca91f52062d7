"""The life of a call on a pipe, where no message marks the end of a stream (manual/protocol.md
"Stdio streams", Q-19).

A stream that shows an interrupted state rests: agents may end it there or continue it (Q-01).
"""

from enum import StrEnum

from a2a_proxy.model.event import INTERRUPTED_STATES, TERMINAL_STATES
from a2a_proxy.model.transitions import TransitionTable
from a2a_proxy.model.values import EventKind, Frame, FrameKind


class PipeLife(StrEnum):
    """State of a call on a pipe."""

    QUIET = "no state shown"
    SHOWN = "task shown"
    RESTING = "resting"
    """The task is interrupted, so no further event is expected."""
    OVER = "over"


class PipeEvent(StrEnum):
    """Event of a call on a pipe: a message of the agent, or an end of the call or the pipe."""

    RESPONSE = "only response"
    """The response of a call that is not a stream."""
    STATELESS = "event without a state"
    MESSAGE = "Message"
    ACTIVE = "active state"
    INTERRUPTED = "interrupted state"
    TERMINAL = "terminal state"
    FINAL = "`final: true`"
    ERROR = "error"
    ID_USED_AGAIN = "request with its id"
    PIPE_ENDED = "a peer ends the pipe"
    PIPE_LOST = "the proxy stops"
    """Or the bytes were not captured."""


class PipeMeaning(StrEnum):
    """What an event means for the call."""

    CONTINUES = "continues"
    COMPLETE = "complete"
    REPLACED = "id used again"
    BROKEN_OFF = "broken off: a CUT frame"


_ENDS = (PipeLife.OVER, PipeMeaning.COMPLETE)
_BREAKS_OFF = (PipeLife.OVER, PipeMeaning.BROKEN_OFF)
_GOES_ON = PipeMeaning.CONTINUES
PIPE_LIFE = TransitionTable(
    {
        (PipeLife.QUIET, PipeEvent.STATELESS): (PipeLife.QUIET, _GOES_ON),
        (PipeLife.QUIET, PipeEvent.MESSAGE): _ENDS,
        (PipeLife.QUIET, PipeEvent.ID_USED_AGAIN): (PipeLife.OVER, PipeMeaning.REPLACED),
        (PipeLife.QUIET, PipeEvent.PIPE_ENDED): _BREAKS_OFF,
        (PipeLife.SHOWN, PipeEvent.STATELESS): (PipeLife.SHOWN, _GOES_ON),
        # A Message among the events of a task is a fault, and the task continues.
        (PipeLife.SHOWN, PipeEvent.MESSAGE): (PipeLife.SHOWN, _GOES_ON),
        (PipeLife.SHOWN, PipeEvent.ID_USED_AGAIN): (PipeLife.OVER, PipeMeaning.REPLACED),
        (PipeLife.SHOWN, PipeEvent.PIPE_ENDED): _BREAKS_OFF,
        (PipeLife.RESTING, PipeEvent.STATELESS): (PipeLife.RESTING, _GOES_ON),
        (PipeLife.RESTING, PipeEvent.MESSAGE): (PipeLife.RESTING, _GOES_ON),
        (PipeLife.RESTING, PipeEvent.ID_USED_AGAIN): _ENDS,
        (PipeLife.RESTING, PipeEvent.PIPE_ENDED): _ENDS,
    }
    | {
        (life, event): step
        for life in (PipeLife.QUIET, PipeLife.SHOWN, PipeLife.RESTING)
        for event, step in {
            PipeEvent.RESPONSE: _ENDS,
            PipeEvent.ACTIVE: (PipeLife.SHOWN, _GOES_ON),
            PipeEvent.INTERRUPTED: (PipeLife.RESTING, _GOES_ON),
            PipeEvent.TERMINAL: _ENDS,
            PipeEvent.FINAL: _ENDS,
            PipeEvent.ERROR: _ENDS,
            PipeEvent.PIPE_LOST: _BREAKS_OFF,
        }.items()
    }
)
"""Life of a call on a pipe. Undefined: anything when it is over, because later messages belong to
no call."""


def pipe_event_of(frame: object) -> PipeEvent:
    """Return the event of an agent's frame in a stream."""
    if not isinstance(frame, Frame):
        return PipeEvent.STATELESS
    state = frame.state
    if frame.kind is FrameKind.ERROR:
        return PipeEvent.ERROR
    if frame.final:
        return PipeEvent.FINAL
    if state in TERMINAL_STATES:
        return PipeEvent.TERMINAL
    if frame.event is EventKind.MESSAGE and not state:
        return PipeEvent.MESSAGE
    if not state:
        return PipeEvent.STATELESS
    return PipeEvent.INTERRUPTED if state in INTERRUPTED_STATES else PipeEvent.ACTIVE
