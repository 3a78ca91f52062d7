"""Timelines written by hand, and the segments, interruptions and hand-offs expected from them.

Times are ms. `agent 1 30-120 artifact`: the agent's segment of turn 1, its first and last frame,
why it is over.
"""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from a2a_proto import from_dict
from a2a_proxy.model.values import GAP_AGENT, GAP_CLIENT, EventKind, FrameKind, Interruption
from support_segments import MS, Cut, Timeline, ms, run

# --- segments


def stream(exchange: int = 1, begin: float = 0, task: str = "t", **fields: str) -> Timeline:
    """Submitted at 20, working at 40 with a message, chunks at 60, 90, 120, completed at 140, end
    at 150."""
    line = Timeline().ask(begin, exchange=exchange, **fields)
    line.state(begin + 20, "SUBMITTED", exchange=exchange, task=task)
    return line.state(begin + 40, "WORKING", said="m", exchange=exchange, task=task)


def test_a_streamed_answer_is_one_turn() -> None:
    line = stream().chunk(60).chunk(90, append=True).chunk(120, append=True, last_chunk=True)
    cut = run(line.state(140, "COMPLETED").end(150))
    assert cut.line() == [
        "client 1 0-0 speaker",
        "agent 1 20-120 artifact",
        "agent 1 140-140 completed",
    ]
    client, first, last = cut.segments
    assert (client.task_id, client.context_id, ms(client.ended)) == ("t", "c", 20)
    # Frames: submitted, working, three chunks. Output: the message at 40 and the chunks.
    assert (first.frames, first.outputs, ms(first.first_output), ms(first.last_output)) == (
        5,
        4,
        40,
        120,
    )
    assert (first.bytes, ms(first.gap), first.seq, first.last_seq) == (500, 30, 1, 5)
    assert ms(last.closed) == 150


def test_artifacts_of_snapshots_are_output_if_they_grow() -> None:
    def shown(*parts: str) -> bytes:
        artifact = {"artifactId": "a", "parts": [{"text": text} for text in parts]}
        return json.dumps(
            {"id": "t", "contextId": "c", "artifacts": [artifact] if parts else []}
        ).encode()

    def outputs(*payloads: bytes) -> int:
        line = Timeline().ask(0)
        for number, payload in enumerate(payloads, 1):
            line.task(20 * number, "WORKING", payload=payload, schema="json")
        return sum(
            segment.outputs for segment in run(line.end(200)).segments if segment.speaker == "agent"
        )

    assert outputs(shown("xyz")) == 1
    assert outputs(shown()) == 0
    assert outputs(shown(), shown("x"), shown("x"), shown("x", "y"), shown()) == 2


def test_the_end_of_one_artifact_does_not_end_the_segment_of_another() -> None:
    line = (
        stream()
        .chunk(60, "a")
        .chunk(70, "b")
        .chunk(80, "b", append=True)
        .chunk(90, "a", last_chunk=True)
    )
    cut = run(line.chunk(100, "b", append=True, last_chunk=True).end(110))
    assert cut.line()[1:] == ["agent 1 20-100 artifact"]


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ("COMPLETED", "completed"),
        ("FAILED", "failed"),
        ("CANCELED", "canceled"),
        ("REJECTED", "rejected"),
        ("INPUT_REQUIRED", "input"),
        ("AUTH_REQUIRED", "auth"),
    ],
)
def test_a_state_that_ends_the_turn_ends_the_segment(state: str, reason: str) -> None:
    cut = run(Timeline().ask(0, "SendMessage").task(30, state))
    assert cut.line() == ["client 1 0-0 speaker", f"agent 1 30-30 {reason}"]


def test_silence_ends_segments_at_the_same_time_whatever_notices_it() -> None:
    """The client waits 5 s, the agent pauses for 2 s: cut 800 ms after the one, 1500 ms after the
    other."""
    line = Timeline().ask(0).state(5000, "WORKING").chunk(7000)
    ticked = Timeline().ask(0).tick(900).tick(4000).state(5000, "WORKING").tick(6501).chunk(7000)
    for cut in (run(line, 9000), run(ticked, 9000)):
        assert cut.line() == [
            "client 1 0-0 silence",
            "agent 1 5000-5000 silence",
            "agent 1 7000-7000 silence",
        ]
        assert [ms(each.ended) for each in cut.segments] == [
            GAP_CLIENT / MS,
            5000 + GAP_AGENT / MS,
            8500,
        ]


def test_ended_segments_do_not_pile_up_before_their_silence() -> None:
    """Thousands of turns within the limit of silence; an open one among them still ends by
    silence."""
    line = Timeline().ask(0, exchange=1).state(1, "WORKING", task="silent", exchange=1)
    for number in range(2, 2500):
        line.ask(number / 10, "SendMessage", exchange=number)
        line.task(number / 10, "COMPLETED", exchange=number, task=f"t{number}")
    sizes: list[int] = []
    line.steps.append(lambda tracker: sizes.append(len(tracker._segments.due)))
    cut = run(line, 5000)
    assert sizes[0] < 1100
    assert [each.reason for each in cut.segments if each.task_id == "silent"] == [
        "speaker",
        "silence",
    ]


