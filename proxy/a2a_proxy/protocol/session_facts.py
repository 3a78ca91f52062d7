"""Facts that the connections of a session share: exchange numbers, agents, their cards and
dialects, push URLs.

Deterministic: exchanges are numbered in wire order, so the same bytes get the same numbers again.
"""

from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import msgspec

from a2a_proxy.model.option import LiveMode
from a2a_proxy.model.saved_state import State
from a2a_proxy.model.values import Dialect
from a2a_proxy.protocol.extensions.members import text_member

_MAX_PUSH_URLS = 10_000
MAX_PLACES = 10_000
"""Base paths and addresses with an agent of their own; calls at further ones are calls of the
upstream."""
_MAX_CARD_PLACES = 64
"""Interfaces of one card that are places of its agent."""
_MAX_BASE_PATH = 256
_MAX_RECEIVERS = 20
"""Receivers of push notifications that are reported."""


class Interface(msgspec.Struct, frozen=True):
    """One interface of a card."""

    url: str
    binding: str = ""
    version: str = ""
    tenant: str = ""

    @property
    def path(self) -> str:
        """Path of the URL without a closing slash; empty if the URL is invalid."""
        try:
            return urlsplit(self.url).path.rstrip("/")
        except ValueError:
            return ""


class CardFacts(msgspec.Struct, frozen=True):
    """Facts of an agent card that help to decode traffic."""

    name: str = ""
    version: str = ""
    """Protocol version of a card before 1.0; `0.1` if the card has none but has the old
    authentication member."""
    interfaces: tuple[Interface, ...] = ()


class AgentFacts(State):
    """What cards and calls have shown of the agents of a session, by the name of the agent
    (`Exchange.agent`)."""

    _cards: dict[str, CardFacts] = {}
    _dialects: dict[str, Dialect] = {}

    def learn_card(self, agent: str, card: object) -> CardFacts:
        """Store the facts of an agent card (decoded JSON) of `agent`, and return them."""
        if isinstance(card, dict):
            self._cards[agent] = card_facts(card)
        return self.get_card(agent)

    def get_card(self, agent: str) -> CardFacts:
        """Return the facts of this agent's card, or empty facts if none was seen."""
        return self._cards.get(agent, _EMPTY_CARD)

    def learn_dialect(self, agent: str, dialect: Dialect) -> None:
        """Store the dialect of this agent's JSON peers (manual/protocol.md "Classification")."""
        if dialect is not Dialect.UNKNOWN:
            self._dialects[agent] = dialect

    def get_dialect(self, agent: str) -> Dialect:
        """Return the dialect last spoken with this agent, UNKNOWN before the first call."""
        return self._dialects.get(agent, Dialect.UNKNOWN)

    def tenant_of(self, agent: str, prefix: str) -> str:
        """Return the tenant in a REST prefix: the only segment after an interface's path (Q-33), or
        an empty string."""
        paths = {interface.path for interface in self.get_card(agent).interfaces}
        for path in sorted(paths, key=len, reverse=True):
            rest = prefix[len(path) :].strip("/") if prefix.startswith(path) else ""
            if rest and "/" not in rest and prefix.rstrip("/") not in paths:
                return rest
        return ""


