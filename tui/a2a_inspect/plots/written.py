"""Histograms and distributions as lines and as JSON with stable names."""

from collections.abc import Iterator, Sequence

from a2a_inspect.plots.draw import draw_bar
from a2a_inspect.plots.measures import Bucket, Histogram
from a2a_inspect.plots.scale import BIN_LIMITS
from a2a_inspect.widgets.table import table_lines
from a2a_proxy.present import text

MAX_STEPS = 40
"""Lines of a histogram."""
PLAIN_VARIABLE = "NO_COLOR"
"""Environment variable that requests plain characters."""
_MAX_BAR = 30
"""Cells of the longest bar."""


def histogram_lines(histogram: Histogram, *, plain: bool) -> Iterator[str]:
    """Yield a line for each step, with a bar for its frames, followed by its findings."""
    peak = max((bucket.frames for bucket in histogram.buckets), default=0)
    rows = [
        (
            step_clock(histogram.scale.find_start(number), histogram.scale.step),
            str(bucket.frames),
            text.format_size(bucket.bytes) if bucket.frames else "",
            str(bucket.exchanges or ""),
            draw_bar(bucket.frames, peak, _MAX_BAR, plain=plain),
            findings_words(bucket),
        )
        for number, bucket in enumerate(histogram.buckets)
    ]
    yield from table_lines(
        (
            f"EACH {text.format_duration(histogram.scale.step)}",
            "FRAMES",
            "BYTES",
            "BEGUN",
            "",
            "FINDINGS",
        ),
        rows,
    )


def findings_words(bucket: Bucket) -> str:
    """Return `2 error, 1 info`: the most severe first."""
    return ", ".join(
        f"{bucket.findings[each]} {each.name.lower()}"
        for each in sorted(bucket.findings, reverse=True)
    )


def step_clock(at: int, step: int) -> str:
    """Return the start of a step in local time, with the resolution of the steps."""
    clock = text.format_time(at)
    if step >= 86_400_000_000_000:
        return text.format_date_time(at)[:10]
    if step >= 1_000_000_000:
        return clock[:8]
    return clock if step >= 1_000_000 else f"{clock}{at // 1000 % 1000:03}"


def histogram_object(histogram: Histogram | None) -> dict[str, object] | None:
    """Return the histogram as JSON; None without traffic."""
    if histogram is None:
        return None
    buckets = [
        {
            "at": text.format_utc(histogram.scale.find_start(number)),
            "frames": bucket.frames,
            "bytes": bucket.bytes,
            "exchanges": bucket.exchanges,
            "findings": {
                each.name.lower(): bucket.findings[each]
                for each in sorted(bucket.findings, reverse=True)
            },
        }
        for number, bucket in enumerate(histogram.buckets)
    ]
    return {"step_ns": histogram.scale.step, "buckets": buckets}


def bins_object(bins: Sequence[int]) -> list[dict[str, int | None]]:
    """Return the non-empty bins of a distribution; `below_ns` is None for the last one."""
    edges = (0, *BIN_LIMITS)
    return [
        {
            "from_ns": edges[number],
            "below_ns": BIN_LIMITS[number] if number < len(BIN_LIMITS) else None,
            "count": count,
        }
        for number, count in enumerate(bins)
        if count
    ]
