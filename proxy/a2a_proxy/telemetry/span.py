"""The span of a call. No I/O.

Its attributes have the names of other tools and conventions too: `--compat` (offline),
`--otlp-compat` (live).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from a2a_proxy.model.values import Binding, Exchange
from a2a_proxy.telemetry.attributes import call_attributes, error_type, span_name
from a2a_proxy.telemetry.call_facts import CallFacts
from a2a_proxy.telemetry.client_span import forwarded_context
from a2a_proxy.telemetry.events import CallEvents
from a2a_proxy.telemetry.span_options import DEFAULT_SPAN_OPTIONS, Compat, SpanOptions
from a2a_proxy.telemetry.values import Attributes, SpanKind, SpanValue, Value, cut_text

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
_CARD_BINDINGS = {Binding.JSONRPC: "JSONRPC", Binding.REST: "HTTP+JSON", Binding.GRPC: "GRPC"}
"""Bindings by their names in agent cards. A pipe has none that the protocol defines."""
_SSE_BINDINGS = ("jsonrpc", "http+json")
"""Bindings whose streams are SSE."""


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
                "a2a.protocol.binding": _CARD_BINDINGS.get(facts.exchange.binding),
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
