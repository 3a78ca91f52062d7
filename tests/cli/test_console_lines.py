"""The order of the console's lines, and which findings are printed in words."""

from __future__ import annotations

from a2a_proxy.cli import console_lines
from a2a_proxy.cli.console_lines import FindingRepeats, StatusBatch
from a2a_proxy.model.values import Binding, Exchange, Finding, MissedGenerations, Severity
from a2a_proxy.recorder.status import ExchangeStatus, FindingStatus, GapClosedStatus


def exchange(number: int, started: int, *, live: bool = False) -> ExchangeStatus:
    return ExchangeStatus(
        Exchange(number, 1, 1, Binding.GRPC, started), "agent:8000", live=live, lag=0
    )


def finding(number: int, at: int, severity: Severity = Severity.WARNING) -> FindingStatus:
    return FindingStatus(Finding("R", severity, at, "x", exchange=number))


def test_findings_follow_their_exchange_in_order_of_time() -> None:
    """However they arrive; others stand where their time is."""
    error, late, other = finding(2, 60, Severity.ERROR), finding(2, 70), finding(9, 45)
    healed = GapClosedStatus("t", MissedGenerations(4, 4, 1, 9, healed=50, by=1))
    first, second, live = exchange(1, 40), exchange(2, 50), exchange(3, 41, live=True)
    batch = StatusBatch()
    for line in (late, error, other, healed, second, first, live):
        batch.add(line)
    assert batch.take() == [first, healed, live, other, second, error, late]
    assert batch.take() == []


def repeated(rule: str, exchange: int, severity: Severity = Severity.WARNING) -> Finding:
    return Finding(rule, severity, 1, "x", exchange=exchange)


def test_one_finding_of_a_rule_and_severity_is_first() -> None:
    """Another severity is another kind."""
    repeats = FindingRepeats()
    assert repeats.is_first(repeated("A", 1))
    assert not repeats.is_first(repeated("A", 1))
    assert not repeats.is_first(repeated("A", 0))
    assert repeats.is_first(repeated("A", 2, Severity.ERROR))


def test_an_exchange_names_the_rules_of_its_repeated_findings_once() -> None:
    """Not where the first one is, which has words."""
    repeats = FindingRepeats()
    for rule in "ABCDE":
        for exchange in (1, 2):
            repeats.is_first(repeated(rule, exchange))
    assert repeats.take_label(1) == ""
    assert repeats.take_label(2) == "again warning A, warning B, warning C and 2 more rules"
    assert repeats.take_label(2) == ""


def test_labels_of_exchanges_without_an_end_are_bounded() -> None:
    """The oldest one is forgotten."""
    repeats = FindingRepeats()
    for exchange in range(1, console_lines._MAX_LABELLED + 3):
        repeats.is_first(repeated("A", exchange))
    assert (repeats.take_label(2), repeats.take_label(3)) == ("", "again warning A")
