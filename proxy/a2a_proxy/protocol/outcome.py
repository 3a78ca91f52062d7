"""Outcome of an exchange, and the origin of its response times."""

from a2a_proxy.model.values import Exchange

FAILED_OUTCOMES = ("error", "cut", "refused")
"""Outcomes of calls that failed."""


def outcome_of(exchange: Exchange) -> str:
    """Return the outcome in one word: `live` while open, `refused` (by the proxy), `ok`, `error`
    (the agent returned an error) or `cut` (a peer or the connection broke off, or the connection
    left HTTP/1: the rest is not decoded)."""
    if not exchange.closed:
        return "live"
    if exchange.ours:
        return "refused"
    if exchange.error:
        return "error"
    return "ok" if exchange.how in ("complete", "") else "cut"


def is_answered_early(exchange: Exchange) -> bool:
    """Return whether the answer began before the request's last byte had arrived, so that it has no
    latency. A live exchange is never answered early."""
    answered = exchange.first_event or exchange.response_started
    return not exchange.live_payload and 0 < answered < exchange.request_ended


def latency_origin(exchange: Exchange) -> int:
    """Return the time in ns from which response times count: the end of the request, but the start
    of a live exchange, whose request continues while the agent answers."""
    return exchange.started if exchange.live_payload else exchange.request_ended or exchange.started
