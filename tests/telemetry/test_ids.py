"""Ids of traces and spans."""

from __future__ import annotations

import pytest

from a2a_proxy.telemetry.ids import read_traceparent, span_id, trace_id
from a2a_proxy.telemetry.values import Context

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.mark.parametrize("text", [f"00-{TRACE}-{SPAN}-01", f" 00-{TRACE}-{SPAN}-00 ", f"01-{TRACE}-{SPAN}-01-more"])
def test_a_traceparent_names_the_callers_span(text: str) -> None:
    assert read_traceparent(text) == Context(TRACE, SPAN)


@pytest.mark.parametrize(
    "text",
    [
        "",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE}-{SPAN}-01-more",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01\n00-{TRACE}-{SPAN}-01",
    ],
)
def test_what_the_standard_calls_invalid_names_none(text: str) -> None:
    assert read_traceparent(text) is None


def test_ids_are_the_same_each_time_and_differ_between_calls_and_sessions() -> None:
    assert span_id("s", 1) == span_id("s", 1)
    assert len({span_id("s", 1), span_id("s", 2), span_id("t", 1), trace_id("s", 1)[:16]}) == 4
    assert (len(span_id("s", 1)), len(trace_id("s", 1))) == (16, 32)
