"""Number of findings. Repetitions that a recording does not list are in the total of their kind,
which is a row too."""

from collections.abc import Iterable

import msgspec

from a2a_proxy.model.values import Finding, Severity

ENDING_RULES = "A2A-END-"
"""How the ids of the causes of endings begin."""


class RuleTotal(msgspec.Struct, frozen=True):
    """All findings of one rule that have the same severity."""

    rule: str
    severity: Severity
    count: int
    first: Finding
    """The first finding; a total only if no other one is listed."""


def is_total(finding: Finding) -> bool:
    """Return whether the finding is the total of a kind, made at the end of a session, and not a
    finding by itself."""
    counts = (finding.evidence.get(name, "") for name in ("count", "listed"))
    return not finding.exchange and "agent" in finding.evidence and all(map(str.isdecimal, counts))


def follows_ending(finding: Finding) -> bool:
    """Return whether the finding follows from the ending of a call, whose finding is counted
    instead."""
    return finding.evidence.get("follows", "").startswith(ENDING_RULES)


def count_occurrences(finding: Finding) -> int:
    """Return how many findings the row stands for: 1, and for a total those that are not listed
    individually."""
    if not is_total(finding):
        return 1
    return max(int(finding.evidence["count"]) - int(finding.evidence["listed"]), 0)


def rule_totals(findings: Iterable[Finding]) -> list[RuleTotal]:
    """Return the findings grouped by rule and severity: the most severe first, of these the most
    frequent."""
    counts: dict[tuple[str, Severity], int] = {}
    first: dict[tuple[str, Severity], Finding] = {}
    for finding in findings:
        kind = finding.rule, finding.severity
        counts[kind] = counts.get(kind, 0) + count_occurrences(finding)
        if kind not in first or is_total(first[kind]):
            first[kind] = finding
    totals = (RuleTotal(*kind, count, first[kind]) for kind, count in counts.items())
    return sorted(totals, key=lambda each: (-each.severity, -each.count, each.rule))
