"""Decide which URLs of a card lead to this agent, and rewrite them so that clients stay on the
proxy.

A card must not open a way into a private network: only the upstream's own host counts. Resolves no
names: the aliases are an input.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from a2a_proxy.model.option import RewriteMode
from a2a_proxy.relay.edits.card import CardUrl, read_card, write_card
from a2a_proxy.relay.edits.edit import AgentInterface, CardOutcome, ConsoleNote
from a2a_proxy.relay.route import HTTP_PORT, HTTPS_PORT, is_loopback

_URL_PATTERN = re.compile(
    r"(?:(https?|grpcs?|wss?)://)?(\[[0-9a-f:.]+\]|[^\s/:?#@\[\]\\]+)(?::([0-9]{1,5}))?([/?#].*)?",
    re.IGNORECASE | re.DOTALL,
)
_WITH_TLS = {"http": "https", "grpc": "grpcs", "ws": "wss"}
_WITHOUT_TLS = {secure: plain for plain, secure in _WITH_TLS.items()}
_LOCAL_HOSTS = frozenset({"localhost", "0.0.0.0", "::"})
_MAX_LISTED_URLS = 5


class CardAddress(msgspec.Struct, frozen=True):
    """The parts of a URL of a card."""

    scheme: str
    """Scheme in lower case; empty for the bare `host:port` of gRPC."""
    host: str
    """Host in lower case, an IPv6 address without brackets."""
    port: int
    suffix: str
    """The URL from its path on."""
    grpc: bool

    @property
    def tls(self) -> bool | None:
        """Whether the URL requires TLS; None if it has no scheme."""
        return self.scheme in _WITHOUT_TLS if self.scheme else None

    def with_authority(self, authority: str, *, tls: bool) -> str:
        """Return the URL with the authority of a listener, which the client reaches with or without
        TLS."""
        if self.scheme:
            schemes = _WITH_TLS if tls else _WITHOUT_TLS
            return f"{schemes.get(self.scheme, self.scheme)}://{authority}{self.suffix}"
        port = HTTPS_PORT if tls else HTTP_PORT
        return f"{authority if _has_port(authority) else f'{authority}:{port}'}{self.suffix}"


def parse_card_url(url: CardUrl) -> CardAddress | None:
    """Return the address of a URL, or None if clients do not connect to it (a stdio command, an
    invalid URL)."""
    transport = url.transport.lower()
    found = _URL_PATTERN.fullmatch(url.text)
    if found is None or transport == "stdio":
        return None
    scheme, host, port = (found[1] or "").lower(), found[2].lower().strip("[]"), found[3]
    grpc = transport == "grpc" or scheme.startswith("grpc")
    if not scheme and not grpc:
        return None
    number = int(port) if port else 80 if scheme in _WITH_TLS else 443
    return CardAddress(scheme, host, number, found[4] or "", grpc) if 0 < number < 65536 else None


def is_local(host: str) -> bool:
    """Return whether the host as written means the machine itself."""
    return host in _LOCAL_HOSTS or is_loopback(host)


def host_of_authority(authority: str) -> str:
    """Return the host of `host[:port]`, with an IPv6 address in its brackets."""
    return authority.rpartition(":")[0] if _has_port(authority) else authority


def _has_port(authority: str) -> bool:
    return ":" in authority.rpartition("]")[2]


class AgentAddresses(msgspec.Struct):
    """The addresses of the agent behind one listener."""

    host: str
    """Host as the user wrote it, in lower case."""
    port: int
    tls: bool
    aliases: set[str]
    """Other hosts that are the same machine, in lower case."""
    grpc_host: str = ""
    """Host of `--upstream-grpc` in lower case; empty without the option."""

    def is_agent_host(self, target: CardAddress) -> bool:
        """Return whether the host of a URL is this agent's, or an alias."""
        host = target.host
        return (
            host == self.host
            or is_local(host)
            or host in self.aliases
            or (target.grpc and host == self.grpc_host)
        )

    def is_same_machine(self, other: AgentAddresses) -> bool:
        """Return whether both agents are on the same machine."""
        both_local = is_local(self.host) and is_local(other.host)
        return other.host == self.host or both_local or other.host in self.aliases


LearnInterface = Callable[[AgentInterface, str], str | None]
"""Returns the authority under which the proxy relays an interface of the agent on another port, for
a client that calls the proxy by the second argument, or None if it does not relay the interface,
which the callback reports by itself."""


def rewrite_card_urls(
    payload: bytes,
    form: str,
    authority: str,
    agent: AgentAddresses,
    mode: RewriteMode,
    learn: LearnInterface,
    *,
    tls: bool = False,
) -> CardOutcome:
    """Return the outcome of rewriting a card (`CardRewriter`) of this agent. `tls`: the client uses
    TLS."""
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
            new[url.text] = place.with_authority(at, tls=tls)
    changed = {} if keep else {before: after for before, after in new.items() if before != after}
    notes = [_signed_note(card.name, keep)] if card.signed else []
    if elsewhere and not keep:
        notes.append(_elsewhere_note(elsewhere))
    data = write_card(payload, form, changed) if changed else None
    return CardOutcome(data, tuple(changed.items()), tuple(notes), tuple(learned))


def _agent_interface(place: CardAddress, agent: AgentAddresses) -> AgentInterface:
    return AgentInterface(
        agent.host, place.port, agent.tls if place.tls is None else place.tls, place.grpc
    )


def _signed_note(name: str, keep: bool) -> ConsoleNote:
    card = f"the agent card {name!r}" if name else "the agent card"
    if keep:
        return ConsoleNote(
            f"{card} is signed, so it is forwarded unchanged: clients that follow its URLs bypass "
            f"the proxy",
            "to rewrite it and invalidate its signature: --rewrite-card always",
            loud=True,
        )
    return ConsoleNote(
        f"{card} is signed and was rewritten, so clients cannot verify its signature any more",
        loud=True,
    )


def _elsewhere_note(urls: list[str]) -> ConsoleNote:
    listed = ", ".join(urls[:_MAX_LISTED_URLS]) + (
        " and more" if len(urls) > _MAX_LISTED_URLS else ""
    )
    return ConsoleNote(
        f"URLs in the agent card lead to other hosts: {listed}",
        "clients that follow them bypass the proxy; to rewrite them too: --rewrite-card always",
        loud=True,
    )
