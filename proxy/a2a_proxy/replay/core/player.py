"""Player of a script: chooses the recorded call that answers each call of a client."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from a2a_proxy.recording.difference.fields import MAX_DEPTH, OPAQUE, DifferenceRow
from a2a_proxy.recording.difference.structure import bound_depth
from a2a_proxy.replay.core.branch import ConversationMatcher, find_branch
from a2a_proxy.replay.core.call_playback import CallPlayback
from a2a_proxy.replay.core.choice import CallChooser
from a2a_proxy.replay.core.concurrency import ConcurrentCalls
from a2a_proxy.replay.core.gates import Gates, GateStep, PlaybackSteps
from a2a_proxy.replay.core.ids import ReplayIds, agent_minted_ids
from a2a_proxy.replay.core.miss import MaskedMatch, Miss
from a2a_proxy.replay.core.miss_messages import diverged_call, refused_call
from a2a_proxy.replay.core.options import ReplayOptions
from a2a_proxy.replay.core.running_call import PendingPoll, RunningCall
from a2a_proxy.replay.core.script import (
    LineKind,
    PlayerRequest,
    PlayerSend,
    RecordedCall,
    ReplayScript,
    ScriptLine,
)
from a2a_proxy.replay.core.task_progress import TaskProgressPlayer
from a2a_proxy.replay.core.timeline import Timeline
from a2a_proxy.replay.core.webhooks import WebhookSchedule

_TIMESTAMP_FIELDS = frozenset({"timestamp", "createdAt", "createdTime", "lastModified"})
_TIMESTAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)?")
_MAX_FRACTION_DIGITS = 9
"""Maximum number of digits of a fraction of a second."""


class Player:
    """State shared by all calls: identifiers, played calls, misses, and the progress of each
    task."""

    def __init__(self, script: ReplayScript, options: ReplayOptions | None = None) -> None:
        self.script = script
        self.options = options or ReplayOptions()
        self.rules = self.options.match_rules()
        self.ids = ReplayIds(minted=agent_minted_ids(script.calls))
        self.misses: list[Miss] = []
        """Requests without an answer, including those whose client ignored the refusal."""
        self.allowed_misses: list[Miss] = []
        """Requests that were answered despite differences, because of `MatchPreset.LOOSE` or
        because a divergence only warns."""
        self.masked_matches: list[MaskedMatch] = []
        """Requests that were answered because they equal a call after masking."""
        self.playbacks: list[RunningCall] = []
        """Playbacks that are not over."""
        served = replace(script, calls=tuple(call for call in script.calls if not call.refusal))
        self.timeline = Timeline(served)
        self._conversations = ConversationMatcher(
            self.rules, masks_values=self.options.match.masks_values
        )
        self._chooser = CallChooser(script, self.options, self.rules, self._conversations)
        self._concurrency = ConcurrentCalls(served)
        self._gates = Gates(script)
        self._task_progress = TaskProgressPlayer(served, self.timeline)
        self._webhooks = WebhookSchedule(script, self.timeline)
        self._time_shift: int | None = None

    def begin_call(self, request: PlayerRequest, at: int) -> CallPlayback | Miss:
        """Return the playback that answers a client's call, or a miss with the reason.

        `at` is in ns since the Unix epoch, on a clock that never goes back: the servers use the
        monotonic clock, set to the time of day once.
        """
        request = replace(request, value=bound_depth(request.value))
        if self._time_shift is None:
            self._time_shift = at - self.script.began
        found = self._chooser.choose_call(request, self.ids, at)
        if isinstance(found, Miss):
            policy = self.options.policy_of(request.operation)
            call = self._task_progress.make_subscription(request, self.ids, policy)
            if call is None:
                self.misses.append(found)
                return found
            return self._start_playback(
                call, request, at, self._task_progress.make_poll(call, request, policy)
            )
        if found.call.refusal:
            self.ids.adopt_trial(found.fit.ids)  # later calls may repeat what the client sends here
            miss = refused_call(self.script, request, found.call)
            self.misses.append(miss)
            return miss
        if found.loose is not None:
            self.allowed_misses.append(found.loose)
        self.ids.adopt_trial(found.fit.ids)
        if found.masked is not None:
            self.record_masked_match(found.masked)
        for line in (line for call in found.replaced_calls for line in call.agent_lines):
            self.timeline.mark_sent(line)
        self._webhooks.on_request(found.call, request)
        poll = self._task_progress.make_poll(
            found.call, request, self.options.policy_of(request.operation)
        )
        return self._start_playback(
            self._task_progress.adapt_call(found.call, request, self.playbacks), request, at, poll
        )

    def unused_calls(self) -> list[RecordedCall]:
        """Return the recorded calls that could have answered a request, and have not."""
        return self._chooser.unused_calls()

    def find_early_headers(self, operation: str) -> RecordedCall | None:
        """Return the next call of an operation whose initial metadata came before the client's
        first message."""
        return next(
            (call for call in self._chooser.unplayed_calls(operation) if call.early_headers), None
        )

    def take_pushes(self, at: int) -> list[PlayerSend]:
        """Return the webhooks to post now; they count as sent. A playback returns them between its
        lines.

        Webhooks that follow the end of a call, or are due while no call runs, must be taken at
        `wake_time`.
        """
        found = self._webhooks.take_due(at, self.scale_pause)
        return [replace(send, value=self.to_live_value(send.value)) for send in found]

    @property
    def wake_time(self) -> int | None:
        """When `take_pushes` has something to post, in ns; None if nothing is known to follow."""
        return self._webhooks.wake_time(self.scale_pause)

    def to_live_value(self, value: Any) -> Any:
        """Return a recorded message with live identifiers and times."""
        live_value = self.ids.rename_json(value)
        shift = 0 if self.options.keep_times else self._time_shift
        return shift_times(live_value, shift) if shift else live_value

    def send_line(self, playback: RunningCall, line: ScriptLine, at: int) -> PlayerSend:
        """Send a line on a call: return it with live values and note the progress of its task."""
        value = line.value
        if playback.poll is not None and line.what is LineKind.MESSAGE:
            value = self._task_progress.poll_answer(playback.poll, value)
        if value is line.value:
            self.timeline.mark_sent(line)
            self._webhooks.on_line_sent(line, at)
        value = self.to_live_value(value)
        return PlayerSend(
            what=line.what,
            value=value,
            line=line,
            status=line.status,
            trailers=line.trailers,
            after=line.sent,
        )

    def hold_reason(self, playback: RunningCall, step: GateStep, waited: int) -> str:
        """Return why other calls hold back a line that has waited `waited` ns for them; empty if
        they do not."""
        if playback.poll is not None and self._task_progress.is_poll_waiting(
            playback.poll, self.playbacks
        ):
            return f"{step.line.place} waits for a later generation than {playback.poll.beyond}"
        return self._concurrency.hold_reason(playback, step, waited, self)

    def has_begun(self, call: RecordedCall) -> bool:
        """Whether a client has made the recorded call."""
        return self._chooser.is_played(call)

    def is_answered(self, call: RecordedCall) -> bool:
        """Whether a client has made the recorded call and it is over."""
        return self.has_begun(call) and all(
            playback.call.place != call.place for playback in self.playbacks
        )

    def scale_pause(self, recorded: int) -> int:
        """Return the pause in ns for a recorded pause in ns."""
        options = self.options
        if options.gap is not None:
            pause = options.gap
        else:
            pause = round(recorded / options.speed) if options.speed else 0
        return pause if options.max_gap is None else min(pause, options.max_gap)

    def switch_branch(
        self,
        playback: RunningCall,
        sent_count: int,
        received_count: int,
        value: Any,
        masked_at: int | None,
    ) -> PlaybackSteps | None:
        """Continue a playback as another recorded call that is the same so far and has the client's
        message here, after masking at a time or without.

        Returns its steps, or None if there is no such call.
        """
        found = find_branch(
            playback.call,
            sent_count,
            received_count,
            value,
            self._chooser.unplayed_calls(playback.call.operation),
            self._gates,
            self._conversations,
            masked_at,
        )
        if found is None:
            return None
        self.ids.replace_pairs(found.ids)
        self._chooser.swap_played(playback.call, found.call)
        for step in found.steps.agent[:sent_count]:
            self.timeline.mark_sent(step.line)
        playback.call = found.call
        return found.steps

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
        """Record that a client left the recording within a call; the call does not continue if it
        is `stuck`."""
        miss = diverged_call(
            self.script, playback.call, playback.request, why, place, rows, value, stuck=stuck
        )
        (self.misses if stuck or not self.options.lenient else self.allowed_misses).append(miss)
        return miss

    def record_masked_match(self, match: MaskedMatch) -> None:
        """Record that a request, or a message within a stream, matches after masking."""
        self.masked_matches.append(match)
        self.ids.add_echoes(match.pairs)

    def on_call_over(self, playback: RunningCall) -> None:
        """Remove a call that is over."""
        if playback in self.playbacks:
            self.playbacks.remove(playback)

    def _start_playback(
        self, call: RecordedCall, request: PlayerRequest, at: int, poll: PendingPoll | None = None
    ) -> CallPlayback:
        playback = CallPlayback(self, call, self._gates.steps_of(call), request, at, poll)
        self.playbacks.append(playback)
        return playback


def shift_times(value: Any, by: int) -> Any:
    """Return a message with each A2A timestamp shifted by `by` ns; `data` and `metadata` of the
    peers are unchanged."""
    return _shift_member(value, "", by, 0)


def _shift_member(value: Any, name: str, by: int, depth: int) -> Any:
    if depth > MAX_DEPTH or name in OPAQUE:
        return value
    if isinstance(value, dict):
        return {key: _shift_member(item, key, by, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_shift_member(item, name, by, depth + 1) for item in value]
    return (
        _shift_timestamp(value, by)
        if name in _TIMESTAMP_FIELDS and isinstance(value, str)
        else value
    )


def _shift_timestamp(stamp: str, by: int) -> str:
    """Return an RFC 3339 timestamp shifted, with the same number of digits; any other text
    unchanged."""
    found = _TIMESTAMP.fullmatch(stamp)
    if found is None:
        return stamp
    whole, digits, zone = found[1], found[2] or "", found[3] or ""
    nanos = int(digits.ljust(_MAX_FRACTION_DIGITS, "0")) + by
    seconds, rest = divmod(nanos, 1_000_000_000)
    try:
        moved = datetime.fromisoformat(whole).replace(tzinfo=UTC) + timedelta(seconds=seconds)
    except (ValueError, OverflowError):
        return stamp
    fraction = f".{rest:09d}"[: len(digits) + 1] if digits else ""
    return f"{moved:%Y-%m-%dT%H:%M:%S}{fraction}{zone}"
