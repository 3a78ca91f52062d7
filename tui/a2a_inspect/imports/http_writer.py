"""The bytes of HTTP messages whose heads and bodies are known: as HTTP/1.1, or as one stream of
HTTP/2."""

from collections.abc import Sequence
from typing import Protocol

from hpack import Encoder

Fields = Sequence[tuple[str, str]]
"""Header fields in order."""

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_MAX_FRAME = 16384
"""Bytes of the payload of an HTTP/2 frame, as long as the peers have agreed on nothing else."""
_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _CONTINUATION = 0, 1, 3, 4, 9
_END_STREAM, _END_HEADERS = 1, 4
_OF_HTTP1 = frozenset(
    {"host", "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"}
)
"""Fields that HTTP/2 does not have (RFC 9113, 8.2.2); `host` is `:authority`."""
_BODILESS = frozenset({204, 304})
_LINE_ENDS = str.maketrans({"\r": " ", "\n": " ", "\0": " "})


class HttpWriter(Protocol):
    """Writer of one request and its response."""

    def write_request_head(
        self, method: str, url: tuple[str, str, str], fields: Fields, body_size: int
    ) -> bytes:
        """Return the head; `url` is scheme, authority and target."""

    def write_response_head(
        self, status: int, reason: str, fields: Fields, body_size: int
    ) -> bytes:
        """Return the head. `body_size` is -1 if the body is incomplete."""

    def write_request_data(self, data: bytes, *, is_end: bool) -> bytes:
        """Return a part of the body, which may be empty; with `is_end` also the end of the
        request."""

    def write_response_data(self, data: bytes) -> bytes:
        """Return a part of the body."""

    def end_response(self, trailers: Fields) -> bytes:
        """Return the end of the response."""


class Http1Writer:
    """Writes HTTP/1.1. A length that contradicts the known body is replaced, because the body has
    no coding here."""

    def __init__(self, version: str = "HTTP/1.1") -> None:
        self._version = version
        self._method = ""
        self._chunked = [False, False]

    def write_request_head(
        self, method: str, url: tuple[str, str, str], fields: Fields, body_size: int
    ) -> bytes:
        """Return the head; `url` is scheme, authority and target."""
        self._method = method
        _, authority, target = url
        named = {name.lower() for name, _ in fields}
        if "host" not in named:
            fields = [("Host", authority), *fields]
        if body_size > 0 and not named & {"content-length", "transfer-encoding"}:
            fields = [*fields, ("Content-Length", str(body_size))]
        return self._write_head(0, f"{method} {target} {self._version}", fields, body_size)

    def write_response_head(
        self, status: int, reason: str, fields: Fields, body_size: int
    ) -> bytes:
        """Return the head. `body_size` is -1 if the body is incomplete."""
        if status in _BODILESS or self._method == "HEAD":
            body_size = -1
        return self._write_head(1, f"{self._version} {status} {reason}", fields, body_size)

    def write_request_data(self, data: bytes, *, is_end: bool) -> bytes:
        """Return a part of the body, which may be empty; with `is_end` also the end of the
        request."""
        return self._write_data(0, data) + (b"0\r\n\r\n" if is_end and self._chunked[0] else b"")

    def write_response_data(self, data: bytes) -> bytes:
        """Return a part of the body."""
        return self._write_data(1, data)

    def end_response(self, trailers: Fields) -> bytes:
        """Return the end of the response."""
        if not self._chunked[1]:
            return b""
        return b"0\r\n" + _header_lines(trailers) + b"\r\n"

    def _write_head(self, side: int, line: str, fields: Fields, body_size: int) -> bytes:
        codings = [value.lower() for name, value in fields if name.lower() == "transfer-encoding"]
        self._chunked[side] = bool(codings)
        kept = []
        for name, value in fields:
            match name.lower():
                case "transfer-encoding":
                    value = "chunked"
                case "content-length" if codings:
                    continue
                case "content-length" if body_size >= 0:
                    value = str(body_size)
            kept.append((name, value))
        return _header_line(line) + _header_lines(kept) + b"\r\n"

    def _write_data(self, side: int, data: bytes) -> bytes:
        return b"%x\r\n%b\r\n" % (len(data), data) if self._chunked[side] and data else data


