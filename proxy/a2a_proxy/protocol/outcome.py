"""How an exchange ended, and from when its answer counts."""

from __future__ import annotations

from a2a_proxy.model.exchange import Exchange


def outcome_of(exchange: Exchange) -> str:
    """One word: `live` while open, `refused` (the proxy answered), `ok`, `error` (the agent said no) or `cut` (somebody
    broke off)."""
    if not exchange.closed:
        return "live"
    if exchange.ours:
        return "refused"
    if exchange.error:
        return "error"
    return "ok" if exchange.how in ("complete", "") else "cut"


def latency_origin(exchange: Exchange) -> int:
    """From when the times of its answer count, ns: the end of the request, but a live stream's goes on beside it."""
    return exchange.started if exchange.live_payload else exchange.request_ended or exchange.started
