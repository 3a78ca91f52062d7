"""Rules about the time that peers take (manual/protocol.md "Calls that wait"), and clocks that
differ.

Long pauses are information: the user decides how long is too long.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import Actor, EventKind, Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import EvidenceScope, FrameFlag
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import rpc, rpc_stream
from a2a_proxy.rules.examples.objects import reply, send, snapshot, state, status, task
from a2a_proxy.rules.examples.script import MS, Script
from a2a_proxy.rules.facts.compared_values import parse_timestamp

SECOND_NS = 1000 * MS
MAX_WAITING = 600.0
"""Seconds."""
MAX_SKEW = 5_000 * MS
_SKEW_TOLERANCE = MAX_SKEW - MS
"""A difference below this is within `MAX_SKEW`, however it was rounded."""
_DAY_NS = 86_400_000 * MS
_MIN_SAMPLES = 3
"""Number of consecutive timestamps that must be off."""


def _question_task() -> dict[str, Any]:
    """Return a task that waits for input."""
    made = task("INPUT_REQUIRED")
    return made | {"status": made["status"] | {"message": reply("which one?", taskId="t1")}}


_FIRST_EVENTS = (snapshot("SUBMITTED"), status("WORKING"))


def format_seconds(ns: int) -> str:
    """Format a duration: `12.3 s`."""
    return f"{ns / SECOND_NS:.1f} s"


def _check_waiting(context: RuleContext) -> Iterator[RuleFinding]:
    if context.task is not None and context.task.awaits_client:
        state = TaskState(context.task.state).label
        yield RuleFinding(
            summary=f"the task is {state} for {format_seconds(int(MAX_WAITING) * SECOND_NS)}, "
            "the client has not answered",
            seq=context.due_seq,
        )


@rule(
    "A2A-LAT-005",
    "Client does not answer",
    Severity.INFO,
    actor=Actor.CLIENT,
    section="1.0 3.4.3",
    scope=EvidenceScope.LIVE,
    trigger_flags=FrameFlag.INTERRUPTED,
    due=_check_waiting,
    flagged=rpc("SendMessage", send(), {"task": _question_task()}).then(
        rpc(
            "ListTasks",
            {"contextId": "c9"},
            {"tasks": [], "nextPageToken": "", "pageSize": 50},
            id=2,
        ),
        700 * SECOND_NS,
    ),
    clean=rpc("SendMessage", send(), {"task": task("COMPLETED")}),
)
def waiting(context: RuleContext) -> Iterator[RuleFinding]:
    """A task waits for input or authentication, and no client sends a message to it for 10 minutes.

    The client, or its user, may not know that the agent waits for an answer. The client must show
    the question (`status.message`) and send a message with this task id.
    """
    if context.has_flag(FrameFlag.CHANGED):
        context.schedule_due(MAX_WAITING)
    yield from ()


def _skewed_stream(task_id: str, rpc_id: int) -> Script:
    """Return a stream whose timestamps are of a clock that is 50 s fast."""
    updates = (
        {"statusUpdate": {"taskId": task_id, "contextId": "c1", "status": state(name, second=50)}}
        for name in ("WORKING", "COMPLETED")
    )
    first = snapshot("SUBMITTED", id=task_id, second=50)
    return rpc_stream("SendStreamingMessage", send(id=f"m{rpc_id}"), first, *updates, id=rpc_id)


@rule(
    "A2A-LAT-007",
    "Agent's clock differs from the proxy's",
    Severity.INFO,
    section="1.0 5.6.1; 0.3 6.2",
    scope=EvidenceScope.LIVE,
    trigger_flags=FrameFlag.CHANGED,
    flagged=_skewed_stream("t1", 1) + _skewed_stream("t2", 2),
    clean=rpc_stream(
        "SendStreamingMessage",
        send(),
        snapshot("SUBMITTED"),
        status("WORKING"),
        status("COMPLETED"),
    ),
)
def skew(context: RuleContext) -> Iterator[RuleFinding]:
    """The timestamps of three consecutive status updates of an agent differ by more than 5 s from
    the proxy's clock: they are ahead of it, or, on a stream, behind it.

    Timestamps of this agent cannot be compared with those of other agents or with the client's
    clock. Synchronise the clocks of both hosts (NTP), or check the time zone that the agent writes.
    """
    if context.frame.event is not EventKind.STATUS or not (written := context.status_summary.stamp):
        return
    at = parse_timestamp(written)
    if at > 0 and (
        -_SKEW_TOLERANCE < at - context.at < _SKEW_TOLERANCE
        or (at < context.at and not context.record.is_streaming)
    ):
        context.agent.notes["off"] = 0
        return
    status = context.object.get("status")
    stamp = status.get("timestamp") if isinstance(status, dict) else None
    if not isinstance(stamp, str):
        return
    try:
        moment = datetime.fromisoformat(stamp)
    except ValueError:
        return
    if moment.tzinfo is None:
        return
    ahead = int(moment.timestamp() * 1e9) - context.at
    off = context.agent.notes.get("off", 0)
    off = off + 1 if ahead > MAX_SKEW or (ahead < -MAX_SKEW and context.record.is_streaming) else 0
    context.agent.notes["off"] = off
    if off == _MIN_SAMPLES:
        word = "ahead of" if ahead > 0 else "behind"
        yield RuleFinding(
            summary=f"the agent's timestamps are {_format_span(abs(ahead))} "
            f"{word} the proxy's clock",
            value=stamp,
        )


def _format_span(ns: int) -> str:
    """Format a duration in seconds, from two days on in days."""
    return f"{ns / 1e9:.0f} s" if ns < 2 * _DAY_NS else f"{ns / _DAY_NS:.0f} days"
