"""The course of a stream around its end, as a table (manual/protocol.md "The end of a stream")."""

from enum import StrEnum

from a2a_proxy.model.transitions import TransitionTable
from a2a_proxy.model.values import EventKind, Frame


class Course(StrEnum):
    """State of a stream, by the events on it."""

    RUNNING = "running"
    ENDED = "ended"
    """A terminal state was sent."""
    REPEATED = "ended, and its Task sent once more"
    ANNOUNCED = "ended with `final: true`"


class CourseEvent(StrEnum):
    """Kind of an event, as far as the end of the stream depends on it."""

    EVENT = "another event"
    TERMINAL = "terminal state"
    FINAL = "terminal state after or with `final: true`"
    SAME_TASK = "Task in the state of the end"


class CourseMeaning(StrEnum):
    """What an event means."""

    LEGAL = "yes"
    AFTER_END = "A2A-STREAM-005"
    AFTER_FINAL = "A2A-STREAM-018"


_after_end, _after_final = CourseMeaning.AFTER_END, CourseMeaning.AFTER_FINAL
COURSE = TransitionTable(
    {
        (Course.RUNNING, CourseEvent.EVENT): (Course.RUNNING, CourseMeaning.LEGAL),
        (Course.RUNNING, CourseEvent.TERMINAL): (Course.ENDED, CourseMeaning.LEGAL),
        (Course.RUNNING, CourseEvent.FINAL): (Course.ANNOUNCED, CourseMeaning.LEGAL),
        (Course.ENDED, CourseEvent.EVENT): (Course.ENDED, _after_end),
        (Course.ENDED, CourseEvent.TERMINAL): (Course.ENDED, _after_end),
        (Course.ENDED, CourseEvent.FINAL): (Course.ENDED, _after_end),
        (Course.ENDED, CourseEvent.SAME_TASK): (Course.REPEATED, CourseMeaning.LEGAL),
        (Course.REPEATED, CourseEvent.EVENT): (Course.REPEATED, _after_end),
        (Course.REPEATED, CourseEvent.TERMINAL): (Course.REPEATED, _after_end),
        (Course.REPEATED, CourseEvent.FINAL): (Course.REPEATED, _after_end),
        (Course.REPEATED, CourseEvent.SAME_TASK): (Course.REPEATED, _after_end),
        (Course.ANNOUNCED, CourseEvent.EVENT): (Course.ANNOUNCED, _after_final),
        (Course.ANNOUNCED, CourseEvent.TERMINAL): (Course.ANNOUNCED, _after_final),
        (Course.ANNOUNCED, CourseEvent.FINAL): (Course.ANNOUNCED, _after_final),
        (Course.ANNOUNCED, CourseEvent.SAME_TASK): (Course.ANNOUNCED, _after_final),
    }
)
"""Undefined: the Task in the state of the end while the stream has not ended."""


def course_event_of(
    frame: Frame, end_state: int, *, is_terminal: bool, is_final: bool
) -> CourseEvent:
    """Return the event of a frame; `end_state` is the state in which the stream ended, 0 before its
    end."""
    if end_state and frame.event is EventKind.TASK and frame.state == end_state:
        return CourseEvent.SAME_TASK
    if not is_terminal:
        return CourseEvent.EVENT
    return CourseEvent.FINAL if is_final else CourseEvent.TERMINAL