def test_silence_of_exactly_the_limit_does_not_end_a_segment() -> None:
    cut = run(Timeline().ask(0).state(800, "WORKING").chunk(2300), 2400)
    assert cut.line() == ["client 1 0-0 speaker", "agent 1 800-2300 closed"]


def test_a_stream_that_ends_or_breaks_ends_the_segment() -> None:
    assert run(stream().end(60)).line()[-1] == "agent 1 20-40 closed"
    assert (
        run(stream().end(60, kind=FrameKind.CUT, note="reset")).line()[-1] == "agent 1 20-40 broken"
    )
    assert run(Timeline().ask(0).end(60, kind=FrameKind.ERROR, error_code=-32001)).line() == [
        "client 1 0-0 error"
    ]
    assert run(Timeline().ask(0).end(60, error_code=5)).line() == ["client 1 0-0 error"]
    assert run(stream().end(60, kind=FrameKind.ERROR)).line()[-1] == "agent 1 20-40 error"


def test_a_message_without_a_task_is_a_turn_of_its_exchange() -> None:
    cut = run(
        Timeline()
        .ask(0, "SendMessage")
        .message(25)
        .ask(40, "SendMessage", exchange=2)
        .message(50, exchange=2)
    )
    assert cut.line() == [
        "client 1 0-0 speaker",
        "agent 1 25-25 closed",
        "client 1 40-40 speaker",
        "agent 1 50-50 closed",
    ]
    assert {each.task_id for each in cut.segments} == {""}


def test_the_next_call_about_a_task_is_its_next_turn() -> None:
    line = Timeline().ask(0, "SendMessage").task(10, "INPUT_REQUIRED")
    line.ask(100, "SendMessage", exchange=2, task_id="t").task(130, "COMPLETED", exchange=2)
    assert [each.turn for each in run(line).segments] == [1, 1, 2, 2]


def test_generations_of_a_segment() -> None:
    line = (
        Timeline()
        .ask(0)
        .state(10, "WORKING", generation=3)
        .chunk(20, generation=4)
        .state(30, "WORKING", generation=6)
    )
    (_, agent) = run(line, 50).segments
    assert (agent.generation_first, agent.generation_last) == (3, 6)


def test_a_poll_counts_only_with_news() -> None:
    line = Timeline().ask(0, "SendMessage").task(10, "WORKING")
    for number, (at, state) in enumerate(
        [(100, "WORKING"), (200, "WORKING"), (300, "COMPLETED"), (400, "COMPLETED")], 2
    ):
        line.ask(at - 5, "GetTask", exchange=number, task_id="t").task(at, state, exchange=number)
    cut = run(line)
    assert cut.line() == [
        "client 1 0-0 speaker",
        "agent 1 10-10 closed",
        "agent 1 300-300 completed",
    ]


def subscribed() -> Timeline:
    """A second stream from 50 on; each event comes to both, now this one first and now that one."""
    line = (
        stream().ask(50, "SubscribeToTask", exchange=2, task_id="t").task(55, "WORKING", exchange=2)
    )
    line.chunk(60).chunk(61, exchange=2).chunk(70, append=True, exchange=2).chunk(71, append=True)
    line.chunk(80, append=True).chunk(82, append=True, exchange=2)
    return (
        line.state(90, "COMPLETED", exchange=2).state(91, "COMPLETED").end(95, exchange=2).end(96)
    )


def test_events_on_two_streams_count_once() -> None:
    cut = run(subscribed())
    assert cut.line() == ["client 1 0-0 speaker", "agent 1 20-90 completed"]
    assert (cut.segments[1].frames, cut.segments[1].outputs) == (
        6,
        4,
    )  # two states, three chunks, the last state


def test_a_lagging_stream_adds_nothing() -> None:
    line = (
        stream().ask(50, "SubscribeToTask", exchange=2, task_id="t").task(55, "WORKING", exchange=2)
    )
    line.chunk(60).chunk(70, append=True).state(80, "COMPLETED").end(85)
    line.chunk(90, exchange=2).chunk(95, append=True, exchange=2).state(
        100, "COMPLETED", exchange=2
    ).end(105, exchange=2)
    assert run(line).line() == ["client 1 0-0 speaker", "agent 1 20-80 completed"]


def test_a_stream_continues_the_segment_of_a_broken_one() -> None:
    line = (
        stream().ask(50, "SubscribeToTask", exchange=2, task_id="t").task(55, "WORKING", exchange=2)
    )
    line.chunk(60).chunk(62, exchange=2).end(65, kind=FrameKind.CUT).chunk(
        70, append=True, exchange=2
    )
    cut = run(line.state(90, "COMPLETED", exchange=2).end(95, exchange=2))
    assert cut.line() == ["client 1 0-0 speaker", "agent 1 20-90 completed"]
    assert cut.segments[1].frames == 5  # two states, two chunks, the last state


