"""What an agent's cards declare, of every dialect, in one form (manual/protocol.md "Agent cards"): what other rules
hold it to."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import msgspec

from a2a_proxy.model.exchange import Binding, Dialect

Json = dict[str, Any]

_NAMES = {Binding.JSONRPC: "JSONRPC", Binding.REST: "HTTP+JSON", Binding.GRPC: "GRPC"}
"""Binding -> its name in a card."""
_SCHEME_MEMBERS = {
    "apiKeySecurityScheme": "apiKey",
    "httpAuthSecurityScheme": "http",
    "oauth2SecurityScheme": "oauth2",
    "openIdConnectSecurityScheme": "openIdConnect",
    "mtlsSecurityScheme": "mutualTLS",
}
"""1.0 wrapper member -> `type` of 0.x."""


class OfferedInterface(msgspec.Struct, frozen=True):
    """One interface that a card offers."""

    path: str
    """Where in the card its URL stands: `supportedInterfaces[0].url`."""
    url: str
    binding: str
    """`JSONRPC`, `HTTP+JSON`, `GRPC` or another name."""
    version: str = ""
    tenant: str = ""

    def speaks(self, dialect: Dialect) -> bool:
        """Its version and the dialect are of one line; a version or dialect that is not known fits all."""
        major = self.version.partition(".")[0]
        return not major or dialect is Dialect.UNKNOWN or (major == "0") == (dialect in _BEFORE_1)

    @property
    def place(self) -> str:
        """Path of the URL without a closing slash."""
        return _path(self.url)


@lru_cache(maxsize=1024)
def _path(url: str) -> str:
    try:
        return urlsplit(url).path.rstrip("/")
    except ValueError:
        return ""


_BEFORE_1 = frozenset({Dialect.V0_1, Dialect.V0_2, Dialect.V0_3, Dialect.VENDOR})


class Scheme(msgspec.Struct, frozen=True):
    """A security scheme."""

    kind: str
    """`apiKey`, `http`, `oauth2`, `openIdConnect`, `mutualTLS`; empty where the card does not say."""
    name: str = ""
    """Of an API key: the header field, query parameter or cookie; of `http` the scheme, lower case."""
    place: str = ""
    """Of an API key: `header`, `query` or `cookie`."""


class CardDeclarations(msgspec.Struct, frozen=True):
    """What the public card and the extended card say together; a capability is declared where either has it."""

    at: int = 0
    """Since when it is known, ns."""
    streaming: bool = False
    push: bool = False
    live: bool = False
    """Live streams, `bidiStreaming` of a draft."""
    extended: bool = False
    """There is an extended card."""
    offers: tuple[OfferedInterface, ...] = ()
    schemes: dict[str, Scheme] = {}
    required: tuple[tuple[str, ...], ...] = ()
    """Alternatives of scheme names, one of which a request needs; empty: none is needed."""
    input_modes: tuple[str, ...] = ()
    """Of the agent and all its skills, lower case."""

    def serves(self, binding: Binding, dialect: Dialect) -> list[OfferedInterface]:
        """The interfaces that such a call may use."""
        name = _NAMES.get(binding, "")
        return [each for each in self.offers if each.binding == name and each.speaks(dialect)]


def declare(cards: list[Json | None], at: int, before: CardDeclarations | None) -> CardDeclarations:
    """Read an agent's cards; `before` is kept, with its time, where they say the same."""
    known = [card for card in cards if card is not None]
    found = CardDeclarations(
        streaming=any(capability(card, "streaming") for card in known),
        push=any(capability(card, "pushNotifications") for card in known),
        live=any(capability(card, "bidiStreaming") for card in known),
        extended=any(offers_extended(card) for card in known),
        offers=tuple(each for card in known for each in offers(card)),
        schemes={name: scheme for card in known for name, scheme in schemes(card).items()},
        required=_required(known[0]) if known else (),
        input_modes=tuple(dict.fromkeys(mode for card in known for mode in _input_modes(card))),
    )
    if before is not None and msgspec.structs.replace(found, at=before.at) == before:
        return before
    return msgspec.structs.replace(found, at=at)


