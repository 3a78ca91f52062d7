"""Rules about time: how times are written; examples of the rules are tested elsewhere."""

from __future__ import annotations

import pytest

from a2a_proxy.model.values import Binding, Exchange
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.examples.conversation import rpc_stream
from a2a_proxy.rules.examples.objects import send, state
from a2a_proxy.rules.examples.script import Script
from a2a_proxy.rules.state.records import ExchangeRecord
from a2a_proxy.rules.state.session_state import SessionState
from support_rules import findings


@pytest.mark.parametrize(
    ("stamp", "told"),
    [("2026-01-01T00:01:00.000Z", "60 s ahead of"), ("2025-12-22T00:00:00.000Z", "10 days behind")],
)
def test_clock_differences_of_days_are_in_days(stamp: str, told: str) -> None:
    def stream(task_id: str, number: int) -> Script:
        ids = {"contextId": "c1", "status": state("SUBMITTED", timestamp=stamp)}
        updates = (
            ids | {"taskId": task_id, "status": state(name, timestamp=stamp)}
            for name in ("WORKING", "COMPLETED")
        )
        events = ({"statusUpdate": each} for each in updates)
        return rpc_stream(
            "SendStreamingMessage",
            send(id=f"m{number}"),
            {"task": ids | {"id": task_id}},
            *events,
            id=number,
        )

    (found,) = (
        each.summary
        for each in findings(stream("t1", 1) + stream("t2", 2))
        if each.rule == "A2A-LAT-007"
    )
    assert found == f"the agent's timestamps are {told} the proxy's clock"


@pytest.mark.parametrize("rest", [0.0, 9.999894245993346e-10, 1e-9, -1.0])
def test_a_deadline_lies_in_the_future_however_little_is_left(rest: float) -> None:
    """A rule that waits for the rest of a time would otherwise be called again at the same time,
    without end.

    Found by the fuzz: 600 s less 599.999999999 s is less than 1 ns as a float.
    """
    deadlines: list[int] = []
    record, exchange = (
        ExchangeRecord(1, 1, "agent", Binding.GRPC, "", 5),
        Exchange(1, 1, 1, Binding.GRPC, 5),
    )
    context = RuleContext(
        SessionState(), record, exchange, 7, lambda *call: deadlines.append(call[1])
    )
    context.schedule_due(rest)
    assert deadlines == [8]
