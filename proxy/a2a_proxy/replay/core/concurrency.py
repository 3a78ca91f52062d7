"""Order between calls that ran at the same time.

A stream does not report the effect of another call before that call has been made, and the streams
of one task report its events in one order.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Protocol

import msgspec

from a2a_proxy.model.event import TaskState
from a2a_proxy.replay.core.gates import GateStep
from a2a_proxy.replay.core.matching import request_token, requested_task
from a2a_proxy.replay.core.options import ReplayOptions
from a2a_proxy.replay.core.running_call import RunningCall
from a2a_proxy.replay.core.script import (
    POLLING_OPERATION,
    SENDING_OPERATIONS,
    SUBSCRIBING_OPERATIONS,
    LineKind,
    RecordedCall,
    ReplayScript,
    ScriptLine,
)
from a2a_proxy.replay.core.timeline import UPDATE_KINDS, Timeline

SOFT_WAIT_NS = 1_000_000_000
"""Maximum time in ns that a line waits for a call that did not cause it, such as one that joined or
raced its stream."""


class ReplayProgress(Protocol):
    """State of the replay that decides whether a line must wait."""

    @property
    def options(self) -> ReplayOptions:
        """The options of the replay."""

    @property
    def timeline(self) -> Timeline:
        """The events of all tasks."""

    @property
    def playbacks(self) -> Sequence[RunningCall]:
        """The calls that are not over."""

    def has_begun(self, call: RecordedCall) -> bool:
        """Whether a client has made the recorded call."""

    def is_answered(self, call: RecordedCall) -> bool:
        """Whether a client has made the recorded call and it is over."""


class PrecedingCall(msgspec.Struct, frozen=True):
    """A call that preceded a line of another call."""

    call: RecordedCall
    is_cause: bool
    """Whether the call caused the line, which makes no sense without it."""
    is_poll: bool = False
    """Whether the call polls the task, and must see its state before the line."""


class ConcurrentCalls:
    """The calls of a script that overlap."""

    def __init__(self, script: ReplayScript) -> None:
        self._causes: dict[str, list[PrecedingCall]] = defaultdict(list)
        """By place of the line."""
        self._rivals: dict[str, set[str]] = defaultdict(set)
        """By place of a call: the calls with the same request that began while it ran."""
        tasks: dict[str, list[RecordedCall]] = defaultdict(list)
        alike: dict[bytes, list[RecordedCall]] = defaultdict(list)
        for call in script.calls:
            for task in {call.task, requested_task(call.request)} - {""}:
                tasks[task].append(call)
            if call.operation in SENDING_OPERATIONS:
                alike[request_token(call.request)].append(call)
        for call in script.calls:
            if call.is_stream:
                for other in tasks.get(call.task, ()):
                    self._relate_calls(call, other)
                for other in alike.get(request_token(call.request), ()):
                    self._relate_calls(call, other, rival=True)

    def _relate_calls(
        self, call: RecordedCall, other: RecordedCall, *, rival: bool = False
    ) -> None:
        """Record how `other` affects the lines of `call`."""
        if (
            other is call
            or _is_refused(other)
            or not call.began <= other.began <= call.began + _end_time(call)
        ):
            return
        if rival:
            self._rivals[call.place].add(other.place)
            self._rivals[other.place].add(call.place)
        since = other.began - call.began
        # Whether the call polls a task, without waiting for the task to change.
        polls = (
            other.operation == POLLING_OPERATION
            and isinstance(other.request, dict)
            and "currentGeneration" not in other.request
        )
        line = next(
            (
                each
                for each in call.agent_lines
                if each.at > since and (each.event in UPDATE_KINDS or not polls)
            ),
            None,
        )
        if line is None:
            return
        if rival or polls or other.operation in SUBSCRIBING_OPERATIONS:
            self._causes[line.place].append(PrecedingCall(other, is_cause=False, is_poll=polls))
        elif other.operation == "CancelTask" or (
            other.operation in SENDING_OPERATIONS and _was_waiting(call, line)
        ):
            self._causes[line.place].append(PrecedingCall(other, is_cause=True))

    def hold_reason(
        self, playback: RunningCall, step: GateStep, waited: int, progress: ReplayProgress
    ) -> str:
        """Return why a line that has waited `waited` ns is held back; empty if it is not."""
        line = step.line
        patience = progress.options.patience
        for cause in self._causes.get(line.place, ()):
            longest = patience if cause.is_cause else SOFT_WAIT_NS
            come = (
                progress.is_answered(cause.call)
                if cause.is_poll
                else progress.has_begun(cause.call)
            )
            if come or (cause.is_poll and playback.ignores_polls):
                continue
            if longest is None or waited < longest:
                return f"{line.place} waits for the call {cause.call.place}, {cause.call.operation}"
            playback.ignores_polls = playback.ignores_polls or cause.is_poll
        key = progress.timeline.event_key(line)
        for other in progress.playbacks:
            if other is playback:
                continue
            if (
                key is not None
                and not progress.timeline.is_sent(key)
                and self._is_gated_elsewhere(other, line, progress)
            ):
                return f"{line.place} waits for {other.call.place}, which waits for its client"
            if waited < SOFT_WAIT_NS and self._has_earlier_line(
                playback, step, other, progress.timeline
            ):
                return f"{line.place} waits for an earlier line of {other.call.place}"
        return ""

    def _is_gated_elsewhere(
        self, other: RunningCall, line: ScriptLine, progress: ReplayProgress
    ) -> bool:
        """Whether another stream has not yet sent the same event and waits for its client before
        it."""
        key = progress.timeline.event_key(line)
        for step in other.pending_steps():
            if other.waits_for_client(step):
                return any(
                    progress.timeline.event_key(each.line) == key for each in other.pending_steps()
                )
            if progress.timeline.event_key(step.line) == key:
                return False
        return False

    def _has_earlier_line(
        self, playback: RunningCall, step: GateStep, other: RunningCall, timeline: Timeline
    ) -> bool:
        """Whether another stream of the task, or one that races this call, has to send a line that
        was recorded earlier."""
        tied = other.call.place in self._rivals.get(playback.call.place, ()) or (
            bool(playback.call.task) and playback.call.task == other.call.task
        )
        pending = other.pending_steps()
        tied = (
            tied
            and playback.call.is_stream
            and other.call.is_stream
            and step.line.what is LineKind.MESSAGE
        )
        if not tied or not pending or other.waits_for_client(pending[0]):
            return False
        return timeline.recorded_time(pending[0].line, other.call) < timeline.recorded_time(
            step.line, playback.call
        )


def _is_refused(call: RecordedCall) -> bool:
    """Whether the agent refused the call, which therefore changed nothing."""
    return any(line.what is LineKind.ERROR or line.status > 0 for line in call.agent_lines)


def _end_time(call: RecordedCall) -> int:
    return call.lines[-1].at if call.lines else 0


def _was_waiting(call: RecordedCall, line: ScriptLine) -> bool:
    """Whether the task was waiting for its client when the line was sent."""
    states = [
        each.state
        for each in call.agent_lines
        if each.what is LineKind.MESSAGE and each.state and each.number < line.number
    ]
    return states[-1:] in ([TaskState.INPUT_REQUIRED], [TaskState.AUTH_REQUIRED])
