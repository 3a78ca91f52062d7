"""The cost of a live export for the relay, and the fate of the spans if the backend fails.

For each mood of a backend three proxies run all the time: one exports by gRPC, one by HTTP, one
does not export. One steady load, calls at a fixed rate on one connection, is sent to one of them at
a time, in slices of some seconds: each slice of an exporting proxy lies between two slices of the
proxy without an export. The result is the p50 of the former divided by the mean of the latter. A
machine whose speed drifts over minutes affects all three alike, and an even drift cancels.

An export works with a delay, and retries whether calls arrive or not: its work would fall into the
slices with which it is compared, and would not be measured. So each export is stopped (SIGSTOP)
outside the slices of its own proxy, and must do all its work in them. Its clock continues: a retry
that became due meanwhile is made when it continues, so that its slices contain more retries than in
practice. The processor time within its slices and outside is reported. The beginning of each slice
is not counted.

The mood lasts without a break as long as the slices. Then the backend recovers, the load continues
for a while, and the export, which is no longer stopped, sends the remaining spans.
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
"""Calls per second."""
NONE = "no export"
MOODS = ("fine", "down", "slow", "refusing", "errors")
PROTOCOLS = ("grpc", "http/protobuf")
SLICE = 2.5
"""Seconds of each slice. All have the same length, so that each inherits as much unfinished
work."""
UNCOUNTED = 0.5
"""Seconds at the beginning of each slice that are not counted."""
_CYCLE = len(PROTOCOLS) * 2 * SLICE
_BACK = SLICE
"""Seconds of load after the backend has recovered."""
_WARM = 1.0
"""Seconds of load before the first slice."""
_PATIENCE = 60.0
"""Seconds for the recorders and the exports to catch up."""


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one exporting proxy in one mood."""

    mood: str
    protocol: str
    p50: list[float]
    """p50 of each slice, us."""
    p99: list[float]
    without: list[float]
    """For each slice the mean p50 of the previous and the next slice of the proxy without an
    export, us."""
    back: float
    """p50 after the backend has recovered, us."""
    calls: int
    behind: int
    """Maximum bytes that the recorder was behind, sampled after each slice."""
    left: int
    """The same at the end of the load."""
    within: float = 0.0
    """Processors used by the export during its slices."""
    outside: float = 0.0
    """The same between its slices."""
    mib: float = 0.0
    """Maximum memory of the export."""
    caught_up: float = 0.0
    """Seconds of running time from the recovery of the backend until the export had sent all
    spans."""
    sent: int = 0
    given_up: int = 0
    unsent: int = 0
    """The three numbers in the proxy's last line."""
    stored: int = 0
    """Spans that the backend acknowledged."""
    distinct: int = 0
    """Distinct spans among them."""

    @property
    def exports(self) -> bool:
        """Return whether the proxy exports. The control, which compares three proxies without an
        export, does not."""
        return self.mood != NONE

    @property
    def ratios(self) -> list[float]:
        """Return the factor by which calls took longer, slice by slice."""
        return [one / other for one, other in zip(self.p50, self.without, strict=True)]

    @property
    def whole(self) -> bool:
        """Return whether each call is accounted for once: stored, counted as given up, or reported
        as not sent."""
        once = self.stored == self.distinct == self.sent
        return once and self.sent + self.given_up + self.unsent == self.calls


def turns(folder: Path, origin: int, seconds: float) -> list[Turn]:
    """Measure each mood for that many seconds, and the method itself with three proxies that do not
    export."""
    return [turn for mood in (NONE, *MOODS) for turn in _turns(folder, origin, seconds, mood)]


def _turns(folder: Path, origin: int, seconds: float, mood: str) -> list[Turn]:
    """Measure one mood with both protocols, from the start of the proxies to their end."""
    with tempfile.TemporaryDirectory(dir=folder) as place, contextlib.ExitStack() as stack:
        some = [
            _Exporting(
                Standing(
                    Path(place) / str(number), origin, stack, mood, protocol if mood != NONE else ""
                )
            )
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
    """A proxy that exports, and the results of its slices."""

    def __init__(self, standing: Standing) -> None:
        self.standing = standing
        self.without: list[float] = []
        self._slices: list[list[float]] = []
        self._within = self._outside = self._back = 0.0
        self.caught_up = 0.0
        """Seconds of work after `bring_back`."""

    def slice(self) -> None:
        """Run one slice."""
        self._outside += self.standing.usage()
        self.standing.go_on()
        self._slices.append(_counted(self.standing, SLICE))
        self.standing.rest()
        self._within += self.standing.usage()
        self.standing.look()

    def bring_back(self) -> None:
        """Let the backend recover while the load continues."""
        self._outside += self.standing.usage()
        self.standing.bring_back()
        self.standing.go_on()
        self._back = _p50(self.standing, _BACK)
        self.standing.rest()

    def turn(self, mood: str, protocol: str) -> Turn:
        """Return the result after the export has caught up."""
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
    """Wait a limited time for the recorders and the exports to finish."""
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
    """Return the counted round trips of a slice, us, sorted."""
    standing.caller.steady(RATE, UNCOUNTED)
    return sorted(standing.caller.steady(RATE, seconds - UNCOUNTED))


def _p50(standing: Standing, seconds: float) -> float:
    return load.percentiles(_counted(standing, seconds))[0]
