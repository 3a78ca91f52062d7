"""Ids of traces and spans: those on the wire, else made from session and call, the same at every export. Pure."""

from __future__ import annotations

import hashlib

from a2a_proxy.protocol import trace_context
from a2a_proxy.telemetry.values import Context


def read_traceparent(text: str) -> Context | None:
    """The caller's span as a W3C `traceparent` names it; None where it is none, which the standard has one ignore."""
    found = trace_context.read(text)
    return Context(found.trace, found.span) if found is not None else None


def span_id(session: str, exchange: int) -> str:
    """The id of the span of an exchange; `session` is the session's uuid."""
    return _digest("span", session, exchange)[:16]


def trace_id(session: str, first: int) -> str:
    """The id of the trace that a task's first exchange began, where its caller named none."""
    return _digest("trace", session, first)[:32]


def _digest(what: str, session: str, number: int) -> str:
    return hashlib.sha256(f"a2a-proxy {what} {session} {number}".encode()).hexdigest()
