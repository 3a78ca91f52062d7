"""The `traceparent` that the proxy derives from the received one."""

from __future__ import annotations

import pytest

from a2a_proxy.protocol.trace_context import TraceOrigin, origin_of

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def bits(count: int) -> int:
    return (1 << count) - 1


@pytest.mark.parametrize(
    ("came", "goes_on"),
    [
        (f"00-{TRACE}-{SPAN}-01", f"00-{TRACE}-{'f' * 16}-01"),
        (f"00-{TRACE}-{SPAN}-00", f"00-{TRACE}-{'f' * 16}-00"),
        (f"00-{TRACE}-{SPAN}-ff", f"00-{TRACE}-{'f' * 16}-03"),
        (f"cc-{TRACE}-{SPAN}-01-more", f"00-{TRACE}-{'f' * 16}-01"),
        (f" 00-{TRACE}-{SPAN}-01\t", f"00-{TRACE}-{'f' * 16}-01"),
    ],
)
def test_a_trace_of_the_client_is_continued(came: str, goes_on: str) -> None:
    """Trace id and sampling flag are the client's, flags of which nothing is known are not passed
    on."""
    assert origin_of([came.encode()]).next_traceparent(bits) == goes_on


@pytest.mark.parametrize(
    "values",
    [
        [],
        [b""],
        [b"\xff\x00"],
        [f"00-{TRACE}-{SPAN}-01-more".encode()],
        [f"ff-{TRACE}-{SPAN}-01".encode()],
        [f"00-{'0' * 32}-{SPAN}-01".encode()],
        [f"00-{TRACE}-{'0' * 16}-01".encode()],
        [f"00-{TRACE.upper()}-{SPAN}-01".encode()],
        [f"00-{TRACE}-{SPAN}-01".encode()] * 2,
    ],
)
def test_a_trace_is_started(values: list[bytes]) -> None:
    found = origin_of(values)
    assert found.trace == ""
    assert found.next_traceparent(bits) == f"00-{'f' * 32}-{'f' * 16}-01"
    assert (found.before is None) == (not values)


def test_ids_are_never_all_zeros() -> None:
    assert (
        TraceOrigin(None, "", 1).next_traceparent(lambda _: 0) == f"00-{'0' * 31}1-{'0' * 15}1-01"
    )


def test_long_values_are_truncated() -> None:
    assert origin_of([b"x" * 70_000]).before == "x" * 256