def objects(value: Any) -> list[tuple[int, Json]]:
    """The objects of a list with their places; empty where it is none."""
    return [(index, each) for index, each in enumerate(value) if isinstance(each, dict)] if _is_list(value) else []


def words(value: Any) -> list[str]:
    """The strings of a list; empty where it is none."""
    return [each for each in value if isinstance(each, str)] if _is_list(value) else []


def word(holder: Json, name: str) -> str:
    """A string member; empty where it is none."""
    value = holder.get(name)
    return value if isinstance(value, str) else ""


def member(holder: Json, name: str) -> Json:
    """An object member; empty where it is none."""
    value = holder.get(name)
    return value if isinstance(value, dict) else {}


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def is_v1(card: Json) -> bool:
    """A card of 1.0: it has `supportedInterfaces`, or nothing that says where the agent is."""
    return "supportedInterfaces" in card or "url" not in card


def capability(card: Json, name: str) -> bool:
    """A flag of `capabilities`."""
    return member(card, "capabilities").get(name) is True


def offers_extended(card: Json) -> bool:
    """It says that there is an extended card, in the form of 1.0 or of 0.x."""
    return capability(card, "extendedAgentCard") or card.get("supportsAuthenticatedExtendedCard") is True


def offers(card: Json) -> Iterator[OfferedInterface]:
    """Every interface, of both forms where a card has both."""
    for index, entry in objects(card.get("supportedInterfaces")):
        if url := word(entry, "url"):
            yield OfferedInterface(
                f"supportedInterfaces[{index}].url",
                url,
                word(entry, "protocolBinding"),
                word(entry, "protocolVersion"),
                word(entry, "tenant"),
            )
    yield from old_offers(card)


def old_offers(card: Json) -> Iterator[OfferedInterface]:
    """The interfaces in the form of 0.x; one without a transport is JSON-RPC."""
    version = word(card, "protocolVersion") or "0"
    if url := word(card, "url"):
        yield OfferedInterface("url", url, word(card, "preferredTransport") or "JSONRPC", version)
    for index, entry in objects(card.get("additionalInterfaces")):
        if url := word(entry, "url"):
            yield OfferedInterface(f"additionalInterfaces[{index}].url", url, word(entry, "transport"), version)


def schemes(card: Json) -> dict[str, Scheme]:
    """The security schemes by their names."""
    found = {}
    for name, value in member(card, "securitySchemes").items():
        if isinstance(value, dict):
            wrapper = next((each for each in _SCHEME_MEMBERS if isinstance(value.get(each), dict)), "")
            inner = value[wrapper] if wrapper else value
            kind = _SCHEME_MEMBERS.get(wrapper) or word(value, "type")
            label = word(inner, "scheme").lower() if kind == "http" else word(inner, "name")
            found[name] = Scheme(kind, label, word(inner, "location") or word(inner, "in"))
    return found


def requirements(holder: Json) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The security requirements of a card or a skill, in either form: where each stands, and the schemes it names."""
    for name in ("securityRequirements", "security"):
        for index, entry in objects(holder.get(name)):
            inner = entry.get("schemes")
            yield f"{name}[{index}]", tuple(inner if isinstance(inner, dict) else entry)


def _required(card: Json) -> tuple[tuple[str, ...], ...]:
    """Nothing is needed where one alternative is empty."""
    found = tuple(names for _, names in requirements(card))
    return found if all(found) else ()


def _input_modes(card: Json) -> Iterator[str]:
    holders = [(card, "defaultInputModes"), *((skill, "inputModes") for _, skill in objects(card.get("skills")))]
    for holder, name in holders:
        yield from (mode.lower() for mode in words(holder.get(name)))
