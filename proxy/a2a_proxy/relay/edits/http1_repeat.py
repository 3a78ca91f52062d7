"""A whole request as the one before but for its body and the value of its `traceparent`: sent on without being parsed.

That is what comes most, from clients with a trace of their own for each call as from those with none.
"""

from __future__ import annotations

import msgspec

from a2a_proxy.protocol.trace_context import TraceOrigin, origin_of
from a2a_proxy.relay.edits.http1_message import CARD_CALL_HINT, replace_trace

_TRACEPARENT_SIZE = 55
"""Bytes of a `traceparent` of version 00."""
_MARK = b"\0"
"""In no head that was understood."""


class RepeatedRequest(msgspec.Struct, frozen=True):
    """What was made of a request."""

    size: int
    """Bytes of all of it."""
    begin: bytes
    """Of its head, as it came: up to the value of `traceparent`, or all of it."""
    rest: bytes
    """Of its head, behind that value."""
    new_begin: bytes
    new_rest: bytes
    """The same as they were sent."""
    origin: TraceOrigin
    stateless: bool
    """A `tracestate` was left out."""

    def origin_of(self, data: bytes) -> TraceOrigin | None:
        """What another request says of its trace; None where it is not like this one, or has to be looked into."""
        begin, value = self.begin, len(self.begin)
        head = value if not self.rest else value + _TRACEPARENT_SIZE + len(self.rest)
        if len(data) != self.size or not data.startswith(begin) or data.find(CARD_CALL_HINT, head) >= 0:
            return None
        if not self.rest:
            return self.origin
        if not data.startswith(self.rest, value + _TRACEPARENT_SIZE):
            return None
        found = origin_of((data[value : value + _TRACEPARENT_SIZE],))
        return found if found.trace else None

    def next_request(self, data: bytes, after: bytes) -> bytes:
        """That other request, with its next `traceparent`."""
        head = len(self.begin) + (_TRACEPARENT_SIZE + len(self.rest) if self.rest else 0)
        return b"".join((self.new_begin, after, self.new_rest, data[head:]))


def remember_request(
    head: bytes, edited: bytes, origin: TraceOrigin, body: int, *, stateless: bool
) -> RepeatedRequest | None:
    """Of a head, what other edits have made of it, and the bytes of its body; None where the next one must be read."""
    begin, rest = head, b""
    if origin.before is not None:
        if not origin.trace or len(origin.before) != _TRACEPARENT_SIZE:
            return None
        value = head.index(origin.before.encode(), head.lower().index(b"\r\ntraceparent:"))
        begin, rest = head[:value], head[value + _TRACEPARENT_SIZE :]
    new_begin, new_rest = replace_trace(edited, origin, _MARK).split(_MARK)
    return RepeatedRequest(len(head) + body, begin, rest, new_begin, new_rest, origin, stateless)
