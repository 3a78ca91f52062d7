"""The options of the contents of spans, the same for a live export (`--otlp-...`) and a later
one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_proxy.cli.sizes import parse_duration

if TYPE_CHECKING:
    from a2a_proxy.model.option import Compat, SpanKind
    from a2a_proxy.telemetry.span_options import SpanOptions

_MIN_SEGMENT_SECONDS = 10
"""Seconds of the shortest segment."""


def parse_span_options(
    kind: SpanKind,
    *,
    content: bool,
    compat: tuple[Compat, ...],
    segment: str,
    segment_option: str = "--segment",
) -> SpanOptions:
    """Return the span options of these words. Raises UserError, which names `segment_option`, if
    the segment is not a duration."""
    from a2a_proxy.telemetry.span_options import SpanOptions

    length = parse_duration(segment_option, segment, _MIN_SEGMENT_SECONDS) if segment else 0
    return SpanOptions(kind, content, tuple(dict.fromkeys(compat)), length)


def span_option_words(shape: SpanOptions) -> list[str]:
    """Return the options of `a2a-inspect export otlp` for the same spans."""
    words = ["--span-kind", shape.kind] if shape.kind != "internal" else []
    words += ["--content"] if shape.content else []
    words += [word for each in shape.compat for word in ("--compat", each)]
    seconds, rest = divmod(shape.segment, 1_000_000_000)
    length = f"{seconds}.{rest:09d}s" if rest else f"{seconds}s"
    return words + (["--segment", length] if shape.segment else [])
