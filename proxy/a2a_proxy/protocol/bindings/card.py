"""The agent card fetched by a plain GET: discovery (A2A 1.0 section 8.2)."""

from __future__ import annotations

import msgspec

from a2a_proxy.model.exchange import Dialect
from a2a_proxy.model.frame import EventKind, FrameKind
from a2a_proxy.protocol.bindings import other
from a2a_proxy.protocol.call import TO_AGENT, TO_CLIENT, ByteSpan, ExchangeDecoder, Out
from a2a_proxy.protocol.dialect import dialect_of_version
from a2a_proxy.protocol.json_shapes import UNREADABLE_ERRORS
from a2a_proxy.protocol.schema import JSON
from a2a_proxy.protocol.summary import NO_SUMMARY, make_summary

WELL_KNOWN_PATHS = ("/.well-known/agent-card.json", "/.well-known/agent.json")
"""Paths of the card: that of 0.3 and later, then that of earlier versions."""
_EXTENDED_CARD_PATH_0_2 = "/agent/authenticatedExtendedCard"


def is_card_path(method: str, target: str) -> bool:
    """Whether the request line fetches an agent card."""
    return method in ("GET", "HEAD") and target.partition("?")[0].endswith((*WELL_KNOWN_PATHS, _EXTENDED_CARD_PATH_0_2))


def is_card(data: bytes) -> bool:
    """Whether a body is an agent card, regardless of its URL: it has `skills` and a name."""
    found = read_card(data) if b'"skills"' in data else None
    return found is not None and isinstance(found.get("skills"), list) and "name" in found


def name_exchange(call: ExchangeDecoder) -> None:
    """Set the exchange's operation, and the dialect if the path determines it."""
    extended = call.exchange.target.partition("?")[0].endswith(_EXTENDED_CARD_PATH_0_2)
    call.exchange.operation = "GetExtendedAgentCard" if extended else "GetAgentCard"
    if extended:
        call.exchange.dialect = Dialect.V0_2


def read_request(call: ExchangeDecoder, body: ByteSpan, out: Out) -> None:
    """Emit the request."""
    call.emit_frame(out, TO_AGENT, FrameKind.REQUEST, body, JSON if body.size else "", NO_SUMMARY)


def read_response(call: ExchangeDecoder, body: ByteSpan, out: Out) -> None:
    """Emit the response: the card, 304, or an error."""
    card = read_card(body.data) if call.exchange.status < 400 else None
    if card is None:
        other.read_response(call, body, out)
        return
    learn_card(call, card)
    call.emit_frame(out, TO_CLIENT, FrameKind.RESPONSE, body, JSON, make_summary(EventKind.CARD))


def learn_card(call: ExchangeDecoder, card: dict[str, object]) -> None:
    """Store the card for later calls, and set the dialect that it shows."""
    shared, agent = call.link.shared, call.link.facts.upstream
    shared.learn_card(agent, card)
    if "supportedInterfaces" in card:
        call.exchange.dialect = Dialect.V1_0
    elif call.exchange.dialect is Dialect.UNKNOWN:
        call.exchange.dialect = dialect_of_version(shared.get_card(agent).version)


def read_card(data: bytes) -> dict[str, object] | None:
    """Return a JSON object that looks like a card (it has `skills`, or a name and a URL), or None."""
    try:
        card = msgspec.json.decode(data)
    except UNREADABLE_ERRORS:
        return None
    if not isinstance(card, dict):
        return None
    named = "name" in card and ("url" in card or "supportedInterfaces" in card)
    return card if "skills" in card or named else None
