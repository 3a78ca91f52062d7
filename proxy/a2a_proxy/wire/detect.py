"""What a client speaks, told by its first octets."""

from __future__ import annotations

from enum import StrEnum

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""The HTTP/2 connection preface (RFC 9113, 3.4)."""

LIMIT = 64
"""Octets after which the answer is never `None`."""

_METHOD_LIMIT = 24
_METHOD = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ-_")
_TLS_RECORD = 6


class ProtocolKind(StrEnum):
    """What was recognised; the names are those of `model.exchange.Connection.kind`."""

    H2C = "h2c"
    HTTP1 = "http/1.1"
    STDIO = "stdio"
    """Never recognised by its octets: a pipe is known to be one."""
    TLS = "tls"
    OPAQUE = "opaque"


def detect(prefix: bytes | bytearray) -> ProtocolKind | None:
    """The kind of a connection whose client began with `prefix`; None while more octets are needed to tell."""
    if not prefix:
        return None
    if prefix[: len(PREFACE)] == PREFACE[: len(prefix)]:
        return ProtocolKind.H2C if len(prefix) >= len(PREFACE) else None
    if prefix[0] == 0x16:
        return _client_hello(prefix)
    return _method(prefix)


def _client_hello(prefix: bytes | bytearray) -> ProtocolKind | None:
    """A TLS record of type handshake, version 3.x, two octets of length, then a ClientHello (RFC 8446, 5.1 and 4)."""
    if len(prefix) > 1 and prefix[1] != 3:
        return ProtocolKind.OPAQUE
    if len(prefix) < _TLS_RECORD:
        return None
    return ProtocolKind.TLS if prefix[_TLS_RECORD - 1] == 1 else ProtocolKind.OPAQUE


def _method(prefix: bytes | bytearray) -> ProtocolKind | None:
    """A method is capital letters up to a space; empty lines before it are allowed (RFC 9112, 2.2)."""
    line = bytes(prefix[:LIMIT]).lstrip(b"\r\n")
    method, space, _ = line[: _METHOD_LIMIT + 1].partition(b" ")
    if not _METHOD.issuperset(method) or len(method) > _METHOD_LIMIT or (space and not method):
        return ProtocolKind.OPAQUE
    if space:
        return ProtocolKind.HTTP1
    return None if len(prefix) < LIMIT else ProtocolKind.OPAQUE
