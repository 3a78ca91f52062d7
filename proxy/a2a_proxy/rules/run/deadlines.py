"""Scheduled work of a session: the ends of exchanges and the deadlines of rules, in the order of
their times."""

import heapq

import msgspec

from a2a_proxy.model.saved_state import State
from a2a_proxy.model.values import Binding, Exchange
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.state.records import ExchangeRecord

MAX_DEADLINES = 100_000
"""Maximum number of scheduled deadlines. Further ones are dropped, so those silences are not
judged."""
_DEADLINE_ORDER = 1 << 59
"""Added to the number of a deadline, so that deadlines follow exchanges of the same time."""
_NEVER = 1 << 63


class Deadline(msgspec.Struct, order=True, gc=False, array_like=True):
    """One scheduled action."""

    at: int
    number: int
    """Order within the same time: exchanges by number, then deadlines in the order of
    scheduling."""
    rule: str = ""
    """Id of the rule that scheduled the deadline; empty if the exchange ended."""
    exchange: int = 0
    agent: str = ""
    task_id: str = ""
    seq: int = -1
    note: str = ""
    connection: int = 0

    def closed_record(self) -> ExchangeRecord:
        """Return a record in place of that of an ended exchange."""
        where = (self.exchange, self.connection, self.agent)
        return ExchangeRecord(*where, Binding.OTHER, "", 0, task_id=self.task_id)

    def closed_exchange(self) -> Exchange:
        """Return an exchange with only its number, in place of an ended exchange."""
        return Exchange(self.exchange, 0, 0, Binding.OTHER, 0)


class DeadlineQueue(State):
    """The actions of a session that are still to come."""

    next_at: int = _NEVER
    """Time of the next action, ns."""
    _queue: list[Deadline] = []
    _count: int = 0
    """Number of deadlines scheduled so far."""

    def add_exchange_end(self, exchange: Exchange) -> None:
        """Schedule the end of an exchange."""
        self._push_deadline(Deadline(exchange.closed, exchange.id, exchange=exchange.id))

    def add_deadline(
        self, rule: str, context: RuleContext, at: int, note: str, record: ExchangeRecord
    ) -> None:
        """Schedule a deadline of a rule, unless there are too many."""
        if len(self._queue) >= MAX_DEADLINES:
            return
        self._count += 1
        frame, task = context.frame_or_none, context.task
        task_id, seq = (
            task.task_id if task is not None else record.task_id,
            frame.seq if frame is not None else -1,
        )
        number = _DEADLINE_ORDER + self._count
        self._push_deadline(
            Deadline(
                at, number, rule, record.id, record.agent, task_id, seq, note, record.connection
            )
        )

    def take_next(self) -> Deadline:
        """Remove the next action and return it. Raises IndexError if there is none."""
        taken = heapq.heappop(self._queue)
        self._set_next()
        return taken

    def take_all(self) -> list[Deadline]:
        """Remove all actions and return them in order."""
        taken, self._queue = sorted(self._queue), []
        self._set_next()
        return taken

    def _push_deadline(self, deadline: Deadline) -> None:
        heapq.heappush(self._queue, deadline)
        self._set_next()

    def _set_next(self) -> None:
        self.next_at = self._queue[0].at if self._queue else _NEVER
