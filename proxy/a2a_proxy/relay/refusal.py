"""The response to a client whose request is not forwarded, in the client's protocol: bytes in,
bytes out.

The response says that the proxy answers, not the agent, and why. Loaded when the relay
accepts connections, and not before, because hpack takes its time.
"""

import re
import struct
from collections.abc import Iterator

from hpack import Decoder, Encoder, NeverIndexedHeaderTuple
from hpack.exceptions import HPACKError

from a2a_proxy.http import PREFACE
from a2a_proxy.http.h1 import Http1Error, header_field, parse_request_head
from a2a_proxy.relay.problem import Problem, encode_problem, percent_encode
from a2a_proxy.relay.refusal_responder import RefusalResponder
from a2a_proxy.wire.detect import TLS_BYTE

MAX_HEAD_BYTES = 64 * 1024
"""Bytes of the longest head, or header block, that is waited for."""
MAX_BODY_BYTES = 1024 * 1024
"""Bytes of the longest body that is waited for."""
MOST_FRAMES = 500
"""HTTP/2 frames that are answered; a client that sends more gets ENHANCE_YOUR_CALM. Answering that
many takes 25 ms."""

_REQUEST_LINE = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32} ")
_METHOD_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}")

_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _PING, _GOAWAY, _CONTINUATION = 0, 1, 3, 4, 6, 7, 9
_ACK = _END_STREAM = 0x1
_END_HEADERS, _PADDED, _PRIORITY = 0x4, 0x8, 0x20
_PROTOCOL_ERROR, _COMPRESSION_ERROR, _ENHANCE_YOUR_CALM = 0x1, 0x9, 0xB
_UNAVAILABLE = b"14"


def make_refusal(begin: bytes, problem: Problem) -> RefusalResponder | None:
    """Return the responder for a client whose first bytes are `begin`, or None while they do not
    identify its protocol.
    """
    if begin.startswith(PREFACE):
        return Http2Refusal(problem)
    if PREFACE.startswith(begin):
        return None
    if _REQUEST_LINE.match(begin):
        return Http1Refusal(problem)
    if begin[0] == TLS_BYTE:
        return TlsRefusal()
    return None if _METHOD_TOKEN.fullmatch(begin) else SilentRefusal()


def encode_http1_response(problem: Problem) -> bytes:
    """Return a response with the problem, after which the connection ends."""
    body = encode_problem(problem)
    return (
        f"HTTP/1.1 {problem.status} {problem.title}\r\n"
        "Server: a2a-proxy\r\n"
        "Content-Type: application/problem+json\r\n"
        f"Content-Length: {len(body)}\r\n"
        "Connection: close\r\n\r\n"
    ).encode() + body


class SilentRefusal:
    """For unknown protocols: sends nothing."""

    is_done = True

    def feed(self, data: bytes) -> bytes:  # noqa: ARG002 (the interface)
        """Return no bytes."""
        return b""

    def finish(self) -> bytes:
        """Return no bytes."""
        return b""


class TlsRefusal:
    """For TLS: ends the handshake with an alert, so that the client does not wait for an answer."""

    is_done = True

    def feed(self, data: bytes) -> bytes:  # noqa: ARG002 (the interface)
        """Return a fatal alert, handshake_failure (RFC 8446, 6)."""
        return b"\x15\x03\x01\x00\x02\x02\x28"

    def finish(self) -> bytes:
        """Return no bytes."""
        return b""


class Http1Refusal:
    """Answers the first request with the problem and closes.

    The answer waits for a body with a length, so that the recording has the whole request.
    """

    def __init__(self, problem: Problem) -> None:
        self.is_done = False
        self._response = encode_http1_response(problem)
        self._head = b""
        self._missing = 0
        """Bytes of the body that have not arrived."""

    def feed(self, data: bytes) -> bytes:
        """Return the response once the request is complete: some clients do not read earlier."""
        if self.is_done:
            return b""
        if self._missing:
            self._missing -= len(data)
        else:
            self._head += data
            end = self._head.find(b"\r\n\r\n") + 4
            if end >= 4:
                self._missing = _body_length(self._head[:end]) - (len(self._head) - end)
            elif b"\n\n" not in self._head and len(self._head) < MAX_HEAD_BYTES:
                return b""
        return b"" if self._missing > 0 else self._answer()

    def finish(self) -> bytes:
        """Return the response, if the head of the request is complete."""
        return self._answer() if self._missing > 0 else b""

    def _answer(self) -> bytes:
        self.is_done, self._missing = True, 0
        if self._head.startswith(b"HEAD "):
            return self._response[: self._response.index(b"\r\n\r\n") + 4]
        return self._response


def _body_length(head: bytes) -> int:
    """Return the number of bytes of the body to wait for; 0 if they cannot be counted or the client
    waits too."""
    try:
        _, _, framing = parse_request_head(head)
        is_expecting = header_field(head, b"expect") is not None
    except Http1Error:
        return 0
    return 0 if is_expecting or framing > MAX_BODY_BYTES else max(framing, 0)


