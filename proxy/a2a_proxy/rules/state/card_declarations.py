"""Declarations of an agent's cards in one form for all dialects (manual/protocol.md "Agent cards");
the basis of other rules.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import msgspec

from a2a_proxy.model.values import CARD_BINDINGS, Binding, Dialect
from a2a_proxy.protocol.security_schemes import SCHEME_TYPES

Json = dict[str, Any]


class OfferedInterface(msgspec.Struct, frozen=True):
    """One interface declared by a card."""

    path: str
    """Path of its URL in the card: `supportedInterfaces[0].url`."""
    url: str
    binding: str
    """`JSONRPC`, `HTTP+JSON`, `GRPC` or another name."""
    version: str = ""
    tenant: str = ""

    def fits_dialect(self, dialect: Dialect) -> bool:
        """Whether version and dialect have the same major version; an unknown one matches all."""
        major = self.version.partition(".")[0]
        return (
            not major
            or dialect is Dialect.UNKNOWN
            or (major == "0") == (dialect in _DIALECTS_BEFORE_1_0)
        )

    @property
    def url_path(self) -> str:
        """Path of the URL without a trailing slash."""
        return _url_path(self.url)


@lru_cache(maxsize=1024)
def _url_path(url: str) -> str:
    try:
        return urlsplit(url).path.rstrip("/")
    except ValueError:
        return ""


_DIALECTS_BEFORE_1_0 = frozenset({Dialect.V0_1, Dialect.V0_2, Dialect.V0_3, Dialect.VENDOR})


class Scheme(msgspec.Struct, frozen=True):
    """A security scheme."""

    kind: str
    """`apiKey`, `http`, `oauth2`, `openIdConnect`, `mutualTLS`; empty if the card does not say."""
    name: str = ""
    """For an API key: the header field, query parameter or cookie; for `http` the scheme, lower
    case."""
    place: str = ""
    """For an API key: `header`, `query` or `cookie`."""


class CardDeclarations(msgspec.Struct, frozen=True):
    """Combined declarations of the public and the extended card. A capability is declared if either
    card has it."""

    at: int = 0
    """Time since which they are known, ns."""
    streaming: bool = False
    push: bool = False
    live: bool = False
    """Live streams, `bidiStreaming` of a draft."""
    extended: bool = False
    """Whether there is an extended card."""
    interfaces: tuple[OfferedInterface, ...] = ()
    schemes: dict[str, Scheme] = {}
    required: tuple[tuple[str, ...], ...] = ()
    """Alternative sets of scheme names, one of which a request needs; empty if it needs none."""
    input_modes: tuple[str, ...] = ()
    """Input modes of the agent and all its skills, lower case."""

    def matching_interfaces(self, binding: Binding, dialect: Dialect) -> list[OfferedInterface]:
        """Return the interfaces that a call with this binding and dialect may use."""
        name = CARD_BINDINGS.get(binding, "")
        return [
            each for each in self.interfaces if each.binding == name and each.fits_dialect(dialect)
        ]


def read_declarations(
    cards: list[Json | None], at: int, before: CardDeclarations | None
) -> CardDeclarations:
    """Read an agent's cards. Returns `before`, with its time, if the declarations are unchanged."""
    known = [card for card in cards if card is not None]
    found = CardDeclarations(
        streaming=any(has_capability(card, "streaming") for card in known),
        push=any(has_capability(card, "pushNotifications") for card in known),
        live=any(has_capability(card, "bidiStreaming") for card in known),
        extended=any(has_extended_card(card) for card in known),
        interfaces=tuple(each for card in known for each in read_interfaces(card)),
        schemes={name: scheme for card in known for name, scheme in read_schemes(card).items()},
        required=_required_schemes(known[0]) if known else (),
        input_modes=tuple(dict.fromkeys(mode for card in known for mode in _input_modes(card))),
    )
    if before is not None and msgspec.structs.replace(found, at=before.at) == before:
        return before
    return msgspec.structs.replace(found, at=at)


