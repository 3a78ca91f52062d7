"""Forward a whole request that equals the previous one except for its body and `traceparent` value,
without parsing.

This is the most frequent case, for clients that send a trace of their own for each call and for
those that send none.
"""

import msgspec

from a2a_proxy.protocol.trace_context import TraceOrigin, origin_of
from a2a_proxy.relay.edits.http1_message import CARD_CALL_HINT, replace_trace

_TRACEPARENT_SIZE = 55
"""Bytes of a `traceparent` of version 00."""
_MARK = b"\0"
"""A byte that no valid head contains."""


class RepeatedRequest(msgspec.Struct, frozen=True):
    """The parts of a request and of its edited form."""

    size: int
    """Bytes of the whole request."""
    begin: bytes
    """Its head as received: up to the value of `traceparent`, or the whole head without one."""
    rest: bytes
    """The head after that value."""
    new_begin: bytes
    new_rest: bytes
    """The same two parts as sent."""
    origin: TraceOrigin
    stateless: bool
    """Whether a `tracestate` was left out."""

    def origin_of(self, data: bytes) -> TraceOrigin | None:
        """Return the trace context of another request, or None if it does not repeat this one or
        must be parsed."""
        begin, value = self.begin, len(self.begin)
        head = value if not self.rest else value + _TRACEPARENT_SIZE + len(self.rest)
        if (
            len(data) != self.size
            or not data.startswith(begin)
            or data.find(CARD_CALL_HINT, head) >= 0
        ):
            return None
        if not self.rest:
            return self.origin
        if not data.startswith(self.rest, value + _TRACEPARENT_SIZE):
            return None
        found = origin_of((data[value : value + _TRACEPARENT_SIZE],))
        return found if found.trace else None

    def next_request(self, data: bytes, after: bytes) -> bytes:
        """Return the edited form of that other request, with its next `traceparent`."""
        head = len(self.begin) + (_TRACEPARENT_SIZE + len(self.rest) if self.rest else 0)
        return b"".join((self.new_begin, after, self.new_rest, data[head:]))


def remember_request(
    head: bytes, edited: bytes, origin: TraceOrigin, body: int, *, stateless: bool
) -> RepeatedRequest | None:
    """Return the parts of a request: its head, the head after other edits, and the size of its
    body. None if the next one must be parsed."""
    begin, rest = head, b""
    if origin.before is not None:
        if not origin.trace or len(origin.before) != _TRACEPARENT_SIZE:
            return None
        value = head.index(origin.before.encode(), head.lower().index(b"\r\ntraceparent:"))
        begin, rest = head[:value], head[value + _TRACEPARENT_SIZE :]
    new_begin, new_rest = replace_trace(edited, origin, _MARK).split(_MARK)
    return RepeatedRequest(len(head) + body, begin, rest, new_begin, new_rest, origin, stateless)
