"""A quick look at statuses and artifacts: what rules compare from one event with the next
(manual/protocol.md "Artifacts").

For every event, so only what is compared is decoded. What cannot be read gives an empty look.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any
from zlib import crc32

import msgspec
from google.protobuf.message import DecodeError
from msgspec import UNSET, UnsetType

from a2a_proto import RenderError
from a2a_proxy.model.frame import EventKind, Frame
from a2a_proxy.protocol.json_shapes import UNREADABLE_ERRORS
from a2a_proxy.protocol.schema import JSON, decoder_for, is_protobuf

FAULTS = (*UNREADABLE_ERRORS, DecodeError, KeyError, RenderError, AttributeError)
"""What reading a peer's octets may raise."""


class PartsSummary(msgspec.Struct, frozen=True, gc=False):
    """A list of parts in numbers: texts joined, so that it does not matter how they are cut into parts (Q-23)."""

    length: int = 0
    """Octets of all text."""
    digest: int = 0
    """CRC-32 of all text."""
    octets: int = 0
    """Of raw content."""
    others: int = 0
    """Parts that are not text."""


NOTHING = PartsSummary()

Piece = bytes | int
"""A part: its text, or how many octets of other content it has."""


class StatusLook(msgspec.Struct, frozen=True, gc=False):
    """A status."""

    stamp: str = ""
    """Its timestamp as it stands there; of protobuf seconds and nanoseconds."""
    said: bytes | None = None
    """What its message says, in a form that is the same for the same parts on one binding; None: it has none. What is
    only added to the text of the last part is added at the end."""
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
    pieces: Sequence[Piece]


NO_STATUS = StatusLook()

Seen = StatusLook | ArtifactLook | bool
"""False: a payload is not faultless. True: it is; or what its update shows, where that was read on the way."""


def add(content: PartsSummary, pieces: Sequence[Piece]) -> PartsSummary:
    """The content with more parts after it."""
    length, digest, octets, others = content.length, content.digest, content.octets, content.others
    for piece in pieces:
        if isinstance(piece, bytes):
            length += len(piece)
            digest = crc32(piece, digest)
        else:
            octets += piece
            others += 1
    return PartsSummary(length, digest, octets, others)


def earlier(stamp: str, other: str) -> int:
    """By how many ns `stamp` is before `other`; 0 where it is not, or where they cannot be compared."""
    if not stamp or not other:
        return 0
    if stamp >= other and len(stamp) == len(other):  # written alike: no need to read them
        return 0
    one, two = nanoseconds(stamp), nanoseconds(other)
    if one > 0 and two > 0:
        return max(0, two - one)
    return max(0, one - two) if one < 0 and two < 0 else 0


def nanoseconds(stamp: str) -> int:
    """A timestamp, ns; below 0 where it names no zone, as in 0.x; 0 where there is none or it cannot be read."""
    if not stamp:
        return 0
    try:
        seconds, mark, rest = stamp.partition(_MARK)
        if mark:
            return int(seconds) * 1_000_000_000 + int(rest)
        moment = datetime.fromisoformat(stamp)
        if moment.tzinfo is None:
            return -int(moment.replace(tzinfo=UTC).timestamp() * 1e6) * 1000
        return int(moment.timestamp() * 1e6) * 1000
    except (ValueError, OverflowError):
        return 0


def status_of(frame: Frame) -> StatusLook:
    """The status that a task or a status update has."""
    try:
        if frame.schema == JSON:
            return _json_status(_decode_status(frame.payload))
        if is_protobuf(frame.schema):
            return _proto_status(_layout(frame.schema, frame.event), frame.payload)
    except FAULTS:
        pass
    return NO_STATUS


