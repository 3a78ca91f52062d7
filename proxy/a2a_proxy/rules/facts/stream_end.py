"""Who ended a stream early, and how that is known."""

from a2a_proxy.model.values import EventKind
from a2a_proxy.model.wire import Headers
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.facts.naming import state_label
from a2a_proxy.rules.state.state_sequence import INTERRUPTED, SECOND_NS, TERMINAL

_MIN_SILENCE = 5
"""Seconds without an event before the end from which an idle timeout is a likely cause."""
_PROXY_WORDS = (
    "nginx",
    "envoy",
    "haproxy",
    "traefik",
    "varnish",
    "cloudflare",
    "cloudfront",
    "awselb",
    "google frontend",
)
"""Parts of the `Server` field of proxies and load balancers, in lower case."""


def is_unfinished(context: RuleContext) -> bool:
    """Whether the exchange has shown no state in which a stream may end, no `final: true` and no
    Message."""
    record = context.record
    done = (
        record.state in TERMINAL or record.state in INTERRUPTED or record.first is EventKind.MESSAGE
    )
    return not done and not record.final_at


def is_cut_event_stream(context: RuleContext) -> bool:
    """Whether the agent's side has broken off an unfinished event stream, without an error
    before."""
    exchange, record = context.exchange, context.record
    is_broken = (
        exchange.how in ("agent reset", "agent gone")
        and record.abort_cause != "rst_stream no_error"
    )
    return (
        is_broken
        and exchange.streaming
        and exchange.status == 200
        and not record.errors
        and is_unfinished(context)
    )


def describe_last_state(context: RuleContext) -> str:
    """Return `in state working, 60.0 s after its last event`, with the state and the silence before
    the end of the stream; the silence only if it was at least five seconds.
    """
    record = context.record
    told = f"in state {state_label(record.state)}" if record.state else "before any state"
    return (told if record.answers else "before any event") + describe_silence(context)


def describe_silence(context: RuleContext) -> str:
    """Return `, 60.0 s after its last event`; empty if the stream ended within five seconds after
    it."""
    last = context.record.last_at
    silence = (context.exchange.closed - last) / SECOND_NS if last else 0
    return f", {silence:.1f} s after its last event" if silence >= _MIN_SILENCE else ""


def describe_intermediary(context: RuleContext) -> str:
    """Return the part of a summary that names a proxy in front of the agent, which may have ended
    the stream; empty if the response shows none.
    """
    field = _intermediary_field(context.exchange.response_headers)
    return (
        f"; a proxy in front of the agent (`{field}`) or the agent itself did so" if field else ""
    )


def _intermediary_field(headers: Headers) -> str:
    """Return the header field that shows a proxy: `Via: 1.1 google`; empty if there is none."""
    for name, value in headers:
        low, text = name.lower(), value.decode("latin-1").strip()[:60]
        if low == b"via" and text:
            return f"Via: {text}"
        if low == b"server" and any(word in text.lower() for word in _PROXY_WORDS):
            return f"Server: {text}"
    return ""
