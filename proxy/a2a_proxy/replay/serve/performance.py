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
from a2a_proxy.replay.core.player_io import PlayerRequest, Send
from a2a_proxy.replay.core.script import LineKind
from a2a_proxy.replay.serve.passthrough import Passthrough
from a2a_proxy.replay.serve.servable import BindingSupport

_EVENT_STREAMS = (Binding.JSONRPC, Binding.REST)
_LEAST_WAIT = 0.001
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
    took: int
    """Ns."""
    how: str
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
    why: str = ""


Told = PlayedCall | MissedCall | AllowedCall | UnservedCall | WebhookPosted
Tell = Callable[[Told], None]


Post = Callable[[Send], None]
"""Takes what goes to a webhook."""


def _nowhere(_send: Send) -> None:
    """For a mock that posts nothing."""


class ReplayPlayer:
    """Where calls are played. One per mock; all its calls share one player."""

    def __init__(self, player: Player, clock: Callable[[], int], tell: Tell, post: Post = _nowhere) -> None:
        """`clock` gives ns since the Unix epoch and never goes back; `post` takes what goes to webhooks."""
        self.player = player
        self.clock = clock
        self._tell = tell
        self._post = post
        self._ways = BindingSupport()
        self._waiting: set[ClientCall] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._missed = self._allowed = 0
        """How many of the player's misses, and of what it answered all the same, have been told."""
        self.behind: Passthrough | None = None
        """Who answers what the recording does not; None: nobody."""

    def begin(self, asked: PlayerRequest) -> ClientCall | Miss | ReplayError:
        """A client calls. A refusal where the recorded call has no form on the client's binding."""
        found = self.player.begin(asked, self.clock())
        self.report(asked.binding)
        if isinstance(found, Miss):
            return found
        reason = self._ways.why_not(found.call, asked.binding)
        if reason:
            return self._unserved(found, reason)
        performance = ClientCall(self, found)
        self._waiting.add(performance)
        self.moved()
        return performance

    def moved(self) -> None:
        """Something happened that others may wait for: streams of one task share a timeline, webhooks follow it."""
        for each in self._waiting:
            each.stirred.set()
        self._push()

    def _unserved(self, play: CallPlayback, reason: str) -> ReplayError:
        """Give a play up that cannot go out as its client asks."""
        play.client_gone()
        asked, call = play.asked, play.call
        self._tell(UnservedCall(call.place, asked.operation, asked.binding, reason))
        return ReplayError("UNSUPPORTED_OPERATION", f"replay: {call.place} is not served on {asked.binding}: {reason}")

    def failed(self, operation: str, binding: Binding, wrong: Exception) -> None:
        """A call could not be answered for a reason that nobody has thought of."""
        self.refused(operation, binding, f"{type(wrong).__name__}: {wrong}")

    def refused(self, what: str, binding: Binding, reason: str) -> None:
        """What has come is no call that anybody could look for."""
        self._tell(UnservedCall("?", what, binding, reason))

    def over(self, performance: ClientCall) -> None:
        """A call is at its end."""
        if performance in self._waiting:
            self._waiting.discard(performance)
            self._tell(performance.account())
            self.moved()

    def report(self, binding: Binding) -> None:
        """Tell where clients have left the recording since the last time; the last one did it on this binding."""
        misses, allowed = self.player.misses[self._missed :], self.player.loose[self._allowed :]
        self._missed += len(misses)
        self._allowed += len(allowed)
        for miss in misses:
            self._tell(MissedCall(miss, binding))
        for miss in allowed:
            self._tell(AllowedCall(miss, binding))

    def close(self) -> None:
        """Post no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _push(self) -> None:
        """Post what is due for webhooks, and look again when more is."""
        self.close()
        now = self.clock()
        for send in self.player.pushes(now):
            self._post(send)
        wake = self.player.wake
        if wake is not None:
            seconds = max((wake - now) / 1e9, _LEAST_WAIT)
            self._timer = asyncio.get_running_loop().call_later(seconds, self._push)


class ClientCall:
    """One call as it is played to one client."""

    def __init__(self, stage: ReplayPlayer, play: CallPlayback) -> None:
        self.play = play
        self.stirred = asyncio.Event()
        """Ask the player again."""
        self._stage = stage
        self._sent = 0
        self._how = ""

    async def sends(self) -> AsyncGenerator[Send, None]:
        """What is to be sent, each when it is due; ends with what ends the call."""
        play, stage = self.play, self._stage
        try:
            while True:
                self.stirred.clear()
                found = play.due(stage.clock())
                stage.report(play.asked.binding)
                if found:
                    stage.moved()
                for send in found:
                    if send.what is LineKind.COMMENT and play.asked.binding not in _EVENT_STREAMS:
                        continue
                    self._count(send)
                    yield send
                    if send.over:
                        return
                if play.over:
                    return
                if not found:
                    await self._until(play.wake)
        finally:
            if not play.over:
                self._how = self._how or "client gone"
                play.client_gone()
            stage.over(self)

    def heard(self, value: Any) -> None:
        """The client said one more thing."""
        self.play.heard(value, self._stage.clock())
        self._moved()

    def client_ended(self) -> None:
        """The client half-closed."""
        self.play.client_ended(self._stage.clock())
        self._moved()

    def answered(self) -> None:
        """All is said that this client can hear; an end that the recording has after it says nothing more."""
        self._how = self._how or "ok"

    def mapped(self, value: Any) -> Any:
        """A recorded value with the identifiers of now."""
        return self._stage.player.outgoing(value)

    def account(self) -> PlayedCall:
        """What became of it."""
        play = self.play
        return PlayedCall(
            place=play.call.place,
            operation=play.call.operation,
            binding=play.asked.binding,
            dialect=play.asked.dialect,
            sent=self._sent,
            took=self._stage.clock() - play.began,
            how=self._how or "ok",
        )

    def _moved(self) -> None:
        self._stage.report(self.play.asked.binding)
        self._stage.moved()

    def _count(self, send: Send) -> None:
        if send.what in (LineKind.MESSAGE, LineKind.ERROR):
            self._sent += 1
        if send.what is LineKind.ERROR or (send.what is LineKind.END and send.status > 0):
            self._how = "error"
        elif send.what in (LineKind.RESET, LineKind.CUT):
            self._how = "cut"
        elif send.what is LineKind.MISS:
            self._how = "miss"

    async def _until(self, wake: int | None) -> None:
        """Until `wake`, or until something has happened."""
        if wake is None:
            await self.stirred.wait()
            return
        seconds = max((wake - self._stage.clock()) / 1e9, _LEAST_WAIT)
        try:
            async with asyncio.timeout(seconds):
                await self.stirred.wait()
        except TimeoutError:
            return