def artifacts_of(frame: Frame) -> list[ArtifactLook]:
    """The artifact of an update, or those of a task."""
    try:
        if frame.schema == JSON:
            return [_json_artifact(each) for each in _json_artifacts(_decode_artifacts(frame.payload))]
        if is_protobuf(frame.schema):
            layout = _layout(frame.schema, frame.event)
            found = layout.held(frame.payload)
            many = [found.artifact] if frame.event is EventKind.ARTIFACT else found.artifacts
            return [_proto_artifact(layout, each) for each in many]
    except FAULTS:
        pass
    return []


# --- JSON ---------------------------------------------------------------------------------------------------------


class _PartialShape(msgspec.Struct, rename="camel", gc=False):
    """Unknown members are skipped without being made."""


class PartShape(_PartialShape):
    """A part of any dialect."""

    text: str | None = None
    raw: str | None = None
    file: PartShape | None = None
    bytes: str | None = None
    file_with_bytes: str | None = None
    media_type: str | None = None
    mime_type: str | None = None


class _PartialHistoryMessage(_PartialShape):
    """A part of a message."""

    text: str | None = None
    raw: str | None = None
    url: str | None = None
    data: msgspec.Raw | UnsetType = UNSET
    file: msgspec.Raw | UnsetType = UNSET


class _PartialMessage(_PartialShape):
    parts: list[_PartialHistoryMessage] | None = None
    content: list[_PartialHistoryMessage] | None = None
    task_id: str | None = None
    context_id: str | None = None


class _Told(_PartialShape):
    """A message of a history."""

    task_id: str | None = None
    context_id: str | None = None


class _PartialStatus(_PartialShape):
    timestamp: str | None = None
    message: _PartialMessage | None = None
    update: _PartialMessage | None = None
    progress: msgspec.Raw | UnsetType = UNSET


class _PartialArtifact(_PartialShape):
    artifact_id: str | None = None
    index: int | None = None
    name: str | None = None
    description: str | None = None
    parts: list[PartShape] | None = None


class _WithStatus(_PartialShape):
    """Anything that has a status, in any nesting: envelope, wrapper, bare event, task."""

    result: _WithStatus | None = None
    status_update: _WithStatus | None = None
    task: _WithStatus | None = None
    status: _PartialStatus | None = None
    history: list[_Told] | None = None
    metadata: msgspec.Raw | UnsetType = UNSET


class _WithArtifacts(_PartialShape):
    """Anything that has artifacts."""

    result: _WithArtifacts | None = None
    artifact_update: _WithArtifacts | None = None
    task: _WithArtifacts | None = None
    artifact: _PartialArtifact | None = None
    artifacts: list[_PartialArtifact] | None = None


_decode_status = msgspec.json.Decoder(_WithStatus).decode
_decode_artifacts = msgspec.json.Decoder(_WithArtifacts).decode


def _json_status(holder: _WithStatus) -> StatusLook:
    while (inner := holder.result or holder.status_update or holder.task) is not None:
        holder = inner
    status = holder.status
    if status is None:
        return NO_STATUS
    stamp = status.timestamp or ""
    said = status.message or status.update
    named: tuple[str, ...] = ()
    if holder.history:
        named = tuple(each for told in holder.history for each in (told.task_id or "", told.context_id or ""))
    if said is None:
        return StatusLook(stamp, None, holder.metadata is UNSET and status.progress is UNSET, named)
    octets = b"".join([_octets(part) for part in said.parts or said.content or ()])
    return StatusLook(stamp, octets, False, (said.task_id or "", said.context_id or "", *named))


def _octets(part: _PartialHistoryMessage) -> bytes:
    """What a part says, however it is spaced and whatever the order of its members."""
    if part.text is not None:
        return part.text.encode("utf-8", "surrogatepass")
    plain = part.data if part.data is not UNSET else part.file
    if plain is not UNSET:
        return msgspec.json.encode(msgspec.json.decode(plain), order="deterministic")
    return (part.raw or part.url or "").encode("utf-8", "surrogatepass")


