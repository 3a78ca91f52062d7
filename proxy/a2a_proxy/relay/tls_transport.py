"""TLS over a plain transport. Each direction ends by itself, and an end without close_notify is not
taken for a clean one; the TLS transports of asyncio and uvloop have neither, and send FIN only
after the peer's close_notify."""

import asyncio
import contextlib
import ssl
from typing import Any, cast

from a2a_proxy.relay import tcp

_RECORD_SIZE = 16384
"""The largest record: one read returns no more."""


class TlsTransport(tcp.LegTransport, asyncio.Protocol):
    """One TLS connection: the protocol of a plain transport, and the transport of the protocol
    given to `begin`."""

    def __init__(
        self,
        context: ssl.SSLContext,
        *,
        server_side: bool = False,
        server_hostname: str | None = None,
    ) -> None:
        super().__init__()
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.ssl_object = context.wrap_bio(
            self._incoming, self._outgoing, server_side, server_hostname
        )
        """The state of the connection, for facts about it."""
        self._loop = asyncio.get_running_loop()
        self._handshake: asyncio.Future[None] = self._loop.create_future()
        self._is_begun = self._is_established = False
        self._plain: asyncio.Transport
        self._protocol: asyncio.Protocol | None = None
        self._is_paused = False
        self._held: list[bytes] = []
        """Bytes received while the protocol reads nothing."""
        self._unsent = bytearray()
        """Bytes written while a renegotiation (TLS 1.2) waits for the peer."""
        self._is_cut = self._plain_ended = self._is_ended = self._end_reported = self._end_sent = (
            self._end_waits
        ) = False
        self._is_lost = False
        self._error: Exception | None = None

    # Start

    async def shake_hands(self, seconds: float | None = None) -> None:
        """Return when the handshake is complete.

        Raises ssl.SSLError, TimeoutError, ConnectionError if the peer has closed, or ValueError for
        a certificate with a name that is not UTF-8. The connection is then closed; the peer gets
        the alert.
        """
        try:
            async with asyncio.timeout(seconds):
                self._is_begun = True
                if self._plain_ended:
                    self._fail(ConnectionResetError("closed during the handshake"))
                elif not self._handshake.done():
                    self._advance()
                await self._handshake
        except BaseException:
            if self._error is None:
                self.abort()
            raise

    def begin(self, protocol: asyncio.Protocol) -> None:
        """Give the connection to a protocol, with all that has arrived since the handshake."""
        self._protocol = protocol
        protocol.connection_made(self)
        self._release()
        if self._is_lost:
            protocol.connection_lost(self._error)

    # Events of the plain transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport. Nothing is sent yet: a write that fails before uvloop's
        `create_connection` returns makes it close the socket twice."""
        self._plain = cast(
            asyncio.Transport, transport
        )  # uvloop's transport has the same interface

    def data_received(self, data: bytes) -> None:
        """Decrypt bytes of the peer."""
        if not self._is_ended and self._error is None:
            self._incoming.write(data)
            if self._is_begun:
                self._advance()

    def eof_received(self) -> bool:
        """Handle the peer's FIN; the other direction stays open.

        OpenSSL does not learn of it: without close_notify it would end the other direction too,
        with an alert.
        """
        self._plain_ended = True
        if not self._is_established:
            if self._is_begun:
                self._fail(ConnectionResetError("closed during the handshake"))
        elif not self._is_ended:
            self._is_ended = self._is_cut = True
            self._release()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Handle the end of the connection."""
        rest = tcp.read_unread(self._plain) if exc is not None and not self._plain_ended else b""
        if rest:
            self.data_received(rest)  # an alert, for example, before the peer's RST
        self._is_lost, self._error = True, self._error or exc
        if not self._handshake.done():
            self._handshake.set_exception(
                exc or ConnectionResetError("closed during the handshake")
            )
        if self._protocol is not None:
            self._is_paused = False
            self._release()
            self._protocol.connection_lost(self._error)

    def pause_writing(self) -> None:
        """Pass on that the peer reads slowly."""
        if self._protocol is not None:
            self._protocol.pause_writing()

    def resume_writing(self) -> None:
        """Pass on that the peer has caught up."""
        if self._protocol is not None:
            self._protocol.resume_writing()

    def _advance(self) -> None:
        if self._is_established:
            self._read()
            return
        try:
            self.ssl_object.do_handshake()
            self.ssl_object.getpeercert()  # ValueError if a name is not UTF-8
        except ssl.SSLWantReadError:
            self._flush()
        except (ssl.SSLError, ValueError) as error:
            self._fail(error)
        else:
            self._is_established = True
            self._flush()
            if not self._handshake.done():
                self._handshake.set_result(None)
            self._read()

    def _read(self) -> None:
        parts: list[bytes] = []
        error = self._decrypt(parts)
        if self._outgoing.pending:
            self._flush()
        if self._unsent:
            self._write_unsent()
        if parts:
            data = parts[0] if len(parts) == 1 else b"".join(parts)
            if self._is_paused or self._protocol is None or self._held:
                self._held.append(data)
            else:
                self._protocol.data_received(data)
        if self._is_ended:
            self._release()
        if error is not None:
            self._fail(error)

    def _decrypt(self, parts: list[bytes]) -> ssl.SSLError | None:
        """Append the decrypted bytes to `parts`, and return a fatal error."""
        connection, incoming = self.ssl_object, self._incoming
        try:
            while True:
                part = connection.read(_RECORD_SIZE)
                if not part:
                    self._is_ended = True
                    return None
                parts.append(part)
                if not (incoming.pending or connection.pending()):
                    return None  # the next call would raise SSLWantReadError, which takes time
        except ssl.SSLWantReadError:
            return None
        except ssl.SSLZeroReturnError:
            self._is_ended = True
            return None
        except ssl.SSLError as error:
            return error

    def _release(self) -> None:
        """Give the protocol what it could not have before, and the end of the peer's bytes after
        all others."""
        protocol = self._protocol
        if protocol is None or self._is_paused:
            return
        if self._held:
            data = b"".join(self._held)
            self._held.clear()
            protocol.data_received(data)
        if self._is_ended and not self._end_reported and not self._is_paused:
            self._end_reported = True
            if not protocol.eof_received():
                self.close()

    def _fail(self, error: Exception) -> None:
        """Close the connection because of an error of TLS, after the alert."""
        self._error = error
        self._flush()
        if not self._handshake.done():
            self._handshake.set_exception(error)
        if not self._plain.is_closing():
            self._plain.close()

    # The transport of the protocol

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Encrypt and send bytes."""
        if self._end_sent or self._error is not None or not data:
            return
        if self._unsent:
            self._unsent += data
            return
        sent = 0
        try:
            sent = self.ssl_object.write(data)
            while sent < len(data):  # a call takes one record at most
                sent += self.ssl_object.write(memoryview(data)[sent:])
        except ssl.SSLWantReadError:
            self._unsent += memoryview(data)[sent:]
        except ssl.SSLError as error:
            self._fail(error)
            return
        self._flush()

    def _write_unsent(self) -> None:
        data = bytes(self._unsent)
        self._unsent.clear()
        self.write(data)
        if self._end_waits and not self._unsent:
            self.write_eof()

    def _flush(self) -> None:
        """Send the encrypted bytes."""
        data = self._outgoing.read()
        if data and not self._end_sent and not self._plain.is_closing():
            self._plain.write(data)

    def can_write_eof(self) -> bool:
        """Return True: each direction ends by itself."""
        return True

    def write_eof(self) -> None:
        """Send close_notify and FIN after the buffered bytes."""
        self._end_waits = bool(self._unsent)
        if not self._end_waits and not self._end_sent and self._error is None:
            with contextlib.suppress(
                ssl.SSLError
            ):  # SSLWantReadError: the peer's close_notify has not arrived
                self.ssl_object.unwrap()
            self._flush()
            self.cut()

    @property
    def is_cut(self) -> bool:
        """Whether the peer's bytes ended without close_notify."""
        return self._is_cut

    def cut(self) -> None:
        """Send FIN without close_notify."""
        if not self._end_sent:
            self._end_sent = True
            if not self._plain.is_closing():
                tcp.write_eof(self._plain)

    def close(self) -> None:
        """End the connection after the buffered bytes are sent."""
        if self._is_established:
            self.write_eof()
        self._plain.close()

    def abort(self) -> None:
        """Close the plain transport at once."""
        self._plain.abort()

    def is_closing(self) -> bool:
        """Return whether the plain transport is closing or closed."""
        return self._plain.is_closing()

    def pause_reading(self) -> None:
        """Stop giving bytes to the protocol."""
        self._is_paused = True
        if not self._plain_ended and not self._plain.is_closing():
            self._plain.pause_reading()

    def resume_reading(self) -> None:
        """Give bytes to the protocol again."""
        self._is_paused = False
        if self._held or (self._is_ended and not self._end_reported):
            self._loop.call_soon(self._release)
        if (
            not self._plain_ended and not self._plain.is_closing()
        ):  # uvloop would report the FIN twice
            self._plain.resume_reading()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Set the limits of the plain transport."""
        self._plain.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        """Return the number of encrypted bytes that the kernel has not taken yet."""
        return self._plain.get_write_buffer_size()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return a fact of the socket, or the TLS connection (`ssl_object`)."""
        return (
            self.ssl_object if name == "ssl_object" else self._plain.get_extra_info(name, default)
        )

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Give the following bytes to another protocol."""
        self._protocol = cast(asyncio.Protocol, protocol)

    def get_protocol(self) -> asyncio.BaseProtocol:
        """Return the protocol that uses the connection."""
        assert self._protocol is not None
        return self._protocol
