"""The clock of a replay. Pure: the time of the world is an argument, in ns of any clock that only goes forward."""

from __future__ import annotations

from datetime import datetime

import msgspec
from msgspec.structs import replace

from a2a_proxy.present import text
from a2a_proxy.recording.query.kinds import InvalidValue, parse_time

SPEEDS = (0.1, 0.25, 0.5, 1, 2, 5, 10, 50, 100, 1000)


class ReplayClock(msgspec.Struct, frozen=True):
    """Where a replay is."""

    first: int
    """ns since the epoch, when what is replayed began."""
    last: int
    """When it was over."""
    at: int
    """Where it stands; while it plays: stood when the world's time was `since`."""
    since: int = 0
    speed: float = 1
    playing: bool = False

    def position(self, now: int) -> int:
        """Where it stands, ns since the epoch."""
        if not self.playing:
            return self.at
        return min(self.at + int((now - self.since) * self.speed), self.last)

    def is_at_end(self, now: int) -> bool:
        """It has come to the end."""
        return self.position(now) >= self.last

    def toggle(self, now: int) -> ReplayClock:
        """Playing where it was paused, paused where it played; at the end it begins anew."""
        at = self.first if not self.playing and self.is_at_end(now) else self.position(now)
        return replace(self, at=at, since=now, playing=not self.playing)

    def jump_to(self, at: int) -> ReplayClock:
        """Paused at another time."""
        return replace(self, at=max(self.first, min(at, self.last)), playing=False)

    def change_speed(self, by: int, now: int) -> ReplayClock:
        """One step up (`by` 1) or down (-1) on the scale of speeds."""
        place = max(0, min(SPEEDS.index(self.speed) + by, len(SPEEDS) - 1))
        return replace(self, at=self.position(now), since=now, speed=SPEEDS[place])

    def stop_at_end(self, now: int) -> ReplayClock:
        """Paused where it has come to the end."""
        return self.jump_to(self.last) if self.playing and self.is_at_end(now) else self


def parse_replay_time(text: str, clock: ReplayClock) -> int:
    """The time that somebody types: `12:30:05` on the day of the recording, `+5s` from its beginning, `50%`, a date.

    Raises:
        Wrong: it is none of that.
    """
    text = text.strip()
    if text.endswith("%") and text[:-1].strip().isdecimal():
        return clock.first + (clock.last - clock.first) * int(text[:-1]) // 100
    found = parse_time(text)
    if found.base == "epoch":
        return found.ns
    if found.base == "session":
        return clock.first + found.ns
    day = datetime.fromtimestamp(clock.first // 1_000_000_000).replace(hour=0, minute=0, second=0)
    return int(day.timestamp()) * 1_000_000_000 + found.ns


def clock_line(clock: ReplayClock, now: int, frames: tuple[int, int], width: int) -> str:
    """`▶ 20:28:13.090  +0.014 of 2.9 s  1x  ███░░░  frame 2 of 34`; a bar of what is left of the width."""
    at = clock.position(now)
    length = max(clock.last - clock.first, 1)
    state = "playing" if clock.playing else "at the end" if clock.is_at_end(now) else "paused"
    left = (
        f"{state}  {text.format_time(at)}  {text.format_duration(at - clock.first)} of "
        f"{text.format_duration(length)}  {clock.speed:g}x"
    )
    right = f"frame {frames[0]} of {frames[1]}"
    room = width - len(left) - len(right) - 6
    if room < 5:
        return f"{left}  {right}"
    done = (at - clock.first) * room // length
    return f"{left}  [{'=' * done}{'-' * (room - done)}]  {right}"


__all__ = ["SPEEDS", "InvalidValue", "ReplayClock", "clock_line", "parse_replay_time"]
