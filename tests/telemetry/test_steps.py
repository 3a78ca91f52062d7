"""Steps that an agent reports about itself, also malformed ones."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_proxy.model.event import Artifact, ArtifactUpdate, Event, Message, Part, TaskSnapshot
from a2a_proxy.telemetry.steps import MAX_STEPS, StepReport, step_reports, step_spans
from a2a_proxy.telemetry.values import SpanContextIds, SpanKind, SpanValue
from support_inspect import MS
from support_recording import STARTED

URI = "https://github.com/a2aproject/a2a-samples/samples/extensions/traceability/v1"
CALL = SpanValue(
    name="SendMessage",
    kind=SpanKind.INTERNAL,
    context=SpanContextIds("1" * 32, "2" * 16, "a=1"),
    parent=None,
    started=STARTED,
    ended=STARTED + 900 * MS,
    attributes={},
)
START, END = "2027-01-15T08:00:00.5Z", "2027-01-15T09:00:00.75+01:00"


def spans(*steps: Any, at: int = STARTED + 5 * MS) -> list[SpanValue]:
    return step_spans(CALL, [StepReport(at, "t", steps)], 1, "s")[0]


def step(ident: str, parent: str = "", **more: Any) -> dict[str, Any]:
    return {"step_id": ident, "parent_step_id": parent, **more}


def test_steps_become_spans_below_the_call() -> None:
    tool = {"tool_invocation": {"tool_name": "search", "parameters": {"q": "secret"}}}
    inner = {"trace_id": "u", "steps": [step("a", call_type=2)]}
    agent = {
        "agentInvocation": {"agentName": "Desk", "agentUrl": "http://desk", "responseTrace": inner}
    }
    steps = [
        step("b", "a", call_type="TOOL", step_action=tool, cost="7", latency=1.5),
        {"stepId": "a", "callType": 1, "stepAction": agent, "totalTokens": 12},
    ]
    search, desk, below = spans(*steps)
    assert [each.name for each in (search, desk, below)] == ["tool search", "agent Desk", "tool"]
    assert (search.parent, desk.parent, below.parent) == (desk.context, CALL.context, desk.context)
    assert all(
        each.attributes["a2a_proxy.self_reported"] is True and each.part
        for each in (search, desk, below)
    )
    assert (search.attributes["gen_ai.tool.name"], desk.attributes["gen_ai.agent.name"]) == (
        "search",
        "Desk",
    )
    numbers = (
        search.attributes["a2a_proxy.step.cost"],
        desk.attributes["a2a_proxy.step.total_tokens"],
    )
    assert (*numbers, search.attributes["a2a_proxy.step.latency"]) == (7, 12, 1.5)
    assert "secret" not in str(search)
    assert {each.context.trace for each in (search, desk, below)} == {CALL.context.trace}
    assert search.context.state == "a=1"


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ((STARTED, STARTED + MS), (0, MS, True)),
        ((STARTED, None), (0, 0, True)),
        ((None, None), (5 * MS, 5 * MS, False)),
        ((STARTED + MS, STARTED), (5 * MS, 5 * MS, False)),
        ((STARTED, STARTED + 10**15), (5 * MS, 5 * MS, False)),
        ((-(10**30), 10**30), (5 * MS, 5 * MS, False)),
    ],
)
def test_only_plausible_times_of_steps_are_used(
    times: tuple[Any, Any], expected: tuple[int, int, bool]
) -> None:
    def reported(at: int | None) -> Any:
        return {} if at is None else {"seconds": str(at // 10**9), "nanos": at % 10**9}

    [made] = spans(step("a", start_time=reported(times[0]), end_time=reported(times[1])))
    begin, end, timed = expected
    assert (made.started - STARTED, made.ended - STARTED) == (begin, end)
    assert made.attributes["a2a_proxy.step.timed"] is timed


def test_times_as_text_are_read() -> None:
    [timed] = spans(step("a", startTime=START, endTime=END))
    assert (timed.started - STARTED, timed.ended - STARTED) == (500 * MS, 750 * MS)
    for odd in ("yesterday", "9999-99-99T00:00:00Z", "0001-01-01T00:00:00+14:00", 7, [], True):
        [made] = spans(step("a", start_time=odd))
        assert made.attributes["a2a_proxy.step.timed"] is False


def test_cyclic_parents_end_at_the_call_and_ids_count_once() -> None:
    made = spans(
        step("a", "b"),
        step("b", "c"),
        step("c", "a"),
        step("d", "d"),
        step("e", "nobody"),
        step("a"),
    )
    assert len(made) == 5
    above = {each.context: each.parent for each in made}
    for each in made:
        at: SpanContextIds | None = each.context
        for _ in range(len(made) + 1):
            at = above.get(at) if at is not None else None
        assert at is None
    assert made[3].parent == made[4].parent == CALL.context


def test_the_number_of_steps_is_bounded() -> None:
    nested: dict[str, Any] = {"trace_id": "0", "steps": []}
    for depth in range(1, 100):
        action = {"agent_invocation": {"response_trace": nested}}
        nested = {"trace_id": str(depth), "steps": [step("x", step_action=action)]}
    assert (
        0
        < len(step_spans(CALL, [StepReport(STARTED, "n", tuple(nested["steps"]))], 1, "s")[0])
        < 20
    )
    many = [step(str(number)) for number in range(1000)]
    made, left = step_spans(CALL, [StepReport(STARTED, "t", tuple(many))] * 3, 1, "s")
    assert (len(made), left) == (MAX_STEPS, 1000 - MAX_STEPS)
    assert len({each.context.span for each in made}) == MAX_STEPS


def test_invalid_steps_are_ignored() -> None:
    assert spans(1, None, "x", [], {"step_action": 1, "call_type": []}) != []
    odd_numbers = {
        "cost": 10**4000,
        "latency": float("inf"),
        "total_tokens": "9" * 40,
        "start_time": {"seconds": 10**99},
    }
    [made] = spans({"step_id": 10**4000, **odd_numbers})
    assert set(made.attributes) == {
        f"a2a_proxy.{name}" for name in ("self_reported", "step.type", "step.timed")
    }
    for odd in ({"steps": 1, "trace_id": "t"}, {"steps": []}, [], "x", {"trace_id": "t"}):
        assert list(step_reports(STARTED, Event(message=Message(metadata={"k": odd})))) == []


def test_reports_are_found_in_metadata_and_data_parts() -> None:
    report = {"trace_id": "t", "steps": [step("a")]}
    key = f"{URI}/traceability"
    holders = (
        Event(message=Message(metadata={key: report})),
        Event(artifact_update=ArtifactUpdate(artifact=Artifact(metadata={key: report}))),
        Event(task=TaskSnapshot(artifacts=[Artifact(parts=[Part(data=report)])])),
    )
    for event in holders:
        [found] = step_reports(STARTED, event)
        assert (found.trace, len(found.steps)) == ("t", 1)
    spans, _ = step_spans(
        CALL, [each for event in holders for each in step_reports(STARTED, event)], 1, "s"
    )
    assert len(spans) == 1
