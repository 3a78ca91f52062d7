"""One call as it is played: what the agent said in the recording, as it goes out now.

Lines that wait for the client go out when it has said what the recording has there; between such gates the clock
decides. A client that is slower than the recorded one stops the clock: pauses count from what was sent last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from a2a_proxy.recording.difference.fields import Fields
from a2a_proxy.recording.difference.reduced import bounded
from a2a_proxy.recording.difference.values import DifferenceRow
from a2a_proxy.replay.core.gates import GateStep, Steps
from a2a_proxy.replay.core.matching import differences, without
from a2a_proxy.replay.core.miss import Miss
from a2a_proxy.replay.core.options import MatchPreset
from a2a_proxy.replay.core.player_io import PlayerRequest, Send
from a2a_proxy.replay.core.script import LineKind, RecordedCall, ScriptLine

if TYPE_CHECKING:
    from a2a_proxy.replay.core.player import Player
    from a2a_proxy.replay.core.task_progress import PendingPoll

POLL = 5_000_000
"""Ns: how soon to ask again where another call holds a line back."""


class CallPlayback:
    """A recorded call that answers a call of now. Times in ns, of the clock that `Player.begin` was told."""

    def __init__(
        self,
        player: Player,
        call: RecordedCall,
        steps: Steps,
        asked: PlayerRequest,
        at: int,
        poll: PendingPoll | None = None,
    ) -> None:
        self.call = call
        self.asked = asked
        self.poll = poll
        """Its answer is the task as it is when it goes out."""
        self.began = at
        self.over = False
        """Nothing more is sent, and nothing heard is of interest."""
        self.unwatched = False
        """Nobody has looked at its task when the recorded client did: it waits for such looks no more."""
        self.left = False
        """The client broke it off. What was not sent by then is not missing."""
        self.skew = 0
        """Ns by which its lines went out later than they were due, added up: the client read slowly, the server was
        busy, or other calls kept them back."""
        self.waits = ""
        """What keeps the next line back, in words; empty where nothing does."""
        self._player = player
        self._steps = steps
        self._next = 0
        self._heard: list[int] = []
        """When each line of the client came."""
        self._ended = False
        self._last = at
        """When the last line went out."""
        self._ready = 0
        """Since when the next line waits for nothing but other calls."""
        self._looked = at
        self._miss: Miss | None = None
        self._early: Miss | None = None
        """The client half-closed before it had said all: what the call ends with, if it cannot go on without that."""

    @property
    def wake(self) -> int | None:
        """When `due` may have something, ns. None: when the client has done something, or never."""
        if self.over:
            return None
        if self._miss is not None:
            return self._looked
        step = self._step()
        if step is None or self._closed(step):
            return self._given_up()
        due = self._due(step)
        return max(due, self._looked + POLL) if self._ready else due

    def due(self, at: int) -> list[Send]:
        """What is to be sent now, in order, webhooks that have become due among it. What is given is taken as sent."""
        sends: list[Send] = []
        self._looked = at
        while not self.over:
            send = self._one(at)
            if send is None:
                break
            sends.append(send)
            self.over = send.over
            if not self.over:
                sends += self._player.pushes(at)
        if self.over:
            self._player.ended(self)
        return sends

    def heard(self, value: Any, at: int) -> None:
        """The client said one more thing on this call, in canonical form. What follows a miss is of no interest."""
        if self.over or self._miss is not None or not self.call.live:
            return
        value = bounded(value)
        expected = self._expected()
        other = self._turned(expected, value)
        if other is not None:
            self._steps, expected = other, other.client[len(self._heard)]
        if self._ended or expected is None or expected.what is LineKind.END:
            said = "half-closed" if expected is not None else "said no more"
            self._diverge(
                f"the client says more than the recorded one, which had {said} here", self._place(), (), value
            )
            return
        rows = self._compare(expected.value, value)
        if rows:
            why = "the client says something else than the recorded one"
            self._diverge(why, expected.place, rows, value)
        self._heard.append(at)

    def client_ended(self, at: int) -> None:
        """The client half-closed: it will say no more, and listens."""
        if self.over or self._miss is not None or not self.call.live or self._ended:
            return
        self._ended = True
        expected = self._expected()
        if expected is not None and expected.what is LineKind.END:
            self._heard.append(at)
        elif expected is not None:
            why = "the client half-closed; the recorded one first had something to say"
            self._early = self._player.diverged(self, why, expected.place, (), None, stuck=True)

    def client_gone(self) -> None:
        """The client broke the call off, or is not there any more."""
        if not self.over:
            self.over = self.left = True
            self._player.ended(self)

    def pending(self) -> tuple[GateStep, ...]:
        """What has not gone out."""
        return () if self.over else self._steps.agent[self._next :]

    def holds(self, step: GateStep) -> bool:
        """Whether a line, one of `pending`, waits for the client."""
        return self._closed(step)

    def _one(self, at: int) -> Send | None:
        """The next thing that is to be sent; None where there is none yet."""
        if self._miss is not None:
            return Send(what=LineKind.MISS, miss=self._miss)
        step = self._step()
        if step is None or self._closed(step):
            return self._stuck(step, at)
        if self._due(step) > at or self._held(step, at):
            return None
        self._next += 1
        self.skew += at - self._due(step)
        self._last, self._ready, self.waits = at, 0, ""
        return self._player.send(self, step.line, at)

    def _step(self) -> GateStep | None:
        return self._steps.agent[self._next] if self._next < len(self._steps.agent) else None

    def _closed(self, step: GateStep) -> bool:
        return len(self._heard) < step.needs

    def _due(self, step: GateStep) -> int:
        """When the clock lets a line go whose gate is open."""
        opened = self._heard[step.needs - 1] if step.needs else 0
        return max(self._last, opened) + self._player.pause(step.pause) + step.line.stall

    def _held(self, step: GateStep, at: int) -> bool:
        """Other calls keep it back, for now."""
        self._ready = self._ready or at
        self.waits = self._player.held(self, step, at - self._ready)
        return bool(self.waits)

    def _expected(self) -> ScriptLine | None:
        """The line of the client that comes next in the recording."""
        return self._steps.client[len(self._heard)] if len(self._heard) < len(self._steps.client) else None

    def _place(self) -> str:
        step = self._step()
        return step.line.place if step is not None else self.call.place

    def _given_up(self) -> int | None:
        """When waiting for the client comes to its end; None: never."""
        if self._early is not None:
            return self._looked
        patience = self._player.options.patience
        return None if patience is None else self._since() + patience

    def _since(self) -> int:
        return max(self._last, self._heard[-1] if self._heard else 0)

    def _stuck(self, step: GateStep | None, at: int) -> Send | None:
        """The recording goes on only when the client does something."""
        if step is None:
            leaves = self._steps.leaves
            place = leaves.place if leaves is not None else self.call.place
            gone = f"the recorded client broke the call off here ({place})"
            self.waits = f"{gone}, and the agent said no more" if leaves else f"nothing ends the call {place}"
        else:
            expected = self._expected()
            place = expected.place if expected is not None else step.line.place
            self.waits = f"{step.line.place} waits for what the client said in {place}"
        given_up = self._given_up()
        if given_up is None or at < given_up:
            return None
        if self._early is not None:
            self._miss = self._early
        else:
            self.waits += f"; nothing came for {(at - self._since()) / 1e9:.0f} s"
            self._diverge(self.waits, place, (), None, stuck=True)
        return Send(what=LineKind.MISS, miss=self._miss)

    def _compare(self, recorded: Any, now: Any) -> tuple[DifferenceRow, ...]:
        """What differs and counts; where nothing does, what is learned of identifiers holds."""
        recorded, preset = bounded(recorded), self._player.options.match
        trial = self._player.ids.trial()
        fields = Fields(dialects=self.call.dialect is not self.asked.dialect)
        if preset is not MatchPreset.BY_OPERATION:
            whole = preset is MatchPreset.STRICT
            rows = differences(recorded if whole else without(recorded), now if whole else without(now), trial, fields)
            if rows:
                return rows
        differences(recorded, now, trial, fields)  # also what is not looked at has identifiers
        self._player.ids.adopt(trial)
        return ()

    def _turned(self, expected: ScriptLine | None, value: Any) -> Steps | None:
        """The steps of another recorded call, where this one has something else here and that one what was said."""
        if self._player.options.match is MatchPreset.BY_OPERATION or self._ended:
            return None
        if expected is not None and expected.what is LineKind.MESSAGE and not self._compare(expected.value, value):
            return None
        return self._player.turn(self, self._next, len(self._heard), value)

    def _diverge(
        self, why: str, place: str, rows: tuple[DifferenceRow, ...], value: Any, *, stuck: bool = False
    ) -> None:
        """The client has left the recording; where that only warns, the call goes on unless it is stuck."""
        miss = self._player.diverged(self, why, place, rows, value, stuck=stuck)
        self._miss = miss if stuck or not self._player.options.lenient else None
