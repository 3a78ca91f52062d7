"""Bytes of WebSockets: handshakes and frames."""

from __future__ import annotations

import zlib

from a2a_proxy.http.websocket import Opcode, apply_mask

KEY = b"\x01\xf2\x33\x84"

TEXT, BINARY, CONTINUATION = Opcode.TEXT, Opcode.BINARY, Opcode.CONTINUATION
CLOSE, PING, PONG = Opcode.CLOSE, Opcode.PING, Opcode.PONG


def asked(path: str = "/a2a/ws", **fields: str) -> bytes:
    """Return the request of a handshake; `a2a_version="1.0"` adds a field."""
    lines = [
        f"GET {path} HTTP/1.1",
        "Host: agent:8000",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        *(f"{name.replace('_', '-')}: {value}" for name, value in fields.items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode()


def agreed(protocol: str = "", extensions: str = "") -> bytes:
    """Return the response of a handshake."""
    lines = [
        "HTTP/1.1 101 Switching Protocols",
        "Connection: Upgrade",
        "Upgrade: WebSocket",
        "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",
        *([f"Sec-WebSocket-Protocol: {protocol}"] if protocol else []),
        *([f"Sec-WebSocket-Extensions: {extensions}"] if extensions else []),
    ]
    return "\r\n".join([*lines, "", ""]).encode()


def frame(
    opcode: int,
    payload: bytes = b"",
    *,
    key: bytes = b"",
    last: bool = True,
    reserved: int = 0,
    size: bytes | None = None,
) -> bytes:
    """Return a frame; `size` are other bytes for its size than the right ones, without the bit of
    the mask."""
    if size is None:
        count = len(payload)
        size = (
            bytes([count])
            if count < 126
            else b"\x7e" + count.to_bytes(2, "big")
            if count < 1 << 16
            else b"\x7f" + count.to_bytes(8, "big")
        )
    first = last << 7 | reserved << 4 | opcode
    second = size[0] | (0x80 if key else 0)
    return bytes([first, second]) + size[1:] + key + apply_mask(payload, key, 0)


def up(opcode: int, payload: bytes = b"", **options: object) -> bytes:
    """Return a frame of the client."""
    return frame(opcode, payload, key=KEY, **options)  # type: ignore[arg-type]


def closing(code: int, reason: str = "") -> bytes:
    """Return the payload of a close frame."""
    return code.to_bytes(2, "big") + reason.encode()


class Deflater:
    """Compresses the messages of one direction, as a sender with permessage-deflate."""

    def __init__(self, *, keeps_window: bool = True) -> None:
        self._keeps_window = keeps_window
        self._stream = zlib.compressobj(wbits=-15)

    def compress(self, message: bytes) -> bytes:
        """Return the payload of the next message."""
        data = self._stream.compress(message) + self._stream.flush(zlib.Z_SYNC_FLUSH)
        if not self._keeps_window:
            self._stream = zlib.compressobj(wbits=-15)
        return data.removesuffix(b"\0\0\xff\xff")
