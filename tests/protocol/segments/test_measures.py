"""The formulas of manual/segments.md on a timeline whose numbers were worked out by hand. Times are
ms."""

from __future__ import annotations

import pytest

from a2a_proxy.protocol.segments.measures import Turn, compute_percentile, turns_of
from support_segments import MS, Timeline, run


def of(line: Timeline) -> list[Turn]:
    return turns_of(run(line, 60_000).segments)


def conversation() -> Timeline:
    """Turn 1: asked from 90 to 100; submitted 150; a chunk 400; chunks 1600 and 1700; a question at
    3400; end 3450. Turn 2: answered at 8400 (first byte 8390); completed with a message at 8500;
    end at 8530."""
    line = Timeline().ask(100, took=10).state(150, "SUBMITTED").chunk(400).chunk(1600, append=True)
    line.chunk(1700, append=True).state(3400, "INPUT_REQUIRED", said="q").end(3450)
    return (
        line.ask(8400, exchange=2, task_id="t", took=10)
        .state(8500, "COMPLETED", exchange=2, said="a")
        .end(8530, exchange=2)
    )


def test_each_measure() -> None:
    first, second = of(conversation())
    # t(first A) - t(last byte of U) = 150 - 100
    assert first.first_event == 50 * MS
    # t(first O) - t(last byte of U) = 400 - 100: submitted carries nothing
    assert first.first_output == 300 * MS
    assert first.response == 300 * MS
    # t(last A) - t(first byte of U) = 3400 - 90
    assert first.duration == 3310 * MS
    # gaps: 250, 1200, 100, and 1700 between the segments that silence (> 1500) has cut: 1700 to
    # 3400
    assert first.longest_gap == 1700 * MS
    assert first.gaps == (1700 * MS,)
    # idle: 1200 + 1700 of 3310
    assert first.idle_share == pytest.approx(2900 / 3310)
    # t(next U) - t(question) = 8400 - 3400
    assert first.human_wait == 5000 * MS
    # a question is no final state
    assert first.close is None
    assert first.output_time == (3400 - 400) * MS

    assert second.first_event == second.first_output == 100 * MS
    assert second.duration == 110 * MS  # 8500 - 8390
    assert second.close == 30 * MS  # 8530 - 8500
    assert (second.human_wait, second.longest_gap, second.idle_share) == (None, 0, 0)


def test_response_time_counts_from_the_end_of_client_activity() -> None:
    """Sound until 500, the client's stop at 400 within it; output at 700."""
    line = Timeline().ask(0, "SendLiveMessage")
    stop = b'{"message":{"parts":[{"text":"x"}],"metadata":{"activity_end":true}}}'
    line.ask(400, "SendLiveMessage", payload=stop, schema="json").ask(500, "SendLiveMessage").chunk(
        700
    ).end(800)
    (turn,) = of(line)
    assert (turn.first_output, turn.response) == (200 * MS, 300 * MS)


def test_a_turn_without_an_answer_has_no_measures() -> None:
    (turn,) = of(Timeline().ask(0))
    assert (
        turn.first_event
        is turn.first_output
        is turn.response
        is turn.duration
        is turn.close
        is None
    )


def test_agent_output_before_any_request_is_turn_0() -> None:
    (turn,) = of(
        Timeline().ask(0, "SubscribeToTask", task_id="t").task(10, "WORKING").chunk(20).end(30)
    )
    assert turn.client is None
    assert turn.segments[0].turn == 0
    assert turn.first_event is None


def test_tasks_of_a_session_are_measured_separately() -> None:
    line = (
        Timeline()
        .ask(0)
        .ask(5, exchange=2)
        .state(10, "WORKING", task="a")
        .state(12, "WORKING", exchange=2, task="b")
    )
    line.state(20, "COMPLETED", task="a").state(25, "COMPLETED", exchange=2, task="b")
    assert [(each.segments[0].task_id, each.first_event) for each in of(line)] == [
        ("a", 10 * MS),
        ("b", 7 * MS),
    ]


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        ([7], 0.5, 7),
        ([1, 2, 3, 4], 0.5, 2),
        ([1, 2, 3], 0.5, 2),
        (list(range(1, 101)), 0.95, 95),
        ([1, 2], 0.95, 2),
    ],
)
def test_percentile(values: list[int], share: float, expected: int) -> None:
    assert compute_percentile(values, share) == expected


def test_turns_are_numbered_from_the_first_of_the_client() -> None:
    assert [turn.number for turn in of(conversation())] == [1, 2]
