"""State of one direction of an HTTP/2 connection: incomplete frame, header block, HPACK context.

Holds values only; `http2` acts on them.
"""

from typing import Any

import msgspec

from a2a_proxy.model.saved_state import State
from a2a_proxy.model.wire import Direction, Headers
from a2a_proxy.wire.hpack_decoder import Field, HpackDecoder, HpackError
from a2a_proxy.wire.http2_frame import Violation

_MAX_MEMO = 64


class Flow(msgspec.Struct):
    """A payload that is emitted (or skipped) as it arrives."""

    stream: int
    data: int
    """Bytes of data still to come."""
    padding: int
    """Bytes of padding still to come after them."""
    ends: bool
    emits: bool
    """False for DATA that holds only padding and for frames of unknown types."""
    start: int
    """Byte offset of the next piece; the first piece includes the frame's head."""


class HeaderBlock(msgspec.Struct):
    """A header block before its END_HEADERS."""

    stream: int
    promised: int
    """The stream that a PUSH_PROMISE reserves; 0 for HEADERS."""
    ends: bool
    start: int
    began: int
    fragment: bytearray


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


class DirectionState(State, dict=True):
    """Decoding state of one direction."""

    direction: Direction
    preface: bool = False
    """Whether the client's connection preface is still to come."""
    opaque: bool = False
    pinged: bool = False
    offset: int = 0
    """Offset of the first byte of `incomplete`, or of the next byte to come."""
    incomplete: bytearray = bytearray()
    """An incomplete frame (or its head, or the preface), never DATA."""
    need: int = 0
    """Bytes that `incomplete` must have before another attempt to parse it makes sense."""
    began: int = 0
    """Time the first byte of `incomplete` arrived, ns."""
    flow: Flow | None = None
    block: HeaderBlock | None = None
    hpack: HpackDecoder = msgspec.field(default_factory=HpackDecoder)
    head_bit: int = 0
    ended_bit: int = 0

    def __post_init__(self) -> None:
        self.head_bit, self.ended_bit = 1 << self.direction, 4 << self.direction
        self._memo: dict[bytes, HeaderFields] = {}
        self._memo_changes = self.hpack.changes

    def decode_fields(self, block: HeaderBlock) -> HeaderFields:
        """Decode a complete header block. Raises `Violation`.

        Calls of one client repeat their blocks byte for byte: results are cached while the dynamic
        table is unchanged.
        """
        data = bytes(block.fragment)
        memo, hpack = self._memo, self.hpack
        if self._memo_changes == hpack.changes and (remembered := memo.get(data)) is not None:
            return remembered
        before = hpack.changes
        try:
            fields = lift_pseudo_fields(hpack.decode_block(data))
        except HpackError as error:
            raise Violation(block.start, "header block in HPACK", str(error)) from None
        if self._memo_changes != hpack.changes or len(memo) >= _MAX_MEMO:
            memo.clear()
            self._memo_changes = hpack.changes
        if before == hpack.changes:
            memo[data] = fields
        return fields

    def make_opaque(self) -> None:
        """Stop decoding this direction."""
        self.opaque = True
        self.incomplete.clear()
        self.need = 0
        self.flow = None
        self.block = None
