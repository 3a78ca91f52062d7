"""Endings of recorded calls: as those of the observed ones, and after later traffic."""

from __future__ import annotations

from pathlib import Path

import pytest

from a2a_proxy.recording.read.endings import session_endings
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.rules.define.catalogue import all_rules
from a2a_proxy.rules.define.rule import Rule
from support_rules import endings, record

_CAUSES = [each for each in all_rules().values() if each.family == "END"]


@pytest.mark.parametrize("rule", _CAUSES, ids=lambda rule: rule.id)
def test_recorded_equal_observed(tmp_path: Path, rule: Rule) -> None:
    """A recording holds all that an ending rests on."""
    record(path := tmp_path / "r.db", rule.flagged.make_chunks())
    with Recording(path) as recording:
        (session,) = recording.read_sessions()
        assert session_endings(recording, session) == endings(rule.flagged)


def test_some_calls(tmp_path: Path) -> None:
    """Only the asked ones, with the same result."""
    script = all_rules()["A2A-END-017"].flagged
    record(path := tmp_path / "r.db", script.make_chunks())
    with Recording(path) as recording:
        (session,) = recording.read_sessions()
        found = session_endings(recording, session)
        assert list(session_endings(recording, session, [2])) == [2]
        assert session_endings(recording, session, [2, 99])[2] == found[2]
