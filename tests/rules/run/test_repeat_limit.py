"""Repeated findings are counted, and do not hide findings of higher severity or of the other
peer."""

from __future__ import annotations

from a2a_proxy.model.values import Severity
from a2a_proxy.rules.examples.conversation import rpc, rpc_stream
from a2a_proxy.rules.examples.objects import send, snapshot, status, task
from a2a_proxy.rules.examples.script import Script
from a2a_proxy.rules.run.repeat_limit import MAX_PER_EXCHANGE, MAX_PER_KIND, RepeatLimit
from support_rules import findings
from support_wire import reload

KIND = ("A2A-X-001", 3, "agent", 1, "GetTask")


def test_the_first_findings_of_an_exchange_are_kept() -> None:
    """Then the 100th; another side, severity or operation has its own count."""
    ledger, told = RepeatLimit(), dict[str, int]()
    assert [ledger.count_finding(KIND, told, (1, 2)) for _ in range(MAX_PER_EXCHANGE + 1)] == [
        1,
        2,
        3,
        0,
    ]
    assert ledger.count_finding((*KIND[:3], 0, KIND[4]), told, (1, 2)) == 1
    assert ledger.count_finding((KIND[0], 1, *KIND[2:]), told, (1, 2)) == 1
    assert ledger.count_finding(KIND, {}, (1, 2)) == MAX_PER_EXCHANGE + 2
    longer, told = RepeatLimit(max_per_exchange=5), {}
    assert [longer.count_finding(KIND, told, (1, 2)) for _ in range(6)] == [1, 2, 3, 4, 5, 0]


def test_the_limit_counts_over_all_exchanges() -> None:
    """The first hundred, then powers of ten; suppressed findings are summed up once, also after a
    restart."""
    ledger = RepeatLimit()
    told = [
        count
        for count in (ledger.count_finding(KIND, {}, (number, -1)) for number in range(1, 2501))
        if count
    ]
    assert told == [*range(1, MAX_PER_KIND + 1), 1000]
    again = reload(ledger)
    (total,) = again.make_totals(0)
    evidence = {"count": "2500", "listed": str(MAX_PER_KIND + 1), "first": "1", "last": "2500"}
    assert total.evidence.items() >= evidence.items()
    assert not list(again.make_totals(0))


def test_the_total_is_reported_at_the_end() -> None:
    """One more finding per kind with suppressed repetitions."""
    script: Script = rpc("GetTask", {"id": "t1"}, task(), envelope={"jsonrpc": None})
    for number in range(2, MAX_PER_KIND + 20):
        script += rpc("GetTask", {"id": "t1"}, task(), id=number, envelope={"jsonrpc": None})
    found = [each for each in findings(script) if each.rule == "A2A-RPC-002"]
    assert len(found) == MAX_PER_KIND + 1
    assert (
        found[-1].summary == "found 119 times in total in GetTask, from #1.0 "
        f"to #119.0; {MAX_PER_KIND} of them are listed"
    )
    assert found[-1].evidence.items() >= {"count": "119", "first": "1.0", "last": "119.0"}.items()


def test_an_error_is_not_hidden_by_lower_severities() -> None:
    """Infos of the same rule on the same stream come first."""
    odd = [status("WORKING", second=n) for n in range(1, 3)]
    for each in odd:
        each["statusUpdate"]["status"]["state"] = "TASK_STATE_RUNNING"
    stream = rpc_stream(
        "SendStreamingMessage", send(), snapshot(), *odd, *odd, status("COMPLETED", second=3)
    )
    assert Severity.ERROR in {
        each.severity for each in findings(stream) if each.rule == "A2A-SCH-003"
    }
