"""Rules over a recording find what they found while it was recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from a2a_proxy.model.finding import Finding
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.tools.recheck import recheck_session
from a2a_proxy.rules.define.catalogue import all_rules
from a2a_proxy.rules.define.rule import Rule
from support_mutations import SAMPLES, chunks, loaded
from support_rules import record
from support_thin import thin


def checked(recording: Recording) -> list[Finding]:
    return [finding for session in recording.sessions() for finding in recheck_session(recording, session)]


def in_order(live: list[Finding]) -> list[Finding]:
    """What decoders said comes first."""
    return sorted(live, key=lambda each: each.rule.startswith("A2A-"))


@pytest.mark.parametrize("rule", thin(all_rules().values(), 3), ids=lambda rule: rule.id)
def test_rechecking_a_rule_example_finds_the_same(rule: Rule, tmp_path: Path) -> None:
    """What was found live is found again, in the same order, with the same evidence."""
    live = record(tmp_path / "r.db", rule.flagged.chunks())
    with Recording(tmp_path / "r.db") as recording:
        assert checked(recording) == in_order(live)
        assert [row.finding for row in recording.findings()] == live


@pytest.mark.parametrize("sample", sorted(path.name.removesuffix(".a2a.jsonl") for path in SAMPLES.glob("*.jsonl")))
def test_rechecking_a_sample_finds_the_same(sample: str, tmp_path: Path) -> None:
    """The bytes of real conversations: what their rules say as they pass, they say over the recording."""
    live = record(tmp_path / "r.db", chunks(loaded(sample)))
    with Recording(tmp_path / "r.db") as recording:
        assert checked(recording) == in_order(live)
