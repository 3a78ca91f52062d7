"""Facts that the connections of a session share: exchange numbers, agent cards, dialects, push URLs.

Deterministic: exchanges are numbered in wire order, so the same bytes get the same numbers again.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import msgspec

from a2a_proxy.model.exchange import Dialect, LiveMode

_MAX_PUSH_URLS = 10_000
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
    """Protocol version of a card before 1.0; `0.1` if the card has none but has the old authentication member."""
    interfaces: tuple[Interface, ...] = ()


class SessionContext:
    """Shared facts of one session."""

    def __init__(self, live: LiveMode = "auto") -> None:
        self.live: LiveMode = live
        """Payload of SendLiveMessage: the user's choice, or `auto` to detect it from the bytes."""
        self._last_exchange = 0
        self._cards: dict[str, CardFacts] = {}
        self._dialects: dict[str, Dialect] = {}
        self._push_urls: dict[str, None] = {}
        self._receivers: dict[str, None] = {}
        self._new_receivers: list[str] = []
        self._groups: dict[str, str] = {}
        """Address -> the upstream whose card has it."""

    def next_exchange(self) -> int:
        """Return the number of a new exchange, from 1."""
        self._last_exchange += 1
        return self._last_exchange

    def skip_exchanges_to(self, number: int) -> None:
        """Continue numbering after `number`, because earlier exchanges are already known."""
        self._last_exchange = max(self._last_exchange, number)

    def learn_card(self, agent: str, card: object) -> None:
        """Store the facts of an agent card (decoded JSON) of `agent`."""
        if not isinstance(card, dict):
            return
        facts = self._cards[agent] = card_facts(card)
        group = self.agent_of(agent)
        for interface in facts.interfaces:
            place = address_of(interface.url)
            if place and len(self._groups) < _MAX_PUSH_URLS:
                self._groups.setdefault(place, group)

    def agent_of(self, upstream: str) -> str:
        """Return the agent behind an upstream: all interfaces of a card are one agent, named by the card's own
        upstream."""
        return self._groups.get(address_of(upstream), upstream)

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

    def learn_push_url(self, url: str) -> None:
        """Store a URL from a push configuration."""
        if url and url not in self._push_urls and len(self._push_urls) < _MAX_PUSH_URLS:
            self._push_urls[url] = None
            receiver = origin_of(url)
            if receiver and receiver not in self._receivers and len(self._receivers) < _MAX_RECEIVERS:
                self._receivers[receiver] = None
                self._new_receivers.append(receiver)

    def pop_new_receivers(self) -> list[str]:
        """Return the receivers of push notifications, as `http://host:port`, that were learned since the last call."""
        found, self._new_receivers = self._new_receivers, []
        return found

    def is_push_url(self, authority: str, target: str) -> bool:
        """Whether a push configuration has this address."""
        if not self._push_urls:
            return False
        absolute = "://" in target.partition("?")[0]
        return any(
            candidate in self._push_urls
            for candidate in ([target] if absolute else [f"http://{authority}{target}", f"https://{authority}{target}"])
        )

    def tenant_of(self, agent: str, prefix: str) -> str:
        """Return the tenant in a REST prefix: the only segment after an interface's path (Q-33), or an empty string."""
        paths = {interface.path for interface in self.get_card(agent).interfaces}
        for path in sorted(paths, key=len, reverse=True):
            rest = prefix[len(path) :].strip("/") if prefix.startswith(path) else ""
            if rest and "/" not in rest and prefix.rstrip("/") not in paths:
                return rest
        return ""

    def save(self) -> dict[str, object]:
        """Return the state as plain values for msgpack."""
        return {
            "live": self.live,
            "last_exchange": self._last_exchange,
            "cards": {agent: msgspec.to_builtins(card) for agent, card in self._cards.items()},
            "dialects": {agent: str(dialect) for agent, dialect in self._dialects.items()},
            "groups": dict(self._groups),
            "push_urls": list(self._push_urls),
        }

    @classmethod
    def restore(cls, state: dict[str, Any]) -> SessionContext:
        """Return the context of a state that `save` returned."""
        shared = cls(state["live"])
        shared._last_exchange = state["last_exchange"]
        shared._cards = msgspec.convert(state["cards"], dict[str, CardFacts])
        shared._dialects = {agent: Dialect(value) for agent, value in state["dialects"].items()}
        shared._groups = dict(state["groups"])
        shared._push_urls = dict.fromkeys(state["push_urls"])
        shared._receivers = dict.fromkeys(list(filter(None, map(origin_of, shared._push_urls)))[:_MAX_RECEIVERS])
        return shared


_EMPTY_CARD = CardFacts()
_LOCAL_HOSTS = frozenset({"127.0.0.1", "::1", "0.0.0.0", "::"})


@lru_cache(1024)
def address_of(url: str) -> str:
    """Return `host:port` of a URL or address, with `localhost` for every name of this machine; empty if invalid."""
    try:
        parts = urlsplit(url if "://" in url else f"//{url}")
        host, port = parts.hostname, parts.port
    except ValueError:
        return ""
    if not host:
        return ""
    return f"{'localhost' if host in _LOCAL_HOSTS else host}:{port or (443 if parts.scheme == 'https' else 80)}"


def origin_of(url: str) -> str:
    """Return scheme, host and port of an HTTP URL, without user information; empty if it is invalid."""
    try:
        parts = urlsplit(url)
        place = parts.netloc.rpartition("@")[2]
        return f"{parts.scheme}://{place}" if parts.scheme in ("http", "https") and parts.hostname else ""
    except ValueError:
        return ""


def card_facts(card: dict[str, Any]) -> CardFacts:
    """Read a card of any dialect, ignoring members of a wrong type. `supportedInterfaces` takes precedence."""
    interfaces = [
        Interface(
            entry["url"],
            _text_member(entry, "protocolBinding"),
            _text_member(entry, "protocolVersion"),
            _text_member(entry, "tenant"),
        )
        for entry in _interface_entries(card, "supportedInterfaces")
    ]
    version = _text_member(card, "protocolVersion")
    if not interfaces:
        version = version or ("0.1" if "authentication" in card else "0.2" if "url" in card else "")
        main = _text_member(card, "url")
        interfaces = [Interface(main, _text_member(card, "preferredTransport") or "JSONRPC", version)] if main else []
        extra = _interface_entries(card, "additionalInterfaces")
        interfaces += [Interface(entry["url"], _text_member(entry, "transport"), version) for entry in extra]
    return CardFacts(_text_member(card, "name"), version, tuple(interfaces))


def _interface_entries(card: dict[str, Any], name: str) -> list[dict[str, Any]]:
    entries = card.get(name)
    if not isinstance(entries, list):
        return []
    return [entry for entry in entries if isinstance(entry, dict) and isinstance(entry.get("url"), str)]


def _text_member(entry: dict[str, Any], name: str) -> str:
    value = entry.get(name)
    return value if isinstance(value, str) else ""
