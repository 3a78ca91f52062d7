"""What faults do to the events of a response."""

from __future__ import annotations

import pytest

from a2a_proxy.faults.live import parse_live_fault
from a2a_proxy.faults.plan import EventFacts, FaultPlan
from a2a_proxy.faults.stream import MAX_HELD_BYTES, FaultPiece, StreamFaults
from a2a_proxy.model.values import Binding


def stream(
    *faults: str, events: bytes = b"abcd"
) -> tuple[FaultPlan, list[FaultPiece], list[tuple[int, str]]]:
    plan = FaultPlan([parse_live_fault(each) for each in faults])
    call = plan.open_call("SendStreamingMessage", Binding.REST)
    assert call is not None
    made = StreamFaults(call, lambda raw, by: raw.upper() * by if raw != b"bb" else None)
    pieces = []
    for place, letter in enumerate(events):
        pieces += made.feed_event(bytes((letter,)) * 2, EventFacts(), place)
    pieces += made.finish()
    return plan, pieces, [(mark.place, mark.note) for mark in made.marks]


@pytest.mark.parametrize(
    ("fault", "sent", "marks"),
    [
        ("drop 2 of *", b"aaccdd", [(1, "dropped")]),
        ("dup 2 of *", b"aabbbbccdd", [(1, "sent twice")]),
        ("swap 1 3 of *", b"ccbbaadd", [(0, "held"), (2, "sent early")]),
        ("swap 1 9 of *", b"aabbccdd", [(0, "held")]),
        ("gen+2 at 3 of *", b"aabbCCCCdd", [(2, "sent with another generation")]),
        ("gen+2 at 2 of *", b"aabbccdd", []),
    ],
)
def test_events_are_changed(fault: str, sent: bytes, marks: list[tuple[int, str]]) -> None:
    plan, pieces, made = stream(fault)
    assert b"".join(piece.data for piece in pieces) == sent
    assert made == [(place, f"{what} by --fault: {fault}") for place, what in marks]
    assert plan.happened == [int(sent != b"aabbccdd")]


def test_pauses_add_up() -> None:
    _, pieces, marks = stream("stall 5s before 2 of *", "slow 200ms every *")
    assert [piece.delay for piece in pieces] == [0.2, 5.2, 0.2, 0.2]
    assert [place for place, _ in marks] == [0, 1]


def test_a_cut_ends_the_response_in_the_middle_of_an_event() -> None:
    _, pieces, _ = stream("cut 2 of * @ 50%", events=b"ab")
    assert [(piece.data, piece.cut) for piece in pieces] == [
        (b"aa", ""),
        (b"b", "cut 2 of * @ 50%"),
    ]
    _, pieces, _ = stream("cut 2 of *", "swap 1 4 of *", events=b"ab")
    assert [(piece.data, bool(piece.cut)) for piece in pieces] == [(b"aa", False), (b"", True)]


def test_a_swap_that_holds_too_much_is_given_up() -> None:
    plan = FaultPlan([parse_live_fault("swap 1 3 of *")])
    call = plan.open_call("SendStreamingMessage", Binding.REST)
    assert call is not None
    made = StreamFaults(call, lambda raw, _: raw)
    assert made.feed_event(b"a" * MAX_HELD_BYTES, EventFacts(), 0) == []
    assert [len(piece.data) for piece in made.feed_event(b"b", EventFacts(), 1)] == [
        MAX_HELD_BYTES,
        1,
    ]
    assert [piece.data for piece in made.feed_event(b"c", EventFacts(), 2)] == [b"c"]
    assert plan.missed
