"""Sizes and hashes of the artifacts in frames: enough for the task list, without keeping content.

The content itself is assembled by `artifact` from recorded frames.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec
from google.protobuf.message import DecodeError

from a2a_proto import RenderError, to_dict
from a2a_proxy.model.values import Frame
from a2a_proxy.protocol.json_shapes import UNREADABLE_ERRORS
from a2a_proxy.protocol.schema import JSON, decoder_for, is_protobuf
from a2a_proxy.protocol.text_place import TextPlace


class ArtifactChunk(msgspec.Struct, frozen=True, gc=False):
    """The content of one artifact in one frame."""

    artifact_id: str
    name: str
    parts: int
    size: int
    """Bytes of text, raw content and data."""
    content: int
    """Hash of the content, the same for every binding if the parts are text."""
    text: bytes
    """The text, if it is the only part."""
    place: TextPlace | None = None
    """Where the text is in the payload, if that is known."""


class _ChunkFile(msgspec.Struct, rename="camel", gc=False):
    bytes: str | None = None
    file_with_bytes: str | None = None


class _ChunkPart(msgspec.Struct, gc=False):
    text: str | None = None
    raw: str | None = None
    data: msgspec.Raw = msgspec.Raw()
    kind: str | None = None
    type: str | None = None
    file: _ChunkFile | None = None


class _ChunkArtifact(msgspec.Struct, rename="camel", gc=False):
    artifact_id: str | None = None
    index: int | None = None
    name: str | None = None
    parts: list[_ChunkPart] | None = None


class _ArtifactHolder(msgspec.Struct, rename="camel", gc=False):
    """Any object with artifacts, at any nesting: envelope, wrapper, bare event, task."""

    result: _ArtifactHolder | None = None
    artifact_update: _ArtifactHolder | None = None
    task: _ArtifactHolder | None = None
    artifact: _ChunkArtifact | None = None
    artifacts: list[_ChunkArtifact] | None = None


_decode_holder = msgspec.json.Decoder(_ArtifactHolder).decode


def chunks_of_frame(frame: Frame) -> list[ArtifactChunk]:
    """Return the artifacts of a frame; empty if it has none or cannot be read."""
    return _read_chunks(frame.schema, frame.payload)


@lru_cache(maxsize=1)  # the same frame is read by the redactor, the tasks and the segments
def _read_chunks(schema: str, payload: bytes) -> list[ArtifactChunk]:
    make = _chunk_of_json if schema == JSON else _chunk_of_proto
    try:
        return [make(artifact) for artifact in _read_artifacts(schema, payload)]
    except (*UNREADABLE_ERRORS, RenderError):
        return []


def find_only_chunk(frame: Frame) -> ArtifactChunk | None:
    """Return the artifact of a frame; None if it has none or several, or cannot be read."""
    found = chunks_of_frame(frame)
    return found[0] if len(found) == 1 else None


def texts_of_frame(frame: Frame) -> list[str]:
    """Return the texts in the artifacts of a frame, in their order; empty if it cannot be read."""
    artifacts = _read_artifacts(frame.schema, frame.payload)
    return [part.text for artifact in artifacts for part in artifact.parts or () if part.text]


def _read_artifacts(schema: str, payload: bytes) -> list[Any]:
    try:
        if schema == JSON:
            return _artifacts_in(_decode_holder(payload))
        if is_protobuf(schema):
            return _proto_artifacts(decoder_for(schema).parse(payload))
    except (*UNREADABLE_ERRORS, DecodeError, KeyError, RenderError):
        return []
    return []


def _artifacts_in(holder: _ArtifactHolder) -> list[_ChunkArtifact]:
    inner = holder.result or holder.artifact_update or holder.task
    if inner is not None:
        return _artifacts_in(inner)
    return [holder.artifact] if holder.artifact is not None else holder.artifacts or []


def _chunk_of_json(artifact: _ChunkArtifact) -> ArtifactChunk:
    content = tuple([_json_content(part) for part in artifact.parts or ()])
    artifact_id = artifact.artifact_id or str(artifact.index or 0)
    return make_chunk(artifact_id, artifact.name or "", content)


def _json_content(part: _ChunkPart) -> str | bytes | int:
    """Return the text or canonical data of a part; for base64 only the decoded length in bytes."""
    if part.text is not None:
        return part.text
    data = bytes(part.data)
    if data:
        value = msgspec.json.decode(data)
        wrapped = (
            isinstance(value, dict) and set(value) == {"data"} and not (part.kind or part.type)
        )
        return _canonical_json(value["data"] if wrapped else value)
    raw = part.raw or (part.file and (part.file.bytes or part.file.file_with_bytes)) or ""
    return len(raw.rstrip("=")) * 3 // 4


def make_chunk(
    artifact_id: str,
    name: str,
    content: tuple[str | bytes | int, ...],
    place: TextPlace | None = None,
) -> ArtifactChunk:
    """Return the chunk whose parts have this content: a text, canonical data, or bytes counted."""
    only = content[0] if len(content) == 1 else b""
    text = only.encode("utf-8", "surrogatepass") if isinstance(only, str) else b""
    size = sum(map(_content_size, content))
    return ArtifactChunk(artifact_id, name, len(content), size, hash(content), text, place)


def _content_size(content: str | bytes | int) -> int:
    if isinstance(content, int):
        return content
    if isinstance(content, str):
        return len(content) if content.isascii() else len(content.encode("utf-8", "surrogatepass"))
    return len(content)


def _proto_artifacts(message: Any) -> list[Any]:
    name = message.DESCRIPTOR.name
    if name in _WRAPPER_MESSAGES:
        which = message.WhichOneof("payload")
        return _proto_artifacts(getattr(message, which)) if which in _HOLDER_FIELDS else []
    if name == "TaskArtifactUpdateEvent":
        return [message.artifact]
    return list(message.artifacts) if name == "Task" else []


_WRAPPER_MESSAGES = frozenset(
    {"StreamResponse", "SendMessageResponse", "LiveResponse", "StreamRequest"}
)
_HOLDER_FIELDS = frozenset({"event", "artifact_update", "task"})


def _chunk_of_proto(artifact: Any) -> ArtifactChunk:
    content = tuple([_proto_content(part) for part in artifact.parts])
    return make_chunk(artifact.artifact_id, artifact.name, content)


def _proto_content(part: Any) -> str | bytes | int:
    text: str = part.text
    if text:
        return text
    fields = part.DESCRIPTOR.fields_by_name
    if part.HasField("data"):
        value = to_dict(part)["data"]
        return _canonical_json(
            value.get("data") if "file" in fields and isinstance(value, dict) else value
        )
    return len(part.raw if "raw" in fields else part.file.file_with_bytes)


def _canonical_json(value: object) -> bytes:
    """Return JSON in canonical form, independent of spacing and order on the wire."""
    return msgspec.json.encode(value, order="sorted")
