"""Dependencies of each client message, computed from recorded times and from the ids in it.

Order alone does not prove a cause. So a message waits for all calls that had ended when it was
sent, and, for a call that was still open and about the same task, for as many answers as had
arrived. Waiting for too much makes a message late; waiting for too little sends a request for a
task that the agent does not know yet.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from a2a_proxy.drive.plan import CALL_END, AwaitedResponse, ClientAction, ClientTurn, PlannedCall
from a2a_proxy.model.values import Frame
from a2a_proxy.recording.difference.ids import MIN_TEXT_ID_LENGTH


def add_waits(steps: list[PlannedCall]) -> Iterator[PlannedCall]:
    """Yield the same steps in the same order, each turn with its dependencies and the recorded
    pause after them."""
    front: list[PlannedCall] = []
    for step in steps:
        front = _advance_front(front, step)
        turns: list[ClientTurn] = []
        for number, turn in enumerate(step.turns):
            waits = tuple(
                _waits_of_call(front, step)
                if number == 0
                else _waits_within_call(steps, step, turn)
            )
            cause = max(
                _awaited_time(steps, step, turn, waits), *(each.at for each in turns[-1:]), 0
            )
            turns.append(
                msgspec.structs.replace(
                    turn, waits=waits, pause=max(turn.at - cause, 0) if cause else 0
                )
            )
        yield msgspec.structs.replace(step, turns=tuple(turns))
        front.append(step)


def _advance_front(front: list[PlannedCall], step: PlannedCall) -> list[PlannedCall]:
    """Return the previous calls that still matter: those that no later call, also ended, waited
    for."""
    ended = [other for other in front if _is_over_before(other, step)]
    latest = max(((other.row.session, other.start_time) for other in ended), default=(0, 0))
    return [
        other
        for other in front
        if not _is_over_before(other, step)
        or (other.row.session, other.exchange.closed or other.start_time) >= latest
    ]


def _is_over_before(other: PlannedCall, step: PlannedCall) -> bool:
    """Whether one call had ended when the other began; calls that were open at the end of a session
    ended with it."""
    if other.row.session != step.row.session:
        return True
    return 0 < other.exchange.closed <= step.start_time


def _waits_of_call(front: list[PlannedCall], step: PlannedCall) -> Iterator[AwaitedResponse]:
    """Yield the dependencies of a call."""
    for other in front:
        if _is_over_before(other, step):
            yield AwaitedResponse(other.number, CALL_END)
            continue
        answers = [frame for frame in other.answers if frame.at <= step.start_time]
        if _names_answer(step, {name for frame in answers for name in _ids_in_frame(frame)}):
            yield AwaitedResponse(other.number, len(answers))


def _waits_within_call(
    steps: list[PlannedCall], step: PlannedCall, turn: ClientTurn
) -> Iterator[AwaitedResponse]:
    """Yield the dependencies of a later message or cancel on calls that began and ended while its
    call was open."""
    if turn.action is ClientAction.END:
        return
    for other in steps[step.number + 1 :]:
        if other.start_time > turn.at:
            return
        if 0 < other.exchange.closed <= turn.at:
            yield AwaitedResponse(other.number, CALL_END)


def _awaited_time(
    steps: list[PlannedCall],
    step: PlannedCall,
    turn: ClientTurn,
    waits: tuple[AwaitedResponse, ...],
) -> int:
    """Return when the last dependency of a turn was met in the recording, in ns; 0 if it has
    none."""
    times = [frame.at for frame in step.answers[: turn.answers_before][-1:]]
    for wait in waits:
        other = steps[wait.step]
        times.append(
            other.exchange.closed
            if wait.answers == CALL_END
            else other.answers[wait.answers - 1].at
        )
    return max(times, default=0)


def _names_answer(step: PlannedCall, ids: set[str]) -> bool:
    """Whether the first message of a call contains an id that an answer brought, in a field or in a
    text."""
    frame = step.turns[0].frame
    if frame is None:
        return False
    data = step.exchange.target.encode("latin-1", "replace") + b" " + frame.payload
    found = (name for name in ids if len(name) >= MIN_TEXT_ID_LENGTH and name.encode() in data)
    return not ids.isdisjoint(_ids_in_frame(frame)) or any(found)


def _ids_in_frame(frame: Frame) -> set[str]:
    return {name for name in (frame.task_id, frame.context_id) if name}