def test_a_push_counts_only_without_an_open_stream() -> None:
    """The same event at a webhook while the stream is open; later ones when it is closed."""
    from a2a_proxy.model.values import Binding
    from support_segments import View

    def pushed(line: Timeline, at: float, exchange: int, state: str) -> None:
        line.views[exchange] = View(exchange, Binding.WEBHOOK, "", agent="receiver:9")
        line.state(at, state, exchange=exchange)

    line = stream()
    pushed(line, 45, 5, "WORKING")
    line.end(60)
    pushed(line, 70, 6, "WORKING")
    pushed(line, 80, 7, "COMPLETED")
    assert run(line).line() == [
        "client 1 0-0 speaker",
        "agent 1 20-40 closed",
        "agent 1 80-80 completed",
    ]


def test_unary_turns_are_omitted_on_request() -> None:
    line = Timeline().ask(0, "SendMessage").task(30, "INPUT_REQUIRED")
    line.ask(100, exchange=2, task_id="t").state(130, "COMPLETED", exchange=2).end(140, exchange=2)
    assert [each.id for each in run(line, whole=False).segments] == [3, 4]
    assert [each.id for each in run(line).segments] == [1, 2, 3, 4]


# --- interruptions


def talking() -> Timeline:
    """The agent appends to an artifact: chunks at 60, 100 and 140."""
    return stream().chunk(60).chunk(100, append=True).chunk(140, append=True)


def interrupted(line: Timeline, until: float | None = None) -> tuple[Cut, Interruption]:
    cut = run(line, until)
    (broken,) = cut.interruptions
    return cut, broken


def test_a_message_into_open_output_interrupts_it() -> None:
    """Barge-in at 150; chunks of the same artifact at 180 and 220; something else at 260; over at
    300.

    latency = 220 - 150, reaction = 260 - 150, residual: two frames of 100 bytes.
    """
    line = (
        talking()
        .ask(150, "SendMessage", exchange=2, task_id="t")
        .chunk(180, append=True)
        .chunk(220, append=True)
    )
    line.state(260, "WORKING", said="m2").state(300, "COMPLETED").end(310).end(311, exchange=2)
    cut, broken = interrupted(line)
    assert cut.line() == [
        "client 1 0-0 speaker",
        "agent 1 20-140 interrupted",
        "client 2 150-150 speaker",
        "agent 2 180-300 completed",
    ]
    assert (broken.kind, broken.segment, broken.exchange, ms(broken.at)) == ("message", 2, 2, 150)
    assert (broken.latency, broken.reaction_time) == (70 * MS, 110 * MS)
    assert (broken.outcome, broken.residual_frames, broken.residual_bytes) == ("yielded", 2, 200)
    assert ms(broken.ended) == 300


def test_residual_output_longer_than_a_second_is_overlap() -> None:
    line = (
        talking()
        .ask(150, "SendMessage", exchange=2, task_id="t")
        .chunk(600, append=True)
        .chunk(1151, append=True)
    )
    _, broken = interrupted(line.state(1200, "COMPLETED"))
    assert (broken.outcome, broken.latency, broken.residual_frames) == ("overlapped", 1001 * MS, 2)


def test_an_interruption_without_residual_output_has_only_a_reaction_time() -> None:
    line = (
        talking()
        .ask(150, "SendMessage", exchange=2, task_id="t")
        .state(240, "WORKING", said="other")
    )
    _, broken = interrupted(line.state(300, "INPUT_REQUIRED"))
    assert (broken.latency, broken.reaction_time, broken.outcome) == (None, 90 * MS, "yielded")


def test_a_cancel_is_an_interruption() -> None:
    line = (
        talking()
        .ask(150, "CancelTask", exchange=2, task_id="t")
        .state(170, "CANCELED")
        .task(175, "CANCELED", exchange=2)
    )
    cut, broken = interrupted(line.end(180))
    assert (broken.kind, broken.outcome, broken.reaction_time) == ("cancel", "canceled", 20 * MS)
    assert cut.line()[1:] == ["agent 1 20-140 interrupted", "agent 1 170-170 canceled"]


def test_a_refused_message_is_a_refused_interruption() -> None:
    line = (
        talking()
        .ask(150, "SendMessage", exchange=2, task_id="t")
        .end(160, exchange=2, kind=FrameKind.ERROR)
    )
    cut, broken = interrupted(line.chunk(200, append=True).state(220, "COMPLETED").end(230))
    assert (broken.outcome, ms(broken.ended)) == ("rejected", 160)
    assert "client 2 150-150 error" in cut.line()


