"""Orders in, answers out: the agents of this process by their numbers."""

from __future__ import annotations

from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.redaction.policy import PolicyError
from a2a_proxy.relay.route import RouteError
from a2a_proxy.testing.child.stage import Stage
from a2a_proxy.testing.orders import Answer, Failed, Open, Opened, Order, Settle, Stop


class Desk:
    """Does one order after the other."""

    def __init__(self) -> None:
        self._stages: dict[int, Stage] = {}
        self._numbers = 0

    async def do(self, order: Order) -> Answer:
        """Obey. Never raises for what a user can mend."""
        try:
            return await self._do(order)
        except (RecordingError, RouteError) as wrong:
            return Failed(wrong.message, wrong.hint)
        except PolicyError as wrong:
            return Failed(f"redact: {wrong}", "see the words of `a2a-proxy --redact` in the manual")
        except OSError as wrong:
            where = f"{wrong.filename}: " if wrong.filename else ""
            return Failed(f"{where}{(wrong.strerror or str(wrong)).lower()}")
        except Exception as wrong:  # a fault of ours costs one test, not those that come
            return Failed(f"{type(wrong).__name__}: {wrong}", "report this as a bug of a2a-proxy")

    async def _do(self, order: Order) -> Answer:
        if isinstance(order, Open):
            stage = Stage(order)
            address = await stage.start()
            self._numbers += 1
            self._stages[self._numbers] = stage
            return Opened(self._numbers, address)
        if isinstance(order, Stop):
            return await self._stages.pop(order.agent).stop(keep=order.keep)
        stage = self._stages[order.agent]
        if isinstance(order, Settle):
            stage.settle()
        return stage.standing()

    async def close(self) -> None:
        """The process of the tests is gone: so is every agent."""
        for stage in self._stages.values():
            await stage.stop(keep=False)
