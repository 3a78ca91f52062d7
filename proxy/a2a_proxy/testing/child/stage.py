"""One agent of one test: a relay in front of a live agent, or of a mock."""

from __future__ import annotations

from msgspec.structs import replace

from a2a_proxy.replay.core.miss import Miss
from a2a_proxy.replay.core.tell import AGAIN
from a2a_proxy.testing.child.lane import Lane
from a2a_proxy.testing.child.played import mock_of
from a2a_proxy.testing.child.words import as_settings
from a2a_proxy.testing.orders import Open, Standing


class Stage:
    """The agent that a fixture gives to a test. What passes before it is recorded when somebody asks."""

    def __init__(self, order: Open) -> None:
        """Raises RecordingError where a cassette cannot be played."""
        self._order = order
        self._mock = mock_of(order.cassettes, order.replay) if order.cassettes else None
        self._front: Lane | None = None

    async def start(self) -> str:
        """Its address. Raises RouteError, RecordingError, OSError."""
        order, upstream, grpc = self._order, self._order.upstream, self._order.upstream_grpc
        try:
            if self._mock is not None:
                await self._mock.start()
                upstream, grpc = self._mock.address, ""
            self._front = Lane(upstream, grpc, order.recording, order.command)
            return await self._front.start()
        except BaseException:
            await self.stop(keep=False)
            raise

    def settle(self) -> None:
        """Store all that has passed. Raises RecordingError."""
        if self._front is not None:
            self._front.settle()

    def standing(self) -> Standing:
        """How things are."""
        notes = tuple(self._front.notes) if self._front is not None else ()
        if self._mock is None:
            return Standing(notes=notes)
        player = self._mock.player
        return Standing(
            misses=tuple(_told(miss) for miss in player.misses),
            unused=tuple(f"{call.place} {call.operation}" for call in player.unused()),
            loose=tuple(miss.line for miss in player.loose),
            notes=notes,
        )

    async def stop(self, *, keep: bool) -> Standing:
        """The same at the end. Raises RecordingError."""
        if self._front is not None:
            await self._front.stop(keep=keep)
        if self._mock is not None:
            await self._mock.stop()
        return self.standing()


def _told(miss: Miss) -> str:
    return replace(miss, hints=tuple(as_settings(hint) for hint in miss.hints if hint != AGAIN)).text()
