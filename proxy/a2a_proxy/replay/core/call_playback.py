"""Playback of one recorded call: sends the recorded agent lines at their time.

A line that waits for the client is sent once the client has sent the message recorded before it;
between such gates the clock decides. A client that is slower than the recorded one stops the clock:
pauses count from the last line sent.
"""

from typing import Any, Protocol

from a2a_proxy.recording.difference.fields import CanonicalFields, DifferenceRow
from a2a_proxy.recording.difference.structure import bound_depth
from a2a_proxy.replay.core.gates import GateStep, PlaybackSteps
from a2a_proxy.replay.core.ids import ReplayIds
from a2a_proxy.replay.core.masks import RunTimes
from a2a_proxy.replay.core.match_rules import MatchRules
from a2a_proxy.replay.core.matching import find_differences
from a2a_proxy.replay.core.miss import MaskedMatch, Miss
from a2a_proxy.replay.core.miss_messages import masked_match
from a2a_proxy.replay.core.options import ReplayOptions
from a2a_proxy.replay.core.running_call import PendingPoll, RunningCall
from a2a_proxy.replay.core.script import (
    LineKind,
    PlayerRequest,
    PlayerSend,
    RecordedCall,
    ScriptLine,
)

POLL_NS = 5_000_000
"""Interval in ns after which a line held back by another call is checked again."""


class PlaybackHost(Protocol):
    """What a playback needs of the player: the state that all calls share."""

    @property
    def options(self) -> ReplayOptions:
        """The options of the replay."""

    @property
    def rules(self) -> MatchRules:
        """Which parts of a message count."""

    @property
    def ids(self) -> ReplayIds:
        """The identifiers of all calls."""

    def scale_pause(self, recorded: int) -> int:
        """Return the pause in ns for a recorded pause in ns."""

    def hold_reason(self, playback: RunningCall, step: GateStep, waited: int) -> str:
        """Return why other calls hold back a line that has waited `waited` ns for them; empty if
        they do not."""

    def send_line(self, playback: RunningCall, line: ScriptLine, at: int) -> PlayerSend:
        """Send a line on a call."""

    def take_pushes(self, at: int) -> list[PlayerSend]:
        """Return the webhooks to post now."""

    def switch_branch(
        self,
        playback: RunningCall,
        sent_count: int,
        received_count: int,
        value: Any,
        masked_at: int | None,
    ) -> PlaybackSteps | None:
        """Continue a playback as another recorded call; return its steps, or None if there is no
        such call."""

    def record_divergence(
        self,
        playback: RunningCall,
        why: str,
        place: str,
        rows: tuple[DifferenceRow, ...],
        value: Any,
        *,
        stuck: bool,
    ) -> Miss:
        """Record that a client left the recording within a call."""

    def record_masked_match(self, match: MaskedMatch) -> None:
        """Record that a message of a client matches after masking."""

    def on_call_over(self, playback: RunningCall) -> None:
        """Remove a call that is over."""


