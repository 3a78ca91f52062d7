"""Exchanges, frames and findings as JSON objects with stable names."""

from __future__ import annotations

from typing import Any

import msgspec

from a2a_proxy.model.chunk import Direction
from a2a_proxy.model.event import state_label
from a2a_proxy.model.fields import fields_of
from a2a_proxy.model.values import EventKind, Exchange, Finding, Frame, FrameKind
from a2a_proxy.present import text
from a2a_proxy.protocol.decoded import find_frame_extensions, readable_payload


def exchange_object(exchange: Exchange) -> dict[str, object]:
    """Return an exchange, without its headers, as JSON with stable names."""
    zero = text.latency_origin(exchange)
    signatures = [
        {**msgspec.to_builtins(each), "verdict": each.verdict.value, "words": each.describe()}
        for each in exchange.card_signatures
    ]
    return {
        **_json_members(exchange),
        "started": text.format_utc(exchange.started),
        "outcome": text.outcome_of(exchange),
        "waits": exchange.waits,
        "first_event_ns": max(exchange.first_event - zero, 0) if exchange.first_event else None,
        "duration_ns": max(exchange.closed - zero, 0) if exchange.closed else None,
        "card_signatures": signatures or None,
    }


def _json_members(value: msgspec.Struct) -> dict[str, object]:
    """Return the members of JSON output, as the field table names them."""
    return {
        field.key: None
        if field.row.null and getattr(value, field.name) == field.default
        else msgspec.to_builtins(getattr(value, field.name))
        for field in fields_of(type(value))
        if field.row.json is not None
    }


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


_KIND_NAMES = {kind: kind.name.lower() for kind in FrameKind}
_EVENT_NAMES = {event: event.name.lower() if event else None for event in EventKind}


def frame_object(frame: Frame, exchange: Exchange) -> dict[str, object]:
    """Return a frame as JSON with stable names, without unknown members."""
    facts: dict[str, object] = {
        "seq": frame.seq,
        "direction": "to_agent" if frame.direction is Direction.TO_AGENT else "to_client",
        "kind": _KIND_NAMES[frame.kind],
        "at": text.format_utc(frame.at),
        "event": _EVENT_NAMES[frame.event],
        "task_id": frame.task_id,
        "context_id": frame.context_id,
        "message_id": frame.message_id,
        "artifact_id": frame.artifact_id,
        "state": state_label(frame.state),
        "generation": frame.generation or None,
        "append": frame.append or None,
        "last_chunk": frame.last_chunk or None,
        "final": frame.final or None,
        "error_code": frame.error_code or None,
        "rpc_id": frame.rpc_id,
        "note": frame.note,
        "size": frame.size,
        "truncated": frame.truncated or None,
        "ours": frame.ours or None,
        "redacted": list(frame.redacted) or None,
        "extensions": [msgspec.to_builtins(use) for use in find_frame_extensions(frame, exchange)]
        or None,
        "payload": readable_payload(frame, exchange),
    }
    return {name: value for name, value in facts.items() if value not in (None, "")}
