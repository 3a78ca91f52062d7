"""The second span of a call that the proxy sent on with a `traceparent` of its own (`--propagate`). Pure.

The id that the agent was sent is in the recording, so that each export gives the same two spans: of the call as it came
in, and of the call as it went on, whose id the agent knows as its caller's.
"""

from __future__ import annotations

import msgspec

from a2a_proxy.model.exchange import Exchange
from a2a_proxy.telemetry.ids import parse_traceparent
from a2a_proxy.telemetry.values import SpanContextIds, SpanKind, SpanLink, SpanValue

_MESSAGE_RELATION = "message"
_COPIED_PREFIXES = (
    *("a2a.", "gen_ai.agent.", "gen_ai.conversation.", "rpc.", "jsonrpc.", "http.", "url.", "server.", "network."),
    *("error.type", "a2a_proxy.binding", "a2a_proxy.wire.", "a2a_proxy.exchange"),
)
"""How the attributes begin that both spans have."""


def forwarded_context(exchange: Exchange) -> SpanContextIds | None:
    """The span that the agent knows as its caller's, where it is one of the proxy's; None where nothing was changed."""
    return None if exchange.ours else parse_traceparent(exchange.sent_traceparent)


def caller_context(sent: SpanContextIds, header: SpanContextIds | None) -> SpanContextIds | None:
    """The caller's span of a call that went on: the one in the header where its trace went on."""
    return header if header is not None and header.trace == sent.trace else None


def message_link(context: SpanContextIds, message: SpanContextIds | None) -> tuple[SpanLink, ...]:
    """A link to the trace that a message names and the call is not in: the proxy reads header fields only."""
    if message is None or message.trace == context.trace:
        return ()
    return (SpanLink(message, {"a2a_proxy.link": _MESSAGE_RELATION}),)


def client_span(span: SpanValue, sent: SpanContextIds) -> SpanValue:
    """The call as it went on. What happened in it is told by the span that it came in with."""
    told = {name: value for name, value in span.attributes.items() if name.startswith(_COPIED_PREFIXES)}
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
