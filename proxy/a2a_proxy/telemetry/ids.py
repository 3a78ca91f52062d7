"""Ids of traces and spans: those on the wire, else made from session and call, the same at every export. Pure."""

from __future__ import annotations

import hashlib
import re

from a2a_proxy.protocol import trace_context
from a2a_proxy.telemetry.values import SpanContextIds

_MEMBER_KEY = r"[a-z][a-z0-9_*/-]{0,255}|[a-z0-9][a-z0-9_*/-]{0,240}@[a-z][a-z0-9_*/-]{0,13}"
_MEMBER = re.compile(rf"(?:{_MEMBER_KEY})=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{{0,255}}[\x21-\x2b\x2d-\x3c\x3e-\x7e]")
_MAX_MEMBERS = 32


def parse_traceparent(text: str) -> SpanContextIds | None:
    """The caller's span as a W3C `traceparent` names it; None where it is none, which the standard has one ignore."""
    found = trace_context.parse_traceparent(text)
    return SpanContextIds(found.trace, found.span) if found is not None else None


def parse_tracestate(text: str) -> str:
    """A W3C `tracestate`, its members one by one; empty where one is wrong, or a key comes twice: then none counts."""
    members = [each for part in text.split(",") if (each := part.strip(" \t"))]
    keys = {each.partition("=")[0] for each in members}
    if len(members) > _MAX_MEMBERS or len(keys) < len(members) or not all(map(_MEMBER.fullmatch, members)):
        return ""
    return ",".join(members)


def span_id(session: str, exchange: int) -> str:
    """The id of the span of an exchange; `session` is the session's uuid."""
    return _digest_id("span", session, exchange)[:16]


def trace_id(session: str, first: int) -> str:
    """The id of the trace that a task's first exchange began, where its caller named none."""
    return _digest_id("trace", session, first)[:32]


def step_id(session: str, exchange: int, number: int) -> str:
    """The id of the span of a step that an agent reports of itself, the number-th of the call, from 0."""
    return _digest_id(f"step {number}", session, exchange)[:16]


def segment_id(session: str, exchange: int, number: int) -> str:
    """The id of the span of a segment of a long call after its first, from 2; that has the call's."""
    return _digest_id(f"segment {number}", session, exchange)[:16]


def _digest_id(what: str, session: str, number: int) -> str:
    return hashlib.sha256(f"a2a-proxy {what} {session} {number}".encode()).hexdigest()
