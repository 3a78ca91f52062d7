"""Decodes both directions of a WebSocket (RFC 6455) after its handshake, with permessage-deflate
(RFC 7692): messages, pings and the closing handshake.

Its handshake was the request of a stream, which the socket ends: an `End` if a peer closed the
socket, a `Cut` if a peer left without. Bytes that are not a frame stop the decoding of their
direction, and so do frames that RFC 6455 forbids.
"""

from collections import Counter

import msgspec

from a2a_proxy.http.websocket import (
    MAX_CONTROL_SIZE,
    OPCODES,
    RESERVED_1,
    FrameError,
    FrameHead,
    FramePart,
    FrameScanner,
    Opcode,
)
from a2a_proxy.model.saved_state import State
from a2a_proxy.model.values import OPAQUE_COUNTERS
from a2a_proxy.model.wire import (
    REASON_BROKE_OFF,
    Control,
    Cut,
    Direction,
    End,
    Framed,
    Headers,
    Undecodable,
    WireEvent,
)
from a2a_proxy.wire.body import MAX_BODY_SIZE, TRUNCATED_SIZE, BodyCollector
from a2a_proxy.wire.content import is_utf8
from a2a_proxy.wire.deflated_messages import MessageInflater

DEFLATE = "permessage-deflate"
"""Name of the extension that is decoded (RFC 7692), and framing of its messages."""
STREAM = 1
"""Stream of the handshake."""
SUBPROTOCOL = "a2a.v1"
"""The subprotocol of A2A (`Sec-WebSocket-Protocol`)."""

_EXTENSIONS_FIELD = b"sec-websocket-extensions"
_PROTOCOL_FIELD = b"sec-websocket-protocol"
_NO_TAKEOVER = {
    Direction.TO_AGENT: "client_no_context_takeover",
    Direction.TO_CLIENT: "server_no_context_takeover",
}
_RESERVED_CODES = frozenset({1004, 1005, 1006, 1015})
"""Close codes that no frame may have (RFC 6455 7.4.1)."""
_LEAST_CODE, _CODES_END = 1000, 5000
_TO_AGENT, _TO_CLIENT = Direction.TO_AGENT, Direction.TO_CLIENT


def agreed_extensions(headers: Headers) -> dict[str, frozenset[str]]:
    """Return the names of the extensions in a response to a handshake, in lower case, each with the
    names of its parameters (RFC 6455 9.1)."""
    values = [value for name, value in headers if name.lower() == _EXTENSIONS_FIELD]
    found = {}
    for each in b",".join(values).decode("latin-1").lower().split(","):
        name, *parameters = [part.partition("=")[0].strip() for part in each.split(";")]
        if name:
            found[name] = frozenset(parameters)
    return found


def agrees_on_a2a(headers: Headers) -> bool:
    """Whether a response to a handshake agrees on the subprotocol of A2A."""
    agreed = next((value for name, value in headers if name.lower() == _PROTOCOL_FIELD), b"")
    return agreed.strip().decode("latin-1") == SUBPROTOCOL


class _WebSocketDirection(State):
    """State of one direction."""

    direction: Direction
    inflater: MessageInflater | None = None
    """Decompresses the messages; None without the extension."""
    max_text: int = MAX_BODY_SIZE
    """Largest text message that is kept whole, bytes."""
    offset: int = 0
    """Offset of the next byte."""
    scanner: FrameScanner = msgspec.field(default_factory=FrameScanner)
    start: int = 0
    """Offset of the current frame."""
    began: int = 0
    """Time its first byte arrived, ns."""
    message: BodyCollector | None = None
    """The incomplete message."""
    is_binary: bool = False
    is_compressed: bool = False
    control: bytes = b""
    """Payload of an incomplete control frame."""
    opaque: bool = False
    is_closed: bool = False
    """Whether its sender has sent a close frame."""
    has_pinged: bool = False

    def check_head(self, head: FrameHead) -> None:
        """Raise `FrameError` if RFC 6455 forbids a frame with this head here."""
        is_client = self.direction is _TO_AGENT
        if bool(head.key) is not is_client:
            masked, bare = "a masked frame", "a frame without mask"
            raise FrameError(*((masked, bare) if is_client else (bare, masked)))
        if head.opcode not in OPCODES:
            raise FrameError("an opcode of RFC 6455", str(head.opcode))
        begins = head.opcode in (Opcode.TEXT, Opcode.BINARY)
        if head.reserved & ~(RESERVED_1 if self.inflater is not None and begins else 0):
            raise FrameError("reserved bits that are 0", f"{head.reserved:03b}")
        if head.is_control and not (head.is_last and head.size <= MAX_CONTROL_SIZE):
            got = f"{head.size} bytes" if head.is_last else "a fragment"
            raise FrameError(f"a control frame of at most {MAX_CONTROL_SIZE} bytes", got)
        if begins and self.message is not None:
            raise FrameError("the rest of a message", "the beginning of another message")
        if head.opcode == Opcode.CONTINUATION and self.message is None:
            raise FrameError("the beginning of a message", "the rest of a message")


