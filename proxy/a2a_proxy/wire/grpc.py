"""The length-prefixed messages of gRPC in one direction of one stream. Independent of protobuf.

The format is in manual/protocol.md "gRPC framing".
"""

from struct import Struct

import msgspec

from a2a_proxy.model.saved_state import State
from a2a_proxy.model.wire import Body, Direction, Undecodable
from a2a_proxy.wire.body import MAX_BODY_SIZE, TRUNCATED_SIZE, BodyCollector
from a2a_proxy.wire.content import decompress_message

_PREFIX_SIZE = 5
_unpack_prefix = Struct(">BI").unpack_from


class GrpcMessage(msgspec.Struct, frozen=True, gc=False):
    """One length-prefixed message."""

    began: int
    """Time its first byte arrived, ns."""
    at: int
    """Time its last byte arrived, ns."""
    start: int
    """Byte offset of its prefix (of the DATA frame's head if the message is the first in the
    frame)."""
    end: int
    """Byte offset after its last byte."""
    data: bytes
    """The message, decompressed; only its first bytes if `truncated`."""
    compressed: bool = False
    """Whether the compressed flag was set."""
    encoding: str = ""
    """Encoding of a `compressed` message, such as `gzip`."""
    size: int = 0
    """Full size of the decompressed message in bytes; of the compressed message if it was too large
    to be kept."""
    truncated: bool = False
    sha256: bytes = b""
    """SHA-256 of the bytes counted by `size`; only if `truncated`, and empty if the recorder
    restarted in between."""


class GrpcReassembler(State):
    """Reassembles the messages of one direction of one stream. Never raises; emits nothing after an
    `Undecodable`."""

    encoding: bytes = b"identity"
    """The value of `grpc-encoding`."""
    limit: int = MAX_BODY_SIZE
    keep: int = TRUNCATED_SIZE
    opaque: bool = False
    _head: bytes = b""
    """Bytes of an incomplete prefix."""
    _body: BodyCollector | None = None
    """The incomplete message whose prefix is complete."""
    _left: int = 0
    _compressed: bool = False
    _began: int = 0
    _start: int = 0
    _stream: int = 0
    _direction: Direction = Direction.TO_AGENT

    def feed(self, piece: Body, out: list[GrpcMessage | Undecodable]) -> None:
        """Take the next bytes of the stream and append complete messages to `out`."""
        if self.opaque:
            return
        data, at, limit = piece.data, piece.at, self.limit
        shift = piece.end - len(data)
        pos, end = 0, len(data)
        while pos < end:
            if self._body is None and not self._head and end - pos >= _PREFIX_SIZE:
                flag, size = _unpack_prefix(data, pos)
                stop = pos + _PREFIX_SIZE + size
                if not flag and stop <= end and size <= limit:
                    start = shift + pos if pos else piece.start
                    out.append(
                        GrpcMessage(
                            at,
                            at,
                            start,
                            shift + stop,
                            data[pos + _PREFIX_SIZE : stop],
                            False,
                            "",
                            size,
                        )
                    )
                    pos = stop
                    continue
            pos = self._take_part(piece, shift, pos, out)

    def finish(self, at: int, out: list[GrpcMessage | Undecodable]) -> None:
        """End the stream's direction; an incomplete message is reported as undecodable."""
        if self.opaque:
            return
        if self._body is not None:
            expected = f"message of {self._body.size + self._left} bytes"
            self._stop_decoding(at, expected, f"end after {self._body.size} bytes", out)
        elif self._head:
            self._stop_decoding(
                at,
                f"message prefix of {_PREFIX_SIZE} bytes",
                f"end after {len(self._head)} bytes",
                out,
            )

    def _take_part(
        self, piece: Body, shift: int, pos: int, out: list[GrpcMessage | Undecodable]
    ) -> int:
        """Take the piece's part of one prefix or of one message. Return the position at which to
        continue."""
        if self._body is None:
            if not self._head:
                self._began, self._start = piece.at, shift + pos if pos else piece.start
                self._stream, self._direction = piece.stream, piece.direction
            stop = min(pos + _PREFIX_SIZE - len(self._head), len(piece.data))
            self._head += piece.data[pos:stop]
            if len(self._head) == _PREFIX_SIZE:
                self._begin_message(piece.at, out)
        else:
            stop = min(pos + self._left, len(piece.data))
            self._body.add(piece.data[pos:stop], piece.at, shift + pos, shift + stop)
            self._left -= stop - pos
        if self._body is not None and not self._left:
            self._emit_message(self._body, piece.at, shift + stop, out)
        return len(piece.data) if self.opaque else stop

    def _begin_message(self, at: int, out: list[GrpcMessage | Undecodable]) -> None:
        flag, self._left = _unpack_prefix(self._head)
        if flag > 1:
            self._stop_decoding(at, "compressed flag 0 or 1", str(flag), out)
            return
        self._compressed = bool(flag)
        self._head = b""
        self._body = BodyCollector(self.limit, self.keep)

    def _emit_message(
        self, body: BodyCollector, at: int, end: int, out: list[GrpcMessage | Undecodable]
    ) -> None:
        self._body = None
        plain, problem = self._decompress_message(body) if self._compressed else (body, "")
        counted = body if body.truncated else plain
        truncated = counted.truncated or bool(problem)
        data = plain.data[: self.keep] if truncated else plain.data
        encoding = self.encoding.decode("latin-1") if self._compressed else ""
        span = (self._began, at, self._start, end)
        out.append(
            GrpcMessage(
                *span, data, self._compressed, encoding, counted.size, truncated, counted.sha256
            )
        )
        if problem:
            self._stop_decoding(at, f"message in {encoding}", problem, out)

    def _decompress_message(self, body: BodyCollector) -> tuple[BodyCollector, str]:
        """Return the decompressed message and the problem, or "".

        A message too large to be kept is decoded only in part.
        """
        if self.encoding in (b"", b"identity"):
            return body, "compressed flag without grpc-encoding"
        plain, problem = decompress_message(self.encoding, body.data, self.limit, self.keep)
        return plain, "" if body.truncated else problem

    def _stop_decoding(
        self, at: int, expected: str, got: str, out: list[GrpcMessage | Undecodable]
    ) -> None:
        self.opaque = True
        self._head = b""
        self._body = None
        out.append(Undecodable(self._direction, at, self._start, expected, got, self._stream))
