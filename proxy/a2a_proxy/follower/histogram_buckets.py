"""Bucket limits of time histograms in seconds, the same for Prometheus and OpenTelemetry. Pure."""

WAIT_BUCKETS = (
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
    60.0,
)
"""Buckets of the time waiting for a peer."""
CALL_BUCKETS = (
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
    60.0,
    300.0,
    3600.0,
)
"""Buckets of a call: a poll takes milliseconds, a stream may last for an hour."""
TASK_BUCKETS = (0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 86400.0)
"""Buckets of a task, which may take a day."""


def histogram_seconds(ns: int) -> float:
    """Return a time for a histogram, whose sum must not fall even if the clock was set back."""
    return max(ns, 0) / 1e9