def test_a_message_of_a_live_stream_interrupts_too() -> None:
    line = (
        Timeline().ask(0, "SendLiveMessage").state(20, "WORKING").chunk(40).chunk(60, append=True)
    )
    line.ask(80, "SendLiveMessage").chunk(90, append=True, last_chunk=True).chunk(120, "b").state(
        140, "COMPLETED"
    ).end(150)
    cut, broken = interrupted(line)
    assert (broken.latency, broken.reaction_time, broken.outcome) == (10 * MS, 40 * MS, "yielded")
    assert [each.turn for each in cut.segments] == [1, 1, 2, 2, 2]


def test_continuous_client_messages_interrupt_once() -> None:
    line = (
        Timeline().ask(0, "SendLiveMessage").state(20, "WORKING").chunk(40).chunk(60, append=True)
    )
    for at in (80, 90, 100):
        line.ask(at, "SendLiveMessage")
    cut, broken = interrupted(
        line.chunk(110, append=True, last_chunk=True).state(140, "COMPLETED").end(150)
    )
    assert (ms(broken.at), broken.latency) == (80, 30 * MS)
    assert cut.line()[2] == "client 2 80-100 speaker"


def test_a_new_task_in_the_context_of_open_output_is_a_weak_interruption() -> None:
    line = (
        talking()
        .ask(150, exchange=2, context_id="c")
        .state(170, "SUBMITTED", exchange=2, task="other")
    )
    _, broken = interrupted(line.chunk(180, append=True).state(190, "COMPLETED"))
    assert (broken.kind, broken.task_id, broken.latency) == ("context", "t", 30 * MS)


@pytest.mark.parametrize("late", [1500, 1501])
def test_output_stays_open_for_a_time(late: int) -> None:
    """A message of the agent at 40, no artifact: open until 40 + 1500."""
    line = stream().ask(40 + late, "SendMessage", exchange=2, task_id="t")
    assert len(run(line).interruptions) == (late == 1500)


def test_waiting_and_finished_agents_are_not_interrupted() -> None:
    for state in ("INPUT_REQUIRED", "COMPLETED"):
        line = (
            talking()
            .state(150, state)
            .ask(160, "SendMessage", exchange=2, task_id="t")
            .task(170, "WORKING", exchange=2)
        )
        assert run(line).interruptions == []


# --- hand-offs

_TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
_CHILD = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"


def delegated(parent: dict[str, str], child: dict[str, object], **extra: object) -> Cut:
    """Agent 1 is at work on `t` from 40 on; at 100 somebody calls agent 2, whose first output comes
    at 180."""
    line = stream(**parent).ask(100, exchange=2, agent="agent:2", size=321, **{**child, **extra})  # type: ignore[arg-type]
    line.state(110, "SUBMITTED", exchange=2, task="k", context_id="c2").chunk(
        180, exchange=2, task="k"
    )
    line.state(200, "COMPLETED", exchange=2, task="k").end(205, exchange=2)
    return run(line.chunk(300).state(310, "COMPLETED").end(320))


@pytest.mark.parametrize(
    ("parent", "child", "evidence"),
    [
        ({}, {"context_id": "c"}, "context"),
        ({"traceparent": _TRACE}, {"traceparent": _CHILD}, "traceparent"),
        ({"sent_traceparent": _TRACE}, {"traceparent": _CHILD}, "traceparent"),
        (
            {},
            {
                "payload": json.dumps(
                    {"message": {"referenceTaskIds": ["t"], "parts": []}}
                ).encode(),
                "schema": "json",
            },
            "reference",
        ),
    ],
)
def test_a_call_of_an_agent_at_work_is_a_delegation(
    parent: dict[str, str], child: dict[str, object], evidence: str
) -> None:
    """Latency = 180 - 100; the briefing is the request."""
    cut = delegated(parent, child)
    (handoff,) = cut.handoffs
    assert (handoff.kind, handoff.evidence, handoff.agent, handoff.task_id) == (
        "delegation",
        evidence,
        "agent:1",
        "t",
    )
    assert (handoff.to_agent, handoff.to_task, handoff.to_exchange) == ("agent:2", "k", 2)
    assert (handoff.latency, handoff.briefing, handoff.segment) == (80 * MS, 321, 2)


@pytest.mark.parametrize("restore_at", [(), (2,), (4,)])
def test_a_hand_off_before_the_own_answer_is_attributed_later(restore_at: tuple[int, ...]) -> None:
    """The agent asks the next one first, and tells its own task when that one has answered."""
    line = Timeline().ask(0, "SendMessage", agent="agent:1", traceparent=_TRACE)
    line.ask(100, exchange=2, agent="agent:2", traceparent=_CHILD).state(
        110, "WORKING", exchange=2, task="k"
    )
    line.state(180, "COMPLETED", exchange=2, task="k").end(190, exchange=2)
    line.task(200, "COMPLETED", task="t", context_id="c1").end(210)
    (handoff,) = run(line, 300, restore_at).handoffs
    assert (handoff.agent, handoff.task_id, handoff.context_id) == ("agent:1", "t", "c1")
    assert (handoff.to_agent, handoff.to_task) == ("agent:2", "k")


