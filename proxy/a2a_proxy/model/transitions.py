"""State machines as tables."""

from typing import Generic, NoReturn, TypeVar

State = TypeVar("State")
Event = TypeVar("Event")
Step = TypeVar("Step")


class UndefinedTransitionError(Exception):
    """An event that the table does not define in this state."""


class TransitionTable(dict[tuple[State, Event], Step], Generic[State, Event, Step]):
    """Map from state and event to the step: the next state, and what the event means.

    A lookup raises `UndefinedTransitionError` if the event cannot happen in the state.
    """

    def __missing__(self, key: tuple[State, Event]) -> NoReturn:
        raise UndefinedTransitionError(f"{key[1]!s} in state {key[0]!s}")
