"""Scales: time in even, readable steps; latencies in steps of 1, 2, 5. Pure."""

from datetime import UTC, datetime

import msgspec

_US, _MS, _S, _MIN, _HOUR = 1_000, 1_000_000, 1_000_000_000, 60_000_000_000, 3_600_000_000_000
_DAY = 24 * _HOUR

STEP_LENGTHS = (
    *(
        digit * unit
        for unit in (_US, 10 * _US, 100 * _US, _MS, 10 * _MS, 100 * _MS)
        for digit in (1, 2, 5)
    ),
    *(_S, 2 * _S, 5 * _S, 10 * _S, 20 * _S, 30 * _S),
    *(_MIN, 2 * _MIN, 5 * _MIN, 10 * _MIN, 20 * _MIN, 30 * _MIN),
    *(_HOUR, 2 * _HOUR, 3 * _HOUR, 6 * _HOUR, 12 * _HOUR, _DAY, 7 * _DAY),
)
"""Lengths of one step, ns. At least a microsecond, the resolution of times in the filter
language."""

BIN_LIMITS = tuple(digit * 10**power for power in range(5, 12) for digit in (1, 2, 5))
"""Upper limits of the bins of a distribution, ns, from 100 us to 500 s; the last bin has no
limit."""


class TimeScale(msgspec.Struct, frozen=True):
    """A range of time in even steps."""

    start: int
    """Start, ns since the epoch, a multiple of `step`."""
    step: int
    """Length of a step, ns."""
    count: int

    @property
    def end(self) -> int:
        """End of the last step."""
        return self.find_start(self.count)

    def find_start(self, number: int) -> int:
        """Return the start of a step."""
        return self.start + number * self.step

    def make_expression(self, first: int, last: int) -> str:
        """Return the filter expression for these steps, both included."""
        return (
            f"t:>={_format_utc(self.find_start(first))} t:<{_format_utc(self.find_start(last + 1))}"
        )


def fit_scale(first: int, last: int, max_steps: int) -> TimeScale:
    """Return a scale of at most `max_steps` steps from `first` to `last`, both in ns and
    inclusive."""
    for step in (*STEP_LENGTHS, *(7 * _DAY * 10**n for n in range(1, 9))):
        start = first // step * step
        count = (last - start) // step + 1
        if count <= max_steps:
            return TimeScale(start, step, count)
    raise ValueError("no step is that long")  # 64 bits of ns are about 300 years


def _format_utc(at: int) -> str:
    seconds, rest = divmod(at, _S)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest // _US:06}Z"