class CallPlayback:
    """A recorded call that answers a client's call. Times are in ns, on the clock passed to
    `Player.begin_call`."""

    def __init__(
        self,
        player: PlaybackHost,
        call: RecordedCall,
        steps: PlaybackSteps,
        request: PlayerRequest,
        at: int,
        poll: PendingPoll | None = None,
    ) -> None:
        self.call = call
        self.request = request
        self.poll = poll
        """Set if the answer is the state of the task at the time it is sent."""
        self.began = at
        self.is_over = False
        """Whether the call has ended: nothing more is sent, and client messages are ignored."""
        self.ignores_polls = False
        """Whether the playback no longer waits for the polls of the task that the recorded client
        made; they did not come in time."""
        self.client_cancelled = False
        """Whether the client cancelled the call. Lines not sent by then are not missing."""
        self.skew = 0
        """Accumulated delay in ns of lines sent after their due time: the client read slowly, the
        server was busy, or other calls held them back."""
        self.wait_reason = ""
        """Why the next line is held back, in words; empty if it is not."""
        self._player = player
        self._steps = steps
        self._next_step = 0
        self._client_times: list[int] = []
        """Arrival time of each line of the client."""
        self._half_closed = False
        self._last_sent_at = at
        """When the last line was sent."""
        self._ready_since = 0
        """Since when the next line waits only for other calls; 0 if it does not."""
        self._last_polled_at = at
        self._miss: Miss | None = None
        self._early_miss: Miss | None = None
        """Outcome of the call if it cannot continue without the client messages that an early
        half-close left out."""

    @property
    def wake_time(self) -> int | None:
        """When `take_due` may have something to send, in ns; None if that depends on the client, or
        nothing is left."""
        if self.is_over:
            return None
        if self._miss is not None:
            return self._last_polled_at
        step = self._current_step()
        if step is None or self._is_gate_closed(step):
            return self._give_up_time()
        due = self._due_time(step)
        return max(due, self._last_polled_at + POLL_NS) if self._ready_since else due

    def take_due(self, at: int) -> list[PlayerSend]:
        """Return what to send now, in order, including webhooks that are due. Everything returned
        counts as sent."""
        sends: list[PlayerSend] = []
        self._last_polled_at = at
        while not self.is_over:
            send = self._next_send(at)
            if send is None:
                break
            sends.append(send)
            self.is_over = send.is_final
            if not self.is_over:
                sends += self._player.take_pushes(at)
        if self.is_over:
            self._player.on_call_over(self)
        return sends

    def on_client_message(self, value: Any, at: int) -> None:
        """Handle one more message of the client on this call, in canonical form. Messages after a
        miss are ignored."""
        if self.is_over or self._miss is not None or not self.call.is_live:
            return
        value = bound_depth(value)
        expected = self._expected_line()
        masks = self._player.options.match.masks_values
        for masked_at in (None, at) if masks else (None,):
            other = self._find_branch_steps(expected, value, masked_at)
            if other is not None:
                self._steps, expected = other, other.client[len(self._client_times)]
        if self._half_closed or expected is None or expected.what is LineKind.END:
            client_action = "half-closed" if expected is not None else "sent nothing more"
            step = self._current_step()
            self._record_divergence(
                f"the client sends more than the recorded client, which {client_action} here",
                step.line.place if step is not None else self.call.place,
                (),
                value,
            )
            return
        rows = self._compare_messages(expected, value)
        if rows and masks and not self._compare_messages(expected, value, at):
            self._player.record_masked_match(
                masked_match([expected.place], self.call.operation, value, rows)
            )
        elif rows:
            why = "the client sends a different message than the recorded client"
            self._record_divergence(why, expected.place, rows, value)
        self._client_times.append(at)

    def on_half_close(self, at: int) -> None:
        """Handle the half-close of the client: it sends nothing more, but still reads."""
        if self.is_over or self._miss is not None or not self.call.is_live or self._half_closed:
            return
        self._half_closed = True
        expected = self._expected_line()
        if expected is not None and expected.what is LineKind.END:
            self._client_times.append(at)
        elif expected is not None:
            why = "the client half-closed; the recorded client first sent another message"
            self._early_miss = self._player.record_divergence(
                self, why, expected.place, (), None, stuck=True
            )

    def on_client_gone(self) -> None:
        """Handle a client that cancelled the call or disconnected."""
        if not self.is_over:
            self.is_over = self.client_cancelled = True
            self._player.on_call_over(self)

    def pending_steps(self) -> tuple[GateStep, ...]:
        """Return the steps that have not been sent."""
        return () if self.is_over else self._steps.agent[self._next_step :]

    def waits_for_client(self, step: GateStep) -> bool:
        """Whether a step, one of `pending_steps()`, waits for the client."""
        return self._is_gate_closed(step)

    def _next_send(self, at: int) -> PlayerSend | None:
        """Return the next thing to send, or None if nothing is due."""
        if self._miss is not None:
            return PlayerSend(what=LineKind.MISS, miss=self._miss)
        step = self._current_step()
        if step is None or self._is_gate_closed(step):
            return self._wait_for_client(step, at)
        if self._due_time(step) > at or self._is_held_back(step, at):
            return None
        self._next_step += 1
        self.skew += at - self._due_time(step)
        self._last_sent_at, self._ready_since, self.wait_reason = at, 0, ""
        return self._player.send_line(self, step.line, at)

    def _current_step(self) -> GateStep | None:
        return (
            self._steps.agent[self._next_step] if self._next_step < len(self._steps.agent) else None
        )

    def _is_gate_closed(self, step: GateStep) -> bool:
        return len(self._client_times) < step.needs

    def _due_time(self, step: GateStep) -> int:
        """Return when the clock releases a line whose gate is open."""
        opened = self._client_times[step.needs - 1] if step.needs else 0
        return (
            max(self._last_sent_at, opened) + self._player.scale_pause(step.pause) + step.line.stall
        )

    def _is_held_back(self, step: GateStep, at: int) -> bool:
        """Whether other calls hold the line back for now."""
        self._ready_since = self._ready_since or at
        self.wait_reason = self._player.hold_reason(self, step, at - self._ready_since)
        return bool(self.wait_reason)

    def _expected_line(self) -> ScriptLine | None:
        """Return the next recorded line of the client."""
        return (
            self._steps.client[len(self._client_times)]
            if len(self._client_times) < len(self._steps.client)
            else None
        )

    def _give_up_time(self) -> int | None:
        """When to stop waiting for the client; None means never."""
        if self._early_miss is not None:
            return self._last_polled_at
        patience = self._player.options.patience
        return None if patience is None else self._last_activity() + patience

    def _last_activity(self) -> int:
        return max(self._last_sent_at, self._client_times[-1] if self._client_times else 0)

    def _wait_for_client(self, step: GateStep | None, at: int) -> PlayerSend | None:
        """Wait for the client, without which the recording does not continue; return a miss when
        the wait is over."""
        if step is None:
            leaves = self._steps.leaves
            place = leaves.place if leaves is not None else self.call.place
            silence = (
                f"the recorded client cancelled the call here ({place}), and the agent sent no more"
            )
            self.wait_reason = silence if leaves else f"nothing ends the call {place}"
        else:
            expected = self._expected_line()
            place = expected.place if expected is not None else step.line.place
            self.wait_reason = f"{step.line.place} waits for the client's message {place}"
        given_up = self._give_up_time()
        if given_up is None or at < given_up:
            return None
        if self._early_miss is not None:
            self._miss = self._early_miss
        else:
            self.wait_reason += (
                f"; the client sent nothing for {(at - self._last_activity()) / 1e9:.0f} s"
            )
            self._record_divergence(self.wait_reason, place, (), None, stuck=True)
        return PlayerSend(what=LineKind.MISS, miss=self._miss)

    def _compare_messages(
        self, line: ScriptLine, now: Any, masked_at: int | None = None
    ) -> tuple[DifferenceRow, ...]:
        """Return the differences that count, after masking at a time or without. Without
        differences, the learned identifiers are kept."""
        recorded, rules = bound_depth(line.value), self._player.rules
        times = None if masked_at is None else RunTimes(self.call.began + line.at, masked_at)
        trial = self._player.ids.make_trial(masked=times is not None)
        fields = CanonicalFields(dialects=self.call.dialect is not self.request.dialect)
        if not rules.compares_nothing:
            compared = rules.select_parts(recorded), rules.select_parts(now)
            rows = find_differences(*compared, trial, fields, times)
            if rows:
                return rows
        find_differences(
            recorded, now, trial, fields
        )  # fields that are not compared hold identifiers as well
        self._player.ids.adopt_trial(trial)
        return ()

    def _find_branch_steps(
        self, expected: ScriptLine | None, value: Any, masked_at: int | None
    ) -> PlaybackSteps | None:
        """Return the steps of another recorded call if the client's message differs from this call
        and matches that one, after masking at a time or without."""
        if self._player.rules.compares_nothing or self._half_closed:
            return None
        if (
            expected is not None
            and expected.what is LineKind.MESSAGE
            and not self._compare_messages(expected, value, masked_at)
        ):
            return None
        return self._player.switch_branch(
            self, self._next_step, len(self._client_times), value, masked_at
        )

    def _record_divergence(
        self,
        why: str,
        place: str,
        rows: tuple[DifferenceRow, ...],
        value: Any,
        *,
        stuck: bool = False,
    ) -> None:
        """Record that the client left the recording. If that only warns, the call continues unless
        it is stuck."""
        miss = self._player.record_divergence(self, why, place, rows, value, stuck=stuck)
        self._miss = miss if stuck or not self._player.options.lenient else None
