"""The artifacts in frames: what redaction, tasks, segments and rules compare of them.

An artifact that is complete is assembled by `artifact` from recorded frames.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec
from google.protobuf.message import DecodeError

from a2a_proto import RenderError, to_dict
from a2a_proxy.model.values import Frame
from a2a_proxy.protocol.json_shapes import UNREADABLE_ERRORS
from a2a_proxy.protocol.schema import JSON, decoder_for, is_protobuf
from a2a_proxy.protocol.text_place import TextPlace

PartContent = bytes | str | int
"""Content of a part: its text, its data as canonical JSON, or the number of bytes of a file."""


class ArtifactChunk(msgspec.Struct, frozen=True, gc=False):
    """The content of one artifact in one frame: the artifact of an update, or one of a task."""

    artifact_id: str
    name: str
    pieces: Sequence[PartContent]
    text: bytes = b""
    """The text, if it is the only part."""
    place: TextPlace | None = None
    """Where the text is in the payload, if that is known."""

    @property
    def size(self) -> int:
        """Bytes of text, raw content and data."""
        return len(self.text) or sum([_content_size(each) for each in self.pieces])

    @property
    def texts(self) -> list[bytes]:
        """The texts among the pieces."""
        return [each for each in self.pieces if isinstance(each, bytes)]

    @property
    def content(self) -> int:
        """Hash of the content, the same for every binding if the parts are text."""
        return hash(tuple(self.pieces))


class PartShape(msgspec.Struct, rename="camel", gc=False):
    """A part in any dialect, or the file in it."""

    text: str | None = None
    raw: str | None = None
    data: msgspec.Raw = msgspec.Raw()
    kind: msgspec.Raw = msgspec.Raw()
    type: msgspec.Raw = msgspec.Raw()
    file: PartShape | None = None
    bytes: str | None = None
    file_with_bytes: str | None = None


class _ChunkArtifact(msgspec.Struct, rename="camel", gc=False):
    artifact_id: str | None = None
    index: int | None = None
    name: str | None = None
    parts: list[PartShape] | None = None


class _ArtifactHolder(msgspec.Struct, rename="camel", gc=False):
    """Any object with artifacts, at any nesting: envelope, wrapper, bare event, task."""

    result: _ArtifactHolder | None = None
    artifact_update: _ArtifactHolder | None = None
    task: _ArtifactHolder | None = None
    artifact: _ChunkArtifact | None = None
    artifacts: list[_ChunkArtifact] | None = None


_decode_holder = msgspec.json.Decoder(_ArtifactHolder).decode
_decode_text = msgspec.json.Decoder(str).decode


def chunks_of_frame(frame: Frame) -> list[ArtifactChunk]:
    """Return the artifacts of a frame; empty if it has none or cannot be read."""
    return _read_chunks(frame.schema, frame.payload)


def find_only_chunk(frame: Frame) -> ArtifactChunk | None:
    """Return the artifact of a frame; None if it has none or several, or cannot be read."""
    found = chunks_of_frame(frame)
    return found[0] if len(found) == 1 else None


def texts_of_frame(frame: Frame) -> list[bytes]:
    """Return the texts in the artifacts of a frame, in their order; empty if it cannot be read."""
    return [
        piece
        for chunk in chunks_of_frame(frame)
        for piece in chunk.pieces
        if isinstance(piece, bytes) and piece
    ]


@lru_cache(maxsize=1)  # the same frame is read by redactor, tasks, segments and rules
def _read_chunks(schema: str, payload: bytes) -> list[ArtifactChunk]:
    try:
        if schema == JSON:
            return [*map(_chunk_of_json, _artifacts_in(_decode_holder(payload)))]
        if is_protobuf(schema):
            return [*map(_chunk_of_proto, _proto_artifacts(decoder_for(schema).parse(payload)))]
    except (*UNREADABLE_ERRORS, DecodeError, KeyError):
        pass
    return []


def _artifacts_in(holder: _ArtifactHolder) -> list[_ChunkArtifact]:
    inner = holder.result or holder.artifact_update or holder.task
    if inner is not None:
        return _artifacts_in(inner)
    return [holder.artifact] if holder.artifact is not None else holder.artifacts or []


def _chunk_of_json(artifact: _ChunkArtifact) -> ArtifactChunk:
    ident = artifact.artifact_id or str(artifact.index or 0)
    return make_chunk(ident, artifact.name, [*map(json_part_content, artifact.parts or [])])


def _text_of(raw: msgspec.Raw) -> str:
    """Return the text of a member; empty if it is absent or no text. The parts can be read then
    too."""
    try:
        return _decode_text(raw) if raw else ""
    except UNREADABLE_ERRORS:
        return ""


def json_part_content(part: PartShape) -> PartContent:
    """Return the content of a part in JSON; for base64 only the decoded length in bytes."""
    if part.text is not None:
        return part.text.encode("utf-8", "surrogatepass")
    data = bytes(part.data)
    if data:
        try:
            value = msgspec.json.decode(data)
        except UNREADABLE_ERRORS:
            return len(data)
        has_kind = _text_of(part.kind or part.type)
        wrapped = isinstance(value, dict) and set(value) == {"data"} and not has_kind
        return _canonical_json(value["data"] if wrapped else value)
    raw = part.raw or (part.file and (part.file.bytes or part.file.file_with_bytes)) or ""
    return len(raw.rstrip("=")) * 3 // 4


def make_chunk(artifact_id: str, name: str | None, pieces: Sequence[PartContent]) -> ArtifactChunk:
    """Return the chunk of an artifact with this content."""
    only = pieces[0] if len(pieces) == 1 else b""
    return ArtifactChunk(artifact_id, name or "", pieces, only if isinstance(only, bytes) else b"")


def _content_size(content: PartContent) -> int:
    if isinstance(content, int):
        return content
    return len(content if isinstance(content, bytes) else content.encode())


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
    pieces = [*map(proto_part_content, artifact.parts)]
    return make_chunk(artifact.artifact_id, artifact.name, pieces)


def proto_part_content(part: Any) -> PartContent:
    """Return the content of a part in protobuf."""
    text: str = part.text
    if text or part.HasField("text"):
        return text.encode()
    is_old = "file" in part.DESCRIPTOR.fields_by_name
    if part.HasField("data"):
        try:
            value = to_dict(part)["data"]
        except RenderError:
            return int(part.data.ByteSize())
        return _canonical_json(value.get("data") if is_old and isinstance(value, dict) else value)
    return len(part.file.file_with_bytes if is_old else part.raw)


def _canonical_json(value: object) -> str:
    """Return JSON in canonical form, independent of spacing and order on the wire."""
    return msgspec.json.encode(value, order="sorted").decode()
