"""A call as a span. Pure."""

from __future__ import annotations

from a2a_proxy.model.exchange import Binding
from a2a_proxy.telemetry.attributes import attributes_of, error_type, name_of
from a2a_proxy.telemetry.compat import aliases
from a2a_proxy.telemetry.events import Passage
from a2a_proxy.telemetry.facts import Facts
from a2a_proxy.telemetry.shape import PLAIN, Shape
from a2a_proxy.telemetry.values import Kind, Span


def span_of(facts: Facts, passage: Passage, shape: Shape = PLAIN) -> Span:
    """The span of a call that is over, or of one as far as it has come. A push delivery is a CONSUMER.

    Only what the protocol or the transport calls a failure is an error: a task that failed is an answer.
    """
    exchange = facts.exchange
    events, dropped = passage.events()
    failed = error_type(exchange)
    attributes = attributes_of(facts, passage)
    return Span(
        name=name_of(exchange),
        kind=Kind.CONSUMER if exchange.binding is Binding.WEBHOOK else Kind[shape.kind.upper()],
        context=facts.context,
        parent=facts.parent,
        started=exchange.started,
        ended=max(exchange.closed, exchange.started),
        attributes=attributes | aliases(attributes, facts.content, shape.compat),
        events=events,
        dropped_events=dropped,
        links=facts.links,
        error=(exchange.error or exchange.how or failed) if failed else "",
    )
