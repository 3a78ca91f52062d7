"""One agent of one test: a relay in front of a live agent, or of a mock, or of a mock with a live agent behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_proxy.testing.child.lane import AgentRelay
from a2a_proxy.testing.child_messages import OpenAgent, ReplayStatus

if TYPE_CHECKING:
    from a2a_proxy.replay.serve.mock import MockServer


class FixtureAgent:
    """The agent that a fixture gives to a test. What passes before it is recorded when somebody asks."""

    def __init__(self, order: OpenAgent) -> None:
        self._order = order
        self._front: AgentRelay | None = None
        """Between the test and whoever answers."""
        self._mock: MockServer | None = None
        self._back: AgentRelay | None = None
        """Between the mock and the live agent."""

    async def start(self) -> str:
        """Its address. Raises RouteError, RecordingError, OSError."""
        try:
            return await self._start(self._order)
        except BaseException:
            await self.stop(keep=False)
            raise

    async def _start(self, order: OpenAgent) -> str:
        upstream, grpc = order.upstream, order.upstream_grpc
        if order.cassettes:
            behind = ""
            if upstream:
                self._back = AgentRelay(upstream, grpc, order.new_recording, order.command, order.redact)
                behind = await self._back.start()
            # aiohttp and grpc: who only records a live agent does not wait for them.
            from a2a_proxy.testing.child.played import mock_of

            self._mock = mock_of(order.cassettes, order.replay, behind)
            await self._mock.start()
            upstream, grpc = self._mock.address, ""
        self._front = AgentRelay(upstream, grpc, order.recording, order.command, order.redact)
        return await self._front.start()

    def settle(self) -> None:
        """Store all that has passed. Raises RecordingError."""
        if self._front is not None:
            self._front.settle()

    def standing(self) -> ReplayStatus:
        """How things are."""
        notes = tuple(note for lane in (self._front, self._back) if lane is not None for note in lane.notes)
        if self._mock is None:
            return ReplayStatus(notes=notes)
        from a2a_proxy.testing.child.played import misses_of

        player, behind = self._mock.player, self._mock.behind
        return ReplayStatus(
            misses=misses_of(self._mock),
            unused=tuple(f"{call.place} {call.operation}" for call in player.unused()),
            loose=tuple(miss.line for miss in player.loose),
            notes=notes,
            forwarded=behind.calls if behind is not None else 0,
        )

    async def stop(self, *, keep: bool) -> ReplayStatus:
        """The same at the end. Raises RecordingError."""
        if self._front is not None:
            await self._front.stop(keep=keep)
        if self._mock is not None:
            await self._mock.stop()
        if self._back is not None:
            answered = self._mock is not None and self._mock.behind is not None and self._mock.behind.calls > 0
            await self._back.stop(keep=keep and answered)
        return self.standing()
