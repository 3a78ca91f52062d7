"""What only payloads tell about who speaks: authors, transfers, references, activity, media
(manual/protocol.md "Segments").

Reading a payload costs more than all the rest, so every reader is behind a test of the bytes that most frames fail.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from zlib import crc32

import msgspec
from google.protobuf.message import DecodeError

from a2a_proxy.model.frame import Frame
from a2a_proxy.protocol.event import decode_payload
from a2a_proxy.protocol.schema import decoder_for

TRANSFER_TOOL = "transfer_to_agent"
MAX_SEARCHED_FRAMES = 4
"""Frames of an agent in each call whose bytes are searched; the rest only where one of them told something. To search
all of them would cost as much as all that is done here besides."""
_MAX_DEPTH = 24
_MIN_CONTENT = 8
"""Bytes of a text from which on it is evidence that two requests are about the same."""
_LIVE_1975 = "@live-1975"


class FrameEvidence(msgspec.Struct, frozen=True):
    """Evidence in one frame of an agent."""

    author: str = ""
    """The agent behind the agent."""
    transfer: str = ""
    """To whom the transfer tool is asked to hand over."""
    tool: bool = False
    """It is about a tool: no output of whoever speaks."""
    interrupted: bool = False
    """The agent says that it was interrupted."""


NO_EVIDENCE = FrameEvidence()


def find_evidence(frame: Frame) -> FrameEvidence:
    """What an agent's frame tells; most are not read."""
    payload = frame.payload
    if b"author" not in payload and b"transfer_to_agent" not in payload and b"interrupted" not in payload:
        return NO_EVIDENCE
    author = transfer = ""
    tool = interrupted = False
    for holder in _all_objects(decode_payload(payload, frame.schema)):
        metadata = holder.get("metadata")
        if isinstance(metadata, dict):
            author = _author_of(metadata) or author
            interrupted = interrupted or any(metadata.get(name) is True for name in _INTERRUPTED_KEYS)
            tool = tool or metadata.get("adk_type", metadata.get("type")) in ("function_call", "function_response")
        if holder.get("name") == TRANSFER_TOOL:
            tool = True
            arguments = holder.get("args")
            if isinstance(arguments, dict):
                transfer = next((str(value) for value in arguments.values() if isinstance(value, str)), "?")
    return FrameEvidence(author, transfer, tool, interrupted)


_INTERRUPTED_KEYS = ("interrupted", "adk_interrupted")


def _author_of(metadata: dict[str, Any]) -> str:
    for name in ("adk_author", "author"):
        if isinstance(value := metadata.get(name), str):
            return value
    return ""


def ends_activity(frame: Frame) -> bool:
    """The client says that its activity is over, by a metadata key or a mark of its media flow."""
    if b"activity_end" in frame.payload:
        return any(
            isinstance(metadata := holder.get("metadata"), dict)
            and any(name.endswith("activity_end") and value for name, value in metadata.items())
            for holder in _all_objects(decode_payload(frame.payload, frame.schema))
        )
    return media_mark(frame) == MEDIA_STOP


MEDIA_START, MEDIA_DELTA, MEDIA_STOP, MEDIA_PAUSE, MEDIA_INTERRUPT = 1, 2, 3, 4, 5
"""Numbers of `MediaFrame.Event`."""


def media_mark(frame: Frame) -> int:
    """The mark of a media frame, 0 for one without; -1 where the frame is none."""
    if not frame.schema.endswith(_LIVE_1975):
        return -1
    try:
        message = decoder_for(frame.schema).parse(frame.payload)
    except (DecodeError, KeyError):
        return -1
    if "frame" not in message.DESCRIPTOR.fields_by_name or not message.HasField("frame"):
        return -1
    return int(message.frame.event)


def is_message(frame: Frame) -> bool:
    """A client's request on a live stream says something: it is not the form that only reconnects
    (manual/protocol.md "Live rules")."""
    for holder in _all_objects(decode_payload(frame.payload, frame.schema)):
        if "parts" in holder or "content" in holder or "artifact" in holder or "frame" in holder:
            return True
    return False


def referenced_tasks(frame: Frame) -> tuple[str, ...]:
    """`referenceTaskIds` of a request."""
    found: list[str] = []
    for holder in _all_objects(decode_payload(frame.payload, frame.schema)):
        for name in ("referenceTaskIds", "reference_task_ids"):
            value = holder.get(name)
            if isinstance(value, list):
                found += [each for each in value if isinstance(each, str)]
    return tuple(found)


def content_marks(payload: bytes, schema: str) -> frozenset[int]:
    """CRC-32 of each part's text or bytes, those too short to mean anything left out."""
    marks = set()
    for holder in _all_objects(decode_payload(payload, schema)):
        for name in ("text", "raw", "bytes", "fileWithBytes"):
            value = holder.get(name)
            if isinstance(value, str) and len(value) >= _MIN_CONTENT:
                marks.add(crc32(value.encode("utf-8", "surrogatepass")))
    return frozenset(marks)


def _all_objects(value: Any, depth: int = _MAX_DEPTH) -> Iterator[dict[str, Any]]:
    """All objects within a JSON value, outer ones first."""
    if isinstance(value, dict):
        yield value
        members: Any = value.values()
    elif isinstance(value, list):
        members = value
    else:
        return
    if depth:
        for member in members:
            if isinstance(member, dict | list):
                yield from _all_objects(member, depth - 1)
