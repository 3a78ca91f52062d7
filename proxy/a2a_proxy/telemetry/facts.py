"""What is known of a call before it becomes a span. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.exchange import Connection, Exchange
from a2a_proxy.telemetry.ids import read_traceparent
from a2a_proxy.telemetry.values import Context, Link

_TRACEPARENT = "traceparent"


class Card(msgspec.Struct, frozen=True):
    """Who an agent says it is."""

    name: str
    version: str


class Asked(msgspec.Struct, frozen=True):
    """What the first message of a client says about the call."""

    message_id: str = ""
    references: tuple[str, ...] = ()
    """`referenceTaskIds`."""
    tenant: str = ""
    parent: Context | None = None
    """The trace context in the metadata of the message, or of the call."""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """A call, and what other rows say about it."""

    exchange: Exchange
    connection: Connection | None
    asked: Asked
    context: Context
    parent: Context | None
    card: Card | None = None
    links: tuple[Link, ...] = ()


def asked(value: Any, message_id: str) -> Asked:
    """Read the parameters of a call, in 1.0 form (`protocol.decoded`); a JSON-RPC envelope may be around them."""
    if isinstance(value, dict) and "jsonrpc" in value:
        value = value.get("params")
    if not isinstance(value, dict):
        return Asked(message_id)
    message = value.get("message")
    message = message if isinstance(message, dict) else {}
    references = message.get("referenceTaskIds")
    named = tuple(each for each in references if isinstance(each, str)) if isinstance(references, list) else ()
    tenant = value.get("tenant")
    parent = _context(message) or _context(value)
    return Asked(message_id, named, tenant if isinstance(tenant, str) else "", parent)


def _context(value: dict[str, Any]) -> Context | None:
    metadata = value.get("metadata")
    text = metadata.get(_TRACEPARENT) if isinstance(metadata, dict) else None
    return read_traceparent(text) if isinstance(text, str) else None


def state_label(number: int) -> str:
    """A state as people say it; a number of no known state as it is."""
    return TaskState(number).label if number in TaskState._value2member_map_ else str(number)
