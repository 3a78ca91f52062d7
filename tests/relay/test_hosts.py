"""Upstreams that lead back to the proxy."""

from __future__ import annotations

import pytest

from a2a_proxy.relay.hosts import find_self_loop
from a2a_proxy.relay.route import Listen, Route, Upstream


def find_loop(*pairs: tuple[str, str, str]) -> Upstream | None:
    """Return an upstream that loops, among those of (bound addresses, upstream, upstream for gRPC
    or empty)."""
    routes = [
        (
            Route(Listen("", 0), Upstream.parse(up), Upstream.parse(grpc) if grpc else None),
            bound.split(),
        )
        for bound, up, grpc in pairs
    ]
    found = [
        upstream for route, _ in routes for upstream in (route.upstream, route.grpc) if upstream
    ]
    return find_self_loop(routes, {upstream: [upstream.host] for upstream in found})


@pytest.mark.parametrize(
    "pairs",
    [
        [("127.0.0.1:9000 [::1]:9000", "[::1]:9000", "")],
        [("127.0.0.1:9000", "0.0.0.0:9000", "")],
        [("127.0.0.1:9000", "[::ffff:127.0.0.1]:9000", "")],
        [("0.0.0.0:9000", "127.0.0.2:9000", "")],
        [("[::]:9000", "127.0.0.1:9000", "")],
        [("127.0.0.1:9000", "127.0.0.1:8000", "127.0.0.1:9000")],
        [("127.0.0.1:9000", "127.0.0.1:9001", ""), ("127.0.0.1:9001", "127.0.0.1:9000", "")],
        [
            ("127.0.0.1:9000", "127.0.0.1:9001", ""),
            ("127.0.0.1:9001", "127.0.0.1:1", "127.0.0.1:9000"),
        ],
    ],
)
def test_loops_back_to_the_proxy_are_found(pairs: list[tuple[str, str, str]]) -> None:
    """Of one listener or several, by whichever address means it."""
    assert find_loop(*pairs) is not None


@pytest.mark.parametrize(
    "pairs",
    [
        [("127.0.0.1:9000", "127.0.0.1:8000", "")],
        [("127.0.0.1:9000", "[::1]:9000", "")],
        [("127.0.0.1:9000", "127.0.0.2:9000", "")],
        [("0.0.0.0:9000", "203.0.113.7:9000", "")],
        [("127.0.0.1:9000", "127.0.0.1:9001", ""), ("127.0.0.1:9001", "127.0.0.1:8000", "")],
        [
            ("127.0.0.1:9000", "127.0.0.1:1", "127.0.0.1:9001"),
            ("127.0.0.1:9001", "127.0.0.1:9000", "127.0.0.1:2"),
        ],
    ],
)
def test_upstreams_that_do_not_loop_are_accepted(pairs: list[tuple[str, str, str]]) -> None:
    """Other agents, another machine's same port, a chain, and two kinds of connection that do not
    meet."""
    assert find_loop(*pairs) is None
