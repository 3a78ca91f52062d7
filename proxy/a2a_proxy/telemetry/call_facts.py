"""What is known of a call before it becomes a span. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.exchange import Connection, Exchange
from a2a_proxy.telemetry.ids import parse_traceparent, parse_tracestate
from a2a_proxy.telemetry.message_content import NO_CONTENT, MessageContent
from a2a_proxy.telemetry.values import SpanContextIds, SpanLink


class CardIdentity(msgspec.Struct, frozen=True):
    """Who an agent says it is."""

    name: str
    version: str
    signed: bool = False
    """It has signatures; whether they are good nobody has looked."""
    digest: bytes = b""
    """Of all but the signatures."""


class CardFetch(msgspec.Struct, frozen=True):
    """A call that brought a card."""

    card: CardIdentity
    changed: bool | None = None
    """It differs from the one that was seen there before; None where there was none."""


class PushDelivery(msgspec.Struct, frozen=True):
    """A push notification, as far as other calls tell of it."""

    attempt: int
    """From 1: how often this was delivered, since it was taken last."""
    token: bool | None = None
    """The token is that of the push configuration; None where neither has one, or no configuration was seen."""


class RequestFacts(msgspec.Struct, frozen=True):
    """What the first message of a client says about the call."""

    message_id: str = ""
    references: tuple[str, ...] = ()
    """`referenceTaskIds`."""
    tenant: str = ""
    parent: SpanContextIds | None = None
    """The trace context in the metadata of the message, or of the call."""


class CallFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A call, and what other rows say about it."""

    exchange: Exchange
    connection: Connection | None
    request: RequestFacts
    context: SpanContextIds
    parent: SpanContextIds | None
    card: CardIdentity | None = None
    """The last one that was seen of its agent."""
    fetch: CardFetch | None = None
    delivery: PushDelivery | None = None
    resumed_from: int = 0
    """Number of the stream that was cut, and with which this one goes on; 0 where there is none."""
    content: MessageContent = NO_CONTENT
    links: tuple[SpanLink, ...] = ()


def parse_request(value: Any, message_id: str) -> RequestFacts:
    """Read the parameters of a call, in 1.0 form (`protocol.decoded`); a JSON-RPC envelope may be around them."""
    if isinstance(value, dict) and "jsonrpc" in value:
        value = value.get("params")
    if not isinstance(value, dict):
        return RequestFacts(message_id)
    message = value.get("message")
    message = message if isinstance(message, dict) else {}
    references = message.get("referenceTaskIds")
    named = tuple(each for each in references if isinstance(each, str)) if isinstance(references, list) else ()
    tenant = value.get("tenant")
    parent = _message_context(message) or _message_context(value)
    return RequestFacts(message_id, named, tenant if isinstance(tenant, str) else "", parent)


def _message_context(value: dict[str, Any]) -> SpanContextIds | None:
    metadata = value.get("metadata")
    parent, state = (metadata.get(name) for name in _TRACE_HEADERS) if isinstance(metadata, dict) else (None, None)
    return parse_trace_context(parent, state if isinstance(state, str) else "") if isinstance(parent, str) else None


_TRACE_HEADERS = ("traceparent", "tracestate")


def context_of_headers(exchange: Exchange) -> SpanContextIds | None:
    """The caller's span as header fields, or gRPC metadata, name it."""
    if not exchange.traceparent:
        return None
    states = (value for name, value in exchange.request_headers if name.lower() == b"tracestate")
    return parse_trace_context(exchange.traceparent, b",".join(states).decode("latin-1"))


def parse_trace_context(traceparent: str, tracestate: str) -> SpanContextIds | None:
    """The caller's span of two texts of W3C Trace Context; None where the first is none."""
    found = parse_traceparent(traceparent)
    return msgspec.structs.replace(found, state=parse_tracestate(tracestate)) if found is not None else None


def state_label(number: int) -> str:
    """A state as people say it; a number of no known state as it is."""
    return TaskState(number).label if number in TaskState._value2member_map_ else str(number)
