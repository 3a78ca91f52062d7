"""Which URLs of a card lead to this agent, and what they become so that clients stay on the proxy.

A card must not open a way into someone's network: only the upstream's own host counts. Resolves nothing: the aliases
are handed in.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

import msgspec

from a2a_proxy.relay.edits.card import CardUrl, read_card, write_card
from a2a_proxy.relay.edits.edit import AgentInterface, CardOutcome, ConsoleNote
from a2a_proxy.relay.route import is_loopback

RewriteMode = Literal["auto", "always", "never"]

_URL_PATTERN = re.compile(
    r"(?:(https?|grpcs?)://)?(\[[0-9a-f:.]+\]|[^\s/:?#@\[\]\\]+)(?::([0-9]{1,5}))?([/?#].*)?", re.IGNORECASE | re.DOTALL
)
_LOCAL_HOSTS = frozenset({"localhost", "0.0.0.0", "::"})
_MAX_LISTED_URLS = 5


class CardAddress(msgspec.Struct, frozen=True):
    """A URL of a card, taken apart."""

    scheme: str
    """In lower case; empty for the bare `host:port` of gRPC."""
    host: str
    """In lower case, an IPv6 address without brackets."""
    port: int
    suffix: str
    """From the path on."""
    grpc: bool

    @property
    def tls(self) -> bool | None:
        """None: the URL does not say."""
        return self.scheme in ("https", "grpcs") if self.scheme else None

    def with_authority(self, authority: str) -> str:
        """The URL with another authority, that of a listener without TLS."""
        if self.scheme:
            return f"{self.scheme.removesuffix('s')}://{authority}{self.suffix}"
        return f"{authority if _has_port(authority) else authority + ':80'}{self.suffix}"


def parse_card_url(url: CardUrl) -> CardAddress | None:
    """Where a URL leads; None where it is none that a client connects to (a stdio command, nonsense)."""
    transport = url.transport.lower()
    found = _URL_PATTERN.fullmatch(url.text)
    if found is None or transport == "stdio":
        return None
    scheme, host, port = (found[1] or "").lower(), found[2].lower().strip("[]"), found[3]
    grpc = transport == "grpc" or scheme.startswith("grpc")
    if not scheme and not grpc:
        return None
    number = int(port) if port else 80 if scheme in ("http", "grpc") else 443
    return CardAddress(scheme, host, number, found[4] or "", grpc) if 0 < number < 65536 else None


def is_local(host: str) -> bool:
    """The host is written as one that means the machine itself."""
    return host in _LOCAL_HOSTS or is_loopback(host)


def host_of_authority(authority: str) -> str:
    """The host of `host[:port]`, an IPv6 address in its brackets."""
    return authority.rpartition(":")[0] if _has_port(authority) else authority


def _has_port(authority: str) -> bool:
    return ":" in authority.rpartition("]")[2]


class AgentAddresses(msgspec.Struct):
    """What is known of the agent behind one listener."""

    host: str
    """As the user wrote it, in lower case."""
    port: int
    tls: bool
    aliases: set[str]
    """Other hosts that are the same machine, in lower case."""
    grpc_host: str = ""
    """That of `--upstream-grpc`, in lower case; empty where there is none."""

    def is_agent_host(self, target: CardAddress) -> bool:
        """The host of a URL is this agent's, or an alias."""
        host = target.host
        return host == self.host or is_local(host) or host in self.aliases or (target.grpc and host == self.grpc_host)

    def is_same_machine(self, other: AgentAddresses) -> bool:
        """Both are on the same machine."""
        both_local = is_local(self.host) and is_local(other.host)
        return other.host == self.host or both_local or other.host in self.aliases


LearnInterface = Callable[[AgentInterface, str], str | None]
"""The authority under which the proxy carries an interface of the agent on another port, for a client that calls the
proxy by the second argument; None where it does not carry it, which the callback reports by itself."""


def rewrite_card_urls(
    payload: bytes, form: str, authority: str, agent: AgentAddresses, mode: RewriteMode, learn: LearnInterface
) -> CardOutcome:
    """What becomes of a card (`CardRewriter`) of this agent."""
    card = read_card(payload, form)
    if card is None or mode == "never":
        return CardOutcome()
    keep = card.signed and mode == "auto"
    new: dict[str, str] = {}
    elsewhere: list[str] = []
    learned: list[AgentInterface] = []
    for url in card.urls:
        place = parse_card_url(url)
        if place is None or url.text in new or (keep and not place.grpc):
            continue
        at: str | None = authority
        if not agent.is_agent_host(place):
            if mode != "always":
                elsewhere.append(url.text)
                continue
        elif place.port != agent.port:
            learned.append(_agent_interface(place, agent))
            at = learn(learned[-1], authority)
        if at is not None:
            new[url.text] = place.with_authority(at)
    changed = {} if keep else {before: after for before, after in new.items() if before != after}
    notes = [_signed_note(card.name, keep)] if card.signed else []
    if elsewhere and not keep:
        notes.append(_elsewhere_note(elsewhere))
    data = write_card(payload, form, changed) if changed else None
    return CardOutcome(data, tuple(changed.items()), tuple(notes), tuple(learned))


def _agent_interface(place: CardAddress, agent: AgentAddresses) -> AgentInterface:
    return AgentInterface(agent.host, place.port, agent.tls if place.tls is None else place.tls, place.grpc)


def _signed_note(name: str, keep: bool) -> ConsoleNote:
    card = f"the agent card {name!r}" if name else "the agent card"
    if keep:
        return ConsoleNote(
            f"{card} is signed, so it is passed on untouched: clients that follow its URLs leave the proxy",
            "to keep them on it, at the price of the signature: --rewrite-card always",
            loud=True,
        )
    return ConsoleNote(
        f"{card} is signed and was rewritten all the same: its signature does not verify any more", loud=True
    )


def _elsewhere_note(urls: list[str]) -> ConsoleNote:
    listed = ", ".join(urls[:_MAX_LISTED_URLS]) + (" and more" if len(urls) > _MAX_LISTED_URLS else "")
    return ConsoleNote(
        f"URLs in the agent card lead elsewhere: {listed}",
        "clients that follow them leave the proxy; to rewrite them too: --rewrite-card always",
        loud=True,
    )