class Http2Writer:
    """Writes stream 1 of an HTTP/2 connection."""

    def __init__(self) -> None:
        self._encoders = Encoder(), Encoder()

    def write_request_head(
        self, method: str, url: tuple[str, str, str], fields: Fields, body_size: int
    ) -> bytes:
        """Return the preface and the head; `url` is scheme, authority and target."""
        scheme, authority, target = url
        pseudo = [
            (":method", method),
            (":scheme", scheme),
            (":authority", authority),
            (":path", target),
        ]
        return (
            _PREFACE
            + _make_frame(_SETTINGS, 0, 0, b"")
            + self._write_headers(0, pseudo, fields, body_size)
        )

    def write_response_head(
        self, status: int, reason: str, fields: Fields, body_size: int
    ) -> bytes:
        """Return the settings and the head; `reason` does not exist in HTTP/2."""
        del reason
        return _make_frame(_SETTINGS, 0, 0, b"") + self._write_headers(
            1, [(":status", str(status))], fields, body_size
        )

    def write_request_data(self, data: bytes, *, is_end: bool) -> bytes:
        """Return a part of the body, which may be empty; with `is_end` also the end of the
        request."""
        ends = range(_MAX_FRAME, max(len(data), 1) + _MAX_FRAME, _MAX_FRAME)
        return b"".join(
            _make_frame(
                _DATA,
                _END_STREAM if is_end and end >= len(data) else 0,
                1,
                data[end - _MAX_FRAME : end],
            )
            for end in ends
        )

    def write_response_data(self, data: bytes) -> bytes:
        """Return a part of the body."""
        return self.write_request_data(data, is_end=False)

    def reset_stream(self) -> bytes:
        """Return RST_STREAM with the code CANCEL."""
        return _make_frame(_RST_STREAM, 0, 1, (8).to_bytes(4, "big"))

    def end_response(self, trailers: Fields) -> bytes:
        """Return the end of the response."""
        return (
            self._encode_block(1, trailers, _END_STREAM)
            if trailers
            else _make_frame(_DATA, _END_STREAM, 1, b"")
        )

    def _write_headers(self, side: int, pseudo: Fields, fields: Fields, body_size: int) -> bytes:
        kept = [
            (
                name.lower(),
                str(body_size) if name.lower() == "content-length" and body_size >= 0 else value,
            )
            for name, value in fields
            if name.lower() not in _OF_HTTP1
        ]
        return self._encode_block(side, [*pseudo, *kept], 0)

    def _encode_block(self, side: int, fields: Fields, flags: int) -> bytes:
        block = self._encoders[side].encode(
            [(_field_bytes(name), _field_bytes(value)) for name, value in fields]
        )
        pieces = [block[at : at + _MAX_FRAME] for at in range(0, len(block), _MAX_FRAME)]
        kinds = [_HEADERS, *[_CONTINUATION] * (len(pieces) - 1)]
        ends = [flags, *[0] * (len(pieces) - 1)]
        ends[-1] |= _END_HEADERS
        return b"".join(
            _make_frame(kind, end, 1, one)
            for kind, end, one in zip(kinds, ends, pieces, strict=True)
        )


def _make_frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return (
        len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload
    )


def _header_lines(fields: Fields) -> bytes:
    return b"".join(_header_line(f"{name}: {value}") for name, value in fields)


def _header_line(text: str) -> bytes:
    """Return a line of an HTTP/1.1 head; line ends in it become spaces."""
    return _field_bytes(text.translate(_LINE_ENDS)) + b"\r\n"


def _field_bytes(text: str) -> bytes:
    """Return a part of a head: Latin-1, and UTF-8 where that is not possible."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
