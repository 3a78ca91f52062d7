"""Content of frames, read from their payloads: texts, tool calls, media.

The definition of a tool call is in manual/protocol.md "Tools and media".

For display of recordings, not for the hot path.
"""

import base64
import binascii
import hashlib
from collections.abc import Iterator
from typing import Any

import msgspec

from a2a_proxy.model.event import Event, Part
from a2a_proxy.model.values import EVENT_WRAPPERS, Dialect, Frame, FrameKind
from a2a_proxy.protocol.event import decode_payload, event_from_json, normalise_event
from a2a_proxy.protocol.schema import JSON


class Media(msgspec.Struct, frozen=True):
    """A part with bytes, or with a URL."""

    path: str
    """Path in the 1.0 form of the payload: `artifactUpdate.artifact.parts[0]`."""
    artifact_id: str
    media_type: str
    filename: str
    url: str
    data: bytes
    """The bytes; empty for a URL, which is never fetched."""
    encoding: str
    """Encoding of the content in the frame: `base64`, `bytes` or `url`."""

    @property
    def sha256(self) -> str:
        """SHA-256 of the bytes; empty for a URL."""
        return hashlib.sha256(self.data).hexdigest() if not self.url else ""


class ToolEvent(msgspec.Struct, frozen=True):
    """A call of a tool, or its response."""

    name: str
    id: str
    response: bool


class FrameContent(msgspec.Struct):
    """Content of one frame."""

    texts: list[tuple[str, str]] = []
    """Id of the artifact or message, and its text."""
    media: list[Media] = []
    tools: list[ToolEvent] = []


def content_of_frame(frame: Frame, dialect: Dialect, operation: str) -> FrameContent:
    """Return the texts, media and tool events of a frame; empty if it cannot be read."""
    content = FrameContent()
    encoding = "base64" if frame.schema == JSON else "bytes"
    for path, artifact_id, part in _parts_of_frame(frame, dialect, operation):
        if part.text is not None:
            content.texts.append((artifact_id or frame.message_id, part.text))
        elif part.url is not None:
            content.media.append(
                Media(path, artifact_id, part.media_type, part.filename, part.url, b"", "url")
            )
        elif part.raw is not None and (data := _decode_base64(part.raw)) is not None:
            content.media.append(
                Media(path, artifact_id, part.media_type, part.filename, "", data, encoding)
            )
        elif isinstance(part.data, dict) and (tool := _tool_event(part)) is not None:
            content.tools.append(tool)
    return content


def _parts_of_frame(
    frame: Frame, dialect: Dialect, operation: str
) -> Iterator[tuple[str, str, Part]]:
    """Yield path, artifact id and part, in order."""
    event, media = _event_of_frame(frame, dialect, operation)
    if media is not None:
        yield "frame.part", "", media
    if event.message is not None:
        yield from _enumerate_parts("message.parts", "", event.message.parts)
    update = event.artifact_update
    if update is not None and update.artifact is not None:
        yield from _enumerate_parts(
            "artifactUpdate.artifact.parts", update.artifact.artifact_id, update.artifact.parts
        )
    for name, holder in (("statusUpdate", event.status_update), ("task", event.task)):
        if holder is not None and holder.status is not None and holder.status.message is not None:
            yield from _enumerate_parts(
                f"{name}.status.message.parts", "", holder.status.message.parts
            )
    if event.task is not None:
        for index, artifact in enumerate(event.task.artifacts):
            yield from _enumerate_parts(
                f"task.artifacts[{index}].parts", artifact.artifact_id, artifact.parts
            )


def _enumerate_parts(
    path: str, artifact_id: str, parts: list[Part]
) -> Iterator[tuple[str, str, Part]]:
    for index, part in enumerate(parts):
        yield f"{path}[{index}]", artifact_id, part


def _event_of_frame(frame: Frame, dialect: Dialect, operation: str) -> tuple[Event, Part | None]:
    """Return the event of a frame, a client's message as an event, and the part of a media
    frame."""
    if "@live-" in frame.schema:
        value = decode_payload(frame.payload, frame.schema)
        value = value if isinstance(value, dict) else {}
        media = value.get("frame")
        inner = value.get("event") if frame.kind is not FrameKind.REQUEST else value.get("message")
        if isinstance(inner, dict) and "message" in inner and frame.kind is FrameKind.REQUEST:
            inner = {"message": inner["message"]}
        elif "artifactUpdate" in value or not isinstance(inner, dict):
            inner = value
        elif frame.kind is FrameKind.REQUEST:
            inner = {"message": inner}
        return event_from_json(inner), _part_of_media(media)
    value = normalise_event(frame.payload, frame.schema, dialect, operation, frame.kind)
    return event_from_json(
        {name: value[name] for name in EVENT_WRAPPERS.values() if isinstance(value.get(name), dict)}
    ), None


def _part_of_media(media: Any) -> Part | None:
    part = media.get("part") if isinstance(media, dict) else None
    if not isinstance(part, dict):
        return None
    try:
        return msgspec.convert(part, Part, strict=False)
    except msgspec.ValidationError:
        return None


def _decode_base64(raw: str) -> bytes | None:
    """Decode base64 in standard or URL-safe form, padded or not; return None if it is invalid."""
    try:
        return base64.b64decode(
            raw.replace("-", "+").replace("_", "/") + "=" * (-len(raw) % 4), validate=True
        )
    except (binascii.Error, ValueError):
        return None


def _tool_event(part: Part) -> ToolEvent | None:
    """Return the tool event of a data part that is marked by its metadata or has `name` and `args`;
    None for others."""
    data, metadata = part.data, part.metadata or {}
    kind = metadata.get("adk_type", metadata.get("type"))
    name, ident = data.get("name"), data.get("id")
    if not isinstance(name, str):
        return None
    ident = ident if isinstance(ident, str) else ""
    if kind == "function_response" or (kind is None and "response" in data):
        return ToolEvent(name, ident, True)
    if kind == "function_call" or (kind is None and "args" in data):
        return ToolEvent(name, ident, False)
    return None
