"""Rules about time: how it is told; the examples of the rules are judged elsewhere."""

from __future__ import annotations

import pytest

from a2a_proxy.rules.examples.objects import send, state
from a2a_proxy.rules.examples.talk import rpc_stream
from support_rules import findings


@pytest.mark.parametrize(
    ("stamp", "told"),
    [("2026-01-01T00:01:00.000Z", "60 s ahead of"), ("2025-12-22T00:00:00.000Z", "10 days behind")],
)
def test_clocks_that_differ_by_days_are_told_in_days(stamp: str, told: str) -> None:
    statuses = [state(name, timestamp=stamp) for name in ("SUBMITTED", "WORKING", "COMPLETED", "COMPLETED")]
    events = [{"statusUpdate": {"taskId": "t1", "contextId": "c1", "status": each}} for each in statuses[1:]]
    first = {"task": {"id": "t1", "contextId": "c1", "status": statuses[0]}}
    script = rpc_stream("SendStreamingMessage", send(), first, *events)
    again = rpc_stream("SubscribeToTask", {"id": "t1"}, first, *events, id=2)
    (found,) = (each.summary for each in findings(script + again) if each.rule == "A2A-LAT-007")
    assert f"timestamps are {told} the proxy's clock" == found
