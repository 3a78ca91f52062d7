"""Connections of clients that half-close after their request: they still listen, and get their answer.

An HTTP server of aiohttp by itself takes the client's FIN for its farewell. Here it is one where nothing was asked,
where the answer is a stream that has begun, and where the recorded client left at this point.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

_CHECK_SECONDS = 0.2
"""How long bytes that came last may take to become a request; how often to look whether an answer is complete."""


class HttpAnswer(Protocol):
    """An answer that is being given."""

    @property
    def is_streaming(self) -> bool:
        """It has begun, and more is to come."""

    @property
    def is_waiting(self) -> bool:
        """All is said that was recorded; its client is to leave."""


class HalfClosedConnections:
    """Those of one server."""

    def __init__(self) -> None:
        self._open_connections: dict[Any, _HalfClosedConnection] = {}
        """By transport."""

    def begin_answer(self, transport: Any, answer: HttpAnswer) -> None:
        """A request has been read, and is being answered."""
        if (connection := self._open_connections.get(transport)) is not None:
            connection.answer, connection.has_unread_request = answer, False

    def end_answer(self, transport: Any) -> None:
        """It has been answered."""
        if (connection := self._open_connections.get(transport)) is not None:
            connection.answer = None

    def protocol_factory(self, server: Callable[[], asyncio.Protocol]) -> Callable[[], asyncio.Protocol]:
        """Protocols for `loop.create_server`: those of the server, with half-closes."""
        return lambda: _HalfClosedConnection(server(), self._open_connections)


class _HalfClosedConnection(asyncio.Protocol):
    def __init__(self, inner: asyncio.Protocol, connections: dict[Any, _HalfClosedConnection]) -> None:
        self.answer: HttpAnswer | None = None
        self.has_unread_request = False
        """Bytes have come that no handler has made a request of."""
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
        """FIN of the client; True leaves the other direction open."""
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
