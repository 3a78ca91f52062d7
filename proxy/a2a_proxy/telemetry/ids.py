"""Ids of traces and spans: from the wire, else derived from session and call, so every export has
the same. No I/O."""

import hashlib
import re

from a2a_proxy.protocol import trace_context
from a2a_proxy.telemetry.values import SpanContextIds

_MEMBER_KEY = r"[a-z][a-z0-9_*/-]{0,255}|[a-z0-9][a-z0-9_*/-]{0,240}@[a-z][a-z0-9_*/-]{0,13}"
_MEMBER = re.compile(
    rf"(?:{_MEMBER_KEY})=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{{0,255}}[\x21-\x2b\x2d-\x3c\x3e-\x7e]"
)
_MAX_MEMBERS = 32


def parse_traceparent(text: str) -> SpanContextIds | None:
    """Return the caller's span from a W3C `traceparent`, or None if it is invalid, which the
    standard says to ignore."""
    found = trace_context.parse_traceparent(text)
    return SpanContextIds(found.trace, found.span) if found is not None else None


def parse_tracestate(text: str) -> str:
    """Return a normalised W3C `tracestate`; empty if a member is invalid or a key is repeated: then
    it is discarded."""
    members = [each for part in text.split(",") if (each := part.strip(" \t"))]
    keys = {each.partition("=")[0] for each in members}
    if (
        len(members) > _MAX_MEMBERS
        or len(keys) < len(members)
        or not all(map(_MEMBER.fullmatch, members))
    ):
        return ""
    return ",".join(members)


def span_id(session: str, exchange: int) -> str:
    """Return the span id of an exchange; `session` is the session's uuid."""
    return _digest_id("span", session, exchange)[:16]


def trace_id(session: str, first: int) -> str:
    """Return the id of the trace that a task's first exchange began, if its caller sent none."""
    return _digest_id("trace", session, first)[:32]


def step_id(session: str, exchange: int, number: int) -> str:
    """Return the span id of a step that an agent reports about itself; `number` counts the steps of
    the call from 0."""
    return _digest_id(f"step {number}", session, exchange)[:16]


def segment_id(session: str, exchange: int, number: int) -> str:
    """Return the span id of a segment of a long call, from segment 2 on; the first one has the
    call's span id."""
    return _digest_id(f"segment {number}", session, exchange)[:16]


def _digest_id(what: str, session: str, number: int) -> str:
    return hashlib.sha256(f"a2a-proxy {what} {session} {number}".encode()).hexdigest()
