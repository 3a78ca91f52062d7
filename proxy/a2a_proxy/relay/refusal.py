"""The response to a client whose request is not forwarded, in the client's protocol: bytes in,
bytes out.

The response says that the proxy answers, not the agent, and why. Loaded when the relay
accepts connections, and not before, because hpack takes its time.
"""

import re
from typing import NoReturn

from a2a_proxy.http import PREFACE
from a2a_proxy.http.h1 import Http1Error, header_field, parse_request_head
from a2a_proxy.http.h2 import (
    ACK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    PING,
    RST_STREAM,
    SETTINGS,
    Frame,
    FrameHandler,
    FrameScanner,
    HeaderBlock,
    Violation,
    encode_frame,
)
from a2a_proxy.http.hpack import HpackDecoder, HpackError, encode_literals
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


class Http2Refusal(FrameHandler):
    """Answers gRPC calls with UNAVAILABLE and others with the problem, then sends GOAWAY: the next
    call dials again.

    Implements the minimum of RFC 9113 that a client needs to read a response: the SETTINGS of the
    proxy at once (gRPC C-core and grpc-js send no HEADERS before), ACK of SETTINGS and PING.
    """

    handled = frozenset({HEADERS, CONTINUATION, SETTINGS, PING})

    def __init__(self, problem: Problem) -> None:
        self.is_done = False
        self._status = b"%d" % problem.status
        self._problem = encode_problem(problem)
        self._message = percent_encode(problem.detail)
        self._scanner, self._hpack = FrameScanner(preface=True), HpackDecoder()
        self._frames = 0
        """Number of frames received."""
        self._out: list[bytes] = []
        self._answered = 0
        """The highest stream that is answered."""

    def feed(self, data: bytes) -> bytes:
        """Return the frames that answer the client's frames."""
        if self.is_done:
            return b""
        try:
            self._scanner.scan(data, 0, self)
            if self._answered:
                self._send_goaway(0)
        except Violation:
            if not self.is_done:
                self._send_goaway(_PROTOCOL_ERROR)
        out = b"".join(self._out)
        self._out.clear()
        return out

    def finish(self) -> bytes:
        """Return no bytes: requests are answered when they begin."""
        return b""

    # Interface of `FrameHandler`

    def on_preface(self) -> None:
        """Send the SETTINGS of the proxy."""
        self._send_frame(SETTINGS, 0, 0)

    def on_data(self, *_: object) -> None:
        """Count the frame."""
        self._count_frame()

    def on_skip(self, *_: object) -> None:
        """Count the frame."""
        self._count_frame()

    def on_frame(self, frame: Frame) -> None:
        """Acknowledge SETTINGS or PING."""
        self._count_frame()
        if not frame.flags & ACK:
            self._send_frame(frame.kind, ACK, 0, frame.payload if frame.kind == PING else b"")

    def on_block(self, block: HeaderBlock, pos: int, stop: int, *, ends: bool) -> None:  # noqa: ARG002
        """Answer the request whose header block is complete."""
        self._count_frame()
        if max(block.size, len(block.fragment)) > MAX_HEAD_BYTES:
            self._stop_reading(_ENHANCE_YOUR_CALM)
        if not ends:
            return
        try:
            headers = dict(self._hpack.decode_block(block.fragment))
        except HpackError:
            self._stop_reading(_COMPRESSION_ERROR)
        if b":method" in headers:  # or these are trailers of a request that is already answered
            self._answered = max(self._answered, block.stream)
            self._send_response(block, headers)

    def _count_frame(self) -> None:
        self._frames += 1
        if self._frames > MOST_FRAMES:
            self._stop_reading(_ENHANCE_YOUR_CALM)

    def _stop_reading(self, code: int) -> NoReturn:
        self._send_goaway(code)
        raise Violation(0, "", "")

    def _send_response(self, block: HeaderBlock, headers: dict[bytes, bytes]) -> None:
        body = b""
        if headers.get(b"content-type", b"").startswith(b"application/grpc"):
            fields = [
                (b":status", b"200"),
                (b"content-type", b"application/grpc"),
                (b"grpc-status", _UNAVAILABLE),
                (b"grpc-message", self._message),
            ]
        else:
            fields = [
                (b":status", self._status),
                (b"server", b"a2a-proxy"),
                (b"content-type", b"application/problem+json"),
                (b"content-length", b"%d" % len(self._problem)),
            ]
            body = b"" if headers[b":method"] == b"HEAD" else self._problem
        flags = END_HEADERS if body else END_HEADERS | END_STREAM
        self._send_frame(HEADERS, flags, block.stream, encode_literals(fields))
        if body:
            self._send_frame(DATA, END_STREAM, block.stream, body)
        if not block.flags & END_STREAM:
            # RFC 9113 8.1: a server that does not need the rest of the request resets the stream
            # with NO_ERROR.
            self._send_frame(RST_STREAM, 0, block.stream, bytes(4))

    def _send_goaway(self, code: int) -> None:
        self.is_done = True
        self._send_frame(GOAWAY, 0, 0, self._answered.to_bytes(4) + code.to_bytes(4))

    def _send_frame(self, kind: int, flags: int, stream: int, payload: bytes = b"") -> None:
        self._out.append(encode_frame(kind, flags, stream, payload))
