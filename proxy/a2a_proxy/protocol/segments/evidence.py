"""Evidence that only payloads contain: authors, transfers, references, activity, media
(manual/protocol.md "Segments").

Decoding a payload costs more than all other work, so each reader first tests the bytes for a mark
that most frames lack.
"""

from collections.abc import Iterator
from typing import Any
from zlib import crc32

import msgspec
from google.protobuf.message import DecodeError

from a2a_proxy.model.values import Frame
from a2a_proxy.protocol.event import decode_payload
from a2a_proxy.protocol.schema import decoder_for

TRANSFER_TOOL = "transfer_to_agent"
MAX_SEARCHED_FRAMES = 4
"""Frames of an agent in each call whose bytes are searched; later frames only if one of these had
evidence. A search of all frames would cost as much as all other work on segments."""
_MAX_DEPTH = 24
_MIN_CONTENT = 8
"""Minimum length of a text in characters to be evidence that two requests have the same subject."""
_LIVE_1975 = "@live-1975"


class FrameEvidence(msgspec.Struct, frozen=True):
    """Evidence in one frame of an agent."""

    author: str = ""
    """Name of the agent behind the agent."""
    transfer: str = ""
    """Name of the agent to which the transfer tool hands over."""
    tool: bool = False
    """Whether the frame is about a tool, so it is no output of the speaker."""
    interrupted: bool = False
    """Whether the agent reports that it was interrupted."""


NO_EVIDENCE = FrameEvidence()


def find_evidence(frame: Frame) -> FrameEvidence:
    """Return the evidence in an agent's frame; most payloads are not decoded."""
    payload = frame.payload
    find = payload.find  # not `in`, which with bytes first creates an exception
    if find(b"author") < 0 and find(b"transfer_to_agent") < 0 and find(b"interrupted") < 0:
        return NO_EVIDENCE
    author = transfer = ""
    tool = interrupted = False
    for holder in _all_objects(decode_payload(payload, frame.schema)):
        metadata = holder.get("metadata")
        if isinstance(metadata, dict):
            author = _author_of(metadata) or author
            interrupted = interrupted or any(
                metadata.get(name) is True for name in _INTERRUPTED_KEYS
            )
            tool = tool or metadata.get("adk_type", metadata.get("type")) in (
                "function_call",
                "function_response",
            )
        if holder.get("name") == TRANSFER_TOOL:
            tool = True
            arguments = holder.get("args")
            if isinstance(arguments, dict):
                transfer = next(
                    (str(value) for value in arguments.values() if isinstance(value, str)), "?"
                )
    return FrameEvidence(author, transfer, tool, interrupted)


_INTERRUPTED_KEYS = ("interrupted", "adk_interrupted")


def _author_of(metadata: dict[str, Any]) -> str:
    for name in ("adk_author", "author"):
        if isinstance(value := metadata.get(name), str):
            return value
    return ""


def ends_activity(frame: Frame) -> bool:
    """Whether the client reports the end of its activity, by a metadata key or a mark of its media
    flow."""
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
    """Return the mark of a media frame, 0 if it has none; -1 if the frame is not a media frame."""
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
    """Whether a client's request on a live stream has content, unlike the form that only reconnects
    (manual/protocol.md "Live rules")."""
    for holder in _all_objects(decode_payload(frame.payload, frame.schema)):
        if "parts" in holder or "content" in holder or "artifact" in holder or "frame" in holder:
            return True
    return False


def referenced_tasks(frame: Frame) -> tuple[str, ...]:
    """Return `referenceTaskIds` of a request."""
    found: list[str] = []
    for holder in _all_objects(decode_payload(frame.payload, frame.schema)):
        for name in ("referenceTaskIds", "reference_task_ids"):
            value = holder.get(name)
            if isinstance(value, list):
                found += [each for each in value if isinstance(each, str)]
    return tuple(found)


def content_marks(payload: bytes, schema: str) -> frozenset[int]:
    """Return the CRC-32 of each part's text or base64 text, except those too short to be
    evidence."""
    marks = set()
    for holder in _all_objects(decode_payload(payload, schema)):
        for name in ("text", "raw", "bytes", "fileWithBytes"):
            value = holder.get(name)
            if isinstance(value, str) and len(value) >= _MIN_CONTENT:
                marks.add(crc32(value.encode("utf-8", "surrogatepass")))
    return frozenset(marks)


def _all_objects(value: Any, depth: int = _MAX_DEPTH) -> Iterator[dict[str, Any]]:
    """Yield all objects within a JSON value, outer ones first."""
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
