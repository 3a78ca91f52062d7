"""The second span of a call that the proxy forwarded with its own `traceparent` (`--propagate`). No
I/O.

The id sent to the agent is recorded, so every export has the same two spans: one for the call as
received, and one for the call as forwarded, whose id the agent knows as its parent's.
"""

from __future__ import annotations

import msgspec

from a2a_proxy.model.values import Exchange
from a2a_proxy.telemetry.ids import parse_traceparent
from a2a_proxy.telemetry.values import SpanContextIds, SpanKind, SpanLink, SpanValue

_MESSAGE_RELATION = "message"
_COPIED_PREFIXES = (
    *(
        "a2a.",
        "gen_ai.agent.",
        "gen_ai.conversation.",
        "rpc.",
        "jsonrpc.",
        "http.",
        "url.",
        "server.",
        "network.",
    ),
    *("error.type", "a2a_proxy.binding", "a2a_proxy.wire.", "a2a_proxy.exchange"),
)
"""Prefixes of the attributes that both spans have."""


def forwarded_context(exchange: Exchange) -> SpanContextIds | None:
    """Return the proxy's span that the agent knows as its parent, or None if the header was not
    changed."""
    return None if exchange.ours else parse_traceparent(exchange.sent_traceparent)


def caller_context(sent: SpanContextIds, header: SpanContextIds | None) -> SpanContextIds | None:
    """Return the caller's span of a forwarded call, if the proxy continued the trace of its header,
    else None."""
    return header if header is not None and header.trace == sent.trace else None


def message_link(context: SpanContextIds, message: SpanContextIds | None) -> tuple[SpanLink, ...]:
    """Return a link to the trace in a message if the call is in another trace, because the proxy
    reads only headers."""
    if message is None or message.trace == context.trace:
        return ()
    return (SpanLink(message, {"a2a_proxy.link": _MESSAGE_RELATION}),)


def client_span(span: SpanValue, sent: SpanContextIds, service: str) -> SpanValue:
    """Return the span of the call as forwarded to the agent of this name, without the events, which
    are on the span of the call as received."""
    told = {
        name: value for name, value in span.attributes.items() if name.startswith(_COPIED_PREFIXES)
    }
    if service:
        told["peer.service"] = service
    return msgspec.structs.replace(
        span,
        kind=SpanKind.CLIENT,
        context=msgspec.structs.replace(span.context, span=sent.span),
        parent=span.context,
        attributes=told,
        events=(),
        dropped_events=0,
        links=(),
        part=True,
    )
