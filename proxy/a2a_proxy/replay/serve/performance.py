"""One player with a clock: sends each message when it is due and reports the outcome."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any

import msgspec

from a2a_proxy.model.values import Binding, Dialect
from a2a_proxy.replay.convert.errors import ReplayError
from a2a_proxy.replay.core.call_playback import CallPlayback
from a2a_proxy.replay.core.miss import MaskedMatch, Miss
from a2a_proxy.replay.core.player import Player
from a2a_proxy.replay.core.script import LineKind, PlayerRequest, PlayerSend
from a2a_proxy.replay.serve.passthrough import Passthrough
from a2a_proxy.replay.serve.servable import BindingSupport

_EVENT_STREAMS = (Binding.JSONRPC, Binding.REST)
_MIN_WAIT_SECONDS = 0.001
"""Minimum wait in seconds, because a shorter one would only spin."""


class PlayedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that is over."""

    place: str
    """Place of the recorded call."""
    operation: str
    binding: Binding
    """The binding of the client's call."""
    dialect: Dialect
    sent: int
    """Number of messages sent, errors included."""
    duration: int
    """Duration in ns."""
    outcome: str
    """`ok`, `error`, `cut`, `miss`, `client gone`."""


class MissedCall(msgspec.Struct, frozen=True):
    """A call, or a message within one, without an answer."""

    miss: Miss
    binding: Binding


class AllowedCall(msgspec.Struct, frozen=True):
    """A call that differs from the recording and was answered because the options allow it."""

    miss: Miss
    binding: Binding


class MaskedCall(msgspec.Struct, frozen=True):
    """A call, or a message within one, that matches after masking."""

    match: MaskedMatch
    binding: Binding


class UnservedCall(msgspec.Struct, frozen=True):
    """A call that cannot be represented on the client's binding, as announced at the start."""

    place: str
    operation: str
    binding: Binding
    reason: str


class WebhookPosted(msgspec.Struct, frozen=True, kw_only=True):
    """The POST of a webhook."""

    url: str
    status: int
    """HTTP status; 0 if it did not arrive."""
    tries: int
    reason: str = ""


ReplayReport = PlayedCall | MissedCall | AllowedCall | MaskedCall | UnservedCall | WebhookPosted
ReportCallback = Callable[[ReplayReport], None]


PostWebhook = Callable[[PlayerSend], None]
"""Takes a webhook to post."""


def _discard_webhook(_send: PlayerSend) -> None:
    """Discard a webhook, for a mock that posts none."""


class ReplayPlayer:
    """Plays the calls of one mock. All its calls share one player."""

    def __init__(
        self,
        player: Player,
        clock: Callable[[], int],
        report: ReportCallback,
        post: PostWebhook = _discard_webhook,
    ) -> None:
        """`clock` returns ns since the Unix epoch and never goes back; `post` takes the webhooks to
        post."""
        self.player = player
        self.clock = clock
        self._report = report
        self._post = post
        self._binding_support = BindingSupport()
        self._open_calls: set[ClientCall] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._reported_misses = self._reported_allowed = self._reported_masked = 0
        """Number of misses, allowed misses and masked matches of the player that have been
        reported."""
        self.passthrough: Passthrough | None = None
        """Where calls without an answer are forwarded to, if anywhere."""

    def begin_call(self, request: PlayerRequest) -> ClientCall | Miss | ReplayError:
        """Begin a call of a client. Returns a ReplayError if the recorded call cannot be
        represented on the client's binding."""
        found = self.player.begin_call(request, self.clock())
        self.report_misses(request.binding)
        if isinstance(found, Miss):
            return found
        reason = self._binding_support.unservable_reason(found.call, request.binding)
        if reason:
            return self._refuse_unserved(found, reason)
        client_call = ClientCall(self, found)
        self._open_calls.add(client_call)
        self.wake_all()
        return client_call

    def wake_all(self) -> None:
        """Wake all open calls after a change that they may wait for: streams of one task share a
        timeline, as do webhooks."""
        for each in self._open_calls:
            each.wake_event.set()
        self._post_due()

    def _refuse_unserved(self, playback: CallPlayback, reason: str) -> ReplayError:
        """Give up a playback that cannot be sent on the client's binding."""
        playback.on_client_gone()
        request, call = playback.request, playback.call
        self._report(UnservedCall(call.place, request.operation, request.binding, reason))
        return ReplayError(
            "UNSUPPORTED_OPERATION",
            f"replay: {call.place} is not served on {request.binding}: {reason}",
        )

    def report_failure(self, operation: str, binding: Binding, wrong: Exception) -> None:
        """Report a call that failed with an unexpected exception."""
        self.report_refusal(operation, binding, f"{type(wrong).__name__}: {wrong}")

    def report_refusal(self, what: str, binding: Binding, reason: str) -> None:
        """Report a request that is not a call, so that no recorded call was searched for."""
        self._report(UnservedCall("?", what, binding, reason))

    def on_call_over(self, client_call: ClientCall) -> None:
        """Report a call that is over."""
        if client_call in self._open_calls:
            self._open_calls.discard(client_call)
            self._report(client_call.make_report())
            self.wake_all()

    def report_misses(self, binding: Binding) -> None:
        """Report the misses and masked matches since the last call; the latest one is on this
        binding."""
        misses, allowed, masked = (
            self.player.misses[self._reported_misses :],
            self.player.allowed_misses[self._reported_allowed :],
            self.player.masked_matches[self._reported_masked :],
        )
        self._reported_masked += len(masked)
        self._reported_misses += len(misses)
        self._reported_allowed += len(allowed)
        for miss in misses:
            self._report(MissedCall(miss, binding))
        for miss in allowed:
            self._report(AllowedCall(miss, binding))
        for match in masked:
            self._report(MaskedCall(match, binding))

    def close(self) -> None:
        """Stop posting webhooks."""
        if self._timer is not None:
            self._timer.cancel()

    def _post_due(self) -> None:
        """Post the webhooks that are due, and schedule the next ones."""
        self.close()
        now = self.clock()
        for send in self.player.take_pushes(now):
            self._post(send)
        wake = self.player.wake_time
        if wake is not None:
            seconds = max((wake - now) / 1e9, _MIN_WAIT_SECONDS)
            self._timer = asyncio.get_running_loop().call_later(seconds, self._post_due)


