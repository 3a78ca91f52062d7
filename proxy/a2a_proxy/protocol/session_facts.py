"""What the connections of a session have in common: exchange numbers, what cards said, who speaks what, push URLs.

Deterministic: numbers are allotted in the order of the wire, so the same bytes get the same numbers again.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import msgspec

from a2a_proxy.model.exchange import Dialect, LiveMode

_MAX_PUSH_URLS = 10_000


class Interface(msgspec.Struct, frozen=True):
    """One interface of a card."""

    url: str
    binding: str = ""
    version: str = ""
    tenant: str = ""

    @property
    def path(self) -> str:
        """Path of the URL without a closing slash; empty where it is no URL."""
        try:
            return urlsplit(self.url).path.rstrip("/")
        except ValueError:
            return ""


class CardFacts(msgspec.Struct, frozen=True):
    """What a card tells that helps to read traffic."""

    name: str = ""
    version: str = ""
    """Protocol version of a card before 1.0, `0.1` where it names none and has the old authentication member."""
    interfaces: tuple[Interface, ...] = ()


class SessionContext:
    """One per session."""

    def __init__(self, live: LiveMode = "auto") -> None:
        self.live: LiveMode = live
        """Which payload SendLiveMessage carries: what the user said, or by the bytes."""
        self._last_exchange = 0
        self._cards: dict[str, CardFacts] = {}
        self._dialects: dict[str, Dialect] = {}
        self._push_urls: dict[str, None] = {}
        self._groups: dict[str, str] = {}
        """Address -> the upstream whose card named it."""

    def next_exchange(self) -> int:
        """The number of a new exchange, from 1."""
        self._last_exchange += 1
        return self._last_exchange

    def skip_exchanges_to(self, number: int) -> None:
        """Exchanges up to `number` are known already."""
        self._last_exchange = max(self._last_exchange, number)

    def learn_card(self, agent: str, card: object) -> None:
        """Remember an agent card (decoded JSON) of `agent`."""
        if not isinstance(card, dict):
            return
        facts = self._cards[agent] = card_facts(card)
        group = self.agent_of(agent)
        for interface in facts.interfaces:
            place = address_of(interface.url)
            if place and len(self._groups) < _MAX_PUSH_URLS:
                self._groups.setdefault(place, group)

    def agent_of(self, upstream: str) -> str:
        """Whose tasks an upstream has: all interfaces of one card are one agent, named by where the card came from."""
        return self._groups.get(address_of(upstream), upstream)

    def card(self, agent: str) -> CardFacts:
        """What this agent's card said; empty facts where none was seen."""
        return self._cards.get(agent, _EMPTY_CARD)

    def learn_dialect(self, agent: str, dialect: Dialect) -> None:
        """Remember what the JSON peers of this agent speak (manual/protocol.md "Classification")."""
        if dialect is not Dialect.UNKNOWN:
            self._dialects[agent] = dialect

    def dialect(self, agent: str) -> Dialect:
        """What was spoken with this agent last; UNKNOWN before the first call."""
        return self._dialects.get(agent, Dialect.UNKNOWN)

    def learn_push_url(self, url: str) -> None:
        """Remember a URL that a push configuration named."""
        if url and len(self._push_urls) < _MAX_PUSH_URLS:
            self._push_urls[url] = None

    def is_push_url(self, authority: str, target: str) -> bool:
        """A push configuration named this address."""
        if not self._push_urls:
            return False
        absolute = "://" in target.partition("?")[0]
        return any(
            candidate in self._push_urls
            for candidate in ([target] if absolute else [f"http://{authority}{target}", f"https://{authority}{target}"])
        )

    def tenant_of(self, agent: str, prefix: str) -> str:
        """The tenant in what stands before a REST suffix: the one segment after an interface's path (Q-33)."""
        paths = {interface.path for interface in self.card(agent).interfaces}
        for path in sorted(paths, key=len, reverse=True):
            rest = prefix[len(path) :].strip("/") if prefix.startswith(path) else ""
            if rest and "/" not in rest and prefix.rstrip("/") not in paths:
                return rest
        return ""

    def save(self) -> dict[str, object]:
        """Plain values for msgpack."""
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
        """The state that `save` gave."""
        shared = cls(state.get("live", "auto"))
        shared._last_exchange = state["last_exchange"]
        shared._cards = msgspec.convert(state["cards"], dict[str, CardFacts])
        shared._dialects = {agent: Dialect(value) for agent, value in state["dialects"].items()}
        shared._groups = dict(state["groups"])
        shared._push_urls = dict.fromkeys(state["push_urls"])
        return shared


_EMPTY_CARD = CardFacts()
_LOCAL_HOSTS = frozenset({"127.0.0.1", "::1", "0.0.0.0", "::"})


@lru_cache(1024)
def address_of(url: str) -> str:
    """`host:port` of a URL or an address, every name of this machine as `localhost`; empty where there is none."""
    try:
        parts = urlsplit(url if "://" in url else f"//{url}")
        host, port = parts.hostname, parts.port
    except ValueError:
        return ""
    if not host:
        return ""
    return f"{'localhost' if host in _LOCAL_HOSTS else host}:{port or (443 if parts.scheme == 'https' else 80)}"


def card_facts(card: dict[str, Any]) -> CardFacts:
    """Read a card of any line; members of a wrong type are ignored. `supportedInterfaces` goes first."""
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
