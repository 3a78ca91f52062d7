"""A call as a span. Pure."""

from __future__ import annotations

from a2a_proxy.model.exchange import Binding, Exchange
from a2a_proxy.telemetry.attributes import attributes_of, error_type, name_of
from a2a_proxy.telemetry.call_facts import CallFacts
from a2a_proxy.telemetry.client_span import sent_on
from a2a_proxy.telemetry.compat import aliases
from a2a_proxy.telemetry.events import CallEvents
from a2a_proxy.telemetry.span_options import PLAIN, SpanOptions
from a2a_proxy.telemetry.values import SpanKind, SpanValue, cut


def span_of(facts: CallFacts, passage: CallEvents, shape: SpanOptions = PLAIN) -> SpanValue:
    """The span of a call that is over, or of one as far as it has come. A push delivery is a CONSUMER.

    Only what the protocol or the transport calls a failure is an error: a task that failed is an answer.
    """
    exchange = facts.exchange
    events, dropped = passage.events()
    failed = error_type(exchange)
    attributes = attributes_of(facts, passage)
    return SpanValue(
        name=cut(name_of(exchange)),
        kind=_kind(exchange, shape),
        context=facts.context,
        parent=facts.parent,
        started=exchange.started,
        ended=max(exchange.closed, exchange.started),
        attributes=attributes | aliases(attributes, facts.content, shape.compat),
        events=events,
        dropped_events=dropped,
        links=facts.links,
        error=cut(exchange.error or exchange.how or failed) if failed else "",
    )


def _kind(exchange: Exchange, shape: SpanOptions) -> SpanKind:
    """Of the span that a call comes in with: where it goes on with another one, the proxy serves it."""
    if exchange.binding is Binding.WEBHOOK:
        return SpanKind.CONSUMER
    return SpanKind.SERVER if sent_on(exchange) is not None else SpanKind[shape.kind.upper()]
