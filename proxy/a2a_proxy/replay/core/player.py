"""Plays a script to the clients that come: which recorded call answers which call of now."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from a2a_proxy.recording.difference.reduced import bounded
from a2a_proxy.recording.difference.values import DifferenceRow
from a2a_proxy.replay.core.branch import branch
from a2a_proxy.replay.core.call_playback import CallPlayback
from a2a_proxy.replay.core.choice import CallChooser
from a2a_proxy.replay.core.concurrency import ConcurrentCalls
from a2a_proxy.replay.core.gates import Gates, GateStep, Steps
from a2a_proxy.replay.core.ids import IdMap, minted
from a2a_proxy.replay.core.miss import Miss
from a2a_proxy.replay.core.miss_messages import diverged
from a2a_proxy.replay.core.options import ReplayOptions
from a2a_proxy.replay.core.player_io import PlayerRequest, Send
from a2a_proxy.replay.core.script import LineKind, RecordedCall, ReplayScript, ScriptLine
from a2a_proxy.replay.core.task_progress import PendingPoll, TaskProgressPlayer
from a2a_proxy.replay.core.timeline import Timeline
from a2a_proxy.replay.core.times import shifted
from a2a_proxy.replay.core.webhooks import WebhookSchedule


class Player:
    """Holds what all calls share: identifiers, what was played, what could not be, how far each task has come."""

    def __init__(self, script: ReplayScript, options: ReplayOptions | None = None) -> None:
        self.script = script
        self.options = options or ReplayOptions()
        self.ids = IdMap(minted=minted(script.calls))
        self.misses: list[Miss] = []
        """All that could not be answered, also where the client never looked at the refusal."""
        self.loose: list[Miss] = []
        """Calls that were answered though something differs: by `loose`, or because a divergence only warns."""
        self.plays: list[CallPlayback] = []
        """Those that are not over."""
        self.timeline = Timeline(script)
        self._choice = CallChooser(script, self.options)
        self._beside = ConcurrentCalls(script)
        self._gates = Gates(script)
        self._follow = TaskProgressPlayer(script, self.timeline)
        self._webhooks = WebhookSchedule(script, self.timeline)
        self._shift: int | None = None

    def begin(self, asked: PlayerRequest, at: int) -> CallPlayback | Miss:
        """A client calls: the play that answers it, or why there is none.

        `at` is ns since the Unix epoch, of a clock that never goes back: the servers' monotonic one, moved to the time
        of day once.
        """
        asked = replace(asked, value=bounded(asked.value))
        if self._shift is None:
            self._shift = at - self.script.began
        found = self._choice.choose(asked, self.ids)
        if isinstance(found, Miss):
            policy = self.options.policy(asked.operation)
            call = self._follow.unrecorded(asked, self.ids, policy)
            if call is None:
                self.misses.append(found)
                return found
            return self._play(call, asked, at, self._follow.poll(call, asked, policy))
        if found.loose is not None:
            self.loose.append(found.loose)
        self.ids.adopt(found.fit.ids)
        for line in (line for call in found.turned for line in call.answers):
            self.timeline.tell(line)
        self._webhooks.asked(found.call, asked)
        poll = self._follow.poll(found.call, asked, self.options.policy(asked.operation))
        return self._play(self._follow.now(found.call, asked, self.plays), asked, at, poll)

    def unused(self) -> list[RecordedCall]:
        """Recorded calls that nobody has asked for."""
        return self._choice.unused()

    def pushes(self, at: int) -> list[Send]:
        """Webhooks that are to be posted now: what is given is taken as sent. A play gives them between
        its lines; those that come after its end, or while none runs, are to be asked for at `wake`."""
        found = self._webhooks.due(at, self.pause)
        return [replace(send, value=self.outgoing(send.value)) for send in found]

    @property
    def wake(self) -> int | None:
        """When `pushes` has something, ns; None where nothing is known to come."""
        return self._webhooks.wake(self.pause)

    def outgoing(self, value: Any) -> Any:
        """A recorded message with the identifiers, and the times, of now."""
        made = self.ids.value(value)
        return made if self.options.keep_times or not self._shift else shifted(made, self._shift)

    def send(self, play: CallPlayback, line: ScriptLine, at: int) -> Send:
        """A line goes out on a call."""
        value = line.value
        if play.poll is not None and line.what is LineKind.MESSAGE:
            value = self._follow.answer(play.poll, value)
        if value is line.value:
            self.timeline.tell(line)
            self._webhooks.told(line, at)
        value = self.outgoing(value)
        return Send(what=line.what, value=value, line=line, status=line.status, trailers=line.trailers, after=line.sent)

    def held(self, play: CallPlayback, step: GateStep, waited: int) -> str:
        """What of other calls keeps a line back that has waited so many ns for them; empty where nothing does."""
        if play.poll is not None and self._follow.waits(play.poll, self.plays):
            return f"{step.line.place} waits for a later generation than {play.poll.beyond}"
        return self._beside.held(play, step, waited, self)

    def began(self, call: RecordedCall) -> bool:
        """A recorded call has been asked for."""
        return self._choice.played(call)

    def answered(self, call: RecordedCall) -> bool:
        """It has been asked for, and is over."""
        return self.began(call) and all(play.call.place != call.place for play in self.plays)

    def pause(self, recorded: int) -> int:
        """How long to wait where the recording has so many ns."""
        options = self.options
        if options.gap is not None:
            pause = options.gap
        else:
            pause = round(recorded / options.speed) if options.speed else 0
        return pause if options.max_gap is None else min(pause, options.max_gap)

    def turn(self, play: CallPlayback, sent: int, heard: int, value: Any) -> Steps | None:
        """The client says what another recorded call has here that went the same way so far: the play goes on as that
        one, by these steps. None where there is no such call."""
        found = branch(play.call, sent, heard, value, self._choice.free(play.call.operation), self._gates)
        if found is None:
            return None
        self.ids.turn(found.ids)
        self._choice.turn(play.call, found.call)
        for step in found.steps.agent[:sent]:
            self.timeline.tell(step.line)
        play.call = found.call
        return found.steps

    def diverged(
        self, play: CallPlayback, why: str, place: str, rows: tuple[DifferenceRow, ...], value: Any, *, stuck: bool
    ) -> Miss:
        """A client has left the recording within a call, which does not go on where it is `stuck`."""
        miss = diverged(self.script, play, why, place, rows, value, stuck=stuck)
        (self.misses if stuck or not self.options.lenient else self.loose).append(miss)
        return miss

    def ended(self, play: CallPlayback) -> None:
        """A call is over."""
        if play in self.plays:
            self.plays.remove(play)

    def _play(self, call: RecordedCall, asked: PlayerRequest, at: int, poll: PendingPoll | None = None) -> CallPlayback:
        play = CallPlayback(self, call, self._gates.of(call), asked, at, poll)
        self.plays.append(play)
        return play
