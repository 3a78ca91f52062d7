"""A response of the proxy itself: which status, and why, and both as texts of HTTP and gRPC."""

import msgspec

USE_HINT = (
    "clients use it with HTTP_PROXY=http://ADDRESS; to relay to one agent: --listen :PORT "
    "--upstream HOST:PORT"
)
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
    """Return the answer to a request whose upstream (`host:port`) cannot be reached; `what` it
    is."""
    return Problem(502, "Bad Gateway", f"a2a-proxy cannot reach the {what} {upstream}: {reason}")


def encode_problem(problem: Problem) -> bytes:
    """Return the problem document (RFC 9457)."""
    return msgspec.json.encode(
        {
            "type": "about:blank",
            "title": problem.title,
            "status": problem.status,
            "detail": problem.detail,
        }
    )


def percent_encode(text: str) -> bytes:
    """Return the text as a `grpc-message` value: bytes of UTF-8 other than printable ASCII, and the
    percent sign, as %XX."""
    return b"".join(
        bytes((byte,)) if 0x20 <= byte <= 0x7E and byte != 0x25 else b"%%%02X" % byte
        for byte in text.encode()
    )
