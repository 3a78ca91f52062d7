"""Support for clients that half-close their connection after the request and still read the answer.

By default an aiohttp server treats the client's FIN as the end of the connection. Here it is the
end only if no request was received, if a stream has begun as the answer, or if the recorded client
left at this point.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

_CHECK_SECONDS = 0.2
"""Seconds for received bytes to become a request, and interval at which the answer is checked for
completion."""


class HttpAnswer(Protocol):
    """An answer being sent."""

    @property
    def is_streaming(self) -> bool:
        """Whether the answer has begun as a stream and continues."""

    @property
    def is_waiting(self) -> bool:
        """Whether everything recorded has been sent and the client has to leave."""


class HalfClosedConnections:
    """The connections of one server, kept open after a half-close."""

    def __init__(self) -> None:
        self._open_connections: dict[Any, _HalfClosedConnection] = {}
        """By transport."""

    def begin_answer(self, transport: Any, answer: HttpAnswer) -> None:
        """Note that a request was read and its answer begins."""
        if (connection := self._open_connections.get(transport)) is not None:
            connection.answer, connection.has_unread_request = answer, False

    def end_answer(self, transport: Any) -> None:
        """Note that the answer is complete."""
        if (connection := self._open_connections.get(transport)) is not None:
            connection.answer = None

    def protocol_factory(
        self, server: Callable[[], asyncio.Protocol]
    ) -> Callable[[], asyncio.Protocol]:
        """Wrap a server's protocol factory for `loop.create_server`, adding half-close support."""
        return lambda: _HalfClosedConnection(server(), self._open_connections)


class _HalfClosedConnection(asyncio.Protocol):
    def __init__(
        self, inner: asyncio.Protocol, connections: dict[Any, _HalfClosedConnection]
    ) -> None:
        self.answer: HttpAnswer | None = None
        self.has_unread_request = False
        """Whether bytes were received that have not become a request yet."""
        self._inner = inner
        self._connections = connections
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._connections[transport] = self
        self._inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        self.has_unread_request = True
        self._inner.data_received(data)

    def eof_received(self) -> bool:
        """Handle the client's FIN; True keeps the other direction open."""
        if self.answer.is_streaming if self.answer is not None else not self.has_unread_request:
            return False
        asyncio.get_running_loop().call_later(_CHECK_SECONDS, self._check_answer)
        return True

    def _check_answer(self) -> None:
        if self._transport.is_closing():
            return
        if self.answer is None or self.answer.is_waiting:
            self._transport.close()
        else:
            asyncio.get_running_loop().call_later(_CHECK_SECONDS, self._check_answer)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.pop(self._transport, None)
        self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()