def _json_artifacts(holder: _WithArtifacts) -> list[_PartialArtifact]:
    while (inner := holder.result or holder.artifact_update or holder.task) is not None:
        holder = inner
    return [holder.artifact] if holder.artifact is not None else holder.artifacts or []


def _json_artifact(artifact: _PartialArtifact) -> ArtifactLook:
    parts = artifact.parts or []
    media_type = ""
    if parts:
        first = parts[0]
        media_type = first.media_type or (first.file and first.file.mime_type) or ""
    described = artifact.description
    return ArtifactLook(
        artifact.artifact_id or str(artifact.index or 0),
        artifact.name or "",
        crc32(described.encode("utf-8", "surrogatepass")) if described else 0,
        media_type,
        [json_piece(part) for part in parts],
    )


def json_piece(part: PartShape) -> Piece:
    """A part in JSON; of base64 the decoded length only."""
    if part.text is not None:
        return part.text.encode("utf-8", "surrogatepass")
    raw = part.raw or (part.file and (part.file.bytes or part.file.file_with_bytes)) or ""
    return len(raw.rstrip("=")) * 3 // 4


# --- protobuf -----------------------------------------------------------------------------------------------------

_MARK = "s "
"""Between seconds and nanoseconds."""
_MEMBERS = {EventKind.TASK: "task", EventKind.STATUS: "status_update", EventKind.ARTIFACT: "artifact_update"}


class _Layout(msgspec.Struct, frozen=True):
    """How messages of one schema are read."""

    held: Callable[[bytes], Any]
    """From octets to the task or update in them."""
    old: bool
    """0.3: other names for the status message and its parts, files of their own."""
    history: bool
    """It is a task."""


@cache
def _layout(schema: str, event: EventKind) -> _Layout:
    parse = decoder_for(schema).parse
    full, _, line = schema.partition("@")
    name = full.rpartition(".")[2]
    member = _MEMBERS.get(event, "")
    old = full.startswith("a2a.v1.") and not line
    held = parse
    if name == "LiveResponse":
        held = lambda octets: getattr(parse(octets).event, member)  # noqa: E731
    elif name in ("StreamResponse", "SendMessageResponse"):
        held = lambda octets: getattr(parse(octets), member)  # noqa: E731
    return _Layout(held, old, event is EventKind.TASK)


def _proto_status(layout: _Layout, octets: bytes) -> StatusLook:
    held = layout.held(octets)
    status = held.status
    stamp = moment_of(status.timestamp) if status.HasField("timestamp") else ""
    named: tuple[str, ...] = ()
    if layout.history:
        named = tuple(each for told in held.history for each in (told.task_id, told.context_id))
    if not status.HasField("update" if layout.old else "message"):
        return StatusLook(stamp, None, not held.HasField("metadata"), named)
    said = status.update if layout.old else status.message
    parts = said.content if layout.old else said.parts
    told = b"".join([part.text.encode() or part.SerializeToString(deterministic=True) for part in parts])
    return StatusLook(stamp, told, False, (said.task_id, said.context_id, *named))


def moment_of(timestamp: Any) -> str:
    """A protobuf Timestamp as a status look has it."""
    return f"{timestamp.seconds}{_MARK}{timestamp.nanos:09d}"


def _proto_artifact(layout: _Layout, artifact: Any) -> ArtifactLook:
    pieces: list[Piece] = []
    media_type = ""
    for part in artifact.parts:
        if not pieces:
            media_type = part.file.mime_type if layout.old else part.media_type
        text = part.text
        pieces.append(text.encode() if text else proto_piece(part, old=layout.old))
    described = artifact.description
    description = crc32(described.encode()) if described else 0
    return ArtifactLook(artifact.artifact_id, artifact.name, description, media_type, pieces)


def proto_piece(part: Any, *, old: bool) -> Piece:
    """A part in protobuf."""
    text: str = part.text
    if text or part.WhichOneof("part" if old else "content") == "text":
        return text.encode()
    return len(part.file.file_with_bytes if old else part.raw)
