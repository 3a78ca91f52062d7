"""Format times, sizes, ids and outcomes, with the same words on the console, in `ls` and in
`show`.

Exchanges and findings as JSON objects with stable names.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from a2a_proxy.model.fields import fields_of
from a2a_proxy.model.values import Binding, Exchange, Finding
from a2a_proxy.present import text
from a2a_proxy.protocol.outcome import is_answered_early as is_answered_early
from a2a_proxy.protocol.outcome import latency_origin as latency_origin
from a2a_proxy.protocol.outcome import outcome_of as outcome_of

if TYPE_CHECKING:
    from a2a_proxy.recording.read.rows import SessionFacts

EARLY_ANSWER = "answered before the request body had arrived"
_SECOND_IN_NS = 1_000_000_000
_DELIVERY_ENDS = {
    "agent gone": "receiver gone",
    "agent reset": "receiver reset",
    "client gone": "agent gone",
    "client cancel": "agent cancel",
}
"""`Exchange.how` of a delivery to a webhook, whose client is the agent -> for people."""


def format_time(at: int) -> str:
    """Return the local wall time of `at` (ns since the epoch), to the millisecond:
    `09:41:07.123`."""
    seconds, rest = divmod(at, _SECOND_IN_NS)
    return f"{datetime.fromtimestamp(seconds):%H:%M:%S}.{rest // 1_000_000:03d}"


def format_date_time(at: int) -> str:
    """Return the local date and time of `at` (ns since the epoch): `2026-01-31 09:41:07`."""
    return f"{datetime.fromtimestamp(at // _SECOND_IN_NS):%Y-%m-%d %H:%M:%S}"


def format_utc(at: int) -> str:
    """Return a time in RFC 3339, in UTC with nanoseconds, for programs."""
    seconds, rest = divmod(at, _SECOND_IN_NS)
    return f"{_format_utc_second(seconds)}.{rest:09d}Z"


@lru_cache(maxsize=64)
def _format_utc_second(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}"


def format_duration(ns: int) -> str:
    """Return a duration in the unit that fits: `412 us`, `37 ms`, `4.2 s`, `3 min 20 s`."""
    if ns < 1_000_000:
        return f"{ns // 1000} us"
    if ns < 9_950_000:
        return f"{ns / 1_000_000:.1f} ms"
    if ns < _SECOND_IN_NS:
        return f"{max(ns // 1_000_000, 10)} ms"
    if ns < 59_950_000_000:
        return f"{ns / _SECOND_IN_NS:.1f} s"
    minutes, rest = divmod((ns + _SECOND_IN_NS // 2) // _SECOND_IN_NS, 60)
    return f"{minutes} min {rest} s"


def format_lag(ns: int) -> str:
    """Return a lag in seconds, minutes or hours: `12 s`, `4 min`, `3 h`; seconds are rounded."""
    seconds = (ns + _SECOND_IN_NS // 2) // _SECOND_IN_NS
    if seconds < 120:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 7200 else f"{seconds // 3600} h"


def format_size(byte_count: int) -> str:
    """Return a number of bytes: `312 B`, `4.1 KiB`, `1.0 MiB`."""
    if byte_count < 1024:
        return f"{byte_count} B"
    value = byte_count / 1024
    for unit in ("KiB", "MiB"):
        if round(value, 1) < 1024:  # as it is written: 1023.96 becomes 1024.0
            return f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"


def shorten_id(identifier: str, width: int = 8) -> str:
    """Return an id that fits a column: its first characters, with an ellipsis if it is longer."""
    return identifier if len(identifier) <= width + 1 else identifier[:width] + "…"


def format_count(count: int, noun: str) -> str:
    """Return a count with its noun: `1 event`, `5 events`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def finding_location(finding: Finding) -> str:
    """Return the place of a finding: `#1.3` (exchange and frame), `#1`, or empty for a finding
    about a connection."""
    if not finding.exchange:
        return ""
    return f"#{finding.exchange}" + (f".{finding.seq}" if finding.seq >= 0 else "")


def finding_place(finding: Finding) -> str:
    """Return the place of a finding for people: `#1.3 (agent's event)`, `#1 (whole exchange)` or
    `connection 2`."""
    location = finding_location(finding)
    if not location:
        return f"connection {finding.connection}" if finding.connection else ""
    words = finding.evidence.get("frame", "") if finding.seq >= 0 else "whole exchange"
    return f"{location} ({words})" if words else location


def session_routes(facts: SessionFacts) -> list[str]:
    """Return the routes of a session: `127.0.0.1:9000 -> agent:8000`, or `... -> desk (agent:8000)`
    with a name."""
    names = facts.names or ("",) * len(facts.listens)
    pairs = zip(facts.listens, facts.upstreams, names, strict=False)
    return [
        f"{listen} -> {f'{name} ({upstream})' if name else upstream}"
        for listen, upstream, name in pairs
    ]