class Http2Refusal:
    """Answers gRPC calls with UNAVAILABLE and others with the problem, then sends GOAWAY: the next
    call dials again.

    Implements the minimum of RFC 9113 that a client needs to read a response: the SETTINGS of the
    proxy at once (gRPC C-core and grpc-js send no HEADERS before), ACK of SETTINGS and PING.
    """

    def __init__(self, problem: Problem) -> None:
        self.is_done = False
        self._status = b"%d" % problem.status
        self._problem = encode_problem(problem)
        self._message = percent_encode(problem.detail)
        self._buffer = b""
        self._start = self._frames = 0
        """Start of the next frame in the buffer, and the number of frames received."""
        self._started = False
        self._decoder, self._encoder = Decoder(), Encoder()
        self._block = b""
        self._block_stream = 0
        self._block_ends_stream = False
        self._answered = 0

    def feed(self, data: bytes) -> bytes:
        """Return the frames that answer the client's frames."""
        if self.is_done:
            return b""
        out = []
        self._buffer = self._buffer[self._start :] + data
        self._start = 0
        if not self._started:
            if len(self._buffer) < len(PREFACE):
                return b""
            self._started = True
            self._start = len(PREFACE)
            out.append(encode_frame(_SETTINGS, 0, 0, b""))
        out += self._answer_requests()
        if self._answered and not self.is_done:
            out.append(self._encode_goaway(0))
        return b"".join(out)

    def finish(self) -> bytes:
        """Return no bytes: requests are answered when they begin."""
        return b""

    def _answer_requests(self) -> Iterator[bytes]:
        while not self.is_done and (part := self._next_frame()) is not None:
            self._frames += 1
            yield (
                self._on_frame(*part)
                if self._frames <= MOST_FRAMES
                else self._encode_goaway(_ENHANCE_YOUR_CALM)
            )

    def _next_frame(self) -> tuple[int, int, int, bytes] | None:
        begin = self._start + 9
        if len(self._buffer) < begin:
            return None
        high, low, kind, flags, stream = struct.unpack_from(">BHBBI", self._buffer, self._start)
        end = begin + (high << 16 | low)
        if len(self._buffer) < end:
            return None
        payload, self._start = self._buffer[begin:end], end
        return kind, flags, stream & 0x7FFFFFFF, payload

    def _on_frame(self, kind: int, flags: int, stream: int, payload: bytes) -> bytes:
        if kind == _SETTINGS and not flags & _ACK:
            return encode_frame(_SETTINGS, _ACK, 0, b"")
        if kind == _PING and not flags & _ACK:
            return encode_frame(_PING, _ACK, 0, payload)
        if kind == _HEADERS:
            return self._on_headers(flags, stream, payload)
        if kind == _CONTINUATION and stream == self._block_stream:
            return self._on_block(flags, payload)
        return b""

    def _on_headers(self, flags: int, stream: int, payload: bytes) -> bytes:
        start, pad = 0, 0
        if flags & _PADDED:
            start, pad = 1, payload[0] if payload else 0
        if flags & _PRIORITY:
            start += 5
        if start + pad > len(payload):
            return self._encode_goaway(_PROTOCOL_ERROR)
        self._block, self._block_stream = b"", stream
        self._block_ends_stream = bool(flags & _END_STREAM)
        return self._on_block(flags, payload[start : len(payload) - pad])

    def _on_block(self, flags: int, fragment: bytes) -> bytes:
        self._block += fragment
        if len(self._block) > MAX_HEAD_BYTES:
            return self._encode_goaway(_ENHANCE_YOUR_CALM)
        if not flags & _END_HEADERS:
            return b""
        try:
            headers = {
                bytes(item[0]): bytes(item[1])
                for item in self._decoder.decode(self._block, raw=True)
            }
        except HPACKError:
            return self._encode_goaway(_COMPRESSION_ERROR)
        if b":method" not in headers:
            return b""  # trailers of a request that is already answered
        self._answered = max(self._answered, self._block_stream)
        return self._encode_response(headers)

    def _encode_response(self, headers: dict[bytes, bytes]) -> bytes:
        stream = self._block_stream
        if headers.get(b"content-type", b"").startswith(b"application/grpc"):
            fields = [
                (b":status", b"200"),
                (b"content-type", b"application/grpc"),
                (b"grpc-status", _UNAVAILABLE),
                (b"grpc-message", self._message),
            ]
            out = self._encode_headers(stream, fields, end=True)
        else:
            out = self._encode_problem(stream, end=headers[b":method"] == b"HEAD")
        # RFC 9113 8.1: a server that does not need the rest of the request resets the stream with
        # NO_ERROR.
        return (
            out if self._block_ends_stream else out + encode_frame(_RST_STREAM, 0, stream, bytes(4))
        )

    def _encode_problem(self, stream: int, *, end: bool) -> bytes:
        fields = [
            (b":status", self._status),
            (b"server", b"a2a-proxy"),
            (b"content-type", b"application/problem+json"),
            (b"content-length", b"%d" % len(self._problem)),
        ]
        out = self._encode_headers(stream, fields, end=end)
        return out if end else out + encode_frame(_DATA, _END_STREAM, stream, self._problem)

    def _encode_headers(
        self, stream: int, fields: list[tuple[bytes, bytes]], *, end: bool
    ) -> bytes:
        # Literals that are never indexed need no table, so they fit any table size of the client's
        # SETTINGS.
        block = self._encoder.encode([NeverIndexedHeaderTuple(*field) for field in fields])
        return encode_frame(_HEADERS, _END_HEADERS | (_END_STREAM if end else 0), stream, block)

    def _encode_goaway(self, code: int) -> bytes:
        self.is_done = True
        return encode_frame(_GOAWAY, 0, 0, struct.pack(">II", self._answered, code))


def encode_frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """Return one HTTP/2 frame (RFC 9113 4.1)."""
    size = len(payload)
    return struct.pack(">BHBBI", size >> 16, size & 0xFFFF, kind, flags, stream) + payload
