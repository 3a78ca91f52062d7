"""One HTTP/2 frame as a value, with the checks of its content. `http2` implements the meaning of
frames."""

import msgspec


class Violation(Exception):
    """Bytes after which the direction cannot be decoded."""

    def __init__(self, offset: int, expected: str, got: str) -> None:
        super().__init__(offset, expected, got)
        self.offset = offset
        self.expected = expected
        self.got = got


def describe_frame_head(kind: int, stream: int, length: int) -> str:
    """Return a frame's head in words."""
    return f"frame of type {kind} on stream {stream} with {length} bytes"


class RawFrame(msgspec.Struct, frozen=True, gc=False):
    """One complete frame other than DATA."""

    kind: int
    flags: int
    stream: int
    payload: bytes
    start: int
    end: int
    at: int
    """Time its last byte arrived, ns."""
    began: int
    """Time its first byte arrived, ns."""

    def make_violation(self, expected: str) -> Violation:
        """Return the violation for this frame."""
        return Violation(
            self.start, expected, describe_frame_head(self.kind, self.stream, len(self.payload))
        )

    def check_stream(self) -> None:
        """Raise `Violation` if the frame is on stream 0."""
        if not self.stream:
            raise self.make_violation("a frame on a stream")

    def check_size(self, size: int) -> None:
        """Raise `Violation` if the payload does not have exactly `size` bytes."""
        if len(self.payload) != size:
            raise self.make_violation(f"{size} bytes")

    def split_content(self, padded: bool, fixed: int) -> tuple[int, bytes]:
        """Return the position of the content in the payload, and the bytes after its first `fixed`
        ones without padding.

        Raises `Violation` if they do not fit.
        """
        first, last = 0, len(self.payload)
        if padded and last:
            first, last = 1, last - self.payload[0]
        if first + fixed > last or (padded and not first):
            raise self.make_violation("a frame that holds its fields and padding")
        return first, self.payload[first + fixed : last]