def indexed_objects(value: Any) -> list[tuple[int, Json]]:
    """Return the objects of a list with their indexes; empty if the value is not a list."""
    return (
        [(index, each) for index, each in enumerate(value) if isinstance(each, dict)]
        if _is_list(value)
        else []
    )


def string_items(value: Any) -> list[str]:
    """Return the strings of a list; empty if the value is not a list."""
    return [each for each in value if isinstance(each, str)] if _is_list(value) else []


def string_member(holder: Json, name: str) -> str:
    """Return a string member; empty if it is absent or not a string."""
    value = holder.get(name)
    return value if isinstance(value, str) else ""


def object_member(holder: Json, name: str) -> Json:
    """Return an object member; empty if it is absent or not an object."""
    value = holder.get(name)
    return value if isinstance(value, dict) else {}


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def is_v1(card: Json) -> bool:
    """Whether it is a 1.0 card: it has `supportedInterfaces`, or no member that locates the
    agent."""
    return "supportedInterfaces" in card or "url" not in card


def has_capability(card: Json, name: str) -> bool:
    """Whether a flag of `capabilities` is true."""
    return object_member(card, "capabilities").get(name) is True


def has_extended_card(card: Json) -> bool:
    """Whether the card declares an extended card, in the form of 1.0 or of 0.x."""
    return (
        has_capability(card, "extendedAgentCard")
        or card.get("supportsAuthenticatedExtendedCard") is True
    )


def read_interfaces(card: Json) -> Iterator[OfferedInterface]:
    """Yield every interface, of both forms if the card has both."""
    for index, entry in indexed_objects(card.get("supportedInterfaces")):
        if url := string_member(entry, "url"):
            yield OfferedInterface(
                f"supportedInterfaces[{index}].url",
                url,
                string_member(entry, "protocolBinding"),
                string_member(entry, "protocolVersion"),
                string_member(entry, "tenant"),
            )
    yield from read_old_interfaces(card)


def read_old_interfaces(card: Json) -> Iterator[OfferedInterface]:
    """Yield the interfaces in the form of 0.x; JSON-RPC if no transport is given."""
    version = string_member(card, "protocolVersion") or "0"
    if url := string_member(card, "url"):
        yield OfferedInterface(
            "url", url, string_member(card, "preferredTransport") or "JSONRPC", version
        )
    for index, entry in indexed_objects(card.get("additionalInterfaces")):
        if url := string_member(entry, "url"):
            yield OfferedInterface(
                f"additionalInterfaces[{index}].url",
                url,
                string_member(entry, "transport"),
                version,
            )


def read_schemes(card: Json) -> dict[str, Scheme]:
    """Return the security schemes by name."""
    found = {}
    for name, value in object_member(card, "securitySchemes").items():
        if isinstance(value, dict):
            wrapper = next((each for each in SCHEME_TYPES if isinstance(value.get(each), dict)), "")
            inner = value[wrapper] if wrapper else value
            kind = SCHEME_TYPES.get(wrapper) or string_member(value, "type")
            label = (
                string_member(inner, "scheme").lower()
                if kind == "http"
                else string_member(inner, "name")
            )
            found[name] = Scheme(
                kind, label, string_member(inner, "location") or string_member(inner, "in")
            )
    return found


def read_requirements(holder: Json) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield path and scheme names of each security requirement of a card or a skill, in either
    form."""
    for name in ("securityRequirements", "security"):
        for index, entry in indexed_objects(holder.get(name)):
            inner = entry.get("schemes")
            yield f"{name}[{index}]", tuple(inner if isinstance(inner, dict) else entry)


def _required_schemes(card: Json) -> tuple[tuple[str, ...], ...]:
    """Return the required alternatives; none if one alternative is empty."""
    found = tuple(names for _, names in read_requirements(card))
    return found if all(found) else ()


def _input_modes(card: Json) -> Iterator[str]:
    holders = [
        (card, "defaultInputModes"),
        *((skill, "inputModes") for _, skill in indexed_objects(card.get("skills"))),
    ]
    for holder, name in holders:
        yield from (mode.lower() for mode in string_items(holder.get(name)))
