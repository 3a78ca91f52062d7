"""A quick look at statuses and artifacts: what rules compare from one event with the next (protocol sheet 6.5).

For every event, so only what is compared is decoded. What cannot be read gives an empty look.
"""

from __future__ import annotations

from datetime import UTC, datetime
from sys import intern
from typing import Any
from zlib import crc32

import msgspec
from google.protobuf.message import DecodeError

from a2a_proto import RenderError
from a2a_proxy.model.frame import EventKind, Frame
from a2a_proxy.protocol.json_shapes import UNREADABLE
from a2a_proxy.protocol.schema import JSON, decoder, is_protobuf

FAULTS = (*UNREADABLE, DecodeError, KeyError, RenderError)
"""What reading a peer's octets may raise."""


class Content(msgspec.Struct, frozen=True, gc=False):
    """A list of parts in numbers: texts joined, so that it does not matter how they are cut into parts (Q-23)."""

    length: int = 0
    """Octets of all text."""
    digest: int = 0
    """CRC-32 of all text."""
    octets: int = 0
    """Of raw content."""
    others: int = 0
    """Parts that are not text."""


NOTHING = Content()


Piece = bytes | int
"""A part: its text, or how many octets of other content it has."""


class StatusLook(msgspec.Struct, frozen=True, gc=False):
    """A status."""

    stamp: int = 0
    """Its timestamp, ns; below 0 where it names no zone, 0 where there is none."""
    said: bool = False
    """It has a message."""
    pieces: tuple[Piece, ...] = ()
    """Of that message."""
    bare: bool = False
    """Neither a message nor anything else beside state and timestamp."""
    named: tuple[str, ...] = ()
    """Ids of tasks and contexts that its message, and those of a task's history, name; empty ones too."""


class ArtifactLook(msgspec.Struct, frozen=True, gc=False):
    """An artifact, whole or one chunk of it."""

    artifact_id: str
    name: str
    description: int
    """CRC-32; 0 where there is none."""
    media_type: str
    """Of the first part."""
    pieces: tuple[Piece, ...]


NO_STATUS = StatusLook()


def add(content: Content, pieces: tuple[Piece, ...]) -> Content:
    """The content with more parts after it."""
    length, digest, octets, others = content.length, content.digest, content.octets, content.others
    for piece in pieces:
        if isinstance(piece, bytes):
            length += len(piece)
            digest = crc32(piece, digest)
        else:
            octets += piece
            others += 1
    return Content(length, digest, octets, others)


def earlier(stamp: int, other: int) -> int:
    """By how many ns `stamp` is before `other`; 0 where it is not, or where they cannot be compared."""
    if stamp > 0 and other > 0:
        return max(0, other - stamp)
    return max(0, stamp - other) if stamp < 0 and other < 0 else 0


def status_of(frame: Frame) -> StatusLook:
    """The status that a task or a status update has."""
    try:
        if frame.schema == JSON:
            return _json_status(_decode(frame.payload))
        if is_protobuf(frame.schema):
            return _proto_status(decoder(frame.schema).parse(frame.payload))
    except FAULTS:
        pass
    return NO_STATUS


def artifacts_of(frame: Frame) -> list[ArtifactLook]:
    """The artifact of an update, or those of a task."""
    try:
        if frame.schema == JSON:
            return [_json_artifact(each) for each in _json_artifacts(_decode(frame.payload))]
        if is_protobuf(frame.schema):
            found = _inner(decoder(frame.schema).parse(frame.payload))
            many = [found.artifact] if frame.event is EventKind.ARTIFACT else found.artifacts
            return [_proto_artifact(each) for each in many]
    except (*FAULTS, AttributeError):
        pass
    return []


# --- JSON ---------------------------------------------------------------------------------------------------------


class _Shape(msgspec.Struct, rename="camel", gc=False):
    """Unknown members are skipped without being made."""


class PartShape(_Shape):
    """A part of any dialect."""

    text: str | None = None
    raw: str | None = None
    file: PartShape | None = None
    bytes: str | None = None
    file_with_bytes: str | None = None
    media_type: str | None = None
    mime_type: str | None = None


class _Message(_Shape):
    parts: list[PartShape] | None = None
    content: list[PartShape] | None = None
    task_id: str | None = None
    context_id: str | None = None


class _Told(_Shape):
    """A message of a history."""

    task_id: str | None = None
    context_id: str | None = None


class _Status(_Shape):
    timestamp: str | None = None
    message: _Message | None = None
    update: _Message | None = None
    progress: msgspec.Raw = msgspec.Raw()


class _Artifact(_Shape):
    artifact_id: str | None = None
    index: int | None = None
    name: str | None = None
    description: str | None = None
    parts: list[PartShape] | None = None


