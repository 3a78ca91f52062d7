"""Answers that depend on how much of a task has been replayed: subscriptions, polls and long
polls."""

from collections.abc import Sequence
from typing import Any

import msgspec

from a2a_proxy.model.values import Dialect, EventKind
from a2a_proxy.recording.difference.fields import header_members
from a2a_proxy.recording.difference.ids import RIGHT
from a2a_proxy.replay.core.ids import ReplayIds
from a2a_proxy.replay.core.matching import requested_task
from a2a_proxy.replay.core.options import RepeatPolicy
from a2a_proxy.replay.core.running_call import PendingPoll, RunningCall
from a2a_proxy.replay.core.script import (
    POLLING_OPERATION,
    SUBSCRIBING_OPERATIONS,
    LineKind,
    PlayerRequest,
    RecordedCall,
    ReplayScript,
    ScriptLine,
    ScriptSide,
)
from a2a_proxy.replay.core.timeline import Timeline, TimelineEvent

_CHANGING_FIELDS = ("status", "artifacts", "generation")
"""Fields of a task that its events change."""
_DIALECTS_WITHOUT_SNAPSHOT = (Dialect.V0_1, Dialect.V0_2, Dialect.V0_3)


class TaskProgressPlayer:
    """Adapts recorded calls to the current point of the replay."""

    def __init__(self, script: ReplayScript, timeline: Timeline) -> None:
        self._script = script
        self._timeline = timeline

    def adapt_call(
        self, call: RecordedCall, request: PlayerRequest, plays: Sequence[RunningCall]
    ) -> RecordedCall:
        """Return the call to play for a recorded one; only subscriptions are adapted."""
        first = next((line for line in call.agent_lines if line.what is LineKind.MESSAGE), None)
        if call.operation not in SUBSCRIBING_OPERATIONS or first is None or not first.task:
            return call
        resumed = self._events_after_last(first.task, request)
        if resumed is not None:
            return self._make_subscription_call(call, first.task, resumed, snapshot=False)
        if self._is_as_recorded(first, plays):
            return call
        rest = self._timeline.unsent_events(first.task)
        return self._make_subscription_call(
            call, first.task, rest, snapshot=first.event is EventKind.TASK
        )

    def make_subscription(
        self, request: PlayerRequest, ids: ReplayIds, policy: RepeatPolicy
    ) -> RecordedCall | None:
        """Return a subscription to a task known to clients for which the recording has no matching
        call, or None.

        With `RepeatPolicy.BY_PROGRESS` a poll of such a task is created as well.
        """
        is_poll = request.operation == POLLING_OPERATION and policy is RepeatPolicy.BY_PROGRESS
        if (request.operation not in SUBSCRIBING_OPERATIONS and not is_poll) or not isinstance(
            request.value, dict
        ):
            return None
        now = request.value.get("id") or request.value.get("taskId")
        task = ids.find_partner(RIGHT, "task", now) if isinstance(now, str) else None
        if (
            task is None
            or not self._timeline.has_updates(task)
            or not self._timeline.is_task_sent(task)
        ):
            return None
        source = next(call for call in self._script.calls if call.task == task)
        call = RecordedCall(
            place=source.place,
            operation=request.operation,
            binding=source.binding,
            dialect=source.dialect,
            request={"id": task},
            lines=(_END_LINE,) if not is_poll else (_TASK_LINE, _END_LINE),
            agent=source.agent,
            began=self._timeline.last_sent_time(task),
            status=source.status,
            answer_headers=source.answer_headers if not is_poll else (),
            streaming=not is_poll,
        )
        if is_poll:
            return call
        resumed = self._events_after_last(task, request)
        rest = self._timeline.unsent_events(task) if resumed is None else resumed
        snapshot = resumed is None and request.dialect not in _DIALECTS_WITHOUT_SNAPSHOT
        return self._make_subscription_call(call, task, rest, snapshot=snapshot)

    def make_poll(
        self, call: RecordedCall, request: PlayerRequest, policy: RepeatPolicy
    ) -> PendingPoll | None:
        """Return how a GetTask is answered from the progress of its task, or None to answer as
        recorded."""
        task = requested_task(call.request)
        if (
            call.operation != POLLING_OPERATION
            or not self._timeline.has_updates(task)
            or not self._timeline.is_task_sent(task)
        ):
            return None
        members = request.value if isinstance(request.value, dict) else {}
        beyond = _parse_int64(members.get("currentGeneration"))
        if beyond is not None and not self._timeline.has_later_generation(task, beyond):
            beyond = None
        if beyond is None and policy is RepeatPolicy.SEQUENCE:
            return None
        at = call.began + next((line.at for line in call.agent_lines), 0)
        return PendingPoll(
            task=task,
            at=at,
            policy=policy,
            beyond=beyond,
            history=_parse_int64(members.get("historyLength")),
            timeline=_parse_int64(members.get("timelineLength")),
        )

    def is_poll_waiting(self, poll: PendingPoll, plays: Sequence[RunningCall]) -> bool:
        """Whether a long poll has nothing new to return yet and a running call will bring it."""
        if poll.beyond is None or self._timeline.sent_generation(poll.task) > poll.beyond:
            return False
        return any(
            step.line.task == poll.task
            for playback in plays
            if playback.poll is None
            for step in playback.pending_steps()
        )

    def poll_answer(self, poll: PendingPoll, recorded: Any) -> Any:
        """Return the answer to a poll: the current task if the policy or a long poll requires it,
        else the recorded answer.

        A recorded answer is updated if the streams have already sent later events.
        """
        timeline, task = self._timeline, poll.task
        if poll.beyond is not None:
            return (
                {"task": timeline.task_snapshot(task)}
                if timeline.sent_generation(task) > poll.beyond
                else recorded
            )
        if poll.policy is RepeatPolicy.BY_PROGRESS:
            shown = _shorten_list(timeline.task_snapshot(task) or {}, "history", poll.history)
            return {"task": _shorten_list(shown, "timeline", poll.timeline)}
        before = timeline.last_event_before(task, poll.at)
        then, reached = before[0] + 1 if before is not None else 0, timeline.sent_count(task)
        recorded_task = recorded.get("task") if isinstance(recorded, dict) else None
        if (
            reached <= then
            or timeline.is_same_point(task, then, reached)
            or not isinstance(recorded_task, dict)
        ):
            return recorded
        now = timeline.task_snapshot(task) or {}
        return {
            "task": {
                **recorded_task,
                **{name: now[name] for name in _CHANGING_FIELDS if name in now},
            }
        }

    def _is_as_recorded(self, first: ScriptLine, plays: Sequence[RunningCall]) -> bool:
        """Whether the task is at its recorded point, or will not reach it because no running call
        has its events."""
        now = self._timeline.sent_count(first.task)
        then = self._timeline.index_of(first)
        if self._timeline.is_same_point(first.task, now, then):
            return True
        will = any(
            step.line.task == first.task for playback in plays for step in playback.pending_steps()
        )
        return now < then and not will

    def _events_after_last(self, task: str, request: PlayerRequest) -> list[TimelineEvent] | None:
        """Return the events after the last one that the client received; None if it names no event,
        or its event is unknown."""
        last = header_members(request.headers).get("last-event-id", "")
        return self._timeline.events_after(task, last) if last else None

    def _make_subscription_call(
        self, call: RecordedCall, task: str, rest: list[TimelineEvent], *, snapshot: bool
    ) -> RecordedCall:
        """Return a subscription that begins now: a snapshot of the task, the events not yet sent,
        and the recorded end, which may be the client's."""
        since = self._timeline.last_sent_time(task)
        lines: list[ScriptLine] = []
        found = self._timeline.task_snapshot(task) if snapshot else None
        if found is not None:
            place = call.place
            lines.append(
                ScriptLine(
                    number=0,
                    side=ScriptSide.AGENT,
                    what=LineKind.MESSAGE,
                    value={"task": found},
                    event=EventKind.TASK,
                    place=place,
                )
            )
        for number, each in enumerate(rest, 1):
            lines.append(
                msgspec.structs.replace(
                    each.line, number=number, at=max(each.at - since, 0), after=-1
                )
            )
        end = next(line for line in reversed(call.lines) if line.is_final)
        at = lines[-1].at if lines else 0
        lines.append(msgspec.structs.replace(end, number=len(rest) + 1, at=at))
        return msgspec.structs.replace(call, lines=tuple(lines), began=since or call.began)


_END_LINE = ScriptLine(number=1, side=ScriptSide.AGENT, what=LineKind.END, status=0)
_TASK_LINE = ScriptLine(number=0, side=ScriptSide.AGENT, what=LineKind.MESSAGE)


def _shorten_list(task: dict[str, Any], name: str, most: int | None) -> dict[str, Any]:
    """Return a task with only the last items of its history or timeline, if the client limits
    it."""
    items = task.get(name)
    if most is None or not isinstance(items, list) or len(items) <= most:
        return task
    rest = {key: item for key, item in task.items() if key != name}
    return {**rest, name: items[len(items) - most :]} if most > 0 else rest


def _parse_int64(value: Any) -> int | None:
    """Parse an int64 of ProtoJSON: a number, or a string of digits."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
