"""The span of a call. No I/O."""

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
    """Return the span of a finished call, or of an open one as known so far. A push delivery is a CONSUMER span.

    Only failures of the protocol or the transport are errors: a failed task is a valid answer.
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
    """Return the kind of the span of the call as received: SERVER if a second span has the call as forwarded."""
    if exchange.binding is Binding.WEBHOOK:
        return SpanKind.CONSUMER
    return SpanKind.SERVER if forwarded_context(exchange) is not None else SpanKind[shape.kind.upper()]
