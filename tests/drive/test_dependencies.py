"""What a message of the drive waits for, and the pause after it."""

from __future__ import annotations

import msgspec

from a2a_proxy.drive.load import add_waits
from a2a_proxy.drive.plan import CALL_END, AwaitedResponse, ClientAction, ClientTurn, PlannedCall
from support_drive import frame, step

TASK = "4d1144cc-dd4c-4633-b33c-c38cb7c9ed5f"


def waits(*steps: PlannedCall) -> list[tuple[AwaitedResponse, ...]]:
    """Of the first message of each."""
    return [each.turns[0].waits for each in add_waits(list(steps))]


def test_sequential_calls_wait_for_the_previous_one() -> None:
    """Each waits for the end of the one before; for those before that one it has waited through
    it."""
    made = waits(step(1, 10, 20), step(2, 30, 40), step(3, 50, 60))
    assert made == [(), (AwaitedResponse(0, CALL_END),), (AwaitedResponse(1, CALL_END),)]


def test_a_call_after_concurrent_calls_waits_for_all_of_them() -> None:
    """Neither of the two waited for the other."""
    made = waits(step(1, 10, 30), step(2, 11, 31), step(3, 40, 50))
    assert made == [(), (), (AwaitedResponse(0, CALL_END), AwaitedResponse(1, CALL_END))]


def test_a_call_about_a_streamed_task_waits_for_the_events_seen_before_it() -> None:
    """By the task's id, wherever the request has it: here in a text."""
    events = [frame(1, seq, 10 + seq, agent=True, task_id=TASK) for seq in (1, 2, 3)]
    about = b'{"params":{"message":{"parts":[{"text":"open:%s"}]}}}' % TASK.encode()
    made = waits(step(1, 10, 90, *events), step(2, 12, 80, payload=about), step(3, 12, 85))
    assert made == [(), (AwaitedResponse(0, 2),), ()]


def test_a_pause_counts_from_the_awaited_event() -> None:
    """20 ns after the end of the call before, which is what its client took to think."""
    later = list(add_waits([step(1, 10, 20), step(2, 40, 50)]))[1]
    assert later.turns[0].pause == 20


def test_a_cancel_waits_for_a_call_made_in_between() -> None:
    """Somebody asked for the task, and broke the stream off then."""
    stream = step(1, 10, 60, frame(1, 1, 15, agent=True))
    cut = ClientTurn(ClientAction.CUT, 2, 55, 1, 0)
    stream = msgspec.structs.replace(stream, turns=(*stream.turns, cut))
    made = next(add_waits([stream, step(2, 20, 30), step(3, 50, 70)]))
    assert made.turns[1].waits == (AwaitedResponse(1, CALL_END),)
    assert made.turns[1].pause == 25


def test_sessions_are_driven_one_after_the_other() -> None:
    """Whatever was still open in it."""
    second = step(2, 5, 9)
    second = msgspec.structs.replace(second, row=msgspec.structs.replace(second.row, session=2))
    assert waits(step(1, 10, 0), second) == [(), (AwaitedResponse(0, CALL_END),)]


def test_long_recordings_are_planned_in_linear_time() -> None:
    """Each call compares itself with the calls not yet awaited only."""
    made = waits(*(step(number, 10 * number, 10 * number + 5) for number in range(1, 3001)))
    assert {len(each) for each in made} == {0, 1}
