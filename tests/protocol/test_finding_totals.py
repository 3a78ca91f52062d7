"""The number of findings, and their groups."""

from __future__ import annotations

from a2a_proxy.model.values import Finding, Severity
from a2a_proxy.protocol.finding_totals import count_occurrences, is_total, rule_totals

ERROR, WARNING = Severity.ERROR, Severity.WARNING


def finding(rule: str, severity: Severity = WARNING, exchange: int = 1, **evidence: str) -> Finding:
    return Finding(rule, severity, 1, "words", exchange=exchange, evidence=evidence)


def total(rule: str, count: int, listed: int) -> Finding:
    return finding(rule, exchange=0, count=str(count), listed=str(listed), agent="a")


def test_a_total_counts_the_findings_that_are_not_listed() -> None:
    row = total("A", 310, 100)
    assert is_total(row)
    assert count_occurrences(row) == 210


def test_other_findings_count_once() -> None:
    """Also the thousandth, one about a connection, and a total of a cassette that says nonsense."""
    rows = [
        finding("A"),
        finding("A", count="1000"),
        finding("A", exchange=0),
        finding("A", exchange=0, count="9"),
    ]
    rows += [
        finding("A", exchange=0, count="9", agent="a", listed=listed) for listed in ("", "many")
    ]
    assert not any(map(is_total, rows))
    assert [count_occurrences(each) for each in rows] == [1, 1, 1, 1, 1, 1]


def test_groups_are_sorted_by_severity_and_count() -> None:
    """A rule with two severities is two groups; the first finding is never the total if there is
    another one."""
    late = finding("B", exchange=7)
    rows = [
        finding("C"),
        total("B", 12, 2),
        late,
        finding("B", exchange=8),
        finding("B", ERROR),
        finding("A"),
    ]
    groups = rule_totals(rows)
    assert [(each.rule, each.severity, each.count) for each in groups] == [
        ("B", ERROR, 1),
        ("B", WARNING, 12),
        ("A", WARNING, 1),
        ("C", WARNING, 1),
    ]
    assert groups[1].first == late
