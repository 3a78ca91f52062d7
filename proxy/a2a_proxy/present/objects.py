"""Exchanges and findings as JSON objects with stable names."""

from __future__ import annotations

from typing import Any

import msgspec

from a2a_proxy.model.fields import fields_of
from a2a_proxy.model.values import Exchange, Finding
from a2a_proxy.present import text


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
