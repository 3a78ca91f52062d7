"""One agent of one test: a relay in front of a live agent."""

from __future__ import annotations

from a2a_proxy.testing.child.lane import Lane
from a2a_proxy.testing.orders import Open, Standing


class Stage:
    """The agent that a fixture gives to a test."""

    def __init__(self, order: Open) -> None:
        """Raises RouteError where an address cannot be read."""
        self._order = order
        self._front = Lane(order.upstream, order.upstream_grpc, order.recording, order.command)

    async def start(self) -> str:
        """Its address. Raises RouteError, RecordingError, OSError."""
        return await self._front.start()

    def settle(self) -> None:
        """Store all that has passed. Raises RecordingError."""
        self._front.settle()

    def standing(self) -> Standing:
        """How things are."""
        return Standing(notes=tuple(self._front.notes))

    async def stop(self, *, keep: bool) -> Standing:
        """The same at the end. Raises RecordingError."""
        await self._front.stop(keep=keep)
        return self.standing()
