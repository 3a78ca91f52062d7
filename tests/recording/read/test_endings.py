"""Endings of recorded calls: as those of the observed ones, and after later traffic."""

from __future__ import annotations

from pathlib import Path

import pytest

from a2a_proxy.recording.cassette.file import open_recording_or_cassette, write_cassette
from a2a_proxy.recording.read.endings import EndingReader, report_failures, session_endings
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.write.writer import resume_writer
from a2a_proxy.rules.define.catalogue import all_rules
from a2a_proxy.rules.define.rule import Rule
from support_rules import endings, record

_CAUSES = [each for each in all_rules().values() if each.family == "END"]


@pytest.mark.parametrize("rule", _CAUSES, ids=lambda rule: rule.id)
def test_recorded_equal_observed(tmp_path: Path, rule: Rule) -> None:
    """A recording holds all that an ending rests on; all calls and one have the same result."""
    record(path := tmp_path / "r.db", rule.flagged.make_chunks())
    with Recording(path) as recording:
        (session,) = recording.read_sessions()
        expected = endings(rule.flagged)
        assert {each.exchange: each for each in session_endings(recording, session)} == expected
        for row in recording.read_exchanges(headers=False):
            assert EndingReader(recording).read(row) == expected.get(row.exchange.id)


def test_stored_endings_survive_a_cassette(tmp_path: Path) -> None:
    """Only the recorder that finishes a session replaces those that it has stored before."""
    record(path := tmp_path / "r.db", all_rules()["A2A-END-005"].flagged.make_chunks())
    with Recording(path) as recording:
        (session,) = recording.read_sessions()
        (found,) = report_failures(recording, session, session.ended)
        uuid = session.facts.uuid
    for _ in range(2):
        resume_writer(path, uuid).finish(session.ended, endings=[found])
    with Recording(path) as recording:
        write_cassette(recording, tmp_path / "r.a2a.jsonl")
    with open_recording_or_cassette(tmp_path / "r.a2a.jsonl") as recording:
        rules = [row.finding.rule for row in recording.read_findings()]
    assert rules.count("A2A-END-005") == 1
