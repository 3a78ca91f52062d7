"""What is read of a status: partial decoding, limited to what rules compare between events.

Unreadable content yields an empty summary.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec
from google.protobuf.message import DecodeError
from msgspec import UNSET, UnsetType

from a2a_proxy.model.values import EventKind, Frame
from a2a_proxy.protocol.artifact_chunks import ArtifactChunk
from a2a_proxy.protocol.json_shapes import UNREADABLE_ERRORS
from a2a_proxy.protocol.schema import JSON, decoder_for, is_protobuf
from a2a_proxy.protocol.summary import Summary

DECODE_ERRORS = (*UNREADABLE_ERRORS, DecodeError, KeyError, AttributeError)
"""Exceptions that decoding a peer's bytes may raise."""
SECONDS_MARK = "s "
"""Separator between seconds and nanoseconds."""


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

MAX_PLAIN_DIGITS = 11
"""Digits of a number that is too short to be a secret."""

Content = StatusSummary | ArtifactChunk | bool
"""False if a payload is not provably valid; True if it is; or the content of its update."""


class A2AMessage(msgspec.Struct, gc=False):
    """A payload as the strict decoder has read it."""

    content: Content = False
    summary: Summary | None = None
    """Its summary; None if it must be summarised by the lenient decoder."""
    rpc_id: str = ""

    def strings(self) -> tuple[bytes, ...] | None:
        """Return the strings of a status update, apart from the `task_id`, `context_id` and
        `rpc_id` of its frame; None if only some of them have been read."""
        status = self.content
        if type(status) is not StatusSummary or self.summary is None or not status.is_plain:
            return None
        content, stamp = status.message_content, status.stamp
        if content is None:
            return (stamp.encode(),)
        ident = self.summary[3].encode()
        return (content, ident, stamp.encode()) if stamp else (content, ident)


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
    return f"{timestamp.seconds}{SECONDS_MARK}{timestamp.nanos:09d}"
