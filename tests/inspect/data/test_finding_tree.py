"""The findings by rule, without a screen."""

from __future__ import annotations

from pathlib import Path

import pytest

from a2a_inspect.data import finding_tree
from a2a_inspect.data.finding_tree import FindingBranch, read_findings
from a2a_proxy.model.values import Finding, Severity
from a2a_proxy.protocol.finding_totals import follows_ending, rule_totals
from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from a2a_proxy.recording.read.reader import Recording
from support_inspect import changes, exchange, request, writer
from support_recording import STARTED

SAMPLES = Path(__file__).resolve().parents[3] / "recordings"


def finding(
    rule: str, severity: Severity, number: int, seq: int, summary: str = "", **evidence: str
) -> Finding:
    return Finding(rule, severity, STARTED, summary, 1, number, seq, evidence=evidence)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Five findings of three kinds in two sessions, one about a connection, and a total of 40 that
    are not listed."""
    made, second = writer(tmp_path / "r.db"), writer(tmp_path / "r.db", 2)
    found = [
        finding("A2A-SCH-001", Severity.WARNING, 1, 0, "no `id`"),
        finding("A2A-SCH-001", Severity.ERROR, 2, -1, "no \x1b[31m`id`"),
        finding("A2A-OTHER-1", Severity.INFO, 0, -1, "a remark"),
        finding("A2A-SCH-001", Severity.WARNING, 2, 0, "no `id`", frame="the request"),
        finding(
            "A2A-SCH-001", Severity.WARNING, 0, -1, "42 in all", agent="a", count="42", listed="2"
        ),
    ]
    made.write([request(1), request(2)], found, changes(exchange(1), exchange(2)))
    second.write(
        [request(1)],
        [finding("A2A-SCH-001", Severity.WARNING, 1, 0, "no `id`")],
        changes(exchange(1)),
    )
    made.close()
    second.close()
    return tmp_path / "r.db"


def labels(recording: Recording, of: FindingBranch | None) -> list[str]:
    return [
        f"{each.label.rstrip()}: {each.words}" for each in read_findings(recording, of).branches
    ]


def test_rules_by_severity_and_number(path: Path) -> None:
    """The repetitions that only a total counts are included; the total itself is no place; nothing
    acts."""
    with Recording(path) as recording:
        groups = read_findings(recording, None).branches
        assert labels(recording, None) == [
            "error      1  A2A-SCH-001: A required member is missing or empty",
            "warning   43  A2A-SCH-001: A required member is missing or empty",
            "info       1  A2A-OTHER-1: ",
        ]
        assert labels(recording, groups[0]) == ["#2 (whole exchange): no ␛[31m`id`"]
        assert labels(recording, groups[1]) == [
            "#1.0: no `id`",
            "#2.0 (the request): no `id`",
            "#2:1.0: no `id`",
        ]
        assert labels(recording, groups[2]) == ["connection 1: a remark"]
        assert [group.is_leaf for group in groups] == [False] * 3
        (place,) = read_findings(recording, groups[0]).branches
        assert (place.is_leaf, place.session, place.exchange, place.seq) == (True, 1, 2, -1)


def test_places_are_read_page_by_page(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The id of the last one begins the next page."""
    with Recording(path) as recording:
        group = read_findings(recording, None).branches[1]
        whole = labels(recording, group)
        monkeypatch.setattr(finding_tree, "CHILDREN_PER_PAGE", 2)
        first = read_findings(recording, group)
        rest = read_findings(recording, group, first.branches[-1].page_cursor)
        assert (first.has_more, rest.has_more) == (True, False)
        assert [
            f"{each.label}: {each.words}" for each in (*first.branches, *rest.branches)
        ] == whole


@pytest.mark.parametrize("name", ["sdk-1.x-jsonrpc", "lossy", "generations", "demo"])
def test_the_same_groups_as_check(name: str) -> None:
    """Rule, severity and number of each group."""
    with open_recording_or_cassette(SAMPLES / f"{name}.a2a.jsonl") as recording:
        found = (row.finding for row in recording.read_findings())
        totals = rule_totals(each for each in found if not follows_ending(each))
        groups = read_findings(recording, None).branches
        assert [each.label.split() for each in groups] == [
            [each.severity.name.lower(), str(each.count), each.rule] for each in totals
        ]
        for group in groups:
            assert len(read_findings(recording, group).branches) <= int(group.label.split()[1])
