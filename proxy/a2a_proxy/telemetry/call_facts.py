"""Facts about a call from which its span is built. No I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from a2a_proxy.model.values import Connection, Exchange
from a2a_proxy.telemetry.ids import parse_traceparent, parse_tracestate
from a2a_proxy.telemetry.message_content import NO_CONTENT, MessageContent
from a2a_proxy.telemetry.values import SpanContextIds, SpanLink

if TYPE_CHECKING:
    from a2a_proxy.rules.endings.ending import Ending


class CardIdentity(msgspec.Struct, frozen=True):
    """Identity of an agent according to its card."""

    name: str
    version: str
    signed: bool = False
    """Whether the card has signatures; they are not verified."""
    digest: bytes = b""
    """SHA-256 of the card without its signatures."""


class CardFetch(msgspec.Struct, frozen=True):
    """A call that returned a card."""

    card: CardIdentity
    changed: bool | None = None
    """Whether the card differs from the previous one at this address; None if there was no previous
    one."""


class PushDelivery(msgspec.Struct, frozen=True):
    """A push notification and its relation to earlier calls."""

    attempt: int
    """Number of the attempt, from 1, counted since the receiver last accepted this notification."""
    token: bool | None = None
    """Whether the token is that of the push configuration; None if neither has one, or no
    configuration was seen."""


class RequestFacts(msgspec.Struct, frozen=True):
    """Facts from the first client message of a call."""

    message_id: str = ""
    references: tuple[str, ...] = ()
    """`referenceTaskIds`."""
    tenant: str = ""
    parent: SpanContextIds | None = None
    """The trace context in the metadata of the message, or of the call."""


class CallFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A call with the related facts from other rows."""

    exchange: Exchange
    connection: Connection | None
    request: RequestFacts
    context: SpanContextIds
    parent: SpanContextIds | None
    card: CardIdentity | None = None
    """The last card seen of its agent."""
    service: str = ""
    """Name of its agent (`services.ServiceNames`)."""
    card_url: str = ""
    """URL from which the agent's card was last fetched; empty if it was not."""
    fetch: CardFetch | None = None
    delivery: PushDelivery | None = None
    resumed_from: int = 0
    """Number of the cut stream that this one continues; 0 if there is none."""
    content: MessageContent = NO_CONTENT
    links: tuple[SpanLink, ...] = ()
    ending: Ending | None = None
    """Why it did not end well."""


def parse_request(value: Any, message_id: str) -> RequestFacts:
    """Read the parameters of a call in 1.0 form (`protocol.decoded`), with or without a JSON-RPC
    envelope."""
    if isinstance(value, dict) and "jsonrpc" in value:
        value = value.get("params")
    if not isinstance(value, dict):
        return RequestFacts(message_id)
    message = value.get("message")
    message = message if isinstance(message, dict) else {}
    references = message.get("referenceTaskIds")
    named = (
        tuple(each for each in references if isinstance(each, str))
        if isinstance(references, list)
        else ()
    )
    tenant = value.get("tenant")
    parent = _message_context(message) or _message_context(value)
    return RequestFacts(message_id, named, tenant if isinstance(tenant, str) else "", parent)


def _message_context(value: dict[str, Any]) -> SpanContextIds | None:
    metadata = value.get("metadata")
    parent, state = (
        (metadata.get(name) for name in _TRACE_HEADERS)
        if isinstance(metadata, dict)
        else (None, None)
    )
    return (
        parse_trace_context(parent, state if isinstance(state, str) else "")
        if isinstance(parent, str)
        else None
    )


_TRACE_HEADERS = ("traceparent", "tracestate")


def context_of_headers(exchange: Exchange) -> SpanContextIds | None:
    """Return the caller's span from the header fields or gRPC metadata, or None."""
    if not exchange.traceparent:
        return None
    states = (value for name, value in exchange.request_headers if name.lower() == b"tracestate")
    return parse_trace_context(exchange.traceparent, b",".join(states).decode("latin-1"))


def parse_trace_context(traceparent: str, tracestate: str) -> SpanContextIds | None:
    """Return the caller's span from two W3C Trace Context values, or None if the first is
    invalid."""
    found = parse_traceparent(traceparent)
    return (
        msgspec.structs.replace(found, state=parse_tracestate(tracestate))
        if found is not None
        else None
    )
