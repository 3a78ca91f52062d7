"""The gap named by a finding of A2A-GEN-001, read from its evidence."""

from __future__ import annotations

from pathlib import Path

import pytest

from a2a_proxy.hooks.gap import GAP_RULE, gap_of
from a2a_proxy.model.values import Finding, Severity
from a2a_proxy.rules.define.catalogue import all_rules
from support_rules import record


def test_the_gap_of_the_rule_example_is_read(tmp_path: Path) -> None:
    """Generation 4 after 2: 3 is missing, of this task."""
    (finding,) = [
        each
        for each in record(tmp_path / "r.db", all_rules()[GAP_RULE].flagged.make_chunks())
        if each.rule == GAP_RULE
    ]
    gap = gap_of(finding)
    assert gap is not None
    assert (gap.task_id, list(gap.missing), gap.finding) == (finding.task_id, [3], finding)
    assert finding.task_id


@pytest.mark.parametrize(
    ("evidence", "missing"),
    [({"missing": "3"}, [3]), ({"missing": "6-8"}, [6, 7, 8]), ({"count": "2"}, [])],
)
def test_the_gap_is_in_the_evidence(evidence: dict[str, str], missing: list[int]) -> None:
    gap = gap_of(Finding(GAP_RULE, Severity.ERROR, 1, "words", task_id="t", evidence=evidence))
    assert gap is not None
    assert list(gap.missing) == missing


def test_findings_of_other_rules_have_no_gap() -> None:
    """Only A2A-GEN-001 does."""
    assert (
        gap_of(
            Finding("A2A-GEN-002", Severity.ERROR, 1, "generation 3 is missing: 2 is followed by 4")
        )
        is None
    )
