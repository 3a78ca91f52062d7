"""The span of a call. No I/O.

Its attributes have the names of other tools and conventions too: `--compat` (offline),
`--otlp-compat` (live).

The second span of a call that the proxy forwarded with its own `traceparent` (`--propagate`). No
I/O.

The id sent to the agent is recorded, so every export has the same two spans: one for the call as
received, and one for the call as forwarded, whose id the agent knows as its parent's.
"""

from collections.abc import Iterable, Mapping

import msgspec

from a2a_proxy.model.option import Compat
from a2a_proxy.model.values import CARD_BINDINGS, Binding, Exchange
from a2a_proxy.telemetry.attributes import call_attributes, error_type, span_name
from a2a_proxy.telemetry.call_facts import CallFacts
from a2a_proxy.telemetry.events import CallEvents
from a2a_proxy.telemetry.ids import parse_traceparent
from a2a_proxy.telemetry.span_options import DEFAULT_SPAN_OPTIONS, SpanOptions
from a2a_proxy.telemetry.values import (
    Attributes,
    SpanContextIds,
    SpanKind,
    SpanLink,
    SpanValue,
    Value,
    cut_text,
)

_KONG_NAMES = {
    "kong.a2a.operation": "a2a.method.name",
    "kong.a2a.protocol.version": "a2a.protocol.version",
    "kong.a2a.task.id": "a2a.task.id",
    "kong.a2a.task.state": "a2a.task.state",
    "kong.a2a.context.id": "gen_ai.conversation.id",
    "kong.a2a.error": "error.type",
    "kong.a2a.streaming": "a2a_proxy.stream",
    "kong.a2a.ttfb_latency": "a2a_proxy.stream.first_event_ms",
}
_SSE_BINDINGS = ("jsonrpc", "http+json")
"""Bindings whose streams are SSE."""


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
    attributes = {
        name: value for name, value in span.attributes.items() if name.startswith(_COPIED_PREFIXES)
    }
    if service:
        attributes["peer.service"] = service
    return msgspec.structs.replace(
        span,
        kind=SpanKind.CLIENT,
        context=msgspec.structs.replace(span.context, span=sent.span),
        parent=span.context,
        attributes=attributes,
        events=(),
        dropped_events=0,
        links=(),
        part=True,
    )


def call_span(
    facts: CallFacts, call_events: CallEvents, shape: SpanOptions = DEFAULT_SPAN_OPTIONS
) -> SpanValue:
    """Return the span of a finished call, or of an open one as known so far. A push delivery is a
    CONSUMER span.

    Only failures of the protocol or the transport are errors: a failed task is a valid answer.
    """
    exchange = facts.exchange
    events, dropped = call_events.list_events()
    failed = error_type(exchange)
    attributes = call_attributes(facts, call_events)
    kind = _span_kind(exchange, shape)
    if kind is SpanKind.SERVER:
        attributes.pop("peer.service", None)  # the peer of a server is its client
    return SpanValue(
        name=cut_text(span_name(exchange)),
        kind=kind,
        context=facts.context,
        parent=facts.parent,
        started=exchange.started,
        ended=max(exchange.closed, exchange.started),
        attributes=attributes | _compat_attributes(attributes, facts, shape.compat),
        events=events,
        dropped_events=dropped,
        links=facts.links,
        error=cut_text(exchange.error or exchange.how or failed) if failed else "",
    )


def _span_kind(exchange: Exchange, shape: SpanOptions) -> SpanKind:
    """Return the kind of the span of the call as received: SERVER if a second span has the call as
    forwarded."""
    if exchange.binding is Binding.WEBHOOK:
        return SpanKind.CONSUMER
    return (
        SpanKind.SERVER if forwarded_context(exchange) is not None else SpanKind[shape.kind.upper()]
    )


def _compat_attributes(
    attributes: Mapping[str, Value], facts: CallFacts, compat: Iterable[Compat]
) -> Attributes:
    """Return the attributes of a call's span under the names of other tools and conventions,
    without empty ones."""
    content = facts.content
    named: dict[str, Value | None] = {}
    for each in compat:
        if each == "kong":
            named |= {name: attributes.get(known) for name, known in _KONG_NAMES.items()}
            if (
                attributes.get("a2a_proxy.stream")
                and attributes.get("a2a_proxy.binding") in _SSE_BINDINGS
            ):
                named["kong.a2a.sse_events_count"] = attributes.get("a2a_proxy.stream.events")
        elif each == "openinference":
            named |= {
                "openinference.span.kind": "AGENT",
                "session.id": attributes.get("gen_ai.conversation.id"),
            }
            named |= {"input.value": content.input.text, "output.value": content.output.text}
        elif each == "semconv":
            named |= {
                "a2a.message.referenced_task_ids": attributes.get("a2a.message.reference_task_ids"),
                "a2a.protocol.binding": CARD_BINDINGS.get(facts.exchange.binding),
                "a2a.agent.card.url": cut_text(facts.card_url),
            }
        else:
            named |= {
                "langfuse.observation.type": "agent",
                "session.id": attributes.get("gen_ai.conversation.id"),
            }
            named |= {"langfuse.observation.input": content.input.text}
            named |= {"langfuse.observation.output": content.output.text}
    return {name: value for name, value in named.items() if value not in (None, "")}
