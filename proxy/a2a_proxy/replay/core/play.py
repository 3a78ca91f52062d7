"""One call as it is played: what the agent said in the recording, as it goes out now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from a2a_proxy.replay.core.asked import Asked, Send
from a2a_proxy.replay.core.script import Call, Line, Side

if TYPE_CHECKING:
    from a2a_proxy.replay.core.player import Player


class Play:
    """A recorded call that answers a call of now. Times in ns, of the clock that `Player.begin` was told."""

    def __init__(self, player: Player, call: Call, asked: Asked, at: int) -> None:
        self.call = call
        self.asked = asked
        self.began = at
        self._player = player
        self._rest = [line for line in call.lines if line.side is Side.AGENT]
        self._last = at
        self.over = False
        """Nothing more is sent, and nothing heard is of interest."""
        self.cancelled = False
        """The client broke it off."""

    @property
    def wake(self) -> int | None:
        """When `due` may have something, ns; None: when the client or another call has done something, or never."""
        return None if self.over or not self._rest else self._last

    def due(self, at: int) -> list[Send]:
        """What is to be sent now, in order. What is given is taken as sent."""
        sends: list[Send] = []
        while self._rest and not self.over:
            line = self._rest.pop(0)
            sends.append(self._send(line))
            self._last = at
            self.over = line.over
        return sends

    def heard(self, value: Any, at: int) -> None:
        """The client said one more thing on this call, in canonical form."""

    def client_ended(self, at: int) -> None:
        """The client half-closed: it will say no more, and listens."""

    def client_gone(self) -> None:
        """The client broke the call off, or is not there any more."""
        if not self.over:
            self.over = self.cancelled = True

    def _send(self, line: Line) -> Send:
        value = self._player.outgoing(line.value)
        return Send(what=line.what, value=value, line=line, status=line.status, trailers=line.trailers)
