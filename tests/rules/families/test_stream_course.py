"""The end of a stream: the table, and walks through it with real streams."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_proxy.model.transitions import UndefinedTransitionError
from a2a_proxy.rules.examples.conversation import rpc_stream
from a2a_proxy.rules.examples.objects import Json, chunk, send, snapshot, status
from a2a_proxy.rules.families.stream.course import COURSE, Course, CourseEvent, CourseMeaning
from support_rules import findings

_SAMPLES: dict[str, Json] = {
    "working": status("WORKING", second=1),
    "artifact": chunk("x"),
    "completed": status("COMPLETED", second=1),
    "failed": status("FAILED", second=1),
    "Task completed": snapshot("COMPLETED", second=1),
    "Task failed": snapshot("FAILED", second=1),
}


@pytest.mark.parametrize(("course", "event"), list(itertools.product(Course, CourseEvent)))
def test_every_pair_is_defined_or_raises(course: Course, event: CourseEvent) -> None:
    if (course, event) != (Course.RUNNING, CourseEvent.SAME_TASK):
        after, meaning = COURSE[course, event]
        assert (meaning is CourseMeaning.LEGAL) is (course is Course.RUNNING or after is not course)
        return
    with pytest.raises(UndefinedTransitionError, match="in state running"):
        COURSE[course, event]


def walk_of(names: list[str]) -> int:
    """Return how many of the events the table calls events after the end."""
    course, end, found = Course.RUNNING, "", 0
    for name in names:
        kind, _, state = name.rpartition(" ")
        terminal = state in ("completed", "failed")
        same = bool(end) and kind == "Task" and state == end
        event = (
            CourseEvent.SAME_TASK
            if same
            else CourseEvent.TERMINAL
            if terminal
            else CourseEvent.EVENT
        )
        course, meaning = COURSE[course, event]
        end = end or (state if terminal else "")
        found += meaning is CourseMeaning.AFTER_END
    return found


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(sorted(_SAMPLES)), max_size=4))
def test_the_rule_reports_what_the_table_says(names: list[str]) -> None:
    """At most three events after the end: a rule reports no more for one exchange
    (`rules.run.repeat_limit`)."""
    stream = rpc_stream(
        "SendStreamingMessage", send(), snapshot(), *(_SAMPLES[name] for name in names)
    )
    found = [each for each in findings(stream) if each.rule == "A2A-STREAM-005"]
    assert len(found) == walk_of(names)


@pytest.mark.parametrize("later", [{"state": "working"}, {"state": "completed"}])
def test_after_final_another_rule_reports_it(later: Json) -> None:
    """0.3: `final: true` with the terminal state announces the end, so A2A-STREAM-018 and not
    005."""
    text = {"kind": "text", "text": "hello"}
    params = {"message": {"kind": "message", "messageId": "m1", "role": "user", "parts": [text]}}
    ids = {"taskId": "t1", "contextId": "c1"}
    task = {"kind": "task", "id": "t1", "contextId": "c1", "status": {"state": "submitted"}}
    final = {"kind": "status-update", **ids, "status": {"state": "completed"}, "final": True}
    last = {"kind": "status-update", **ids, "status": later, "final": False}
    rules = {
        each.rule
        for each in findings(rpc_stream("message/stream", params, task, final, last, version=""))
    }
    assert "A2A-STREAM-018" in rules
    assert "A2A-STREAM-005" not in rules
