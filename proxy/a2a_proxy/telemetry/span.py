"""A call as a span. Pure."""

from __future__ import annotations

from a2a_proxy.model.exchange import Binding, Exchange
from a2a_proxy.telemetry.attributes import call_attributes, error_type, span_name
from a2a_proxy.telemetry.call_facts import CallFacts
from a2a_proxy.telemetry.client_span import forwarded_context
from a2a_proxy.telemetry.compat import compat_attributes
from a2a_proxy.telemetry.events import CallEvents
from a2a_proxy.telemetry.span_options import DEFAULT_SPAN_OPTIONS, SpanOptions
from a2a_proxy.telemetry.values import SpanKind, SpanValue, cut_text


def call_span(facts: CallFacts, call_events: CallEvents, shape: SpanOptions = DEFAULT_SPAN_OPTIONS) -> SpanValue:
    """The span of a call that is over, or of one as far as it has come. A push delivery is a CONSUMER.

    Only what the protocol or the transport calls a failure is an error: a task that failed is an answer.
    """
    exchange = facts.exchange
    events, dropped = call_events.events()
    failed = error_type(exchange)
    attributes = call_attributes(facts, call_events)
    return SpanValue(
        name=cut_text(span_name(exchange)),
        kind=_span_kind(exchange, shape),
        context=facts.context,
        parent=facts.parent,
        started=exchange.started,
        ended=max(exchange.closed, exchange.started),
        attributes=attributes | compat_attributes(attributes, facts.content, shape.compat),
        events=events,
        dropped_events=dropped,
        links=facts.links,
        error=cut_text(exchange.error or exchange.how or failed) if failed else "",
    )


def _span_kind(exchange: Exchange, shape: SpanOptions) -> SpanKind:
    """Of the span that a call comes in with: where it goes on with another one, the proxy serves it."""
    if exchange.binding is Binding.WEBHOOK:
        return SpanKind.CONSUMER
    return SpanKind.SERVER if forwarded_context(exchange) is not None else SpanKind[shape.kind.upper()]
