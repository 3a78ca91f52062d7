"""Reads the server name and the offered protocols from the ClientHello of a TLS connection (RFC
8446, 4.1.2)."""

import re
from collections.abc import Iterator
from enum import Enum

import msgspec

MAX_HELLO_BYTES = 32 * 1024
"""Bytes of a connection that are read for its ClientHello. Clients send 200 to 2,000, with large
tickets 16,000."""

_HANDSHAKE_RECORD, _CLIENT_HELLO = 22, 1
_RECORD_HEADER_SIZE, _MESSAGE_HEADER_SIZE, _MAX_RECORD_SIZE = 5, 4, 1 << 14
_VERSION_AND_RANDOM_SIZE = 34
_SERVER_NAME_EXTENSION, _ALPN_EXTENSION, _HOST_NAME = 0, 16, 0
_NAME = re.compile(rb"[A-Za-z0-9._:-]{1,253}")


class ClientHello(msgspec.Struct, frozen=True):
    """What a client says before the TLS handshake."""

    server_name: str = ""
    """The host that the client asks for (SNI), in lower case; empty if it names none."""
    protocols: tuple[str, ...] = ()
    """The protocols that the client offers (ALPN), the preferred first; empty if it offers none."""


class HelloGap(Enum):
    """Why there is no ClientHello."""

    INCOMPLETE = "incomplete"
    """More bytes are needed."""
    MALFORMED = "malformed"
    """The bytes are not a ClientHello, or it is larger than MAX_HELLO_BYTES."""


class _MalformedError(Exception):
    pass


def read_client_hello(data: bytes) -> ClientHello | HelloGap:
    """Return the ClientHello with which `data` begins, or why there is none. Raises nothing,
    whatever the bytes are."""
    return ClientHelloReader().read(data)


class ClientHelloReader:
    """Reads one ClientHello that arrives in pieces, each byte of it once."""

    def __init__(self) -> None:
        self._message = bytearray()
        """The handshake message, which may be spread over records."""
        self._position = self._left = 0
        """Bytes handled of the connection, and bytes left of the current record."""
        self._found: ClientHello | HelloGap = HelloGap.INCOMPLETE

    def read(self, data: bytes) -> ClientHello | HelloGap:
        """Return the ClientHello with which `data` begins, or why there is none. `data` are all
        bytes so far: those of the previous call, and more. Raises nothing, whatever the bytes
        are."""
        if self._found is HelloGap.INCOMPLETE:
            try:
                message = self._join_records(data[:MAX_HELLO_BYTES])
                if message is not None:
                    self._found = _read_message(message)
                elif len(data) >= MAX_HELLO_BYTES:
                    self._found = HelloGap.MALFORMED
            except _MalformedError:
                self._found = HelloGap.MALFORMED
        return self._found

    def _join_records(self, data: bytes) -> bytes | None:
        """Return the body of the first handshake message, or None if it is incomplete."""
        while self._position < len(data):
            if not self._left and not self._begin_record(data):
                return None
            end = min(len(data), self._position + self._left)
            self._message += data[self._position : end]
            self._left -= end - self._position
            self._position = end
            if (message := self._complete_message()) is not None:
                return message
        return None

    def _begin_record(self, data: bytes) -> bool:
        """Read the header of the next record. Return False if it is incomplete."""
        header = data[self._position : self._position + _RECORD_HEADER_SIZE]
        if header[0] != _HANDSHAKE_RECORD or header[1:2] not in (b"", b"\x03"):
            raise _MalformedError
        if len(header) < _RECORD_HEADER_SIZE:
            return False
        self._left = int.from_bytes(header[3:5])
        if not 0 < self._left <= _MAX_RECORD_SIZE:
            raise _MalformedError
        self._position += _RECORD_HEADER_SIZE
        return True

    def _complete_message(self) -> bytes | None:
        message = self._message
        if message and message[0] != _CLIENT_HELLO:
            raise _MalformedError
        if len(message) < _MESSAGE_HEADER_SIZE:
            return None
        end = _MESSAGE_HEADER_SIZE + int.from_bytes(message[1:_MESSAGE_HEADER_SIZE])
        if end > MAX_HELLO_BYTES:
            raise _MalformedError
        return bytes(message[_MESSAGE_HEADER_SIZE:end]) if len(message) >= end else None


def _read_message(message: bytes) -> ClientHello:
    _, rest = _split(message, _VERSION_AND_RANDOM_SIZE)
    for length_size in (1, 2, 1):  # session id, cipher suites, compression methods
        _, rest = _split_vector(rest, length_size)
    if not rest:  # extensions are optional up to TLS 1.2
        return ClientHello()
    extensions, rest = _split_vector(rest, 2)
    if rest:
        raise _MalformedError
    name = ""
    protocols: tuple[str, ...] = ()
    for kind, body in _iter_extensions(extensions):
        if kind == _SERVER_NAME_EXTENSION:
            name = _read_server_name(body)
        elif kind == _ALPN_EXTENSION:
            protocols = _read_protocols(body)
    return ClientHello(name, protocols)


def _iter_extensions(data: bytes) -> Iterator[tuple[int, bytes]]:
    while data:
        kind, data = _split(data, 2)
        body, data = _split_vector(data, 2)
        yield int.from_bytes(kind), body


def _read_server_name(body: bytes) -> str:
    entries, rest = _split_vector(body, 2)
    if rest:
        raise _MalformedError
    while entries:
        kind, entries = _split(entries, 1)
        name, entries = _split_vector(entries, 2)
        if kind[0] == _HOST_NAME:
            if _NAME.fullmatch(name) is None:
                raise _MalformedError
            return name.decode("ascii").lower()
    return ""


def _read_protocols(body: bytes) -> tuple[str, ...]:
    names, rest = _split_vector(body, 2)
    if rest:
        raise _MalformedError
    protocols = []
    while names:
        name, names = _split_vector(names, 1)
        if not name:
            raise _MalformedError
        if name.isascii():  # the others are placeholders that no server speaks (RFC 8701)
            protocols.append(name.decode("ascii"))
    return tuple(protocols)


def _split(data: bytes, size: int) -> tuple[bytes, bytes]:
    if len(data) < size:
        raise _MalformedError
    return data[:size], data[size:]


def _split_vector(data: bytes, length_size: int) -> tuple[bytes, bytes]:
    """Return the vector at the beginning of `data`, whose length is in its first bytes, and the
    rest."""
    length, rest = _split(data, length_size)
    return _split(rest, int.from_bytes(length))
