"""Exchanges and findings as JSON objects with stable names."""

from __future__ import annotations

from typing import Any

import msgspec

from a2a_proxy.model.exchange import Exchange
from a2a_proxy.model.finding import Finding
from a2a_proxy.present import text


def exchange_object(exchange: Exchange) -> dict[str, object]:
    """Return an exchange, without its headers, as JSON with stable names."""
    zero = text.latency_origin(exchange)
    return {
        "id": exchange.id,
        "started": text.format_utc(exchange.started),
        "operation": exchange.operation,
        "binding": exchange.binding.value,
        "dialect": exchange.dialect.value,
        "method": exchange.method,
        "target": exchange.target,
        "task_id": exchange.task_id,
        "context_id": exchange.context_id,
        "states": list(exchange.states),
        "outcome": text.outcome_of(exchange),
        "waits": exchange.waits,
        "how": exchange.how,
        "status": exchange.status or None,
        "grpc_status": exchange.grpc_status if exchange.grpc_status >= 0 else None,
        "error": exchange.error or None,
        "current_generation": exchange.current_generation,
        "if_generation_match": exchange.generation_match,
        "generation": exchange.generation or None,
        "streaming": exchange.streaming,
        "live_payload": exchange.live_payload or None,
        "half_close": exchange.half_close or None,
        "requests": exchange.requests,
        "events": exchange.events,
        "bytes_to_agent": exchange.bytes_to_agent,
        "bytes_to_client": exchange.bytes_to_client,
        "first_event_ns": max(exchange.first_event - zero, 0) if exchange.first_event else None,
        "duration_ns": max(exchange.closed - zero, 0) if exchange.closed else None,
        "connection": exchange.connection,
        "agent": exchange.agent,
        "sent_traceparent": exchange.sent_traceparent or None,
        "card_signatures": [
            {**msgspec.to_builtins(each), "verdict": each.verdict.value, "words": each.describe()}
            for each in exchange.card_signatures
        ]
        or None,
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
