"""The agent card fetched by a plain GET: discovery (A2A 1.0 section 8.2)."""

import msgspec

from a2a_proxy.model.values import Binding, Dialect, EventKind, FrameKind
from a2a_proxy.protocol.bindings import other
from a2a_proxy.protocol.call import (
    TO_AGENT,
    TO_CLIENT,
    ByteSpan,
    ExchangeDecoder,
    Out,
    make_detail,
)
from a2a_proxy.protocol.dialect import dialect_of_version
from a2a_proxy.protocol.json_shapes import UNREADABLE_ERRORS
from a2a_proxy.protocol.schema import JSON
from a2a_proxy.protocol.session_facts import path_of
from a2a_proxy.protocol.summary import NO_SUMMARY, make_summary

WELL_KNOWN_PATHS = ("/.well-known/agent-card.json", "/.well-known/agent.json")
"""Paths of the card: that of 0.3 and later, then that of earlier versions."""
_EXTENDED_CARD_PATH_0_2 = "/agent/authenticatedExtendedCard"
_CARD_PATHS = (*WELL_KNOWN_PATHS, _EXTENDED_CARD_PATH_0_2)


def is_card_path(method: str, target: str) -> bool:
    """Whether the request line fetches an agent card."""
    return method in ("GET", "HEAD") and target.partition("?")[0].endswith(_CARD_PATHS)


def is_card(data: bytes) -> bool:
    """Whether a body is an agent card, regardless of its URL: it has `skills` and a name."""
    found = read_card(data) if b'"skills"' in data else None
    return found is not None and isinstance(found.get("skills"), list) and "name" in found


def name_exchange(call: ExchangeDecoder) -> None:
    """Set the exchange's operation and agent, and the dialect if the path determines it."""
    extended = call.exchange.target.partition("?")[0].endswith(_EXTENDED_CARD_PATH_0_2)
    call.exchange.operation = "GetExtendedAgentCard" if extended else "GetAgentCard"
    call.exchange.agent = call.link.shared.find_agent(
        call.link.facts.upstream, place_of_card(call.exchange.target)[0]
    )
    if extended:
        call.exchange.dialect = Dialect.V0_2


def read_request(call: ExchangeDecoder, body: ByteSpan, out: Out) -> None:
    """Emit the request."""
    call.emit_frame(out, TO_AGENT, FrameKind.REQUEST, body, JSON if body.size else "", NO_SUMMARY)


def read_response(call: ExchangeDecoder, body: ByteSpan, out: Out, framing: str = "") -> None:
    """Emit the response: the card, 304, or an error."""
    card = read_card(body.data) if call.exchange.status < 400 else None
    if card is None:
        other.read_response(call, body, out, framing)
        return
    learn_card(call, card)
    summary, detail = make_summary(EventKind.CARD), make_detail(framing=framing)
    call.emit_frame(out, TO_CLIENT, FrameKind.RESPONSE, body, JSON, summary, detail)


def learn_card(call: ExchangeDecoder, card: dict[str, object]) -> None:
    """Store the card for later calls, and set the agent and the dialect that it shows."""
    shared, exchange, upstream = call.link.shared, call.exchange, call.link.facts.upstream
    if exchange.binding is Binding.CARD:
        place, names = place_of_card(exchange.target)
        exchange.agent = shared.agent_of_card(upstream, place, card, names=names)
        facts = shared.learn_card(exchange.agent, card, upstream, place)
    else:
        facts = shared.learn_card(exchange.agent, card, upstream)
    if "supportedInterfaces" in card:
        exchange.dialect = Dialect.V1_0
    elif exchange.dialect is Dialect.UNKNOWN:
        exchange.dialect = dialect_of_version(facts.version)


def place_of_card(target: str) -> tuple[str, bool]:
    """Return the place of a card that is fetched with this request target, and whether it is the
    base path of its agent: not if its path is not well-known, or if a query selects the agent."""
    path, query = path_of(target), target.partition("?")[2]
    base = next((path.removesuffix(each) for each in _CARD_PATHS if path.endswith(each)), None)
    return (
        f"{path if base is None else base}{query and f'?{query}'}",
        base is not None and not query,
    )


def read_card(data: bytes) -> dict[str, object] | None:
    """Return a JSON object that looks like a card (it has `skills`, or a name and a URL), or
    None."""
    try:
        card = msgspec.json.decode(data)
    except UNREADABLE_ERRORS:
        return None
    if not isinstance(card, dict):
        return None
    named = "name" in card and ("url" in card or "supportedInterfaces" in card)
    return card if "skills" in card or named else None
