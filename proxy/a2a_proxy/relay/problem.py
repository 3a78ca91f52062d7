"""A response of the proxy itself: which status, and why. Encodes nothing."""

from __future__ import annotations

import msgspec

USE_HINT = "clients use it with HTTP_PROXY=http://ADDRESS; to relay to one agent: --listen :PORT --upstream HOST:PORT"
"""What to do about a client that takes a forward proxy for an agent."""


class Problem(msgspec.Struct, frozen=True):
    """The proxy's answer to a request that it does not forward."""

    status: int
    title: str
    """The reason phrase of the status."""
    detail: str
    """The reason, in words for the user."""
    hint: str = "the request of the client must be corrected"
    """The action to take, for the console."""


def unreachable(upstream: str, reason: str, what: str = "upstream agent") -> Problem:
    """Return the answer to a request whose upstream (`host:port`) cannot be reached; `what` it is."""
    return Problem(502, "Bad Gateway", f"a2a-proxy cannot reach the {what} {upstream}: {reason}")
