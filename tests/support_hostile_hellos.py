"""Hostile beginnings of TLS connections, each with a name: see `HOSTILE_HELLOS`."""

from __future__ import annotations

import ssl

MAX_RECORD = 16384


def real_hello(name: str = "agent.test") -> bytes:
    """Return the ClientHello of OpenSSL for this server name."""
    outgoing = ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=name)
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        return outgoing.read()
    raise AssertionError("a handshake without a server")


def vector(data: bytes, length_size: int) -> bytes:
    """Return a vector of TLS: its length, then its bytes."""
    return len(data).to_bytes(length_size) + data


def extension(kind: int, body: bytes) -> bytes:
    """Return an extension of a ClientHello."""
    return kind.to_bytes(2) + vector(body, 2)


def server_name(name: bytes) -> bytes:
    """Return the extension with a server name (SNI)."""
    return extension(0, vector(b"\0" + vector(name, 2), 2))


def records(message: bytes, size: int = MAX_RECORD) -> bytes:
    """Return a handshake message in records of this size."""
    pieces = (message[at : at + size] for at in range(0, len(message), size))
    return b"".join(b"\x16\x03\x01" + vector(piece, 2) for piece in pieces)


def hello(extensions: bytes, size: int = MAX_RECORD) -> bytes:
    """Return a ClientHello of TLS 1.2 with these extensions."""
    body = (
        b"\x03\x03" + bytes(32) + vector(b"", 1) + vector(b"\xc0\x2b\xc0\x2f", 2) + vector(b"\0", 1)
    )
    return records(b"\x01" + vector(body + vector(extensions, 2), 3), size)


_REAL = real_hello()

HOSTILE_HELLOS: dict[str, bytes] = {
    **{
        f"cut after {size} bytes": _REAL[:size]
        for size in (1, 2, 4, 5, 8, 9, 43, 100, len(_REAL) - 1)
    },
    "one byte per record": records(_REAL[5:], 1),
    "oversized": b"\x16\x03\x01\x40\x00\x01\xff\xff\xff" + bytes(200_000),
    "endless records of one byte": records(b"\x01\0\x7f\xff" + bytes(30_000), 1),
    "empty records": b"\x16\x03\x01\0\0" * 20_000,
    "many extensions": hello(b"".join(extension(0x1000 + number, b"") for number in range(5_000))),
    "two server names": hello(server_name(b"one.test") + server_name(b"two.test")),
    "NUL in the name": hello(server_name(b"agent.test\0.evil.test")),
    "newline in the name": hello(server_name(b"agent\n\x1b[31mtest")),
    "bidi in the name": hello(server_name("agent\u202etset".encode())),
    "name of 300 bytes": hello(server_name(b"a" * 300)),
    "empty name": hello(server_name(b"")),
    "GREASE only": hello(extension(0x0A0A, b"") + extension(16, vector(vector(b"\x0a\x0a", 1), 2))),
    "no extensions": hello(b""),
    "SSLv2": b"\x80\x2e\x01\x03\x01\0\x15\0\0\0\x10" + bytes(37),
    "TLS 1.0": hello(server_name(b"old.test")).replace(b"\x03\x03", b"\x03\x01"),
    "SSL 3": hello(b"").replace(b"\x03\x03", b"\x03\0"),
    "garbage after it": _REAL + b"\xff" * 70_000,
    "another hello after it": _REAL * 50,
    "an alert": b"\x15\x03\x01\0\2\2\x28" * 100,
}
"""What a client sends at once, then FIN."""
