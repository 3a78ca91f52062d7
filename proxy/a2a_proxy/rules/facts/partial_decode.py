"""Partial decoding of statuses, limited to the fields that rules compare between events, and what
rules compare of the parts of artifacts (manual/protocol.md "Artifacts").

This runs for every event, so only compared fields are decoded. Unreadable content yields an empty
summary.
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

from a2a_proxy.model.values import EventKind, Frame
from a2a_proxy.protocol.artifact_chunks import ArtifactChunk, PartContent
from a2a_proxy.protocol.json_shapes import UNREADABLE_ERRORS
from a2a_proxy.protocol.schema import JSON, decoder_for, is_protobuf

DECODE_ERRORS = (*UNREADABLE_ERRORS, DecodeError, KeyError, AttributeError)
"""Exceptions that decoding a peer's bytes may raise."""


class PartsSummary(msgspec.Struct, frozen=True, gc=False):
    """Summary of a list of parts. Texts are joined, so their division into parts does not matter
    (Q-23)."""

    length: int = 0
    """Bytes of all text."""
    digest: int = 0
    """CRC-32 of all text."""
    byte_count: int = 0
    """Bytes of raw content."""
    other_parts: int = 0
    """Number of parts that are not text."""


NO_PARTS = PartsSummary()


class StatusSummary(msgspec.Struct, frozen=True, gc=False):
    """Summary of a status."""

    stamp: str = ""
    """The timestamp as sent; for protobuf, seconds and nanoseconds."""
    message_content: bytes | None = None
    """Content of the message in a form that is equal for equal parts on one binding; None if there
    is no message. Text added to the end of the last part is added at the end.
    """
    named_ids: tuple[str, ...] = ()
    """Task and context ids named by its message, and by the messages of a task's history; includes
    empty ones."""
    is_plain: bool = False
    """Whether the payload has no free text besides its ids and one text, which is
    `message_content`."""


NO_STATUS = StatusSummary()

GateResult = StatusSummary | ArtifactChunk | bool
"""False if a payload is not provably valid; True if it is; or the summary of its update, if the
gate decoded it."""


def add_parts(content: PartsSummary, pieces: Sequence[PartContent]) -> PartsSummary:
    """Return the summary of the content followed by more parts."""
    length, digest, data, others = (
        content.length,
        content.digest,
        content.byte_count,
        content.other_parts,
    )
    for piece in pieces:
        if isinstance(piece, bytes):
            length += len(piece)
            digest = crc32(piece, digest)
        else:
            data += piece if isinstance(piece, int) else 0
            others += 1
    return PartsSummary(length, digest, data, others)


def time_before(stamp: str, other: str) -> int:
    """Return by how many ns `stamp` is before `other`; 0 if it is not earlier or they cannot be
    compared."""
    if not stamp or not other:
        return 0
    if stamp >= other and len(stamp) == len(other):  # same format: the text order is the time order
        return 0
    one, two = parse_timestamp(stamp), parse_timestamp(other)
    if one > 0 and two > 0:
        return max(0, two - one)
    return max(0, one - two) if one < 0 and two < 0 else 0


def parse_timestamp(stamp: str) -> int:
    """Return a timestamp in ns; negative if it has no time zone (0.x), 0 if it is missing or
    unreadable."""
    if not stamp:
        return 0
    try:
        seconds, mark, rest = stamp.partition(_KIND_MEMBER)
        if mark:
            return int(seconds) * 1_000_000_000 + int(rest)
        moment = datetime.fromisoformat(stamp)
        if moment.tzinfo is None:
            return -int(moment.replace(tzinfo=UTC).timestamp() * 1e6) * 1000
        return int(moment.timestamp() * 1e6) * 1000
    except (ValueError, OverflowError):
        return 0


def decode_status(frame: Frame) -> StatusSummary:
    """Return the summary of the status of a task or a status update."""
    try:
        if frame.schema == JSON:
            return _summarise_json_status(_decode_json_status(frame.payload))
        if is_protobuf(frame.schema):
            return _decode_proto_status(_schema_layout(frame.schema, frame.event), frame.payload)
    except DECODE_ERRORS:
        pass
    return NO_STATUS


# --- JSON


