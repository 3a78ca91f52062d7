"""The number of findings, and their groups."""

from __future__ import annotations

import pytest

from a2a_proxy.model.finding import Finding, Severity
from a2a_proxy.protocol.finding_totals import count_occurrences, is_total, rule_totals

ERROR, WARNING = Severity.ERROR, Severity.WARNING


def finding(rule: str, severity: Severity = WARNING, exchange: int = 1, **evidence: str) -> Finding:
    return Finding(rule, severity, 1, "words", exchange=exchange, evidence=evidence)


def total(rule: str, count: int, listed: int, summary: str = "") -> Finding:
    more = {"count": str(count), "agent": "a"} | ({} if summary else {"listed": str(listed)})
    return Finding(rule, WARNING, 1, summary, evidence=more)


@pytest.mark.parametrize(
    "row",
    [
        total("A", 310, 100),
        total("A", 310, 100, "found 310 times in total in SendMessage, from #1.0 to #310.0; 100 of them are listed"),
        total("A", 310, 100, "310 times in all in SendMessage, of which 100 are told one by one"),
    ],
)
def test_a_total_counts_the_findings_that_are_not_listed(row: Finding) -> None:
    """Of this version, and of older recordings, which have the number in the summary only."""
    assert is_total(row)
    assert count_occurrences(row) == 210


def test_other_findings_count_once() -> None:
    """Also the thousandth, and one about a connection."""
    rows = [finding("A"), finding("A", count="1000"), finding("A", exchange=0), finding("A", exchange=0, count="9")]
    assert not any(map(is_total, rows))
    assert [count_occurrences(each) for each in rows] == [1, 1, 1, 1]


def test_groups_are_sorted_by_severity_and_count() -> None:
    """A rule with two severities is two groups; the first finding is never the total if there is another one."""
    late = finding("B", exchange=7)
    rows = [finding("C"), total("B", 12, 2), late, finding("B", exchange=8), finding("B", ERROR), finding("A")]
    groups = rule_totals(rows)
    assert [(each.rule, each.severity, each.count) for each in groups] == [
        ("B", ERROR, 1),
        ("B", WARNING, 12),
        ("A", WARNING, 1),
        ("C", WARNING, 1),
    ]
    assert groups[1].first == late
