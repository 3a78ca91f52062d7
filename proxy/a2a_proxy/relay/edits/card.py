"""Read the URLs in an agent card, and replace them with every other byte unchanged.

Covers the URL fields in cards of all dialects (manual/protocol.md "Agent cards"), as JSON and as
protobuf. `card_urls` decides which URLs are replaced.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from a2a_proxy.relay.edits.json_strings import ITEM, replace_strings

_RESULT_PATH = ["result"]
_URL_PATHS = (["url"], ["supportedInterfaces", ITEM, "url"], ["additionalInterfaces", ITEM, "url"])
_TRANSPORT_FIELDS = {"supportedInterfaces": "protocolBinding", "additionalInterfaces": "transport"}


class CardUrl(msgspec.Struct, frozen=True):
    """One URL of a card."""

    text: str
    transport: str
    """The transport named by the card: `JSONRPC`, `GRPC`, `HTTP+JSON`, `stdio` or any other; empty
    if it names none."""


class EditableCard(msgspec.Struct, frozen=True):
    """The fields of a card that editing depends on."""

    urls: tuple[CardUrl, ...]
    signed: bool
    name: str = ""


def read_card(payload: bytes, form: str) -> EditableCard | None:
    """Return the card in `payload`, whose form is as in `CardRewriter`, or None if it has no card
    with a URL."""
    try:
        if form in ("json", "jsonrpc"):
            return _read_json_card(payload, form)
        return _read_protobuf_card(payload, form)
    except (ValueError, RecursionError):
        return None


def write_card(payload: bytes, form: str, new_urls: Mapping[str, str]) -> bytes:
    """Return the payload with its URLs replaced as in `new_urls`. `read_card` must have found a
    card in it."""
    if form in ("json", "jsonrpc"):
        return _write_json_card(payload, form, new_urls)
    return _write_protobuf_card(payload, form, new_urls)


def _read_json_card(payload: bytes, form: str) -> EditableCard | None:
    found = msgspec.json.decode(payload)
    if form == "jsonrpc":
        found = found.get("result") if isinstance(found, dict) else None
    if not isinstance(found, dict):
        return None
    urls = tuple(_urls_of_card(found))
    return (
        EditableCard(urls, bool(found.get("signatures")), _text_or_empty(found.get("name")))
        if urls
        else None
    )


def _urls_of_card(card: dict[str, Any]) -> list[CardUrl]:
    urls = []
    if isinstance(card.get("url"), str):
        urls.append(
            CardUrl(
                card["url"], _text_or_empty(card.get("preferredTransport") or card.get("transport"))
            )
        )
    for member, transport in _TRANSPORT_FIELDS.items():
        entries = card.get(member)
        urls += (
            CardUrl(entry["url"], _text_or_empty(entry.get(transport)))
            for entry in (entries if isinstance(entries, list) else ())
            if isinstance(entry, dict) and isinstance(entry.get("url"), str)
        )
    return urls


def _text_or_empty(value: object) -> str:
    return value if isinstance(value, str) else ""


def _write_json_card(payload: bytes, form: str, new_urls: Mapping[str, str]) -> bytes:
    root = _RESULT_PATH if form == "jsonrpc" else []
    edited = replace_strings(payload, [[*root, *path] for path in _URL_PATHS], new_urls.get)
    return payload if edited is None else edited


def _read_protobuf_card(payload: bytes, package: str) -> EditableCard | None:
    card = _parse_protobuf_card(payload, package)
    if card is None:
        return None
    urls = tuple(
        CardUrl(holder.url, transport) for holder, transport in _url_holders(card) if holder.url
    )
    return EditableCard(urls, bool(card.signatures), card.name) if urls else None


def _write_protobuf_card(payload: bytes, package: str, new_urls: Mapping[str, str]) -> bytes:
    card = _parse_protobuf_card(payload, package)
    for holder, _ in _url_holders(card):
        if holder.url:
            holder.url = new_urls.get(holder.url, holder.url)
    data: bytes = card.SerializeToString(deterministic=True)
    return data


def _parse_protobuf_card(payload: bytes, package: str) -> Any:
    """Return the AgentCard message, or None if the package has none. Raises ParseError."""
    from a2a_proto import parse

    if package == "lf.a2a.v1":
        return parse("1.0", "AgentCard", payload)
    if package == "a2a.v1":
        return parse("0.3", "AgentCard", payload)
    return None


def _url_holders(card: Any) -> Iterator[tuple[Any, str]]:
    """Yield the messages of a card that have a `url` to call, each with the transport spoken
    there."""
    fields = card.DESCRIPTOR.fields_by_name
    if "url" in fields:
        yield card, card.preferred_transport
    for name in ("supported_interfaces", "additional_interfaces"):
        if name in fields:
            for entry in getattr(card, name):
                yield entry, entry.protocol_binding if name[0] == "s" else entry.transport