class SessionContext(AgentFacts):
    """Shared facts of one session. It decides which agent is called, by the place of a call."""

    live: LiveMode = "auto"
    """Payload of SendLiveMessage: the user's choice, or `auto` to detect it from the bytes."""
    _last_exchange: int = 0
    _push_urls: dict[str, str] = {}
    """URL of push configurations -> the agent that has them; empty if several agents do."""
    _receivers: dict[str, None] = {}
    _new_receivers: list[str] = []
    _places: dict[str, dict[str, str]] = {}
    """Address -> base path -> agent. A card is at a base path too, with its query if it was fetched
    with one."""
    _place_count: int = 0

    def next_exchange(self) -> int:
        """Return the number of a new exchange, from 1."""
        self._last_exchange += 1
        return self._last_exchange

    def skip_exchanges_to(self, number: int) -> None:
        """Continue numbering after `number`, because earlier exchanges are already known."""
        self._last_exchange = max(self._last_exchange, number)

    # --- agents

    def agent_at(self, upstream: str, path: str) -> str:
        """Return the agent that an A2A call at this base path of an upstream reaches: that of
        `find_agent`, else an agent named by the place, now and later."""
        address, path = address_of(upstream), path[:_MAX_BASE_PATH]
        agent = self._agent_above(address, path) or ("" if path else self._only_agent(address))
        if not agent:
            path = path.removesuffix("/v1")  # of the REST binding before 1.0
            agent = self._places.get(address, {}).get(path, "") or f"{upstream.rstrip('/')}{path}"
            agent = agent if self._claim_place(address, path, agent) else upstream
        return agent

    def find_agent(self, upstream: str, path: str) -> str:
        """Return the agent at this path of an upstream: that whose card has the longest base path
        above it, else the only one of the origin, else the upstream."""
        address = address_of(upstream)
        return (
            self._agent_above(address, path[:_MAX_BASE_PATH])
            or self._only_agent(address)
            or upstream
        )

    def _agent_above(self, address: str, path: str) -> str:
        """Return the agent at this path, or that whose card has the longest base path above it;
        empty if there is none."""
        places = self._places.get(address, {})
        agent, above = places.get(path, ""), path
        while not agent and above:
            above = above.rpartition("/")[0]
            agent = places.get(above, "")
            agent = agent if agent in self._cards else ""
        return agent

    def _only_agent(self, address: str) -> str:
        """Return the agent that has all known places of an origin; empty if there is none."""
        agents = iter(self._places.get(address, {}).values())
        first = next(agents, "")
        return first if all(each == first for each in agents) else ""

    def _claim_place(self, address: str, path: str, agent: str) -> bool:
        """Make a place that of `agent`, unless it is that of an agent whose card is known; return
        whether it is known now."""
        places = self._places.setdefault(address, {})
        if path not in places:
            if self._place_count >= MAX_PLACES:
                return False
            self._place_count += 1
        if places.get(path) not in self._cards:
            places[path] = agent
        return True

    def agent_of_card(
        self, upstream: str, place: str, card: dict[str, Any], *, names: bool = True
    ) -> str:
        """Return the agent of a card that was fetched at this place of an upstream. `names`:
        whether the place is its base path; otherwise an interface names it.

        The first name of one of its places wins, so that an agent with several ports and bindings
        is one. Another agent that has claimed the URL of an interface is not it, if its card has
        another name.
        """
        address, facts = address_of(upstream), card_facts(card)
        places, place = _places_of(address, facts), place[:_MAX_BASE_PATH]
        agent = self._places.get(address, {}).get(place, "")
        for where, path in places:
            if not agent:
                agent = self._places.get(where, {}).get(path, "")
                agent = (
                    agent
                    if agent not in self._cards or self._cards[agent].name == facts.name
                    else ""
                )
        base = place if names else next((path for where, path in places if where == address), "")
        agent = agent or f"{upstream.rstrip('/')}{base}"
        return agent if self._claim_place(address, place, agent) else upstream

    def learn_card(
        self, agent: str, card: object, upstream: str = "", place: str | None = None
    ) -> CardFacts:
        """Store the facts of an agent card (decoded JSON) of `agent`, which all of its interfaces
        reach, and return them. Behind a gateway at `upstream` the interfaces have public names, but
        often the same paths. `place`: where the card was fetched, if not by a call."""
        address, facts = address_of(upstream), super().learn_card(agent, card)
        if place is not None:
            self._claim_place(address, place[:_MAX_BASE_PATH], agent)
        for where, path in _places_of(address, facts):
            self._claim_place(where, path, agent)
        return facts

    # --- push notifications

    def learn_push_url(self, url: str, agent: str) -> None:
        """Store a URL from a push configuration of `agent`."""
        if url in self._push_urls:
            if self._push_urls[url] != agent:
                self._push_urls[url] = ""
        elif url and len(self._push_urls) < _MAX_PUSH_URLS:
            self._push_urls[url] = agent
            receiver = origin_of(url)
            if (
                receiver
                and receiver not in self._receivers
                and len(self._receivers) < _MAX_RECEIVERS
            ):
                self._receivers[receiver] = None
                self._new_receivers.append(receiver)

    def pop_new_receivers(self) -> list[str]:
        """Return the receivers of push notifications, as `http://host:port`, that were learned
        since the last call."""
        found, self._new_receivers = self._new_receivers, []
        return found

    def agent_of_push_url(self, authority: str, target: str) -> str | None:
        """Return the agent whose push configurations have this address; empty if several agents do,
        None if no configuration has it."""
        if not self._push_urls:
            return None
        absolute = "://" in target.partition("?")[0]
        urls = (
            (target,)
            if absolute
            else (f"http://{authority}{target}", f"https://{authority}{target}")
        )
        return next((self._push_urls[url] for url in urls if url in self._push_urls), None)


