"""The agents of this process, and the execution of orders for them.

An agent is a relay in front of a live agent, of a mock, or of a mock that forwards to a live agent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.redaction.policy import PolicyError
from a2a_proxy.relay.route import RouteError
from a2a_proxy.testing.child.relay import AgentRelay
from a2a_proxy.testing.child_messages import (
    AgentOpened,
    Answer,
    CommandFailed,
    OpenAgent,
    Order,
    ReplayStatus,
    StopAgent,
    StoreTraffic,
)

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
                self._back_relay = AgentRelay(
                    upstream, grpc, order.new_recording, order.command, order.redact
                )
                passthrough = await self._back_relay.start()
            # Imported here because it needs aiohttp and grpc, which a test that only records a live
            # agent does without.
            from a2a_proxy.testing.child.mock_agent import make_mock

            self._mock = make_mock(order.cassettes, order.replay, passthrough)
            await self._mock.start()
            upstream, grpc = self._mock.address, ""
        self._front_relay = AgentRelay(
            upstream, grpc, order.recording, order.command, order.redact, order.faults
        )
        return await self._front_relay.start()

    def store_traffic(self) -> None:
        """Store all traffic so far. Raises RecordingError."""
        if self._front_relay is not None:
            self._front_relay.store_traffic()

    def make_status(self) -> ReplayStatus:
        """Return the state of the agent."""
        notes = tuple(
            note
            for relay in (self._front_relay, self._back_relay)
            if relay is not None
            for note in relay.notes
        )
        missed = self._front_relay.missed_faults if self._front_relay is not None else ()
        if self._mock is None:
            return ReplayStatus(notes=notes, missed_faults=missed)
        from a2a_proxy.testing.child.mock_agent import miss_texts

        player, passthrough = self._mock.player, self._mock.passthrough
        if self._mock.script.missing:
            notes += (
                f"the recording of the cassette is not complete: {self._mock.script.missing}",
            )
        if path := self._mock.cards.missed_path:
            notes += (
                (
                    f"the agent card was requested, but the cassette has none: GET {path} was "
                    "answered with 404"
                ),
                "hint: export the cassette again, with the card: -f '(FILTER) OR op:GetAgentCard'",
            )
        return ReplayStatus(
            misses=miss_texts(self._mock),
            unused=tuple(f"{call.place} {call.operation}" for call in player.unused_calls()),
            loose=tuple(miss.first_line for miss in player.allowed_misses),
            masked=tuple(match.text for match in player.masked_matches),
            notes=notes,
            missed_faults=missed,
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
                self._mock is not None
                and self._mock.passthrough is not None
                and self._mock.passthrough.call_count > 0
            )
            await self._back_relay.stop(keep=keep and answered)
        return self.make_status()


class CommandDispatcher:
    """Executes one order after the other."""

    def __init__(self) -> None:
        self._agents: dict[int, FixtureAgent] = {}
        self._numbers = 0

    async def run_order(self, order: Order) -> Answer:
        """Execute an order. Errors that a user can fix become CommandFailed."""
        try:
            return await self._dispatch_order(order)
        except (RecordingError, RouteError) as wrong:
            return CommandFailed(wrong.message, wrong.hint)
        except PolicyError as wrong:
            return CommandFailed(
                f"redact: {wrong}", "the policies are described by: a2a-inspect help redaction"
            )
        except OSError as wrong:
            where = f"{wrong.filename}: " if wrong.filename else ""
            return CommandFailed(f"{where}{(wrong.strerror or str(wrong)).lower()}")
        except Exception as wrong:  # an internal error fails one test, not the following ones
            return CommandFailed(
                f"{type(wrong).__name__}: {wrong}", "report this as a bug of a2a-proxy"
            )

    async def _dispatch_order(self, order: Order) -> Answer:
        if isinstance(order, OpenAgent):
            agent = FixtureAgent(order)
            address = await agent.start()
            self._numbers += 1
            self._agents[self._numbers] = agent
            return AgentOpened(self._numbers, address)
        if isinstance(order, StopAgent):
            return await self._agents.pop(order.agent).stop(keep=order.keep)
        agent = self._agents[order.agent]
        if isinstance(order, StoreTraffic):
            agent.store_traffic()
        return agent.make_status()

    async def close(self) -> None:
        """Stop all agents, because the process of the tests has ended."""
        for agent in self._agents.values():
            await agent.stop(keep=False)
