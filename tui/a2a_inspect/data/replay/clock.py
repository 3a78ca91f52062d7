"""The clock of a replay. Pure: the real time is an argument, in ns of any monotonic clock."""

from __future__ import annotations

from datetime import datetime

import msgspec
from msgspec.structs import replace

from a2a_proxy.present import text
from a2a_proxy.recording.query.kinds import InvalidValue, parse_time

SPEEDS = (0.1, 0.25, 0.5, 1, 2, 5, 10, 50, 100, 1000)


class ReplayClock(msgspec.Struct, frozen=True):
    """Position of a replay."""

    first: int
    """Start of the replayed span, ns since the epoch."""
    last: int
    """End of the replayed span, ns since the epoch."""
    at: int
    """Position when paused; while playing, the position at the real time `since`."""
    since: int = 0
    speed: float = 1
    playing: bool = False

    def compute_position(self, now: int) -> int:
        """Return the position, ns since the epoch."""
        if not self.playing:
            return self.at
        return min(self.at + int((now - self.since) * self.speed), self.last)

    def is_at_end(self, now: int) -> bool:
        """Return whether the replay has reached the end."""
        return self.compute_position(now) >= self.last

    def toggle_playing(self, now: int) -> ReplayClock:
        """Pause if playing, play if paused; at the end start again."""
        at = self.first if not self.playing and self.is_at_end(now) else self.compute_position(now)
        return replace(self, at=at, since=now, playing=not self.playing)

    def jump_to(self, at: int) -> ReplayClock:
        """Pause at another position."""
        return replace(self, at=max(self.first, min(at, self.last)), playing=False)

    def change_speed(self, by: int, now: int) -> ReplayClock:
        """Change the speed by one step up (`by` 1) or down (-1)."""
        place = max(0, min(SPEEDS.index(self.speed) + by, len(SPEEDS) - 1))
        return replace(self, at=self.compute_position(now), since=now, speed=SPEEDS[place])

    def stop_at_end(self, now: int) -> ReplayClock:
        """Pause if the replay has reached the end."""
        return self.jump_to(self.last) if self.playing and self.is_at_end(now) else self


def parse_replay_time(text: str, clock: ReplayClock) -> int:
    """Parse a typed position: `12:30:05` on the day of the recording, `+5s` from its beginning,
    `50%`, or a date.

    Raises:
        Wrong: the text has no such form.
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
    """Return `▶ 20:28:13.090  +0.014 of 2.9 s  1x  ███░░░  frame 2 of 34`, with a bar in the
    remaining width."""
    at = clock.compute_position(now)
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
    filled = (at - clock.first) * room // length
    return f"{left}  [{'=' * filled}{'-' * (room - filled)}]  {right}"


__all__ = ["SPEEDS", "InvalidValue", "ReplayClock", "clock_line", "parse_replay_time"]
