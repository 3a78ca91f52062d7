"""One player with a clock: what goes out when, and who is told of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any

import msgspec

from a2a_proxy.model.exchange import Binding, Dialect
from a2a_proxy.replay.convert.errors import ReplayError
from a2a_proxy.replay.core.call_playback import CallPlayback
from a2a_proxy.replay.core.miss import Miss
from a2a_proxy.replay.core.player import Player
from a2a_proxy.replay.core.player_io import PlayerRequest, PlayerSend
from a2a_proxy.replay.core.script import LineKind
from a2a_proxy.replay.serve.passthrough import Passthrough
from a2a_proxy.replay.serve.servable import BindingSupport

_EVENT_STREAMS = (Binding.JSONRPC, Binding.REST)
_MIN_WAIT_SECONDS = 0.001
"""Seconds; a clock that is asked again sooner would only spin."""


class PlayedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that is over."""

    place: str
    """Of the recorded call."""
    operation: str
    binding: Binding
    """That of now."""
    dialect: Dialect
    sent: int
    """Messages, errors included."""
    duration: int
    """Ns."""
    outcome: str
    """`ok`, `error`, `cut`, `miss`, `client gone`."""


class MissedCall(msgspec.Struct, frozen=True):
    """A call, or a message within one, for which there is no answer."""

    miss: Miss
    binding: Binding


class AllowedCall(msgspec.Struct, frozen=True):
    """The same, where the user has allowed it to be answered."""

    miss: Miss
    binding: Binding


class UnservedCall(msgspec.Struct, frozen=True):
    """A call that has no form on the client's binding; the banner has said so."""

    place: str
    operation: str
    binding: Binding
    reason: str


class WebhookPosted(msgspec.Struct, frozen=True, kw_only=True):
    """A webhook's POST."""

    url: str
    status: int
    """0: it did not arrive."""
    tries: int
    reason: str = ""


ReplayReport = PlayedCall | MissedCall | AllowedCall | UnservedCall | WebhookPosted
ReportCallback = Callable[[ReplayReport], None]


PostWebhook = Callable[[PlayerSend], None]
"""Takes what goes to a webhook."""


def _discard_webhook(_send: PlayerSend) -> None:
    """For a mock that posts nothing."""


class ReplayPlayer:
    """Where calls are played. One per mock; all its calls share one player."""

    def __init__(
        self, player: Player, clock: Callable[[], int], report: ReportCallback, post: PostWebhook = _discard_webhook
    ) -> None:
        """`clock` gives ns since the Unix epoch and never goes back; `post` takes what goes to webhooks."""
        self.player = player
        self.clock = clock
        self._report = report
        self._post = post
        self._binding_support = BindingSupport()
        self._open_calls: set[ClientCall] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._reported_misses = self._reported_allowed = 0
        """How many of the player's misses, and of what it answered all the same, have been told."""
        self.passthrough: Passthrough | None = None
        """Who answers what the recording does not; None: nobody."""

    def begin_call(self, request: PlayerRequest) -> ClientCall | Miss | ReplayError:
        """A client calls. A refusal where the recorded call has no form on the client's binding."""
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
        """Something happened that others may wait for: streams of one task share a timeline, webhooks follow it."""
        for each in self._open_calls:
            each.wake_event.set()
        self._post_due()

    def _refuse_unserved(self, playback: CallPlayback, reason: str) -> ReplayError:
        """Give a play up that cannot go out as its client asks."""
        playback.on_client_gone()
        request, call = playback.request, playback.call
        self._report(UnservedCall(call.place, request.operation, request.binding, reason))
        return ReplayError(
            "UNSUPPORTED_OPERATION", f"replay: {call.place} is not served on {request.binding}: {reason}"
        )

    def report_failure(self, operation: str, binding: Binding, wrong: Exception) -> None:
        """A call could not be answered for a reason that nobody has thought of."""
        self.report_refusal(operation, binding, f"{type(wrong).__name__}: {wrong}")

    def report_refusal(self, what: str, binding: Binding, reason: str) -> None:
        """What has come is no call that anybody could look for."""
        self._report(UnservedCall("?", what, binding, reason))

    def on_call_over(self, client_call: ClientCall) -> None:
        """A call is at its end."""
        if client_call in self._open_calls:
            self._open_calls.discard(client_call)
            self._report(client_call.make_report())
            self.wake_all()

    def report_misses(self, binding: Binding) -> None:
        """Tell where clients have left the recording since the last time; the last one did it on this binding."""
        misses, allowed = (
            self.player.misses[self._reported_misses :],
            self.player.allowed_misses[self._reported_allowed :],
        )
        self._reported_misses += len(misses)
        self._reported_allowed += len(allowed)
        for miss in misses:
            self._report(MissedCall(miss, binding))
        for miss in allowed:
            self._report(AllowedCall(miss, binding))

    def close(self) -> None:
        """Post no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _post_due(self) -> None:
        """Post what is due for webhooks, and look again when more is."""
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
        """Ask the player again."""
        self._replay = replay
        self._sent_count = 0
        self._outcome = ""

    async def iter_sends(self) -> AsyncGenerator[PlayerSend, None]:
        """What is to be sent, each when it is due; ends with what ends the call."""
        playback, replay = self.playback, self._replay
        try:
            while True:
                self.wake_event.clear()
                found = playback.take_due(replay.clock())
                replay.report_misses(playback.request.binding)
                if found:
                    replay.wake_all()
                for send in found:
                    if send.what is LineKind.COMMENT and playback.request.binding not in _EVENT_STREAMS:
                        continue
                    self._count_send(send)
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
        """The client said one more thing."""
        self.playback.on_client_message(value, self._replay.clock())
        self._wake_others()

    def on_half_close(self) -> None:
        """The client half-closed."""
        self.playback.on_half_close(self._replay.clock())
        self._wake_others()

    def mark_answered(self) -> None:
        """All is said that this client can hear; an end that the recording has after it says nothing more."""
        self._outcome = self._outcome or "ok"

    def to_live_value(self, value: Any) -> Any:
        """A recorded value with the identifiers of now."""
        return self._replay.player.to_live_value(value)

    def make_report(self) -> PlayedCall:
        """What became of it."""
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

    def _count_send(self, send: PlayerSend) -> None:
        if send.what in (LineKind.MESSAGE, LineKind.ERROR):
            self._sent_count += 1
        if send.what is LineKind.ERROR or (send.what is LineKind.END and send.status > 0):
            self._outcome = "error"
        elif send.what in (LineKind.RESET, LineKind.CUT):
            self._outcome = "cut"
        elif send.what is LineKind.MISS:
            self._outcome = "miss"

    async def _wait_until(self, wake: int | None) -> None:
        """Until `wake`, or until something has happened."""
        if wake is None:
            await self.wake_event.wait()
            return
        seconds = max((wake - self._replay.clock()) / 1e9, _MIN_WAIT_SECONDS)
        try:
            async with asyncio.timeout(seconds):
                await self.wake_event.wait()
        except TimeoutError:
            return
