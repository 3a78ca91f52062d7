"""Rules about clocks that differ, clients that reconnect too often, and events lost in a
reconnection."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from a2a_proxy.model.values import EventKind, Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import NETWORK, EvidenceScope, FrameFlag, HookPoint
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import rpc, rpc_stream
from a2a_proxy.rules.examples.objects import send, snapshot, state, status, task
from a2a_proxy.rules.examples.script import MS, Script
from a2a_proxy.rules.facts.partial_decode import parse_timestamp

MAX_SKEW = 5_000 * MS
_SKEW_TOLERANCE = MAX_SKEW - MS
"""A difference below this is within `MAX_SKEW`, however it was rounded."""
_DAY_NS = 86_400_000 * MS
_MIN_SAMPLES = 3
"""Number of consecutive timestamps that must be off."""
_OPENS, _WITHIN = 5, 30_000 * MS
_MAX_TASKS = 100
"""Number of tasks of one client whose stream openings are remembered."""


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


def _request_storm(count: int, pause: int) -> Script:
    made = rpc("SendMessage", send(configuration={"returnImmediately": True}), snapshot("WORKING"))
    for number in range(count):
        made = made.then(
            rpc_stream(
                "SubscribeToTask", {"id": "t1"}, snapshot("WORKING"), id=number + 2, finish="leave"
            ),
            pause,
        )
    return made


@rule(
    "A2A-LAT-008",
    "Client opens streams of a task again and again",
    Severity.INFO,
    section="1.0 3.1.6; 0.3 7.9",
    bindings=NETWORK,
    hook_points=HookPoint.REQUEST,
    scope=EvidenceScope.LIVE,
    operations=("SubscribeToTask", "SendStreamingMessage"),
    required_flags=FrameFlag.NAMES,
    flagged=_request_storm(_OPENS + 1, 100 * MS),
    clean=rpc("SendMessage", send(), {"task": task()}),
)
def storm(context: RuleContext) -> Iterator[RuleFinding]:
    """One client opens more than five streams of the same task within 30 s.

    The client reconnects without a delay: each attempt costs the agent a Task and gains nothing.
    The client should wait longer after each attempt, and check why its streams end.
    """
    task_id = context.frame.task_id
    if not task_id:
        return
    opens: dict[str, list[int]] = context.session.client_notes(context.record.client).setdefault(
        "opens", {}
    )
    key = f"{context.record.agent} {task_id}"
    times = [at for at in opens.pop(key, []) if context.frame.at - at < _WITHIN]
    opens[key] = times = [*times, context.frame.at]
    if len(opens) > _MAX_TASKS:
        del opens[next(iter(opens))]
    if len(times) == _OPENS + 1:
        yield RuleFinding(
            summary=f"the client opened {len(times)} streams of task {task_id} within 30 s"
        )
