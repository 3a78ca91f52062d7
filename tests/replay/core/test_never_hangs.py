"""Whatever clients do, in whatever order: each call ends in bounded time, and nothing is raised."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_proxy.replay.core.call_playback import CallPlayback
from a2a_proxy.replay.core.options import MatchPreset, ReplayOptions
from a2a_proxy.replay.core.player import Player
from a2a_proxy.replay.core.script import ScriptSide
from support_replay import MS, Stage, again, message, sample

_NAMES = ("live-bidi", "generations", "sdk-1.x-jsonrpc")
_PRESETS = st.sampled_from(list(MatchPreset))
_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["begin", "begin other", "say", "say other", "end", "leave", "wait"]),
        st.integers(0, 40),
        st.integers(0, 3000),
    ),
    max_size=25,
)


class _Clients:
    """Some calls at once, and a clock."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._plays: list[CallPlayback] = []
        self._calls = stage.player.script.calls

    def step(self, what: str, number: int, ms: int) -> None:
        stage, now = self._stage, self._stage.now
        if what.startswith("begin"):
            call = self._calls[number % len(self._calls)]
            asked = (
                again(call)
                if what == "begin"
                else again(call, value=message("something else", taskId="x"))
            )
            found = stage.player.begin_call(asked, now)
            self._plays += [found] if isinstance(found, CallPlayback) else []
        elif what == "wait":
            self.wait(ms)
        elif self._plays:
            self._act(self._plays[number % len(self._plays)], what)

    def _act(self, play: CallPlayback, what: str) -> None:
        if what == "end":
            play.on_half_close(self._stage.now)
        elif what == "leave":
            play.on_client_gone()
        else:
            play.on_client_message(
                self._words(play) if what == "say" else message("no"), self._stage.now
            )

    def _words(self, play: CallPlayback) -> Any:
        events = [
            line.value for line in play.call.lines if line.side is ScriptSide.CLIENT and line.value
        ]
        return events[0] if events else message("hm")

    def wait(self, ms: int) -> None:
        """Each call is asked when it wakes, as servers do; a time that does not move on is a server
        that spins."""
        until, asked = self._stage.now + ms * MS, 0
        while True:
            awake = [
                (play.wake_time, number)
                for number, play in enumerate(self._plays)
                if play.wake_time is not None
            ]
            soon, number = min(awake, default=(until + 1, 0))
            if soon > until:
                break
            before, self._stage.now = self._stage.now, max(self._stage.now, soon)
            got = self._plays[number].take_due(self._stage.now)
            asked = 0 if got or self._stage.now > before else asked + 1
            assert asked <= len(self._plays), self._plays[number].wait_reason
        self._stage.now = until

    def left(self) -> list[str]:
        return [play.call.place for play in self._plays if not play.is_over]


@settings(max_examples=25)
@given(st.sampled_from(_NAMES), _PRESETS, st.sampled_from([0.0, 1.0]), st.booleans(), _STEPS)
def test_every_call_ends(
    name: str, preset: MatchPreset, speed: float, lenient: bool, steps: list[tuple[str, int, int]]
) -> None:
    options = ReplayOptions(match=preset, speed=speed, lenient=lenient, max_gap=2000 * MS)
    stage = Stage(sample(name))
    stage.player = Player(sample(name), options)
    clients = _Clients(stage)
    for step in steps:
        clients.step(*step)
    clients.wait(600_000)
    assert clients.left() == []
    assert stage.player.playbacks == []