class ClientCall:
    """One call as it is played to one client."""

    def __init__(self, replay: ReplayPlayer, playback: CallPlayback) -> None:
        self.playback = playback
        self.wake_event = asyncio.Event()
        """Set when the player should be queried again."""
        self._replay = replay
        self._sent_count = 0
        self._outcome = ""

    async def iter_sends(self) -> AsyncGenerator[PlayerSend, None]:
        """Yield everything to send, each when it is due, until the call ends."""
        playback, replay = self.playback, self._replay
        try:
            while True:
                self.wake_event.clear()
                found = playback.take_due(replay.clock())
                replay.report_misses(playback.request.binding)
                if found:
                    replay.wake_all()
                for send in found:
                    if (
                        send.what is LineKind.COMMENT
                        and playback.request.binding not in _EVENT_STREAMS
                    ):
                        continue
                    if send.what in (LineKind.MESSAGE, LineKind.ERROR):
                        self._sent_count += 1
                    if send.what is LineKind.ERROR or (
                        send.what is LineKind.END and send.status > 0
                    ):
                        self._outcome = "error"
                    elif send.what in (LineKind.RESET, LineKind.CUT):
                        self._outcome = "cut"
                    elif send.what is LineKind.MISS:
                        self._outcome = "miss"
                    yield send
                    if send.is_final:
                        return
                if playback.is_over:
                    return
                if not found:
                    await self._wait_until(playback.wake_time)
        finally:
            if not playback.is_over:
                self._outcome = self._outcome or "client gone"
                playback.on_client_gone()
            replay.on_call_over(self)

    def on_client_message(self, value: Any) -> None:
        """Handle one more message of the client."""
        self.playback.on_client_message(value, self._replay.clock())
        self._wake_others()

    def on_half_close(self) -> None:
        """Handle the client's half-close."""
        self.playback.on_half_close(self._replay.clock())
        self._wake_others()

    def mark_answered(self) -> None:
        """Note that the client has its whole answer; a recorded end after it adds nothing."""
        self._outcome = self._outcome or "ok"

    def to_live_value(self, value: Any) -> Any:
        """Return a recorded value with live identifiers."""
        return self._replay.player.to_live_value(value)

    def make_report(self) -> PlayedCall:
        """Return the report of the call."""
        playback = self.playback
        return PlayedCall(
            place=playback.call.place,
            operation=playback.call.operation,
            binding=playback.request.binding,
            dialect=playback.request.dialect,
            sent=self._sent_count,
            duration=self._replay.clock() - playback.began,
            outcome=self._outcome or "ok",
        )

    def _wake_others(self) -> None:
        self._replay.report_misses(self.playback.request.binding)
        self._replay.wake_all()

    async def _wait_until(self, wake: int | None) -> None:
        """Wait until `wake`, or until something has happened."""
        if wake is None:
            await self.wake_event.wait()
            return
        seconds = max((wake - self._replay.clock()) / 1e9, _MIN_WAIT_SECONDS)
        try:
            async with asyncio.timeout(seconds):
                await self.wake_event.wait()
        except TimeoutError:
            return
