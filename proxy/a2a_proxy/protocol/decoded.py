"""A frame's payload as JSON values, for people, programs and diffs alike."""

import json
from typing import Any

from a2a_proxy.model.values import Exchange, Frame
from a2a_proxy.protocol.errors import read_details
from a2a_proxy.protocol.event import decode_payload, normalise_event
from a2a_proxy.protocol.extensions.uses import EXTENSIBLE_KINDS, ExtensionUse, find_extensions
from a2a_proxy.protocol.schema import TRAILERS

_MAX_UNDECODED = 64 << 10
"""Maximum number of bytes returned of an undecoded payload."""


def readable_payload(frame: Frame, exchange: Exchange | None) -> Any:
    """Return the payload as JSON values, A2A in 1.0 form, trailers as pairs of name and value; text
    if it is not JSON; None if it is empty."""
    if not frame.payload:
        return None
    try:
        value = _decode_value(frame, exchange)
    except (ValueError, TypeError, RecursionError):
        value = None  # truncated, or nested too deeply
    return frame.payload[:_MAX_UNDECODED].decode("utf-8", "replace") if value is None else value


def find_frame_extensions(frame: Frame, exchange: Exchange) -> list[ExtensionUse]:
    """Return the known extensions in a request, answer or event."""
    if frame.kind not in EXTENSIBLE_KINDS:
        return []
    return find_extensions(readable_payload(frame, exchange), exchange.extensions)


def _decode_value(frame: Frame, exchange: Exchange | None) -> Any:
    value = decode_payload(frame.payload, frame.schema)
    if exchange is not None and exchange.operation and value is not None and not frame.truncated:
        canonical = normalise_event(
            frame.payload, frame.schema, exchange.dialect, exchange.operation, frame.kind
        )
        return canonical or value
    if frame.schema == TRAILERS:
        return [[name, _read_trailer(name, text)] for name, text in json.loads(frame.payload)]
    return json.loads(frame.payload) if value is None and frame.schema == "control" else value


def _read_trailer(name: str, text: str) -> Any:
    """Return a trailer's value as text, but the details of an error as the object that they are."""
    is_details = name.lower() == "grpc-status-details-bin"
    return read_details(text.encode("latin-1")) or text if is_details else text
