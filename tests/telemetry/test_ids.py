"""Ids of traces and spans."""

from __future__ import annotations

import pytest

from a2a_proxy.telemetry.ids import (
    parse_traceparent,
    parse_tracestate,
    segment_id,
    span_id,
    step_id,
    trace_id,
)
from a2a_proxy.telemetry.values import SpanContextIds

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.mark.parametrize(
    "text", [f"00-{TRACE}-{SPAN}-01", f" 00-{TRACE}-{SPAN}-00 ", f"01-{TRACE}-{SPAN}-01-more"]
)
def test_a_traceparent_names_the_callers_span(text: str) -> None:
    assert parse_traceparent(text) == SpanContextIds(TRACE, SPAN)


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
def test_invalid_traceparents_are_ignored(text: str) -> None:
    assert parse_traceparent(text) is None


def test_ids_are_stable_and_unique_per_call_and_session() -> None:
    assert span_id("s", 1) == span_id("s", 1)
    assert len({span_id("s", 1), span_id("s", 2), span_id("t", 1), trace_id("s", 1)[:16]}) == 4
    assert (len(span_id("s", 1)), len(trace_id("s", 1))) == (16, 32)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"),
        (" a=1 ,, fw@acme=x y ", "a=1,fw@acme=x y"),
        ("a=1,a=2", ""),
        ("A=1", ""),
        ("a=", ""),
        ("a=1,b=\x1b[31m", ""),
        (",".join(f"k{n}=v" for n in range(33)), ""),
        ("", ""),
    ],
)
def test_an_invalid_tracestate_is_ignored(text: str, kept: str) -> None:
    assert parse_tracestate(text) == kept


def test_steps_and_segments_have_their_own_ids() -> None:
    ids = {
        span_id("s", 1),
        *(step_id("s", 1, n) for n in range(3)),
        *(segment_id("s", 1, n) for n in range(2, 5)),
    }
    assert len(ids) == 7
