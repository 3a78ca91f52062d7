"""Latencies and failures of a report."""

from __future__ import annotations

from typing import Any

from a2a_inspect.formats.report.tallies import MAX_KINDS, CallTallies
from a2a_proxy.recording.read.rows import ExchangeRow
from support_inspect import MS, exchange


def tallies(*calls: dict[str, Any]) -> CallTallies:
    made = CallTallies()
    for number, more in enumerate(calls, 1):
        made.add_exchange(ExchangeRow(number, 2, exchange(number, **more)), number * 10)
    return made


def test_latencies_are_measured_from_the_end_of_the_request() -> None:
    begun = [exchange(number).started for number in (1, 2, 3)]
    made = tallies(
        {
            "request_ended": begun[0] + MS,
            "first_event": begun[0] + 3 * MS,
            "closed": begun[0] + 11 * MS,
        },
        {
            "live_payload": "bidi",
            "request_ended": begun[1] + 90 * MS,
            "first_event": 0,
            "closed": begun[1] + 100 * MS,
        },
        {"closed": 0, "how": "", "request_ended": 0, "streaming": False},
    )
    (record,) = made.latency_records()
    assert (record["operation"], record["manner"], record["count"]) == (
        "SendStreamingMessage",
        "jsonrpc 1.0",
        3,
    )
    assert record["first"] == ["2.0 ms"] * 4
    assert record["took"] == ["10 ms", "100 ms", "100 ms", "100 ms"]
    assert record["failed"] == 0


def test_failures_have_a_code_and_their_first_places() -> None:
    lost = {"error": "TASK_NOT_FOUND -32001: no such task", "error_code": -32001}
    made = tallies(
        *[lost] * 7, {"how": "agent gone"}, {"ours": True, "error": "HTTP 502: no agent: none"}, {}
    )
    assert [each["failed"] for each in made.latency_records()] == [9]
    lost_record, *others = made.failure_records()
    assert (lost_record["code"], lost_record["count"]) == ("TASK_NOT_FOUND -32001", 7)
    assert lost_record["message"] == "no such task"
    assert lost_record["places"] == [[f"2:{number}", number * 10] for number in range(1, 6)]
    assert [(each["outcome"], each["code"], each["message"]) for each in others] == [
        ("cut", "agent gone", ""),
        ("refused", "HTTP 502", "no agent: none"),
    ]


def test_peers_cannot_make_the_tables_grow() -> None:
    """Operations and codes by the thousand are counted; a long code and a long message are cut."""
    calls: list[dict[str, Any]] = [{"operation": f"Odd{number}"} for number in range(MAX_KINDS + 3)]
    made = tallies(*calls, {"operation": "Odd0"})
    assert len(made.latency_records()) == MAX_KINDS
    assert (made.latency_records()[0]["operation"], made.latency_records()[0]["count"]) == (
        "Odd0",
        2,
    )
    assert made.omitted_counts() == {"calls": 3, "failures": 0}
    failures = tallies(
        *({"error": f"{number}{'x' * 200}: {'y' * 2000}"} for number in range(MAX_KINDS + 2))
    )
    records = failures.failure_records()
    assert len(records) == MAX_KINDS
    assert failures.omitted_counts() == {"calls": 0, "failures": 2}
    assert {len(str(each["code"])) for each in records} == {80}
    assert {len(str(each["message"])) for each in records} == {500}