class _PartialShape(msgspec.Struct, rename="camel", gc=False):
    """Base of partial shapes: unknown members are skipped without building objects."""


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


class _PartialContextMessage(_PartialShape):
    """A message of a history."""

    task_id: str | None = None
    context_id: str | None = None


class _PartialStatus(_PartialShape):
    timestamp: str | None = None
    message: _PartialMessage | None = None
    update: _PartialMessage | None = None


class _WithStatus(_PartialShape):
    """An object with a status at any nesting: envelope, wrapper, bare event, task."""

    result: _WithStatus | None = None
    status_update: _WithStatus | None = None
    task: _WithStatus | None = None
    status: _PartialStatus | None = None
    history: list[_PartialContextMessage] | None = None


_decode_json_status = msgspec.json.Decoder(_WithStatus).decode


def _summarise_json_status(holder: _WithStatus) -> StatusSummary:
    while (inner := holder.result or holder.status_update or holder.task) is not None:
        holder = inner
    status = holder.status
    if status is None:
        return NO_STATUS
    stamp = status.timestamp or ""
    said = status.message or status.update
    named: tuple[str, ...] = ()
    if holder.history:
        named = tuple(
            each for told in holder.history for each in (told.task_id or "", told.context_id or "")
        )
    if said is None:
        return StatusSummary(stamp, named_ids=named)
    data = b"".join([_part_bytes(part) for part in said.parts or said.content or ()])
    return StatusSummary(stamp, data, (said.task_id or "", said.context_id or "", *named))


def _part_bytes(part: _PartialHistoryMessage) -> bytes:
    """Return the content of a part, independent of whitespace and of the order of its members."""
    if part.text is not None:
        return part.text.encode("utf-8", "surrogatepass")
    plain = part.data if part.data is not UNSET else part.file
    if plain is not UNSET:
        return msgspec.json.encode(msgspec.json.decode(plain), order="deterministic")
    return (part.raw or part.url or "").encode("utf-8", "surrogatepass")


# --- protobuf

_KIND_MEMBER = "s "
"""Separator between seconds and nanoseconds."""
_EVENT_MEMBERS = {
    EventKind.TASK: "task",
    EventKind.STATUS: "status_update",
}


class _SchemaLayout(msgspec.Struct, frozen=True):
    """Access to the messages of one protobuf schema."""

    read_object: Callable[[bytes], Any]
    """Parses bytes and returns the contained task or update."""
    is_old: bool
    """Whether the schema is 0.3: other names for the status message and its parts, and separate
    file parts."""
    history: bool
    """Whether the object is a task, which has a history."""


@cache
def _schema_layout(schema: str, event: EventKind) -> _SchemaLayout:
    parse = decoder_for(schema).parse
    full, _, line = schema.partition("@")
    name = full.rpartition(".")[2]
    member = _EVENT_MEMBERS.get(event, "")
    old = full.startswith("a2a.v1.") and not line
    read_object = parse
    if name == "LiveResponse":
        read_object = lambda data: getattr(parse(data).event, member)  # noqa: E731
    elif name in ("StreamResponse", "SendMessageResponse"):
        read_object = lambda data: getattr(parse(data), member)  # noqa: E731
    return _SchemaLayout(read_object, old, event is EventKind.TASK)


def _decode_proto_status(layout: _SchemaLayout, data: bytes) -> StatusSummary:
    held = layout.read_object(data)
    status = held.status
    stamp = timestamp_text(status.timestamp) if status.HasField("timestamp") else ""
    named: tuple[str, ...] = ()
    if layout.history:
        named = tuple(each for told in held.history for each in (told.task_id, told.context_id))
    if not status.HasField("update" if layout.is_old else "message"):
        return StatusSummary(stamp, named_ids=named)
    said = status.update if layout.is_old else status.message
    parts = said.content if layout.is_old else said.parts
    told = b"".join(
        [part.text.encode() or part.SerializeToString(deterministic=True) for part in parts]
    )
    return StatusSummary(stamp, told, (said.task_id, said.context_id, *named))


def timestamp_text(timestamp: Any) -> str:
    """Return a protobuf Timestamp in the form of `StatusSummary.stamp`."""
    return f"{timestamp.seconds}{_KIND_MEMBER}{timestamp.nanos:09d}"
