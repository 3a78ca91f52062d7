"""Times, sizes and ids as text."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_proxy.model.values import Binding, Exchange
from a2a_proxy.present import text
from support_recording import facts

KIB = 1024


def test_routes_name_the_agents_that_have_a_name() -> None:
    plain = facts(
        listens=("127.0.0.1:9000, [::1]:9000", "127.0.0.1:9001"), upstreams=("agent:1", "agent:2")
    )
    named = msgspec.structs.replace(plain, names=("desk", ""))
    listen = "127.0.0.1:9000, [::1]:9000"
    assert text.session_routes(plain) == [f"{listen} -> agent:1", "127.0.0.1:9001 -> agent:2"]
    assert text.session_routes(named) == [
        f"{listen} -> desk (agent:1)",
        "127.0.0.1:9001 -> agent:2",
    ]


@pytest.mark.parametrize(
    ("data", "written"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (KIB**2 - 52, "1023.9 KiB"),
        (KIB**2 - 10, "1.0 MiB"),
        (KIB**3 - 10, "1.0 GiB"),
        (2 * KIB**4, "2048.0 GiB"),
    ],
)
def test_a_size_is_rounded_before_its_unit_is_chosen(data: int, written: str) -> None:
    """No `1024.0 KiB`."""
    assert text.format_size(data) == written


@given(st.integers(0, KIB**3))
def test_no_size_below_a_tebibyte_has_a_thousand_and_twenty_four_of_a_unit(data: int) -> None:
    """Whatever the number."""
    assert float(text.format_size(data).split()[0]) < KIB


@pytest.mark.parametrize(
    ("ns", "written"),
    [
        (412_999, "412 us"),
        (9_940_000, "9.9 ms"),
        (9_999_999, "10 ms"),
        (999_999_999, "999 ms"),
        (1_000_000_000, "1.0 s"),
        (59_949_000_000, "59.9 s"),
        (59_990_000_000, "1 min 0 s"),
        (200_400_000_000, "3 min 20 s"),
    ],
)
def test_durations_have_a_fitting_unit(ns: int, written: str) -> None:
    """No `60.0 s`, no `10.0 ms`."""
    assert text.format_duration(ns) == written


@pytest.mark.parametrize(
    ("ns", "written"),
    [
        (2_000_000_000, "2 s"),
        (11_600_000_000, "12 s"),
        (250_000_000_000, "4 min"),
        (3 * 3600 * 10**9, "3 h"),
    ],
)
def test_a_lag_is_rounded_to_seconds(ns: int, written: str) -> None:
    """It is shown right within a second."""
    assert text.format_lag(ns) == written


def test_nouns_are_singular_or_plural() -> None:
    """Of the same noun."""
    assert (
        text.format_count(1, "byte"),
        text.format_count(0, "byte"),
        text.format_count(2, "byte"),
    ) == (
        "1 byte",
        "0 bytes",
        "2 bytes",
    )


def test_outcomes_of_live_streams_name_both_sides() -> None:
    """And who half-closed first; its times count from its beginning, for its request goes on beside
    its answer."""
    known = {
        "started": 1_000_000,
        "request_ended": 9_000_000,
        "first_event": 3_000_000,
        "closed": 11_000_000,
    }
    call = Exchange(
        1, 1, 1, Binding.GRPC, streaming=True, live_payload="1975", half_close="client", **known
    )
    plain = Exchange(1, 1, 1, Binding.GRPC, streaming=True, **known)
    assert text.live_stream_label(call) == "live:1975  client half-closed first"
    assert text.live_stream_label(plain) == ""
    assert text.latency_label(call) == "first 2.0 ms, 10 ms"
    assert text.latency_label(plain) == "answered before the request body had arrived, 2.0 ms"
    assert text.duration_cell(plain) == "2.0 ms"


@pytest.mark.parametrize(
    ("how", "delivery"),
    [
        ("agent gone", "receiver gone"),
        ("agent reset", "receiver reset"),
        ("client gone", "agent gone"),
        ("client cancel", "agent cancel"),
        ("proxy stopped", "proxy stopped"),
    ],
)
def test_the_peers_of_a_delivery_are_named(how: str, delivery: str) -> None:
    assert text.end_reason(Exchange(1, 1, 1, Binding.REST, how=how, started=1)) == how
    assert text.end_reason(Exchange(1, 1, 1, Binding.WEBHOOK, how=how, started=1)) == delivery


def test_an_answer_before_the_end_of_its_request_has_no_latency() -> None:
    """It has words; also an answer without an event, by its head."""
    known = {"started": 1_000_000, "request_ended": 9_000_000, "closed": 9_000_000}
    for answered in ({"first_event": 3_000_000}, {"response_started": 3_000_000}):
        call = Exchange(1, 1, 1, Binding.JSONRPC, **known, **answered)
        assert text.latency_label(call) == "answered before the request body had arrived"
        assert text.duration_cell(call) == "early"
    later = Exchange(1, 1, 1, Binding.JSONRPC, response_started=9_000_000, **known)
    assert (text.latency_label(later), text.duration_cell(later)) == ("0 us", "0 us")
