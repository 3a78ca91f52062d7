"""One agent of one test: a relay in front of a live agent, of a mock, or of a mock that forwards to a live agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_proxy.testing.child.lane import AgentRelay
from a2a_proxy.testing.child_messages import OpenAgent, ReplayStatus

if TYPE_CHECKING:
    from a2a_proxy.replay.serve.mock import MockServer


class FixtureAgent:
    """The agent that a fixture returns to a test. Its traffic is recorded when it is requested."""

    def __init__(self, order: OpenAgent) -> None:
        self._order = order
        self._front_relay: AgentRelay | None = None
        """Relay between the test and the answering agent."""
        self._mock: MockServer | None = None
        self._back_relay: AgentRelay | None = None
        """Relay between the mock and the live agent."""

    async def start(self) -> str:
        """Start and return the address. Raises RouteError, RecordingError, OSError."""
        try:
            return await self._start_agent(self._order)
        except BaseException:
            await self.stop(keep=False)
            raise

    async def _start_agent(self, order: OpenAgent) -> str:
        upstream, grpc = order.upstream, order.upstream_grpc
        if order.cassettes:
            passthrough = ""
            if upstream:
                self._back_relay = AgentRelay(upstream, grpc, order.new_recording, order.command, order.redact)
                passthrough = await self._back_relay.start()
            # Imported here because it needs aiohttp and grpc, which a test that only records a live agent does without.
            from a2a_proxy.testing.child.played import make_mock

            self._mock = make_mock(order.cassettes, order.replay, passthrough)
            await self._mock.start()
            upstream, grpc = self._mock.address, ""
        self._front_relay = AgentRelay(upstream, grpc, order.recording, order.command, order.redact)
        return await self._front_relay.start()

    def store_traffic(self) -> None:
        """Store all traffic so far. Raises RecordingError."""
        if self._front_relay is not None:
            self._front_relay.store_traffic()

    def make_status(self) -> ReplayStatus:
        """Return the state of the agent."""
        notes = tuple(
            note for relay in (self._front_relay, self._back_relay) if relay is not None for note in relay.notes
        )
        if self._mock is None:
            return ReplayStatus(notes=notes)
        from a2a_proxy.testing.child.played import miss_texts

        player, passthrough = self._mock.player, self._mock.passthrough
        return ReplayStatus(
            misses=miss_texts(self._mock),
            unused=tuple(f"{call.place} {call.operation}" for call in player.unused_calls()),
            loose=tuple(miss.first_line for miss in player.allowed_misses),
            notes=notes,
            forwarded=passthrough.call_count if passthrough is not None else 0,
        )

    async def stop(self, *, keep: bool) -> ReplayStatus:
        """Stop the agent and return its final state. Raises RecordingError."""
        if self._front_relay is not None:
            await self._front_relay.stop(keep=keep)
        if self._mock is not None:
            await self._mock.stop()
        if self._back_relay is not None:
            answered = (
                self._mock is not None and self._mock.passthrough is not None and self._mock.passthrough.call_count > 0
            )
            await self._back_relay.stop(keep=keep and answered)
        return self.make_status()
