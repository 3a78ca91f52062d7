"""The live agent before anything is sent: whether it is there, and where its card says its interfaces are."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

import aiohttp
import msgspec

from a2a_proxy.cli.errors import UserError
from a2a_proxy.drive.plan import BINDINGS
from a2a_proxy.model.exchange import Binding, Dialect
from a2a_proxy.protocol.bindings.card import read_card
from a2a_proxy.protocol.dialect import dialect_of_version
from a2a_proxy.protocol.session_facts import CardFacts, card_facts
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.relay.edits.card import CardUrl
from a2a_proxy.relay.edits.card_urls import CardAddress, is_local, parse_card_url
from a2a_proxy.relay.route import RouteError, Upstream
from a2a_proxy.relay.tls import HTTP1, Tls, Trust

_CARDS = ("/.well-known/agent-card.json", "/.well-known/agent.json")
_SECONDS = 5.0
"""How long a connection, or a card, may take."""


class AgentAddress(msgspec.Struct):
    """How the live agent is reached."""

    upstreams: list[Upstream]
    """Each gets a listener of the proxy; the first is the one that was named."""
    grpc: Upstream | None = None
    of: dict[Binding, tuple[int, str]] = {}
    """Of a binding: the number of its upstream, and the path of its interface."""
    versions: dict[Binding, frozenset[Dialect]] = {}
    """The dialects that the card offers on a binding."""
    notes: list[str] = []


async def reach(upstream: str, grpc: str, trust: Trust) -> AgentAddress:
    """Knock, and read the card if there is one.

    Raises:
        UserError: an address cannot be read, or nobody answers there.
    """
    try:
        main = Upstream.parse(upstream)
        other = Upstream.parse(grpc) if grpc else None
        context = Tls(trust).context(HTTP1) if main.tls else None
    except RouteError as wrong:
        raise UserError(wrong.message, wrong.hint) from wrong
    for each in filter(None, (main, other)):
        await _knock(each)
    found = AgentAddress([main], other, {}, {}, [])
    connector = aiohttp.TCPConnector(ssl=context if context is not None else True)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=_SECONDS)) as http:
        for path in _CARDS:
            card = await _card(http, f"http{'s' if main.tls else ''}://{main.address}{path}")
            if card is not None:
                _take(found, main, card)
                return found
    found.notes.append(f"{main.text} has no agent card: calls go to the recorded paths")
    return found


async def _knock(upstream: Upstream) -> None:
    """Raises UserError where nobody takes a connection."""
    try:
        async with asyncio.timeout(_SECONDS):
            _, writer = await asyncio.open_connection(upstream.host, upstream.port)
    except TimeoutError:
        raise UserError(f"cannot reach {upstream.text}: no answer", "check the host and the port") from None
    except OSError as wrong:
        why = "connection refused" if isinstance(wrong, ConnectionRefusedError) else (wrong.strerror or str(wrong))
        hint = f"start the agent, or name its port: --upstream {upstream.host}:PORT"
        raise UserError(f"cannot reach {upstream.text}: {why.lower()}", hint) from wrong
    writer.close()


async def _card(http: aiohttp.ClientSession, url: str) -> CardFacts | None:
    try:
        async with http.get(url) as response:
            card = read_card(await response.read()) if response.status == 200 else None
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
        return None
    return card_facts(card) if card is not None else None


def _take(found: AgentAddress, main: Upstream, card: CardFacts) -> None:
    """Where the card's interfaces are, the first of each binding; other hosts are told, not followed."""
    elsewhere: list[str] = []
    for interface in card.interfaces:
        binding = BINDINGS.get(interface.binding.lower())
        place = parse_card_url(CardUrl(interface.url, interface.binding))
        if binding is None or place is None:
            continue
        dialect = dialect_of_version(interface.version or card.version)
        if dialect is not Dialect.UNKNOWN:
            found.versions[binding] = found.versions.get(binding, frozenset()) | {dialect}
        if not _same_host(place, main):
            elsewhere.append(interface.url)
        elif binding is Binding.GRPC:
            found.grpc = found.grpc or _at(place, main)
        elif binding not in found.of:
            found.of[binding] = _number(found, place, main), urlsplit(interface.url).path
    if elsewhere:
        told = make_visible(", ".join(dict.fromkeys(elsewhere)))
        found.notes.append(f"the card of {main.text} leads elsewhere, which is not followed: {told}")


def _number(found: AgentAddress, place: CardAddress, main: Upstream) -> int:
    """Of the upstream that an HTTP interface is at."""
    if place.port == main.port:
        return 0
    there = _at(place, main)
    if there not in found.upstreams:
        found.upstreams.append(there)
    return found.upstreams.index(there)


def _at(place: CardAddress, main: Upstream) -> Upstream:
    tls = main.tls if place.tls is None else place.tls
    address = f"[{main.host}]" if ":" in main.host else main.host
    return Upstream.parse(f"{'https' if tls else 'http'}://{address}:{place.port}")


def _same_host(place: CardAddress, main: Upstream) -> bool:
    return place.host == main.host.lower() or (is_local(place.host) and is_local(main.host.lower()))


def offered(found: AgentAddress, binding: Binding) -> list[str]:
    """Dialects that the card offers on a binding, as words."""
    return sorted(str(dialect) for dialect in found.versions.get(binding, ()))
