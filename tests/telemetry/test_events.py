"""Events of a call as events of its span."""

from __future__ import annotations

from a2a_proxy.model.values import Finding, Severity
from a2a_proxy.telemetry.events import CallEvents
from a2a_proxy.telemetry.values import MAX_EVENTS
from support_inspect import MS, TASK, frame, request, status
from support_recording import STARTED


def test_state_changes_are_events() -> None:
    call_events = CallEvents("submitted")
    for each in (
        request(1),
        status(1, 1, "a"),
        status(1, 2, "b"),
        frame(1, 5, b"{}", state=3, generation=4),
    ):
        call_events.add_frame(each)
    events, dropped = call_events.list_events()
    assert [
        (each.name, each.attributes.get("from"), each.attributes.get("to")) for each in events
    ] == [
        ("a2a_proxy.first_event", None, None),
        ("a2a.task.state_change", "submitted", "working"),
        ("a2a.task.state_change", "working", "completed"),
    ]
    assert (events[-1].attributes["generation"], events[-1].at) == (4, STARTED + 1500 * MS)
    assert (call_events.max_gap, call_events.gaps, dropped) == (300 * MS, [100 * MS, 300 * MS], 0)


def test_a_gap_event_has_the_expected_generations() -> None:
    call_events = CallEvents()
    missing = "generations 4 to 6 are missing: 3 is followed by 7"
    evidence = {"missing": "4-6"}
    call_events.add_finding(
        Finding("A2A-GEN-001", Severity.ERROR, 5, missing, task_id=TASK, evidence=evidence)
    )
    call_events.add_finding(Finding("A2A-SSE-001", Severity.WARNING, 4, "no event"))
    events, _ = call_events.list_events()
    assert [each.name for each in events] == [
        "a2a_proxy.finding",
        "a2a_proxy.finding",
        "a2a_proxy.generation_gap",
    ]
    assert (events[-1].attributes["expected"], events[-1].attributes["got"]) == (4, 7)


def test_the_number_of_events_is_bounded_and_findings_have_priority() -> None:
    call_events = CallEvents()
    for seq in range(1000):
        call_events.add_frame(frame(1, seq, b"{}", state=2 + seq % 2))
    call_events.add_finding(Finding("A2A-SSE-001", Severity.WARNING, STARTED, "no event"))
    events, dropped = call_events.list_events()
    assert len(events) == MAX_EVENTS == 128
    assert events[0].name == "a2a_proxy.finding"
    assert len(events) + dropped == 1000 + 1 + 1
