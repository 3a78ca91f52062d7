"""The first words of a conversation: the beginning of the text that the client sent first."""

from typing import Any

from a2a_proxy.model.wire import Direction
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import FrameRow

MAX_WORDS = 60
"""Characters of the words."""
_MAX_FRAMES = 4
"""Frames of an exchange that may hold the first message: headers and the like may precede it."""
_MAX_BYTES = 64 << 10
"""Bytes: larger payloads are not decoded."""


def first_words(recording: Recording, exchange_key: int) -> str:
    """Return the first words that the client sent in an exchange, on one line; empty if it sent no
    text."""
    for row in recording.read_frames(exchange_key, limit=_MAX_FRAMES, payloads=False):
        if row.frame.direction is Direction.TO_AGENT and (words := _frame_words(recording, row)):
            return words
    return ""


def _frame_words(recording: Recording, row: FrameRow) -> str:
    return make_visible(first_text(decode_frame(recording, row), MAX_WORDS))


def decode_frame(recording: Recording, row: FrameRow) -> Any:
    """Return the decoded payload of a frame; None if it is empty, larger than 64 KiB or cannot be
    read."""
    from a2a_proxy.protocol.event import decode_payload

    if not 0 < row.frame.size <= _MAX_BYTES:
        return None
    try:
        return decode_payload(recording.read_payload(row), row.frame.schema)
    except RecordingError:
        return None


def first_text(value: Any, length: int) -> str:
    """Return the beginning of the first text in the parts of a decoded payload, on one line; empty
    if it has none."""
    from a2a_proxy.recording.query.payload_tests import find_parts

    for part in find_parts(value):
        if isinstance(text := part.get("text"), str) and (
            words := " ".join(text[: length * 2].split())
        ):
            return words[:length]
    return ""
