"""Ids of traces and spans: those on the wire, else made from session and call, the same at every export. Pure."""

from __future__ import annotations

import hashlib
import re

from a2a_proxy.telemetry.values import Context

_TRACEPARENT = re.compile(r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}(-.*)?")


def read_traceparent(text: str) -> Context | None:
    """The caller's span as a W3C `traceparent` names it; None where it is none, which the standard has one ignore."""
    found = _TRACEPARENT.fullmatch(text.strip())
    if found is None or (found[1] == "00" and found[4]):
        return None
    return Context(found[2], found[3])


def span_id(session: str, exchange: int) -> str:
    """The id of the span of an exchange; `session` is the session's uuid."""
    return _digest("span", session, exchange)[:16]


def trace_id(session: str, first: int) -> str:
    """The id of the trace that a task's first exchange began, where its caller named none."""
    return _digest("trace", session, first)[:32]


def _digest(what: str, session: str, number: int) -> str:
    return hashlib.sha256(f"a2a-proxy {what} {session} {number}".encode()).hexdigest()