def asked(*requests: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Agents 1, 2, 3 ... are asked one after the other, and all are at work: who hands over to
    whom, by what."""
    line = Timeline()
    for number, request in enumerate(requests, 1):
        begin = 100.0 * number
        line.ask(begin, exchange=number, agent=f"agent:{number}", **request)
        line.state(
            begin + 20, "WORKING", exchange=number, task=f"t{number}", context_id=f"own{number}"
        )
    return [(each.agent, each.to_agent, each.evidence) for each in run(line, 1000).handoffs]


def trace(span: int) -> dict[str, Any]:
    return {"traceparent": f"00-0af7651916cd43dd8448eb211c80319c-{span:016x}-01"}


_CHAIN_OF_2 = [("agent:1", "agent:2", "traceparent")]
_CHAIN_OF_2_BY_CONTENT = [("agent:1", "agent:2", "content")]
_CHAIN = [("agent:1", "agent:2"), ("agent:2", "agent:3"), ("agent:3", "agent:4")]


@pytest.mark.parametrize(
    ("requests", "evidence"),
    [
        ([trace(1), trace(2), trace(3), trace(4)], "traceparent"),
        ([trace(1)] * 4, "traceparent"),
        ([{"context_id": "c"}] * 4, "context"),
        (
            [{"schema": "json", "payload": b'{"message": {"parts": [{"text": "the same order"}]}}'}]
            * 4,
            "content",
        ),
    ],
    ids=["spans of their own", "one traceparent passed on", "context", "content"],
)
def test_each_agent_of_a_chain_is_called_by_the_previous_one(
    requests: list[dict[str, Any]], evidence: str
) -> None:
    assert asked(*requests) == [(*pair, evidence) for pair in _CHAIN]


_SAME: dict[str, Any] = {
    "schema": "json",
    "payload": b'{"message": {"parts": [{"text": "the same order"}]}}',
}


@pytest.mark.parametrize(
    ("requests", "found"),
    [
        ([{}, {"client_ports": (1,)}], [("agent:1", "agent:2", "process")]),
        (
            [{}, {"client_ports": (1, 77)}, {"client_ports": (1,)}],
            [("agent:1", "agent:2", "process"), ("agent:1", "agent:3", "process")],
        ),
        (
            [_SAME, _SAME, {**_SAME, "client_ports": (1,)}],
            [*_CHAIN_OF_2_BY_CONTENT, ("agent:1", "agent:3", "process")],
        ),
        (
            [trace(1), trace(2), {**trace(3), "client_ports": (1,)}],
            [*_CHAIN_OF_2, ("agent:1", "agent:3", "traceparent")],
        ),
        ([{}, {"client_ports": (2,)}], []),
        ([{}, {"client_ports": (77,)}], []),
        ([_SAME, {**_SAME, "client_ports": (77,)}], _CHAIN_OF_2_BY_CONTENT),
        ([{}, {}, {"client_ports": (1, 2)}], []),
        ([{}, {"client_ports": (1, 2)}], [("agent:1", "agent:2", "process")]),
        ([_SAME, {}, {**_SAME, "client_ports": (1, 2)}], [("agent:1", "agent:3", "content")]),
    ],
    ids=[
        "an agent's process",
        "twice",
        "stronger than content",
        "weaker than a trace, which it narrows down",
        "the called agent itself",
        "a process that is no agent",
        "a process that is no agent, equal content",
        "a process of several agents",
        "a process of several agents, one at work",
        "a process of several agents, equal content",
    ],
)
def test_the_process_behind_a_connection_is_evidence(
    requests: list[dict[str, Any]], found: list[tuple[str, str, str]]
) -> None:
    assert asked(*requests) == found


@pytest.mark.parametrize(
    ("text", "task"), [("one order", "t1"), ("two orders", "t2"), ("no orders", "")]
)
def test_equal_content_selects_among_the_tasks_of_one_process(text: str, task: str) -> None:
    """Agent 1 works on two tasks and calls agent 3 for one of them. Without equal content it is not
    known which."""
    line = Timeline()
    for number, order in enumerate(("one order", "two orders"), 1):
        said = json.dumps({"message": {"parts": [{"text": order}]}}).encode()
        line.ask(100 * number, exchange=number, payload=said, schema="json")
        line.state(
            100 * number + 20,
            "WORKING",
            exchange=number,
            task=f"t{number}",
            context_id=f"own{number}",
        )
    line.ask(250, exchange=3, agent="agent:3")  # so that the agents of two processes are known
    line.state(260, "COMPLETED", exchange=3, task="t3", context_id="own3").end(270, exchange=3)
    said = json.dumps({"message": {"parts": [{"text": text}]}}).encode()
    line.ask(300, exchange=4, agent="agent:3", client_ports=(1,), payload=said, schema="json")
    line.state(320, "WORKING", exchange=4, task="t4", context_id="own4")
    found = [(each.agent, each.task_id, each.evidence) for each in run(line, 1000).handoffs]
    assert found == ([("agent:1", task, "process")] if task else [])


@pytest.mark.parametrize("told_at", [110, 190])
def test_a_chain_is_found_by_a_context_used_before_it_is_returned(told_at: int) -> None:
    """Agent 1 asks 2 in a context that it has not named to its own client yet; 2 asks 3 in it."""
    order: dict[str, Any] = {
        "schema": "json",
        "payload": b'{"message": {"parts": [{"text": "the same order"}]}}',
    }
    line = Timeline().ask(0, agent="agent:1", **order)
    line.ask(100, exchange=2, agent="agent:2", context_id="c", **order)
    line.state(told_at, "WORKING", task="t1", context_id="c")
    line.state(told_at + 1, "WORKING", exchange=2, task="t2", context_id="c")
    line.ask(200, exchange=3, agent="agent:3", context_id="c", **order)
    line.state(210, "WORKING", exchange=3, task="t3", context_id="c")
    found = [(each.agent, each.to_agent, each.evidence) for each in run(line, 300).handoffs]
    assert found == [("agent:1", "agent:2", "content"), ("agent:2", "agent:3", "context")]


@pytest.mark.parametrize(
    "requests",
    [
        [trace(1), trace(2), trace(2), trace(3)],
        [{"context_id": "c", "connection": each} for each in (1, 2, 2, 4)],
    ],
    ids=["in one span", "over one connection"],
)
def test_agents_called_in_parallel_are_not_each_others_callers(
    requests: list[dict[str, Any]],
) -> None:
    """Agent 1 asks 2 and 3; the last one that is at work, 3, asks 4."""
    assert [pair[:2] for pair in asked(*requests)] == [
        ("agent:1", "agent:2"),
        ("agent:1", "agent:3"),
        ("agent:3", "agent:4"),
    ]


def test_a_chain_continues_from_the_agent_still_working() -> None:
    """Agent 2 is done when 3 is asked: so agent 1 asks."""
    line = Timeline().ask(0, **trace(1)).state(10, "WORKING")
    line.ask(20, exchange=2, agent="agent:2", **trace(2)).state(
        30, "COMPLETED", exchange=2, task="k"
    )
    line.end(40, exchange=2).ask(50, exchange=3, agent="agent:3", **trace(3))
    assert [(each.agent, each.to_agent) for each in run(line, 100).handoffs] == [
        ("agent:1", "agent:2"),
        ("agent:1", "agent:3"),
    ]


def test_a_client_that_continues_its_trace_is_recognised() -> None:
    line = stream(**trace(1)).state(100, "COMPLETED").end(110)
    line.ask(200, "SendMessage", exchange=2, agent="agent:2", context_id="c", **trace(2))
    assert [(each.kind, each.evidence) for each in run(line, 300).handoffs] == [("next", "context")]


def test_repeated_content_is_evidence_of_a_hand_off() -> None:
    text = json.dumps({"message": {"parts": [{"text": "the order of Mr Smith"}]}}).encode()
    cut = delegated({"payload": text, "schema": "json"}, {"payload": text, "schema": "json"})
    assert [each.evidence for each in cut.handoffs] == ["content"]
    other = text.replace(b"Smith", b"Jones")
    assert (
        delegated(
            {"payload": text, "schema": "json"}, {"payload": other, "schema": "json"}
        ).handoffs
        == []
    )


def test_a_call_on_the_connection_of_the_client_is_no_delegation() -> None:
    cut = delegated({}, {"context_id": "c"}, connection=1)
    assert [each.kind for each in cut.handoffs] == ["next"]


def test_a_client_that_continues_with_another_agent_is_a_hand_off() -> None:
    line = stream().state(100, "COMPLETED").end(110)
    line.ask(200, "SendMessage", exchange=2, agent="agent:2", context_id="c").task(
        290, "COMPLETED", exchange=2, task="k", message_id="x"
    )
    (handoff,) = run(line).handoffs
    assert (handoff.kind, handoff.evidence, handoff.latency) == ("next", "context", 90 * MS)


def test_a_new_agent_without_output_has_no_latency() -> None:
    line = stream().ask(100, "SendMessage", exchange=2, agent="agent:2", context_id="c")
    (handoff,) = run(line.end(120, exchange=2, kind=FrameKind.ERROR)).handoffs
    assert (handoff.latency, ms(handoff.ended)) == (None, 120)


def by(author: str) -> dict[str, object]:
    """The payload of a status update that names its author."""
    message = {"messageId": "m", "parts": [{"text": "hello"}], "metadata": {"adk_author": author}}
    update = {"taskId": "t", "status": {"state": "TASK_STATE_WORKING", "message": message}}
    return {"payload": json.dumps({"result": {"statusUpdate": update}}).encode(), "schema": "json"}


def calls_transfer(author: str = "") -> dict[str, object]:
    part = {
        "data": {"name": "transfer_to_agent", "args": {"agent_name": "writer"}},
        "metadata": {"adk_type": "function_call"},
    }
    metadata = {"metadata": {"adk_author": author}} if author else {}
    update = {"taskId": "t", "status": {"message": {"parts": [part], **metadata}}}
    return {"payload": json.dumps({"result": {"statusUpdate": update}}).encode(), "schema": "json"}


def test_an_author_change_within_a_task_is_a_hand_off() -> None:
    """The writer's first frame at 90 is evidence and output at once: the latency is 0."""
    line = (
        Timeline()
        .ask(0)
        .state(20, "WORKING", said="1", **by("planner"))
        .state(60, "WORKING", said="2", **by("planner"))
    )
    cut = run(line.state(90, "WORKING", said="3", **by("writer")).state(120, "COMPLETED").end(130))
    assert cut.line()[1:] == ["agent 1 20-60 transfer", "agent 1 90-120 completed"]
    assert [each.author for each in cut.segments] == ["", "planner", "writer"]
    (handoff,) = cut.handoffs
    assert (handoff.kind, handoff.evidence, handoff.to_agent, handoff.latency) == (
        "transfer",
        "author",
        "writer",
        0,
    )


def test_the_transfer_tool_and_then_the_new_author() -> None:
    """Called at 60, the writer speaks at 150: 90 ms, one hand-off."""
    line = Timeline().ask(0).state(20, "WORKING", said="1", **by("planner"))
    line.state(60, "WORKING", said="2", **calls_transfer("planner")).state(
        150, "WORKING", said="3", **by("writer")
    )
    (handoff,) = run(line.state(200, "COMPLETED")).handoffs
    assert (handoff.evidence, handoff.to_agent, handoff.latency) == (
        "transfer_to_agent",
        "writer",
        90 * MS,
    )


def test_the_transfer_tool_without_authors() -> None:
    line = (
        Timeline()
        .ask(0)
        .state(20, "WORKING", said="1")
        .state(60, "WORKING", said="2", **calls_transfer())
    )
    cut = run(line.state(100, "WORKING", said="3").state(130, "COMPLETED"))
    assert cut.line()[1:] == ["agent 1 20-60 transfer", "agent 1 100-130 completed"]
    assert [(each.to_agent, each.latency) for each in cut.handoffs] == [("writer", 40 * MS)]


def test_late_evidence_counts_if_the_author_is_known_early() -> None:
    line = Timeline().ask(0)
    for number in range(40):
        line.state(10 + number, "WORKING", said=str(number), **by("planner"))
    (handoff,) = run(line.state(60, "WORKING", said="x", **by("writer")), 100).handoffs
    assert handoff.to_agent == "writer"


def media(name: str, event: str, sound: bytes = b"sound") -> dict[str, Any]:
    """A media frame of payload 1975 (manual/protocol.md "Fields of the live proposals") in a
    LiveRequest or LiveResponse."""
    part = {"raw": base64.b64encode(sound).decode(), "mediaType": "audio/pcm"}
    frame = from_dict("live-1975", name, {"frame": {"part": part, "event": event}})
    schema = f"lf.a2a.v1.{name}@live-1975"
    return {
        "payload": frame.SerializeToString(),
        "schema": schema,
        "event": EventKind.NONE,
        "size": 50,
    }


def test_media_frames_are_output_and_their_marks_count() -> None:
    """Payload 1975 (manual/protocol.md "Live proposals"): the client's STOP ends its activity,
    EVENT_INTERRUPT interrupts."""
    line = Timeline().ask(0, "SendLiveMessage", **media("LiveRequest", "EVENT_MEDIA_START"))
    line.ask(100, "SendLiveMessage", **media("LiveRequest", "EVENT_MEDIA_STOP"))
    line.ask(150, "SendLiveMessage", **media("LiveRequest", "EVENT_MEDIA_DELTA"))
    line.message(300, kind=FrameKind.EVENT, **media("LiveResponse", "EVENT_MEDIA_START"))
    line.message(350, kind=FrameKind.EVENT, **media("LiveResponse", "EVENT_MEDIA_DELTA"))
    line.ask(400, "SendLiveMessage", **media("LiveRequest", "EVENT_INTERRUPT"))
    line.ask(420, "SendLiveMessage", **media("LiveRequest", "EVENT_MEDIA_DELTA"))
    cut = run(
        line.message(500, kind=FrameKind.EVENT, **media("LiveResponse", "EVENT_MEDIA_STOP")).end(
            600
        )
    )
    assert ms(cut.segments[0].activity_end) == 100
    assert [(each.kind, ms(each.at)) for each in cut.interruptions] == [("event", 400)]
    assert cut.segments[1].outputs == 2


def test_contexts_are_learned_from_agent_responses() -> None:
    """An answer without a task, and a subscription: the request named no context. The client goes
    on with it."""
    line = Timeline().ask(0, "SendMessage").message(10, context_id="c9", kind=FrameKind.RESPONSE)
    line.ask(30, exchange=2, agent="agent:2", context_id="c9").chunk(
        50, exchange=2, task="k", context_id="c9"
    )
    line.ask(60, "SubscribeToTask", exchange=3, task_id="w").state(
        70, "WORKING", exchange=3, task="w"
    )
    cut = run(line, 100)
    assert [each.context_id for each in cut.segments] == ["c9", "c9", "c9", "c9", "c"]
    assert [(each.kind, each.evidence, each.latency) for each in cut.handoffs] == [
        ("next", "context", 20 * MS)
    ]


def test_negative_generations_are_ignored() -> None:
    line = Timeline().ask(0).task(10, "SUBMITTED", generation=1).state(20, "WORKING", generation=-3)
    (_, agent) = run(
        line.state(30, "WORKING", generation=2).state(40, "WORKING", generation=-4).end(50)
    ).segments
    assert (agent.generation_first, agent.generation_last) == (1, 2)


def heard_sound(line: Timeline, at: float, event: str) -> Timeline:
    return line.message(at, kind=FrameKind.EVENT, **media("LiveResponse", event))


def test_continued_audio_after_an_interruption_is_residual() -> None:
    """manual/protocol.md "Interruptions": the output is open from START to STOP, so what comes
    until STOP is residual.

    Interrupted at 100, deltas at 120 and 180, STOP at 200: latency = 180 - 100, reaction = 200 -
    100.
    """
    line = Timeline().ask(0, "SendLiveMessage").state(10, "WORKING")
    heard_sound(heard_sound(line, 40, "EVENT_MEDIA_START"), 80, "EVENT_MEDIA_DELTA")
    line.ask(100, "SendLiveMessage", **media("LiveRequest", "EVENT_INTERRUPT"))
    heard_sound(heard_sound(line, 120, "EVENT_MEDIA_DELTA"), 180, "EVENT_MEDIA_DELTA")
    heard_sound(heard_sound(line, 200, "EVENT_MEDIA_STOP"), 220, "EVENT_MEDIA_START")
    _, broken = interrupted(
        heard_sound(line, 230, "EVENT_MEDIA_DELTA").state(240, "COMPLETED").end(250)
    )
    assert (broken.latency, broken.reaction_time, broken.outcome) == (80 * MS, 100 * MS, "yielded")
    assert (broken.residual_frames, broken.residual_bytes, broken.wasted) == (2, 100, 10)


def test_continuous_client_audio_does_not_interrupt() -> None:
    """An open microphone: the client's flow began before the agent's. A new flow, or one after a
    pause, interrupts."""
    line = Timeline().ask(0, "SendLiveMessage", **media("LiveRequest", "EVENT_MEDIA_START"))
    heard_sound(line, 10, "EVENT_MEDIA_START")
    for at in range(20, 400, 20):
        line.ask(at, "SendLiveMessage", **media("LiveRequest", "EVENT_MEDIA_DELTA"))
        heard_sound(line, at + 10, "EVENT_MEDIA_DELTA")
    assert run(line).interruptions == []
    line.ask(400, "SendLiveMessage", **media("LiveRequest", "EVENT_MEDIA_STOP"))
    heard_sound(line, 410, "EVENT_MEDIA_DELTA")
    line.ask(420, "SendLiveMessage", **media("LiveRequest", "EVENT_MEDIA_START"))
    heard_sound(line, 430, "EVENT_MEDIA_DELTA")
    line.ask(440, "SendLiveMessage", **media("LiveRequest", "EVENT_MEDIA_DELTA"))
    for at in range(500, 1400, 100):
        heard_sound(line, at, "EVENT_MEDIA_DELTA")
    line.ask(1400, "SendLiveMessage", **media("LiveRequest", "EVENT_MEDIA_DELTA"))
    assert [(each.kind, ms(each.at)) for each in run(line).interruptions] == [
        ("message", 420),
        ("message", 1400),
    ]


def test_output_after_the_cancel_response_is_residual() -> None:
    """The answer to CancelTask, at 160, overtakes the last chunk of the stream, at 170."""
    line = (
        talking().ask(150, "CancelTask", exchange=2, task_id="t").task(160, "CANCELED", exchange=2)
    )
    cut, broken = interrupted(line.chunk(170, append=True).state(180, "CANCELED").end(190))
    assert (broken.outcome, broken.reaction_time, broken.latency) == ("canceled", 10 * MS, 20 * MS)
    assert (broken.residual_frames, ms(broken.ended)) == (1, 190)
    assert cut.line()[1:3] == ["agent 1 20-140 interrupted", "agent 1 160-160 canceled"]


def test_a_live_request_without_message_and_media_only_reconnects() -> None:
    line = Timeline().ask(0, "SendLiveMessage", event=EventKind.NONE, task_id="t")
    assert run(line.state(20, "WORKING").state(60, "COMPLETED").end(70)).line() == [
        "agent 0 20-60 completed"
    ]
