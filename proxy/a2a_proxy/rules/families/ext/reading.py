"""Which extensions are declared, asked for, activated and used (A2A 1.0 section 4.6)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from a2a_proxy.model.frame import EventKind, Frame
from a2a_proxy.model.wire import Headers
from a2a_proxy.protocol.schema import TRAILERS, is_protobuf
from a2a_proxy.rules.context import RuleContext

NAMES = ("a2a-extensions", "x-a2a-extensions")
"""The second one is that of 0.3 and before."""
_OCTETS = {name.encode(): name for name in NAMES}
_LENGTHS = frozenset(map(len, NAMES))
TRAILERS_ONLY = "trailers-only"
_VERSION = re.compile(r"(.+?)(?:[/#:@=-]v?|\.v)\d+(?:\.\d+)*/?", re.IGNORECASE)


def entries(values: Iterable[str]) -> list[str]:
    """The URIs of such header values, each once."""
    found = (each.strip() for value in values for each in value.split(","))
    return list(dict.fromkeys(each for each in found if each))


def fields(see: RuleContext) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Name and value of each header field of extensions, in the request and in the response."""
    found: tuple[list[tuple[str, str]], list[tuple[str, str]]] | None = see.cache.get("extensions")
    if found is None:
        found = see.cache["extensions"] = _fields(see.exchange.request_headers), _fields(see.exchange.response_headers)
    return found


def _fields(headers: Headers) -> list[tuple[str, str]]:
    return [
        (_OCTETS[low], value.decode("latin-1"))
        for name, value in headers
        if len(name) in _LENGTHS and (low := name.lower()) in _OCTETS
    ]


def asked(see: RuleContext) -> list[str]:
    """What the client wants, under either name."""
    found = fields(see)[0]
    return entries(value for _, value in found) if found else []


def activated(see: RuleContext) -> list[str]:
    """What the agent says is active in the head of its response."""
    found = fields(see)[1]
    return entries(value for _, value in found) if found else []


def activated_here(see: RuleContext) -> list[str]:
    """The same; while gRPC trailers are looked at, what those say."""
    frame = see.shown
    if frame is None:
        return activated(see)
    if frame.schema != TRAILERS or frame.note == TRAILERS_ONLY or b"-extensions" not in frame.payload.lower():
        return []
    try:
        pairs = msgspec.json.decode(frame.payload, type=list[tuple[str, str]])
    except msgspec.MsgspecError:
        return []
    return entries(value for name, value in pairs if name.lower() in NAMES)


def base(uri: str) -> str:
    """The URI without its version at the end; empty where there is none."""
    found = _VERSION.fullmatch(uri)
    return found[1] if found else ""


def declared(card: dict[str, Any] | None) -> dict[str, bool]:
    """URI of each extension of a card, and whether it is required."""
    capabilities = (card or {}).get("capabilities")
    listed = capabilities.get("extensions") if isinstance(capabilities, dict) else None
    found = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    return {each["uri"]: each.get("required") is True for each in found if isinstance(each.get("uri"), str)}


def card_was_known(see: RuleContext) -> bool:
    """The agent's card had passed before the request came."""
    request = see.track.asked
    return request is not None and 0 < see.agent.card_at <= request.at


def may_have(frame: Frame) -> bool:
    """A quick look: False where there can be no extension in the payload."""
    data = frame.payload
    if is_protobuf(frame.schema):
        return b"://" in data or b"urn:" in data
    return b'"extensions"' in data


def used(see: RuleContext) -> list[tuple[str, str]]:
    """Path and URI of each extension that the agent names in what it says now: not in history, not in what is older
    than this exchange.
    """
    return [pair for path, holder in _said(see) for pair in listed(path, holder)]


def listed(path: str, holder: Any) -> Iterator[tuple[str, str]]:
    """The extensions that a message or an artifact names."""
    found = holder.get("extensions") if isinstance(holder, dict) else None
    for index, uri in enumerate(found if isinstance(found, list) else ()):
        if isinstance(uri, str):
            yield f"{path}.extensions[{index}]".lstrip("."), uri


def _said(see: RuleContext) -> Iterator[tuple[str, Any]]:
    said, event = see.object, see.frame.event
    if event is EventKind.MESSAGE:
        yield _place(see, "message"), said
    elif event is EventKind.ARTIFACT:
        yield f"{_place(see, 'artifactUpdate')}.artifact", said.get("artifact")
    elif event is EventKind.STATUS:
        yield f"{_place(see, 'statusUpdate')}.status.message", _status_message(said)
    elif event is EventKind.TASK and see.task is not None and see.task.born == see.track.id:
        place = _place(see, "task")
        yield f"{place}.status.message", _status_message(said)
        artifacts = said.get("artifacts")
        for index, each in enumerate(artifacts if isinstance(artifacts, list) else ()):
            yield f"{place}.artifacts[{index}]", each


def _place(see: RuleContext, wrapper: str) -> str:
    """Where the object stands in the payload: before 1.0 there is no wrapper around it."""
    wrapped = isinstance(see.body, dict) and wrapper in see.body
    return f"{see.root}{wrapper}" if wrapped else see.root.rstrip(".")


def _status_message(said: dict[str, Any]) -> Any:
    status = said.get("status")
    return status.get("message") if isinstance(status, dict) else None
