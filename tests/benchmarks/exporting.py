"""What a live export takes from the relay, and what becomes of the spans where the backend is in trouble.

For each mood of a backend three proxies stand beside each other for the whole of it: one that exports by gRPC, one by
HTTP, one that does not export. One steady load, calls at a fixed rate on one connection, goes to one of them at a time,
in slices of some seconds: each slice of an exporting proxy lies between two of the one that does not, and what is told
is the p50 of the former by the mean of those of the latter. A machine whose speed drifts over minutes moves all three
alike, and an even drift cancels.

An export follows late, and tries again whether calls come or not: work of its own would fall into the slices that it
is compared with, and be hidden. So an export, and with it all that it does, is stopped (SIGSTOP) outside the slices of
its own proxy, and has to do all its work in them. Its clock runs on: what was to be tried again meanwhile is tried
when it goes on, so that its slices hold rather more of that than life would. How much processor time it used within
its slices and outside is told. The beginning of each slice is not counted.

The mood lasts, without a break, as long as the slices do. Then the backend is well, the load goes on for a while, and
the export, running freely, comes to the end of what waits.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from pathlib import Path

import load
import msgspec
from standing import Standing

RATE = 300
"""Calls a second."""
NONE = "no export"
MOODS = ("fine", "down", "slow", "refusing", "errors")
PROTOCOLS = ("grpc", "http/protobuf")
SLICE = 2.5
"""Seconds of each slice. All are as long: each has as much left to do of the one before."""
UNCOUNTED = 0.5
"""Seconds at the beginning of each."""
_CYCLE = len(PROTOCOLS) * 2 * SLICE
_BACK = SLICE
"""Seconds of load when the backend is well again."""
_WARM = 1.0
"""Seconds of load before the first slice."""
_PATIENCE = 60.0
"""Seconds that the recorders and the exports have to catch up."""


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """How one exporting proxy went in one mood."""

    mood: str
    protocol: str
    p50: list[float]
    """Of each slice, us."""
    p99: list[float]
    without: list[float]
    """For each slice the mean p50 of those before and after it, of the proxy that does not export, us."""
    back: float
    """The p50 when the backend was well again, us."""
    calls: int
    behind: int
    """Bytes that the recorder was behind at most, of looks after each slice."""
    left: int
    """The same when the load had ended."""
    within: float = 0.0
    """Processors in use by the export during its slices."""
    outside: float = 0.0
    """The same between them."""
    mib: float = 0.0
    """Most memory that the export took."""
    caught_up: float = 0.0
    """Seconds of its own time from the return of the backend until it had all that it was to get."""
    sent: int = 0
    given_up: int = 0
    unsent: int = 0
    """These three as the proxy's last line says."""
    stored: int = 0
    """Spans that the backend has acknowledged."""
    distinct: int = 0
    """Those of them that differ."""

    @property
    def exports(self) -> bool:
        """It is none that is compared with its like, to see what the method makes of no difference."""
        return self.mood != NONE

    @property
    def ratios(self) -> list[float]:
        """By how much calls took longer, slice by slice."""
        return [one / other for one, other in zip(self.p50, self.without, strict=True)]

    @property
    def whole(self) -> bool:
        """Each call is accounted for once: stored, given up and counted, or told as not sent."""
        once = self.stored == self.distinct == self.sent
        return once and self.sent + self.given_up + self.unsent == self.calls


def turns(folder: Path, origin: int, seconds: float) -> list[Turn]:
    """All moods, each for so many seconds on end; and the method itself, with three proxies that do not export."""
    return [turn for mood in (NONE, *MOODS) for turn in _turns(folder, origin, seconds, mood)]


def _turns(folder: Path, origin: int, seconds: float, mood: str) -> list[Turn]:
    """One mood, a turn for each protocol, from the start of the proxies to their end."""
    with tempfile.TemporaryDirectory(dir=folder) as place, contextlib.ExitStack() as stack:
        some = [
            _Exporting(Standing(Path(place) / str(number), origin, stack, mood, protocol if mood != NONE else ""))
            for number, protocol in enumerate(PROTOCOLS, 1)
        ]
        other = Standing(Path(place) / "0", origin, stack)
        for standing in (other, *(each.standing for each in some)):
            standing.caller.steady(RATE, _WARM)
            standing.follows()
            standing.rest()
            standing.usage()
        before = _p50(other, SLICE)
        for _ in range(max(round(seconds / _CYCLE), 1)):
            for each in some:
                each.slice()
                after = _p50(other, SLICE)
                each.without.append((before + after) / 2)
                before = after
        for each in some:
            each.bring_back()
        _catch_up(some)
        return [each.turn(mood, protocol) for each, protocol in zip(some, PROTOCOLS, strict=True)]


class _Exporting:
    """A proxy that exports, and its slices."""

    def __init__(self, standing: Standing) -> None:
        self.standing = standing
        self.without: list[float] = []
        self._slices: list[list[float]] = []
        self._within = self._outside = self._back = 0.0
        self.caught_up = 0.0
        """Seconds of work after `bring_back`."""

    def slice(self) -> None:
        """One."""
        self._outside += self.standing.usage()
        self.standing.go_on()
        self._slices.append(_counted(self.standing, SLICE))
        self.standing.rest()
        self._within += self.standing.usage()
        self.standing.look()

    def bring_back(self) -> None:
        """The backend is well, and the load goes on."""
        self._outside += self.standing.usage()
        self.standing.bring_back()
        self.standing.go_on()
        self._back = _p50(self.standing, _BACK)
        self.standing.rest()

    def turn(self, mood: str, protocol: str) -> Turn:
        """What came out; the export has caught up."""
        standing = self.standing
        left, mib = standing.bytes_behind(), standing.mib()
        (sent, given_up, unsent), (stored, distinct) = standing.end()
        return Turn(
            mood=mood,
            protocol=protocol,
            p50=[load.percentiles(each)[0] for each in self._slices],
            p99=[load.percentiles(each)[1] for each in self._slices],
            without=self.without,
            back=self._back,
            calls=standing.caller.calls,
            behind=standing.behind,
            left=left,
            within=self._within / (len(self._slices) * SLICE),
            outside=self._outside / (len(self._slices) * (_CYCLE - SLICE)),
            mib=mib,
            caught_up=_BACK + self.caught_up,
            sent=sent,
            given_up=given_up,
            unsent=unsent,
            stored=stored,
            distinct=distinct,
        )


def _catch_up(some: list[_Exporting]) -> None:
    """Let the recorders and the exports come to the end, but not for ever."""
    began = time.monotonic()
    for each in some:
        each.standing.go_on()
    left = some
    while left and (took := time.monotonic() - began) < _PATIENCE:
        for each in left:
            each.caught_up = took
        left = [each for each in left if not each.standing.caught_up()]
        time.sleep(0.1)


def _counted(standing: Standing, seconds: float) -> list[float]:
    """Round trips of a slice, us, sorted."""
    standing.caller.steady(RATE, UNCOUNTED)
    return sorted(standing.caller.steady(RATE, seconds - UNCOUNTED))


def _p50(standing: Standing, seconds: float) -> float:
    return load.percentiles(_counted(standing, seconds))[0]