_EMPTY_CARD = CardFacts()
_LOCAL_HOSTS = frozenset({"127.0.0.1", "::1", "0.0.0.0", "::"})


@lru_cache(1024)
def address_of(url: str) -> str:
    """Return `host:port` of a URL or address, with `localhost` for every name of this machine;
    empty if invalid."""
    try:
        parts = urlsplit(url if "://" in url else f"//{url}")
        host, port = parts.hostname, parts.port
    except ValueError:
        return ""
    if not host:
        return ""
    port = port or (443 if parts.scheme in ("https", "wss") else 80)
    return f"{'localhost' if host in _LOCAL_HOSTS else host}:{port}"


def path_of(target: str) -> str:
    """Return the path of a request target, in origin or absolute form, without query and closing
    slash."""
    path = target.partition("?")[0]
    return (f"/{path.partition('://')[2].partition('/')[2]}" if "://" in path else path).rstrip("/")


def _places_of(upstream: str, facts: CardFacts) -> list[tuple[str, str]]:
    """Return address and base path of the interfaces of a card, and the same paths at the address
    of the upstream."""
    places: dict[tuple[str, str], None] = {}
    for interface in facts.interfaces[:_MAX_CARD_PLACES]:
        path = interface.path[:_MAX_BASE_PATH]
        places[address_of(interface.url), path] = None
        if path:
            places[upstream, path] = None
    return [each for each in places if each[0]]


def origin_of(url: str) -> str:
    """Return scheme, host and port of an HTTP URL, without user information; empty if it is
    invalid."""
    try:
        parts = urlsplit(url)
        place = parts.netloc.rpartition("@")[2]
        return (
            f"{parts.scheme}://{place}"
            if parts.scheme in ("http", "https") and parts.hostname
            else ""
        )
    except ValueError:
        return ""


def card_facts(card: dict[str, Any]) -> CardFacts:
    """Read a card of any dialect, ignoring members of a wrong type. `supportedInterfaces` takes
    precedence."""
    interfaces = [
        Interface(
            entry["url"],
            text_member(entry, "protocolBinding"),
            text_member(entry, "protocolVersion"),
            text_member(entry, "tenant"),
        )
        for entry in _interface_entries(card, "supportedInterfaces")
    ]
    version = text_member(card, "protocolVersion")
    if not interfaces:
        version = version or ("0.1" if "authentication" in card else "0.2" if "url" in card else "")
        main = text_member(card, "url")
        interfaces = (
            [Interface(main, text_member(card, "preferredTransport") or "JSONRPC", version)]
            if main
            else []
        )
        extra = _interface_entries(card, "additionalInterfaces")
        interfaces += [
            Interface(entry["url"], text_member(entry, "transport"), version) for entry in extra
        ]
    return CardFacts(text_member(card, "name"), version, tuple(interfaces))


def _interface_entries(card: dict[str, Any], name: str) -> list[dict[str, Any]]:
    entries = card.get(name)
    if not isinstance(entries, list):
        return []
    return [
        entry for entry in entries if isinstance(entry, dict) and isinstance(entry.get("url"), str)
    ]
