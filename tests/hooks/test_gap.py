"""The gap named by a finding of A2A-GEN-001, read from the summary that the rule writes today."""

from __future__ import annotations

from pathlib import Path

import pytest

from a2a_proxy.hooks.gap import GAP_RULE, gap_of
from a2a_proxy.model.finding import Finding, Severity
from a2a_proxy.rules.define.catalogue import all_rules
from support_rules import record


def test_the_gap_of_the_rule_example_is_read(tmp_path: Path) -> None:
    """Generation 4 after 2: 3 is missing, of this task."""
    (finding,) = [
        each for each in record(tmp_path / "r.db", all_rules()[GAP_RULE].flagged.chunks()) if each.rule == GAP_RULE
    ]
    gap = gap_of(finding)
    assert gap is not None
    assert (gap.task_id, list(gap.missing), gap.finding) == (finding.task_id, [3], finding)
    assert finding.task_id


@pytest.mark.parametrize(
    ("summary", "missing"),
    [
        ("generation 3 is missing: 2 is followed by 4 (agent)", [3]),
        ("generation 3 is missing: 2 is followed by 4, and so far no other stream had it (agent)", [3]),
        ("generations 6 to 8 are missing on this stream: 5 is followed by 9; they arrived elsewhere", [6, 7, 8]),
        ("generations 6 to 8 are missing on this stream: 5 is followed by 9; 7 arrived elsewhere", [6, 7, 8]),
        ("no event with generation 3: 2 is followed by a Task with 3 (agent)", [3]),
        ("generations 3 to 4 are missing: the stream begins with 5 and without a Task", [3, 4]),
        ("generations 7 to 8 passed while no stream of the task was open", [7, 8]),
        ("generation 7 passed while no stream of the task was open", [7]),
        ("4 after 2: 3 did not come", [3]),
        ("9 after 5: 6 to 8 came elsewhere, lost on this stream", [6, 7, 8]),
        ("9 after 5: 6 to 8 did not come on this stream; elsewhere 7 came", [6, 7, 8]),
        ("the stream begins with 5, and no snapshot; 3 to 4 did not come", [3, 4]),
        ("2 changes (7 to 8) passed while no stream of the task was open", [7, 8]),
        ("1 changes (7) passed while no stream of the task was open", [7]),
        ("a sentence of another version", []),
    ],
)
def test_every_summary_of_the_rule_is_parsed(summary: str, missing: list[int]) -> None:
    """One number or a range, also in the words of earlier versions, which recordings keep."""
    gap = gap_of(Finding(GAP_RULE, Severity.ERROR, 1, summary, task_id="t"))
    assert gap is not None
    assert list(gap.missing) == missing


def test_findings_of_other_rules_have_no_gap() -> None:
    """Only A2A-GEN-001 does."""
    assert (
        gap_of(Finding("A2A-GEN-002", Severity.ERROR, 1, "generation 3 is missing: 2 is followed by 4 (agent)")) is None
    )
