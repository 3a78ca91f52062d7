"""Rules over a recording say what they said while it was made."""

from __future__ import annotations

from pathlib import Path

import pytest

from a2a_proxy.model.finding import Finding
from a2a_proxy.recording.cassette import open_any
from a2a_proxy.recording.reader import Recording
from a2a_proxy.recording.recheck import recheck
from a2a_proxy.rules.catalogue import rules
from a2a_proxy.rules.rule import Rule
from support_rules import record

SAMPLES = sorted((Path(__file__).parents[2] / "recordings").glob("*.a2a.jsonl"))


def checked(recording: Recording) -> list[Finding]:
    return [finding for session in recording.sessions() for finding in recheck(recording, session)]


@pytest.mark.parametrize("rule", rules().values(), ids=list(rules()))
def test_the_example_of_a_rule(rule: Rule, tmp_path: Path) -> None:
    """What was found live is found again, in the same order, with the same evidence; what decoders said comes first."""
    live = record(tmp_path / "r.db", rule.flagged.chunks())
    with Recording(tmp_path / "r.db") as recording:
        assert checked(recording) == sorted(live, key=lambda each: each.rule.startswith("A2A-"))
        assert [row.finding for row in recording.findings()] == live


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.name)
def test_a_sample(sample: Path) -> None:
    """Real conversations, recorded by a proxy with its rules at work."""
    with open_any(sample) as recording:
        assert checked(recording) == [row.finding for row in recording.findings()]
