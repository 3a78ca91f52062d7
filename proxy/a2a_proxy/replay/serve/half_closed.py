"""Connections of clients that half-close after their request: they still listen, and get their answer.

An HTTP server of aiohttp by itself takes the client's FIN for its farewell. Here it is one where nothing was asked,
where the answer is a stream that has begun, and where the recorded client left at this point.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

_LOOK_SECONDS = 0.2
"""How long octets that came last may take to become a request; how often to look whether an answer is complete."""


class Answering(Protocol):
    """An answer that is being given."""

    @property
    def streams(self) -> bool:
        """It has begun, and more is to come."""

    @property
    def waits(self) -> bool:
        """All is said that was recorded; its client is to leave."""


class Connections:
    """Those of one server."""

    def __init__(self) -> None:
        self._open: dict[Any, _Connection] = {}
        """By transport."""

    def begin(self, transport: Any, answer: Answering) -> None:
        """A request has been read, and is being answered."""
        if (connection := self._open.get(transport)) is not None:
            connection.answer, connection.asked = answer, False

    def end(self, transport: Any) -> None:
        """It has been answered."""
        if (connection := self._open.get(transport)) is not None:
            connection.answer = None

    def factory(self, server: Callable[[], asyncio.Protocol]) -> Callable[[], asyncio.Protocol]:
        """Protocols for `loop.create_server`: those of the server, with half-closes."""
        return lambda: _Connection(server(), self._open)


class _Connection(asyncio.Protocol):
    def __init__(self, inner: asyncio.Protocol, known: dict[Any, _Connection]) -> None:
        self.answer: Answering | None = None
        self.asked = False
        """Octets have come that no handler has made a request of."""
        self._inner = inner
        self._known = known
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._known[transport] = self
        self._inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        self.asked = True
        self._inner.data_received(data)

    def eof_received(self) -> bool:
        """FIN of the client; True leaves the other direction open."""
        if self.answer.streams if self.answer is not None else not self.asked:
            return False
        asyncio.get_running_loop().call_later(_LOOK_SECONDS, self._look)
        return True

    def _look(self) -> None:
        if self._transport.is_closing():
            return
        if self.answer is None or self.answer.waits:
            self._transport.close()
        else:
            asyncio.get_running_loop().call_later(_LOOK_SECONDS, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        self._known.pop(self._transport, None)
        self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()
