"""Extensions that are declared, requested, activated and used (A2A 1.0 section 4.6)."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from a2a_proxy.model.values import EventKind, Frame
from a2a_proxy.model.wire import Headers
from a2a_proxy.protocol.schema import TRAILERS, is_protobuf
from a2a_proxy.rules.context import RuleContext

HEADER_NAMES = ("a2a-extensions", "x-a2a-extensions")
"""The second name is used by 0.3 and earlier."""
_NAMES_BY_BYTES = {name.encode(): name for name in HEADER_NAMES}
_NAME_LENGTHS = frozenset(map(len, HEADER_NAMES))
TRAILERS_ONLY = "trailers-only"
_VERSIONED_URI = re.compile(r"(.+?)(?:[/#:@=-]v?|\.v)\d+(?:\.\d+)*/?", re.IGNORECASE)


def split_uris(values: Iterable[str]) -> list[str]:
    """Return the distinct URIs in values of an extensions header."""
    found = (each.strip() for value in values for each in value.split(","))
    return list(dict.fromkeys(each for each in found if each))


def extension_fields(context: RuleContext) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return name and value of each extensions header field of the request and of the response."""
    found: tuple[list[tuple[str, str]], list[tuple[str, str]]] | None = context.cache.get(
        "extensions"
    )
    if found is None:
        found = context.cache["extensions"] = (
            _read_extension_fields(context.exchange.request_headers),
            _read_extension_fields(context.exchange.response_headers),
        )
    return found


def _read_extension_fields(headers: Headers) -> list[tuple[str, str]]:
    return [
        (_NAMES_BY_BYTES[low], value.decode("latin-1"))
        for name, value in headers
        if len(name) in _NAME_LENGTHS and (low := name.lower()) in _NAMES_BY_BYTES
    ]


def requested_uris(context: RuleContext) -> list[str]:
    """Return the URIs requested by the client, under either header name."""
    found = extension_fields(context)[0]
    return split_uris(value for _, value in found) if found else []


def activated_uris(context: RuleContext) -> list[str]:
    """Return the URIs that the agent lists as active in the head of its response."""
    found = extension_fields(context)[1]
    return split_uris(value for _, value in found) if found else []


def activated_uris_here(context: RuleContext) -> list[str]:
    """Return `activated_uris`, or the URIs in the trailers if the current frame is gRPC
    trailers."""
    frame = context.frame_or_none
    if frame is None:
        return activated_uris(context)
    if (
        frame.schema != TRAILERS
        or frame.note == TRAILERS_ONLY
        or b"-extensions" not in frame.payload.lower()
    ):
        return []
    try:
        pairs = msgspec.json.decode(frame.payload, type=list[tuple[str, str]])
    except msgspec.MsgspecError:
        return []
    return split_uris(value for name, value in pairs if name.lower() in HEADER_NAMES)


def base_uri(uri: str) -> str:
    """Return the URI without the version at its end; empty if it has none."""
    found = _VERSIONED_URI.fullmatch(uri)
    return found[1] if found else ""


def declared_extensions(card: dict[str, Any] | None) -> dict[str, bool]:
    """Return the URI of each extension of a card, and whether it is required."""
    capabilities = (card or {}).get("capabilities")
    listed = capabilities.get("extensions") if isinstance(capabilities, dict) else None
    found = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    return {
        each["uri"]: each.get("required") is True
        for each in found
        if isinstance(each.get("uri"), str)
    }


def is_card_known(context: RuleContext) -> bool:
    """Whether the agent's card was received before the request."""
    request = context.record.request_snapshot
    return request is not None and 0 < context.agent.card_at <= request.at


def may_have_extensions(frame: Frame) -> bool:
    """Whether the payload may contain extensions. False means that it contains none."""
    data = frame.payload
    if is_protobuf(frame.schema):
        return b"://" in data or b"urn:" in data
    return b'"extensions"' in data


def used_extensions(context: RuleContext) -> list[tuple[str, str]]:
    """Return path and URI of each extension named in new content of the agent: neither in the
    history nor in objects older than this exchange.
    """
    return [
        pair
        for path, holder in _extension_holders(context)
        for pair in listed_extensions(path, holder)
    ]


def listed_extensions(path: str, holder: Any) -> Iterator[tuple[str, str]]:
    """Yield path and URI of each extension named by a message or an artifact."""
    found = holder.get("extensions") if isinstance(holder, dict) else None
    for index, uri in enumerate(found if isinstance(found, list) else ()):
        if isinstance(uri, str):
            yield f"{path}.extensions[{index}]".lstrip("."), uri


def _extension_holders(context: RuleContext) -> Iterator[tuple[str, Any]]:
    said, event = context.object, context.frame.event
    if event is EventKind.MESSAGE:
        yield _object_path(context, "message"), said
    elif event is EventKind.ARTIFACT:
        yield f"{_object_path(context, 'artifactUpdate')}.artifact", said.get("artifact")
    elif event is EventKind.STATUS:
        yield f"{_object_path(context, 'statusUpdate')}.status.message", _status_message(said)
    elif (
        event is EventKind.TASK
        and context.task is not None
        and context.task.created_by == context.record.id
    ):
        place = _object_path(context, "task")
        yield f"{place}.status.message", _status_message(said)
        artifacts = said.get("artifacts")
        for index, each in enumerate(artifacts if isinstance(artifacts, list) else ()):
            yield f"{place}.artifacts[{index}]", each


def _object_path(context: RuleContext, wrapper: str) -> str:
    """Return the path of the object in the payload; before 1.0 it has no wrapper."""
    wrapped = isinstance(context.body, dict) and wrapper in context.body
    return f"{context.root}{wrapper}" if wrapped else context.root.rstrip(".")


def _status_message(holder: dict[str, Any]) -> Any:
    status = holder.get("status")
    return status.get("message") if isinstance(status, dict) else None
