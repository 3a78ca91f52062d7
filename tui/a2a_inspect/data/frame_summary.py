"""One-line summaries of frames."""

import re

from a2a_proxy.model.values import Exchange
from a2a_proxy.present import text
from a2a_proxy.protocol.describe import describe_frame
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import FrameRow

_MAX_SUMMARIZED_BYTES = 64 << 10
"""Bytes: a larger payload is not read for a summary, which then names its size."""
_CONTROL_SPACES = str.maketrans("␉␊␍", "   ")
_TRAILING_CONTROLS = re.compile('[␉␊␍]+(?=")')


def summarize_frame(recording: Recording, row: FrameRow, exchange: Exchange | None) -> str:
    """Return the summary of `protocol.describe`, or a description of the damage if the frame is
    damaged."""
    try:
        large = (
            f" ({text.format_size(row.frame.size)})"
            if row.frame.size > _MAX_SUMMARIZED_BYTES
            else ""
        )
        payload = b"" if large else recording.read_payload(row)
    except RecordingError as damage:
        return damage.message
    if exchange is None:
        return describe_frame(row.frame, payload) + large
    line = describe_frame(
        row.frame,
        payload,
        exchange.operation,
        exchange.dialect,
        exchange.extensions,
        exchange.binding,
    )
    return line + large


def flatten_line_ends(words: str) -> str:
    """Replace line ends and tabs, also in the form written by `make_visible`, by spaces: few
    browser fonts have glyphs for them.
    """
    return " ".join(_TRAILING_CONTROLS.sub("", words).translate(_CONTROL_SPACES).split())
