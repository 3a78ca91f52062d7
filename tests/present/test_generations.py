"""Generations as text."""

from __future__ import annotations

import pytest

from a2a_proxy.model.values import Binding, Exchange, MissedGenerations, MissedReason, Support, Task
from a2a_proxy.present import generations, text

SECOND = 1_000_000_000


def named(number: int) -> str:
    return {7: "GetTask"}.get(number, "")


def task(
    *seen: tuple[int, int],
    missed: tuple[MissedGenerations, ...] = (),
    support: Support = Support.YES,
) -> Task:
    return Task(
        "agent",
        "t1",
        generation=seen[-1][1] if seen else 0,
        seen=seen,
        missed=missed,
        support=support,
    )


@pytest.mark.parametrize(
    ("made", "written"),
    [
        (task(support=Support.UNKNOWN), ""),
        (task(support=Support.NO), "no generations: the agent sends none"),
        (task((1, 9)), "generations 1-9"),
        (task((5, 5)), "generations 5"),
        (
            task((1, 3), (5, 9), missed=(MissedGenerations(4, 4, 1, 1, 2, 7, 6),)),
            "generations 1-3 5-9, 4 missed on #1, healed by #7 GetTask at generation 6",
        ),
        (
            task((1, 3), (6, 9), missed=(MissedGenerations(4, 5, 1, 1, 2, 8, 6),)),
            "generations 1-3 6-9, 4-5 missed on #1, healed by #8 at generation 6",
        ),
        (
            task((1, 5), missed=(MissedGenerations(4, 4, 1, 1, 2, 1, 4),)),
            "generations 1-5, 4 missed on #1, healed on the same stream at generation 4",
        ),
        (
            task((1, 5), missed=(MissedGenerations(4, 4, 1, 2, 2, 0, 4),)),
            "generations 1-5, 4 missed on #2, received on another stream",
        ),
        (
            task((1, 3), (9, 9), missed=(MissedGenerations(5, 6, 1, 1),)),
            "generations 1-3 9, 4 not seen, 7-8 not seen, 5-6 missed on #1",
        ),
        (
            task(
                (1, 3),
                (5, 5),
                missed=(MissedGenerations(4, 4, 1, 1, 2, 7, 5, MissedReason.DROPPED),),
            ),
            "generations 1-3 5, 4 dropped by us on #1, healed by #7 GetTask at 5",
        ),
        (
            task((1, 3), missed=(MissedGenerations(4, 4, 1, 1, reason=MissedReason.DROPPED),)),
            "generations 1-3, 4 dropped by us on #1",
        ),
        (
            task((1, 3), support=Support.NO),
            "generations 1-3, one number on two events: clients cannot rely on them",
        ),
    ],
)
def test_the_line_of_a_task(made: Task, written: str) -> None:
    assert generations.generations_line(made, named) == written


def test_a_line_stays_short() -> None:
    """However much an agent leaves out."""
    seen = tuple((number, number) for number in range(1, 101, 2))
    missed = tuple(MissedGenerations(number, number, 1, 1) for number in range(2, 100, 2))
    written = generations.generations_line(task(*seen, missed=missed), named)
    assert written.startswith("generations … 85 87")
    assert written.endswith("98 missed on #1, 41 more gaps before")


def call(**more: object) -> Exchange:
    values = {"operation": "GetTask", "request_ended": SECOND, **more}
    return Exchange(1, 1, 1, Binding.JSONRPC, SECOND, **values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("exchange", "outcome", "written"),
    [
        (call(), "live", ""),
        (call(current_generation=5), "waits", "for a generation above 5"),
        (call(current_generation=0), "waits", "for a generation above 0"),
        (
            call(current_generation=5, events=1, generation=6, closed=9),
            "ok",
            "waited for a generation above 5, got 6",
        ),
        (
            call(current_generation=5, events=1, generation=5, closed=9),
            "ok",
            "waited for a generation above 5, still 5",
        ),
        (
            call(current_generation=5, events=1, generation=4, closed=9),
            "ok",
            "waited for a generation above 5, got 4, an older one",
        ),
        (
            call(current_generation=5, events=1, closed=9),
            "ok",
            "waited for a generation above 5, got none",
        ),
        (
            call(current_generation=5, closed=9, how="client gone"),
            "cut",
            "waited for a generation above 5",
        ),
        (
            call(current_generation=5, closed=9, error="X"),
            "error",
            "waited for a generation above 5",
        ),
        (call(generation_match=3), "live", "if the generation is 3"),
    ],
)
def test_requested_generations_are_in_the_outcome(
    exchange: Exchange, outcome: str, written: str
) -> None:
    assert (text.outcome_label(exchange), generations.requested_generations(exchange)) == (
        outcome,
        written,
    )


def test_an_open_poll_has_the_outcome_live() -> None:
    assert text.outcome_of(call(current_generation=5)) == "live"


def test_as_json() -> None:
    assert generations.generations_object(task(support=Support.UNKNOWN)) is None
    assert generations.generations_object(
        task((1, 3), (5, 6), missed=(MissedGenerations(4, 4, SECOND, 1, 2 * SECOND, 7, 6),))
    ) == {
        "support": "yes",
        "seen": [[1, 3], [5, 6]],
        "missed": [
            {
                "first": 4,
                "last": 4,
                "at": "1970-01-01T00:00:01.000000000Z",
                "exchange": 1,
                "healed": "1970-01-01T00:00:02.000000000Z",
                "healed_by": 7,
                "healed_at_generation": 6,
                "reason": "unknown",
                "message": None,
            }
        ],
    }
