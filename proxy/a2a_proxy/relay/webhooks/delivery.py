"""The connection of one agent to the listener of `--webhooks`: each of its deliveries goes to the
receiver for which its URL stands."""

import asyncio
from collections.abc import Callable

import msgspec

from a2a_proxy.model.wire import ChunkKind
from a2a_proxy.relay.connection import ProxyConnection, RelayContext
from a2a_proxy.relay.forward import ForwardClient
from a2a_proxy.relay.problem import Problem
from a2a_proxy.relay.route import Upstream
from a2a_proxy.relay.webhooks.delivery_requests import DeliveryRequests

DELIVERY_SECONDS = 60.0
"""Seconds that a delivery may take, its response included."""


class DeliveryClient(ForwardClient):
    """An agent that delivers."""

    def __init__(
        self,
        context: RelayContext,
        requests: DeliveryRequests,
        open_connection: Callable[[Upstream], ProxyConnection],
        on_closed: Callable[[ForwardClient], None],
    ) -> None:
        """Create the client. `open_connection` returns a new connection to a receiver; `on_closed`
        is called once."""
        super().__init__(context, open_connection, on_closed, requests)
        self._requests = requests
        self._limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start: the agent is connected."""
        super().connection_made(transport)
        self._begin_time()

    def data_received(self, data: bytes) -> None:
        """Deliver requests. The time begins anew with each of them."""
        if self._http.is_idle:
            self._begin_time()
        super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Handle the end of the agent's connection."""
        self._end_time()
        super().connection_lost(exc)

    def refuse_protocol(self, protocol: str, begin: bytes) -> None:
        """Answer an agent that speaks another protocol."""
        detail = f"an agent sent {protocol} to the port of --webhooks, which takes HTTP/1.1"
        self._refuse(
            Problem(400, "Bad Request", detail, "the agent must deliver with HTTP/1.1"), begin
        )

    def _deliver(self, data: bytes) -> None:
        super()._deliver(data)
        self._record_edits()

    def _begin_connection(self) -> None:
        super()._begin_connection()
        self._record_edits()

    def _record_edits(self) -> None:
        """Count each delivery whose URL was replaced: the recording has it as the receiver gets
        it."""
        assert self._leg is not None
        for _ in range(self._requests.edit_count):
            self._leg.record_chunk(ChunkKind.EDIT, msgspec.json.encode({"kind": "delivery"}))
        self._requests.edit_count = 0

    def _begin_time(self) -> None:
        self._end_time()
        self._limit = self._context.loop.call_later(DELIVERY_SECONDS, self._stop)

    def _end_time(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None

    def _stop(self) -> None:
        """Close a connection whose delivery takes too long, or that is not used."""
        assert self._transport is not None
        if self._http.is_idle:
            self._transport.close()
        else:
            self._transport.abort()
