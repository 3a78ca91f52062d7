"""Counts of the summary."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from a2a_proxy.model.values import Binding, Changes, Connection, Exchange
from a2a_proxy.present import text
from a2a_proxy.recorder.recording_output import summarize_session
from a2a_proxy.recording.write.writer import Writer
from support_recording import STARTED, facts

ENDS = [("complete", "", False)] * 4 + [
    ("", "", False),
    ("agent gone", "", False),
    ("client gone", "", False),
]
ENDS += [
    ("complete", "TASK_NOT_FOUND", False),
    ("agent gone", "\ud800", False),
    ("refused", "UNAVAILABLE", True),
]


def test_summary_outcomes_equal_those_of_the_lines(tmp_path: Path) -> None:
    """Each exchange counts as what its line on the console said; those of other sessions do not
    count."""
    exchanges = [
        Exchange(
            number, 1, 0, Binding.REST, STARTED, closed=STARTED + 1, how=how, error=error, ours=ours
        )
        for number, (how, error, ours) in enumerate(ENDS, 1)
    ]
    for run in (1, 2):
        writer = Writer(tmp_path / "r.db", facts(run))
        writer.open()
        writer.write(
            [], [], Changes([Connection(1, "c", "l", "u", STARTED)], exchanges, []), (1, 0), None
        )
        session = writer.session
        writer.finish(STARTED)
        done = summarize_session(tmp_path / "r.db", session)
        said = Counter(text.outcome_of(exchange) for exchange in exchanges)
        assert {name: getattr(done, name) for name in said} == said
        assert said == {"ok": 5, "cut": 2, "error": 2, "refused": 1}
        assert (done.connections, done.exchanges) == (1, len(ENDS))
