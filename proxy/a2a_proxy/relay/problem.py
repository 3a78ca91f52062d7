"""A response of the proxy itself: which status, and why. Encodes nothing."""

from __future__ import annotations

import msgspec


class Problem(msgspec.Struct, frozen=True):
    """The proxy's answer to a request that it does not forward."""

    status: int
    title: str
    """The reason phrase of the status."""
    detail: str
    """The reason, in words for the user."""


def unreachable(upstream: str, reason: str) -> Problem:
    """Return the answer to a request whose upstream (`host:port`) cannot be reached."""
    return Problem(502, "Bad Gateway", f"a2a-proxy cannot reach the upstream agent {upstream}: {reason}")
