"""Detection of upstreams that lead back to the proxy itself: each connection would open another until no descriptor is
left."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from a2a_proxy.cli.errors import UserError
from a2a_proxy.relay.own_addresses import is_own_listener
from a2a_proxy.relay.route import Route, Upstream

ResolvedUpstreams = dict[Upstream, list[str]]
"""The resolved addresses of each upstream."""


def refuse_self_loops(listening: Sequence[tuple[Route, list[str]]], resolved: Mapping[Upstream, list[str]]) -> None:
    """Follow each kind of connection from listener to listener; a chain that ends outside the proxy is valid.

    `listening` holds the routes with the addresses they are bound to, as `host:port`.

    Raises:
        UserError: a connection would return to a listener that it has passed.
    """
    kinds: tuple[Callable[[Route], Upstream], ...] = (
        lambda route: route.upstream,
        lambda route: route.grpc or route.upstream,
    )
    for upstream_of in kinds:
        to = [upstream_of(route) for route, _ in listening]
        nexts = [
            [
                at
                for at, (_, own) in enumerate(listening)
                if is_own_listener(resolved.get(upstream, []), upstream.port, own)
            ]
            for upstream in to
        ]
        for start, upstream in enumerate(to):
            if start in _reachable_listeners(start, nexts):
                raise UserError(
                    f"upstream {upstream.text} leads back to the proxy itself",
                    "--upstream must name the agent's port, not the proxy's",
                )


def _reachable_listeners(start: int, nexts: list[list[int]]) -> set[int]:
    """Return all listeners that can be reached from `start` in one or more steps."""
    found: set[int] = set()
    ahead = list(nexts[start])
    while ahead:
        at = ahead.pop()
        if at not in found:
            found.add(at)
            ahead += nexts[at]
    return found
