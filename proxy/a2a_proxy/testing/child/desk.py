"""Execution of orders: the agents of this process, by number."""

from __future__ import annotations

from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.redaction.policy import PolicyError
from a2a_proxy.relay.route import RouteError
from a2a_proxy.testing.child.stage import FixtureAgent
from a2a_proxy.testing.child_messages import (
    AgentOpened,
    Answer,
    CommandFailed,
    OpenAgent,
    Order,
    StopAgent,
    StoreTraffic,
)


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
            return CommandFailed(f"redact: {wrong}", "see `a2a-proxy --redact` in the manual")
        except OSError as wrong:
            where = f"{wrong.filename}: " if wrong.filename else ""
            return CommandFailed(f"{where}{(wrong.strerror or str(wrong)).lower()}")
        except Exception as wrong:  # an internal error fails one test, not the following ones
            return CommandFailed(f"{type(wrong).__name__}: {wrong}", "report this as a bug of a2a-proxy")

    async def _dispatch_order(self, order: Order) -> Answer:
        if isinstance(order, OpenAgent):
            stage = FixtureAgent(order)
            address = await stage.start()
            self._numbers += 1
            self._agents[self._numbers] = stage
            return AgentOpened(self._numbers, address)
        if isinstance(order, StopAgent):
            return await self._agents.pop(order.agent).stop(keep=order.keep)
        stage = self._agents[order.agent]
        if isinstance(order, StoreTraffic):
            stage.store_traffic()
        return stage.make_status()

    async def close(self) -> None:
        """Stop all agents, because the process of the tests has ended."""
        for stage in self._agents.values():
            await stage.stop(keep=False)
