"""What calls that ran beside one another owe each other: a stream does not tell what another call has caused before
that call has come, and streams of one task tell its events in one order."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from a2a_proxy.model.event import TaskState
from a2a_proxy.replay.core.gates import GateStep
from a2a_proxy.replay.core.matching import asked_task, token
from a2a_proxy.replay.core.script import FOLLOWING, POLLING, SPEAKING, LineKind, RecordedCall, ReplayScript, ScriptLine
from a2a_proxy.replay.core.timeline import UPDATES, Timeline

if TYPE_CHECKING:
    from a2a_proxy.replay.core.call_playback import CallPlayback
    from a2a_proxy.replay.core.player import Player

SOFT = 1_000_000_000
"""Ns: how long a line waits at most for a call that did not cause it, as one that has joined or raced its stream."""


class PrecedingCall(msgspec.Struct, frozen=True):
    """A call that came before a line of another one."""

    call: RecordedCall
    certain: bool
    """It has caused the line: without it the line makes no sense."""
    look: bool = False
    """It looks at the task, and shall see it as it is before the line."""


class ConcurrentCalls:
    """Calls of a script that overlap."""

    def __init__(self, script: ReplayScript) -> None:
        self._causes: dict[str, list[PrecedingCall]] = defaultdict(list)
        """By place of the line."""
        self._rivals: dict[str, set[str]] = defaultdict(set)
        """By place of a call: those that were asked the same while it ran."""
        tasks: dict[str, list[RecordedCall]] = defaultdict(list)
        alike: dict[bytes, list[RecordedCall]] = defaultdict(list)
        for call in script.calls:
            for task in {call.task, asked_task(call.request)} - {""}:
                tasks[task].append(call)
            if call.operation in SPEAKING:
                alike[token(call.request)].append(call)
        for call in script.calls:
            if call.streams:
                for other in tasks.get(call.task, ()):
                    self._look(call, other)
                for other in alike.get(token(call.request), ()):
                    self._look(call, other, rival=True)

    def _look(self, call: RecordedCall, other: RecordedCall, *, rival: bool = False) -> None:
        """What `other` means to the lines of `call`."""
        if other is call or _refused(other) or not call.began <= other.began <= call.began + _end(call):
            return
        if rival:
            self._rivals[call.place].add(other.place)
            self._rivals[other.place].add(call.place)
        since = other.began - call.began
        look = _looks(other)
        line = next((each for each in call.answers if each.at > since and (each.event in UPDATES or not look)), None)
        if line is None:
            return
        if rival or look or other.operation in FOLLOWING:
            self._causes[line.place].append(PrecedingCall(other, certain=False, look=look))
        elif other.operation == "CancelTask" or (other.operation in SPEAKING and _waiting(call, line)):
            self._causes[line.place].append(PrecedingCall(other, certain=True))

    def held(self, play: CallPlayback, step: GateStep, waited: int, player: Player) -> str:
        """What keeps a line back that has waited so many ns; empty where nothing does."""
        line = step.line
        patience = player.options.patience
        for cause in self._causes.get(line.place, ()):
            longest = patience if cause.certain else SOFT
            come = player.answered(cause.call) if cause.look else player.began(cause.call)
            if come or (cause.look and play.unwatched):
                continue
            if longest is None or waited < longest:
                return f"{line.place} waits for the call {cause.call.place}, {cause.call.operation}"
            play.unwatched = play.unwatched or cause.look
        key = player.timeline.key(line)
        for other in player.plays:
            if other is play:
                continue
            if key is not None and not player.timeline.told(key) and self._gated(other, line, player):
                return f"{line.place} waits for {other.call.place}, which waits for its client"
            if waited < SOFT and self._earlier(play, step, other, player.timeline):
                return f"{line.place} waits for what {other.call.place} says before it"
        return ""

    def _gated(self, other: CallPlayback, line: ScriptLine, player: Player) -> bool:
        """Another stream has yet to tell the same event, and waits for its client before it."""
        key = player.timeline.key(line)
        for step in other.pending():
            if other.holds(step):
                return any(player.timeline.key(each.line) == key for each in other.pending())
            if player.timeline.key(step.line) == key:
                return False
        return False

    def _earlier(self, play: CallPlayback, step: GateStep, other: CallPlayback, timeline: Timeline) -> bool:
        """Another stream of the task, or one that races this call, has something to say that was said before."""
        tied = other.call.place in self._rivals.get(play.call.place, ()) or (
            bool(play.call.task) and play.call.task == other.call.task
        )
        pending = other.pending()
        tied = tied and play.call.streams and other.call.streams and step.line.what is LineKind.MESSAGE
        if not tied or not pending or other.holds(pending[0]):
            return False
        return timeline.when(pending[0].line, other.call) < timeline.when(step.line, play.call)


def _refused(call: RecordedCall) -> bool:
    """The agent said no: it has changed nothing."""
    return any(line.what is LineKind.ERROR or line.status > 0 for line in call.answers)


def _looks(call: RecordedCall) -> bool:
    """It asks how a task is; not one that itself waits for the task to go on."""
    return call.operation == POLLING and isinstance(call.request, dict) and "currentGeneration" not in call.request


def _end(call: RecordedCall) -> int:
    return call.lines[-1].at if call.lines else 0


def _waiting(call: RecordedCall, line: ScriptLine) -> bool:
    """The task waited for its client when this line came."""
    told = [
        each.state
        for each in call.answers
        if each.what is LineKind.MESSAGE and each.state and each.number < line.number
    ]
    return told[-1:] in ([TaskState.INPUT_REQUIRED], [TaskState.AUTH_REQUIRED])
