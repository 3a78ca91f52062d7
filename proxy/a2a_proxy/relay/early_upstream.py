"""An upstream connection that is established before the client's leg, for which the client's side
waits."""

import asyncio
import ssl
from typing import cast

from a2a_proxy.relay.route import Upstream


class EarlyUpstream(asyncio.Protocol):
    """Holds a connection to an upstream, and the bytes that arrive on it, until a leg takes it
    over."""

    def __init__(self, upstream: Upstream) -> None:
        self.upstream = upstream
        self.transport: asyncio.Transport | None = None
        self._ssl_object: ssl.SSLObject | None = None
        self._received: list[bytes] = []
        self._fin_received = False
        self._is_lost = False
        self._error: Exception | None = None

    @property
    def alpn_protocol(self) -> str | None:
        """The protocol that the upstream has chosen in the TLS handshake; None without TLS or
        without a choice."""
        return None if self._ssl_object is None else self._ssl_object.selected_alpn_protocol()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport, and read nothing."""
        self.transport = cast(
            asyncio.Transport, transport
        )  # uvloop's transport has the same interface
        self._ssl_object = transport.get_extra_info("ssl_object")
        self.transport.pause_reading()

    def data_received(self, data: bytes) -> None:
        """Keep bytes: the transport ignores a pause in connection_made (uvloop, CPython 3.11)."""
        assert self.transport is not None
        self._received.append(data)
        self.transport.pause_reading()

    def eof_received(self) -> bool:
        """Keep the FIN, and the connection open for the client's bytes."""
        self._fin_received = True
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Keep the end of the connection."""
        self._is_lost, self._error = True, exc

    def hand_over(self, leg: asyncio.Protocol) -> None:
        """Give the connection to `leg`, and all that has arrived on it. `leg` must resume
        reading."""
        assert self.transport is not None
        self.transport.set_protocol(leg)
        leg.connection_made(self.transport)
        for data in self._received:
            leg.data_received(data)
        if self._fin_received:
            leg.eof_received()
        if self._is_lost:
            leg.connection_lost(self._error)

    def close(self) -> None:
        """Close the connection, because its client will not come."""
        if self.transport is not None:
            self.transport.close()
