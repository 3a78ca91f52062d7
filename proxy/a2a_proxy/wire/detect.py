"""Detects a connection's protocol from the client's first bytes."""

from enum import StrEnum

from a2a_proxy.http import PREFACE

TLS_BYTE = 0x16
"""The first byte of a TLS connection: a record of type handshake (RFC 8446, 5.1)."""

MAX_PREFIX = 64
"""Number of bytes after which the result is never `None`."""

_MAX_METHOD_LENGTH = 24
_METHOD_BYTES = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ-_")
_TLS_HEADER_SIZE = 6


class ProtocolKind(StrEnum):
    """The detected protocol; the values are those of `model.values.Connection.kind`."""

    H2C = "h2c"
    HTTP1 = "http/1.1"
    STDIO = "stdio"
    """Never detected from bytes: a pipe is known to be one."""
    TLS = "tls"
    OPAQUE = "opaque"


def detect_protocol(prefix: bytes | bytearray) -> ProtocolKind | None:
    """Return the kind of a connection whose client began with `prefix`, or None if more bytes are
    needed."""
    if not prefix:
        return None
    if prefix[: len(PREFACE)] == PREFACE[: len(prefix)]:
        return ProtocolKind.H2C if len(prefix) >= len(PREFACE) else None
    if prefix[0] == TLS_BYTE:
        return _detect_tls(prefix)
    return _detect_http1(prefix)


def _detect_tls(prefix: bytes | bytearray) -> ProtocolKind | None:
    """Detect a TLS record of type handshake, version 3.x, two bytes of length, then a ClientHello
    (RFC 8446, 5.1 and 4)."""
    if len(prefix) > 1 and prefix[1] != 3:
        return ProtocolKind.OPAQUE
    if len(prefix) < _TLS_HEADER_SIZE:
        return None
    return ProtocolKind.TLS if prefix[_TLS_HEADER_SIZE - 1] == 1 else ProtocolKind.OPAQUE


def _detect_http1(prefix: bytes | bytearray) -> ProtocolKind | None:
    """Detect a method: capital letters up to a space. Empty lines before it are allowed (RFC 9112,
    2.2)."""
    line = bytes(prefix[:MAX_PREFIX]).lstrip(b"\r\n")
    method, space, _ = line[: _MAX_METHOD_LENGTH + 1].partition(b" ")
    if (
        not _METHOD_BYTES.issuperset(method)
        or len(method) > _MAX_METHOD_LENGTH
        or (space and not method)
    ):
        return ProtocolKind.OPAQUE
    if space:
        return ProtocolKind.HTTP1
    return None if len(prefix) < MAX_PREFIX else ProtocolKind.OPAQUE