def outcome_label(exchange: Exchange) -> str:
    """Return the outcome as shown to the user: a long poll that the agent holds `waits`."""
    return "waits" if exchange.waits else outcome_of(exchange)


def end_reason(exchange: Exchange) -> str:
    """Return how an exchange ended, with the roles of its peers: `agent gone`, of a delivery
    `receiver gone`."""
    return (
        _DELIVERY_ENDS.get(exchange.how, exchange.how)
        if exchange.binding is Binding.WEBHOOK
        else exchange.how
    )


def ending_words(exchange: Exchange, cause: str = "", summary: str = "") -> str:
    """Return why a call did not end well: the cause of its ending and the summary, if they are
    known; the error itself if the agent answered with one, or how the call was broken off."""
    if cause and cause != "agent-error":
        return f"{cause}: {summary}"
    is_successful = outcome_of(exchange) in ("ok", "live")
    return exchange.error or ("" if is_successful else end_reason(exchange))


def exchange_title(exchange: Exchange) -> str:
    """Return the operation, or method and target of traffic that is not A2A."""
    return exchange.operation or f"{exchange.method} {exchange.target}".strip() or "unknown"


def binding_and_dialect(exchange: Exchange) -> str:
    """Return binding and dialect: `jsonrpc 1.0`."""
    return f"{exchange.binding} {exchange.dialect}".strip()


def live_stream_label(exchange: Exchange) -> str:
    """Return the messages of a live stream, `live:bidi` as in `--live bidi`, and the peer that
    half-closed first."""
    if not exchange.live_payload:
        return ""
    first = f"{exchange.half_close} half-closed first" if exchange.half_close else ""
    return "  ".join(filter(None, (f"live:{exchange.live_payload}", first)))


def latency_label(exchange: Exchange) -> str:
    """Return the duration of an exchange, and of a stream also the time to its first event, both
    from `latency_origin`; words for an answer that is older than the end of its request.
    """
    is_stream = exchange.streaming and exchange.first_event
    total = _duration(exchange)
    if is_answered_early(exchange):
        return EARLY_ANSWER + (f", {total}" if is_stream and total else "")
    if is_stream:
        return (
            f"first {format_duration(max(exchange.first_event - latency_origin(exchange), 0))}, "
            f"{total}"
        )
    return total


def duration_cell(exchange: Exchange) -> str:
    """Return the duration of an exchange for a column: `37 ms`, or `early` for one answer before
    the end of its request.
    """
    return (
        "early" if is_answered_early(exchange) and not exchange.streaming else _duration(exchange)
    )


def _duration(exchange: Exchange) -> str:
    end = exchange.closed or exchange.last_event
    return format_duration(max(end - latency_origin(exchange), 0)) if end else ""


def exchange_object(exchange: Exchange) -> dict[str, object]:
    """Return an exchange, without its headers, as JSON with stable names."""
    zero = text.latency_origin(exchange)
    signatures = [
        {**msgspec.to_builtins(each), "verdict": each.verdict.value, "words": each.describe()}
        for each in exchange.card_signatures
    ]
    return {
        **value_object(exchange),
        "started": text.format_utc(exchange.started),
        "outcome": text.outcome_of(exchange),
        "waits": exchange.waits,
        "first_event_ns": max(exchange.first_event - zero, 0) if exchange.first_event else None,
        "duration_ns": max(exchange.closed - zero, 0) if exchange.closed else None,
        "card_signatures": signatures or None,
    }


def value_object(value: msgspec.Struct) -> dict[str, object]:
    """Return the members of JSON output, as the field table names them."""
    found = msgspec.to_builtins(value)
    return {
        key: None if found[name] == no_value else found[name]
        for key, name, no_value in _json_members(type(value))
    }


@cache
def _json_members(kind: type[msgspec.Struct]) -> list[tuple[str, str, object]]:
    """Return key, name and the value that is null in JSON, of each member in JSON output."""
    return [
        (each.key, each.name, msgspec.to_builtins(each.default) if each.row.null else None)
        for each in fields_of(kind)
        if each.row.json is not None
    ]


def finding_object(finding: Finding) -> dict[str, Any]:
    """Return a finding as JSON with stable names."""
    evidence: dict[str, object] = dict(finding.evidence)
    if (count := finding.evidence.get("count", "")).isdecimal():
        evidence["count"] = int(count)
    readable = {
        "severity": finding.severity.name.lower(),
        "at": text.format_utc(finding.at),
        "evidence": evidence,
    }
    return {**msgspec.to_builtins(finding), **readable}