class WebSocketDecoder(State, tag="websocket"):
    """Both directions of one WebSocket. Never raises because of a peer's bytes."""

    _sides: tuple[_WebSocketDirection, _WebSocketDirection]
    counters: Counter[str] = msgspec.field(default_factory=Counter)
    """`ping`, `pong`, and `OPAQUE_COUNTERS`."""
    _is_over: bool = False
    """Whether the stream of the handshake has ended."""

    @classmethod
    def after_handshake(cls, headers: Headers) -> "WebSocketDecoder | None":
        """Return the decoder of a socket whose handshake had a response with these fields; None if
        it has an extension that cannot be decoded."""
        extensions = agreed_extensions(headers)
        deflate = extensions.pop(DEFLATE, None)
        if extensions:
            return None
        max_text = MAX_BODY_SIZE if agrees_on_a2a(headers) else TRUNCATED_SIZE
        first, second = (
            _WebSocketDirection(
                way,
                None if deflate is None else MessageInflater(_NO_TAKEOVER[way] not in deflate),
                max_text,
            )
            for way in Direction
        )
        return cls((first, second))

    def begin_direction(self, direction: Direction, offset: int) -> None:
        """Begin one direction at this byte offset."""
        self._sides[direction].offset = offset

    def feed(self, direction: Direction, data: bytes, at: int, out: list[WireEvent]) -> None:
        """Read bytes that arrived at `at` (ns) in one direction and append events to `out`."""
        side = self._sides[direction]
        base = side.offset
        side.offset = base + len(data)
        if side.opaque:
            self.counters[OPAQUE_COUNTERS[direction]] += len(data)
            return
        pos = 0
        try:
            while pos < len(data):
                if side.scanner.is_between_frames:
                    side.start, side.began = base + pos, at
                part = side.scanner.read_part(data, pos)
                if part is None:
                    return
                pos = part.end
                if part.is_first:
                    side.check_head(part.head)
                if part.head.is_control:
                    self._read_control(side, part, at, base + pos, out)
                else:
                    _read_message(side, part, at, base, out)
        except FrameError as error:
            start = side.start if side.message is None else side.message.start
            side.opaque = True
            side.message = None
            self.counters[OPAQUE_COUNTERS[direction]] += side.offset - start
            expected, got, is_fault = error.expected, error.got, error.is_fault
            out.append(Undecodable(direction, at, start, expected, got, STREAM, is_fault))

    feed_ours = feed

    def feed_eof(self, direction: Direction, at: int, out: list[WireEvent]) -> None:
        """Handle FIN from the sender of this direction."""
        self._break_off(direction, at, "eof", out)

    def feed_reset(self, direction: Direction, at: int, out: list[WireEvent]) -> None:
        """Handle RST from the sender of this direction."""
        self._break_off(direction, at, "reset", out)

    def feed_loss(self, direction: Direction, at: int, out: list[WireEvent]) -> None:
        """Handle missing bytes: both directions become opaque."""
        self._break_off(direction.other, at, "", out)
        self._break_off(direction, at, "lost", out)
        for side in self._sides:
            side.opaque = True

    def _read_control(
        self, side: _WebSocketDirection, part: FramePart, at: int, end: int, out: list[WireEvent]
    ) -> None:
        side.control += part.data
        if not part.is_last:
            return
        payload, side.control = side.control, b""
        detail: dict[str, object] = {}
        name = Opcode(part.head.opcode).name.lower()
        if part.head.opcode == Opcode.CLOSE:
            detail = _read_close(payload)
            side.is_closed = True
            _emit_rest(side, at, out)  # no more data may come (RFC 6455 5.5.1)
        else:
            self.counters[name] += 1
            if side.has_pinged or part.head.opcode == Opcode.PONG:
                return
            side.has_pinged = True
        out.append(Control(side.direction, at, side.start, end, name, detail))
        if all(each.is_closed for each in self._sides):
            self._end_stream(_TO_CLIENT, at, "", out)

    def _break_off(self, direction: Direction, at: int, how: str, out: list[WireEvent]) -> None:
        """End a direction, and the stream of the handshake as `how`, if that is not empty. The
        bytes of an incomplete frame that are in no event are counted as not decoded."""
        side = self._sides[direction]
        held = side.start
        if side.message is not None:
            held = max(held, side.message.end)
            _emit_rest(side, at, out)
        if how:
            self._end_stream(direction, at, how, out)
        if side.opaque or side.scanner.is_between_frames:
            return
        side.opaque = True
        if held == side.start:
            self.counters[OPAQUE_COUNTERS[direction]] += side.offset - held
            expected, got = "the rest of a frame", "no more bytes"
            out.append(Undecodable(direction, at, held, expected, got, STREAM, is_fault=False))

    def _end_stream(self, direction: Direction, at: int, how: str, out: list[WireEvent]) -> None:
        """End the stream of the handshake, unless it has ended: properly if a peer has closed the
        socket."""
        if self._is_over:
            return
        start = self._sides[direction].offset
        if how != "lost" and any(each.is_closed for each in self._sides):
            out.append(End(STREAM, _TO_CLIENT, at, start))
            self._is_over = True
        else:
            out.append(Cut(STREAM, direction, at, start, how))
            self._is_over = direction is _TO_CLIENT or how != "eof"


