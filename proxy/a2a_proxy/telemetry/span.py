"""A call as a span. Pure."""

from __future__ import annotations

from a2a_proxy.model.exchange import Binding
from a2a_proxy.telemetry.attributes import attributes_of, error_type, name_of
from a2a_proxy.telemetry.events import Passage
from a2a_proxy.telemetry.facts import Facts
from a2a_proxy.telemetry.values import Kind, Span


def span_of(facts: Facts, passage: Passage, kind: Kind) -> Span:
    """The span of a call that is over. `kind` is that of calls; a push delivery is a CONSUMER.

    Only what the protocol or the transport calls a failure is an error: a task that failed is an answer.
    """
    exchange = facts.exchange
    events, dropped = passage.events()
    failed = error_type(exchange)
    return Span(
        name=name_of(exchange),
        kind=Kind.CONSUMER if exchange.binding is Binding.WEBHOOK else kind,
        context=facts.context,
        parent=facts.parent,
        started=exchange.started,
        ended=max(exchange.closed, exchange.started),
        attributes=attributes_of(facts, passage),
        events=events,
        dropped_events=dropped,
        links=facts.links,
        error=(exchange.error or exchange.how or failed) if failed else "",
    )
