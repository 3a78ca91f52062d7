"""State of one direction of an HTTP/2 connection: incomplete frame, HPACK context.

Holds values only; `http2` acts on them.
"""

from typing import Any

import msgspec

from a2a_proxy.http.h2 import UNLIMITED, FrameScanner
from a2a_proxy.http.hpack import Field, HeaderMemo, HpackDecoder
from a2a_proxy.model.wire import Direction, Headers


class DataFrame(msgspec.Struct):
    """A DATA frame in the middle."""

    stream: int
    data: int
    """Bytes of data still to come; padding follows."""
    ends: bool
    emits: bool
    """False for DATA that holds only padding."""
    start: int
    """Byte offset of the next piece; the first piece includes the frame's head."""


class HeaderFields(msgspec.Struct, frozen=True, gc=False):
    """A decoded header block, with the pseudo-fields separated."""

    headers: Headers
    method: bytes = b""
    target: bytes = b""
    authority: bytes = b""
    scheme: bytes = b""
    status: int = 0


_PSEUDO_FIELDS = {
    b":method": "method",
    b":path": "target",
    b":authority": "authority",
    b":scheme": "scheme",
}


def lift_pseudo_fields(fields: list[Field]) -> HeaderFields:
    """Split pseudo-fields from the rest.

    Unknown, repeated or unreadable ones stay in `headers`, where rules see them.
    """
    rest: list[Field] = []
    lifted: dict[str, Any] = {}
    for field in fields:
        name, value = field
        if name[:1] != b":":
            rest.append(field)
        elif name in _PSEUDO_FIELDS and _PSEUDO_FIELDS[name] not in lifted:
            lifted[_PSEUDO_FIELDS[name]] = value
        elif name == b":status" and "status" not in lifted and len(value) == 3 and value.isdigit():
            lifted["status"] = int(value)
        else:
            rest.append(field)
    return HeaderFields(tuple(rest), **lifted)


class DirectionState(FrameScanner, dict=True):
    """Decoding state of one direction."""

    direction: Direction = Direction.TO_AGENT
    opaque: bool = False
    pinged: bool = False
    has_settings: bool = False
    """Whether a SETTINGS frame has arrived."""
    skipped_from: int = 0
    """Offset of the latest frame of a kind without a meaning."""
    skipped_to: int = 0
    """Offset just past it."""
    base: int = -1
    """Offset of the latest incomplete frame."""
    began: int = 0
    """Time its first byte arrived, ns."""
    data: DataFrame | None = None
    hpack: HpackDecoder = msgspec.field(default_factory=HpackDecoder)
    head_bit: int = 0
    ended_bit: int = 0

    def __post_init__(self) -> None:
        self.head_bit, self.ended_bit = 1 << self.direction, 4 << self.direction
        self.decode_fields = HeaderMemo(
            lambda fields, _: lift_pseudo_fields(fields), decoder=self.hpack, most_fields=UNLIMITED
        ).read

    def make_opaque(self) -> None:
        """Stop decoding this direction."""
        self.opaque = True
        self.rest.clear()
        self.need = self.flow = 0
        self.data = self.block = None