def _read_message(
    side: _WebSocketDirection, part: FramePart, at: int, base: int, out: list[WireEvent]
) -> None:
    """Read a piece of a frame of a message."""
    head, start, end = part.head, base + part.start, base + part.end
    message = side.message
    if message is None:
        side.is_binary = head.opcode == Opcode.BINARY
        # A2A has text messages only.
        message = BodyCollector(TRUNCATED_SIZE if side.is_binary else side.max_text)
        message.add(b"", side.began, side.start, side.start)
        side.message = message
        side.is_compressed = bool(head.reserved)
    message.end = end
    is_whole = head.is_last and part.is_last
    if not side.is_compressed:
        if part.data:
            message.add(part.data, at, start, end)
    else:
        assert side.inflater is not None
        for piece in side.inflater.feed(part.data):
            message.add(piece, at, start, end)
        for piece in side.inflater.finish_message() if is_whole else ():
            message.add(piece, at, start, end)
        if side.inflater.problem:
            limited = "a message within the recorder's limits for compression"
            is_fault = side.inflater.broken
            expected = f"a message of {DEFLATE}" if is_fault else limited
            raise FrameError(expected, side.inflater.problem, is_fault=is_fault)
    if is_whole:
        if not (side.is_binary or message.truncated or is_utf8(message.data)):
            raise FrameError("a text message in UTF-8", "bytes that are not")
        side.message = None
        out.append(_make_framed(side, message, at, end))


def _emit_rest(side: _WebSocketDirection, at: int, out: list[WireEvent]) -> None:
    """Emit what has arrived of an incomplete message that does not continue."""
    message, side.message = side.message, None
    if message is not None:
        out.append(_make_framed(side, message, at, message.end, REASON_BROKE_OFF))


def _make_framed(
    side: _WebSocketDirection, message: BodyCollector, at: int, end: int, broken: str = ""
) -> Framed:
    truncated = message.truncated
    return Framed(
        side.direction,
        message.began,
        at,
        message.start,
        end,
        message.data,
        framing=DEFLATE if side.is_compressed else "",
        broken=broken,
        size=message.size,
        truncated=truncated,
        sha256=message.sha256 if truncated else b"",
        is_binary=side.is_binary,
    )


def _read_close(payload: bytes) -> dict[str, object]:
    """Return `code` and `reason` of a close frame; without `code` if it has none.

    Raises `FrameError` if no peer may send its code.
    """
    if not payload:
        return {}
    code = int.from_bytes(payload[:2], "big")
    if len(payload) == 1 or code in _RESERVED_CODES or not _LEAST_CODE <= code < _CODES_END:
        got = "1 byte" if len(payload) == 1 else str(code)
        raise FrameError("a close code that may be sent (RFC 6455 7.4)", got)
    return {"code": code, "reason": payload[2:].decode("utf-8", "replace")}
