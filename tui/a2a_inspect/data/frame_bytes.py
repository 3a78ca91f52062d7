"""A frame's bytes with the recorded framing around its payload: SSE lines, stdio header blocks.

Recordings do not keep the chunk sizes of HTTP/1.1, the frame headers of HTTP/2, the five bytes
before a gRPC message, and content coding.
"""

import msgspec

from a2a_proxy.model.values import Frame
from a2a_proxy.model.wire import Direction
from a2a_proxy.present import text


class FrameBytes(msgspec.Struct, frozen=True):
    """Bytes of a frame, and the byte ranges of its payload."""

    data: bytes = b""
    payload_ranges: tuple[tuple[int, int], ...] = ()
    """First byte and the one after the last, for each payload range."""

    def find_bounds(self) -> tuple[frozenset[int], frozenset[int]]:
        """Return the offsets where payload ranges begin and end; empty sets if all bytes are
        payload."""
        if self.payload_ranges == ((0, len(self.data)),):
            return frozenset(), frozenset()
        return frozenset(first for first, _ in self.payload_ranges), frozenset(
            last for _, last in self.payload_ranges
        )


def wire_bytes(frame: Frame, limit: int) -> FrameBytes:
    """Return the beginning of a frame as sent, with at most `limit` bytes of its payload."""
    parts = frame.framing.replace("\1", str(frame.size)).encode(errors="replace").split(b"\0")
    payload = frame.payload[:limit]
    lines = frame.payload.split(b"\n") if len(parts) > 2 else [frame.payload]
    if len(lines) != len(parts) - 1 or frame.truncated:
        return FrameBytes(payload, ((0, len(payload)),) if payload else ())
    out, stretches, rest = bytearray(parts[0]), [], limit
    for line, after in zip(lines, parts[1:], strict=True):
        visible = line[:rest]
        stretches.append((len(out), len(out) + len(visible)))
        out += visible
        rest -= len(visible)
        if len(visible) < len(line):
            break
        out += after
    return FrameBytes(bytes(out), tuple(stretches))


def byte_range_words(frame: Frame, data: FrameBytes) -> str:
    """Return the frame's byte range on the wire, and how much of it is shown."""
    way = "to the agent" if frame.direction is Direction.TO_AGENT else "to the client"
    where = f"bytes {frame.start} to {frame.end} {way}"
    if not frame.payload:
        return f"{where}; no payload"
    mark_words = ", its payload between [ ]" if any(data.find_bounds()) else ""
    have = (
        sum(last - first for first, last in data.payload_ranges) + len(data.payload_ranges) - 1
    )  # and line ends between payload lines
    part = (
        f", {text.format_size(have)} of {text.format_size(frame.size)}" if have < frame.size else ""
    )
    return where + mark_words + part