class _Holder(_Shape):
    """Anything that has a status or artifacts, in any nesting: envelope, wrapper, bare event, task."""

    result: _Holder | None = None
    status_update: _Holder | None = None
    artifact_update: _Holder | None = None
    task: _Holder | None = None
    status: _Status | None = None
    artifact: _Artifact | None = None
    artifacts: list[_Artifact] | None = None
    history: list[_Told] | None = None
    metadata: msgspec.Raw = msgspec.Raw()


_decode = msgspec.json.Decoder(_Holder).decode


def _json_status(holder: _Holder) -> StatusLook:
    while (inner := holder.result or holder.status_update or holder.task) is not None:
        holder = inner
    status = holder.status
    if status is None:
        return NO_STATUS
    said = status.message or status.update
    stamp = _stamp(status.timestamp) if status.timestamp else 0
    named = tuple(each for told in holder.history or () for each in (told.task_id or "", told.context_id or ""))
    if said is None:
        return StatusLook(stamp, bare=not bytes(holder.metadata) and not bytes(status.progress), named=named)
    parts = said.parts or said.content or []
    named = (said.task_id or "", said.context_id or "", *named)
    return StatusLook(stamp, said=True, pieces=tuple(json_piece(part) for part in parts), named=named)


def _stamp(text: str) -> int:
    """RFC 3339, also without a zone as 0.x has it; 0 for anything else."""
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            return -int(moment.replace(tzinfo=UTC).timestamp() * 1e6) * 1000
        return int(moment.timestamp() * 1e6) * 1000
    except (ValueError, OverflowError):
        return 0


def _json_artifacts(holder: _Holder) -> list[_Artifact]:
    while (inner := holder.result or holder.artifact_update or holder.task) is not None:
        holder = inner
    return [holder.artifact] if holder.artifact is not None else holder.artifacts or []


def _json_artifact(artifact: _Artifact) -> ArtifactLook:
    parts = artifact.parts or []
    first = parts[0] if parts else None
    media_type = (first.media_type or (first.file and first.file.mime_type) or "") if first else ""
    description = crc32(artifact.description.encode("utf-8", "surrogatepass")) if artifact.description else 0
    pieces = tuple(json_piece(part) for part in parts)
    return ArtifactLook(
        artifact.artifact_id or str(artifact.index or 0), artifact.name or "", description, intern(media_type), pieces
    )


def json_piece(part: PartShape) -> Piece:
    """A part in JSON; of base64 the decoded length only."""
    if part.text is not None:
        return part.text.encode("utf-8", "surrogatepass")
    raw = part.raw or (part.file and (part.file.bytes or part.file.file_with_bytes)) or ""
    return len(raw.rstrip("=")) * 3 // 4


# --- protobuf -----------------------------------------------------------------------------------------------------

_WRAPPERS = frozenset({"StreamResponse", "SendMessageResponse"})


def _inner(message: Any) -> Any:
    """What a wrapper wraps."""
    name = message.DESCRIPTOR.name
    if name == "LiveResponse":
        return _inner(message.event)
    return getattr(message, message.WhichOneof("payload") or "", None) if name in _WRAPPERS else message


def _proto_status(message: Any) -> StatusLook:
    held = _inner(message)
    if held is None or "status" not in held.DESCRIPTOR.fields_by_name:
        return NO_STATUS
    status = held.status
    stamp = status.timestamp.ToNanoseconds() if status.HasField("timestamp") else 0
    name = "message" if "message" in status.DESCRIPTOR.fields_by_name else "update"
    history = held.history if "history" in held.DESCRIPTOR.fields_by_name else ()
    named = tuple(each for told in history for each in (told.task_id, told.context_id))
    if not status.HasField(name):
        return StatusLook(stamp, bare=not held.HasField("metadata"), named=named)
    said = getattr(status, name)
    parts = said.parts if name == "message" else said.content
    named = (said.task_id, said.context_id, *named)
    return StatusLook(stamp, said=True, pieces=tuple(proto_piece(part) for part in parts), named=named)


def _proto_artifact(artifact: Any) -> ArtifactLook:
    parts = artifact.parts
    media_type = ""
    if parts:
        part = parts[0]
        media_type = part.media_type if "media_type" in part.DESCRIPTOR.fields_by_name else part.file.mime_type
    description = crc32(artifact.description.encode()) if artifact.description else 0
    pieces = tuple(proto_piece(part) for part in parts)
    return ArtifactLook(artifact.artifact_id, artifact.name, description, intern(media_type), pieces)


def proto_piece(part: Any) -> Piece:
    """A part in protobuf."""
    text: str = part.text
    if text:
        return text.encode()
    fields = part.DESCRIPTOR.fields_by_name
    if part.WhichOneof("content" if "media_type" in fields else "part") == "text":
        return b""
    return len(part.raw if "raw" in fields else part.file.file_with_bytes)
