"""Endings of recorded calls: as those of the observed ones, and after later traffic."""

from __future__ import annotations

import json
from functools import reduce
from operator import add
from pathlib import Path

import msgspec
import pytest

from a2a_inspect.data.finding_counts import exchange_lines
from a2a_inspect.data.finding_tree import read_findings
from a2a_inspect.plots.sums import compute_totals, whole_recording
from a2a_proxy.model.values import FrameKind
from a2a_proxy.model.wire import Chunk
from a2a_proxy.recorder.recording_output import find_failures, summarize_session
from a2a_proxy.recording.cassette.file import open_recording_or_cassette, write_cassette
from a2a_proxy.recording.read.endings import EndingReader, report_failures
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.write.writer import resume_writer
from a2a_proxy.rules.define.catalogue import all_rules
from a2a_proxy.rules.define.rule import Rule
from a2a_proxy.rules.endings.ending import CAUSES, Cause
from a2a_proxy.rules.endings.evaluate import DoubtfulCalls
from support_cli import run_here
from support_inspect import changes, exchange, frame, request, writer
from support_rules import endings, record

_CAUSES = [each for each in all_rules().values() if each.family == "END"]


@pytest.mark.parametrize("rule", _CAUSES, ids=lambda rule: rule.id)
def test_recorded_equal_observed(tmp_path: Path, rule: Rule) -> None:
    """A recording holds all that an ending rests on; all calls and one have the same result."""
    record(path := tmp_path / "r.db", rule.flagged.make_chunks())
    with Recording(path) as recording:
        (session,) = recording.read_sessions()
        expected = endings(rule.flagged)
        rows = list(recording.read_exchanges(headers=False))
        found = EndingReader(recording).explain_all(rows)
        assert {each.exchange: each for each in found.values()} == expected
        for row in rows:
            assert EndingReader(recording).explain_all([row]).get(row.key) == found.get(row.key)
        noted = DoubtfulCalls(is_whole=True)
        tasks = [row.task for row in recording.read_tasks()]
        for row in recording.read_exchanges(headers=False):
            # A recorder notes a call several times, first while it is open.
            begun = msgspec.structs.replace(row.exchange, closed=0, how="")
            noted.note([begun, row.exchange], tasks)
        doubtful = noted.numbers_at(session.ended)
        failures = report_failures(recording, session, session.ended, doubtful)
        assert failures == report_failures(recording, session, session.ended)


def test_stored_endings_survive_a_cassette(tmp_path: Path) -> None:
    """Only the recorder that finishes a session replaces those that it has stored before."""
    record(path := tmp_path / "r.db", all_rules()["A2A-END-005"].flagged.make_chunks())
    with Recording(path) as recording:
        (session,) = recording.read_sessions()
        (found,) = report_failures(recording, session, session.ended).findings
        uuid = session.facts.uuid
    for _ in range(2):
        resume_writer(path, uuid).finish(session.ended, endings=[found])
    with Recording(path) as recording:
        write_cassette(recording, tmp_path / "r.a2a.jsonl")
    with open_recording_or_cassette(tmp_path / "r.a2a.jsonl") as recording:
        rules = [row.finding.rule for row in recording.read_findings()]
    assert rules.count("A2A-END-005") == 1


@pytest.mark.parametrize(
    ("media", "kind", "words"),
    [
        (
            "application/x-ndjson",
            FrameKind.OTHER,
            "2 JSON objects (NDJSON) under `application/x-nd",
        ),
        ("text/event-stream", FrameKind.COMMENT, "2 JSON objects (NDJSON) under `text/event-strea"),
    ],
)
def test_body_that_was_recorded_as_a_whole(
    tmp_path: Path, media: str, kind: FrameKind, words: str
) -> None:
    """A recording may hold the body of a wrong container as one frame, without its objects."""
    body = b'{"jsonrpc":"2.0","id":1,"result":{}}\n' * 2
    held = frame(1, 1, b"", kind=kind, framing=body.decode())
    if kind is FrameKind.OTHER:
        held = frame(1, 1, body, kind=kind)
    call = exchange(
        1,
        events=0,
        states=(),
        task_id="",
        error="HTTP 200" if kind is FrameKind.OTHER else "",
        response_headers=((b"Content-Type", media.encode()),),
    )
    made = writer(path := tmp_path / "r.db")
    made.write([request(1), held], [], changes(call))
    made.finish(call.closed)
    with Recording(path) as recording:
        (ending,) = EndingReader(recording).read_all(recording.read_exchanges()).values()
    assert ending.cause == "wrong-container"
    assert words in ending.summary


_EXPLAINING = [
    each for each in CAUSES.values() if {*each.explains} & {*all_rules()[each.rule].also_broken}
]


@pytest.mark.parametrize("cause", _EXPLAINING, ids=lambda cause: cause.rule)
def test_findings_that_follow_count_once(tmp_path: Path, cause: Cause) -> None:
    """The recorder marks them; its summary, `stats`, the lists and the tree count as `check`."""
    _check_counts(tmp_path, all_rules()[cause.rule].flagged.make_chunks())


def test_totals_of_findings_that_follow_count_once(tmp_path: Path) -> None:
    """Of very many alike the first ones are listed, and the others are counted."""
    script = reduce(add, [all_rules()["A2A-END-030"].flagged] * 120)
    assert _check_counts(tmp_path, script.make_chunks()) == [120, 0, 0]


def _check_counts(folder: Path, chunks: list[Chunk]) -> list[int]:
    """Record, end the session twice, and compare all counts; return those of `check`."""
    record(path := folder / "r.db", chunks)
    with Recording(path) as recording:
        (session,) = recording.read_sessions()
    for _ in range(2):  # a recorder that died after it finished is followed by another one
        writer = resume_writer(path, session.facts.uuid)
        failures = find_failures(writer, session.ended)
        explained = failures.explained
        writer.finish(session.ended, endings=failures.findings, explained=explained)
    done = run_here(folder, "check", "--format", "json", path, "--fail-on", "never")
    summary = json.loads(done.lines[-1])
    counts = [summary[each] for each in ("error", "warning", "info")]
    assert explained

    shown = summarize_session(path, session.id)
    assert [shown.error_findings, shown.warning_findings] == counts[:2]
    assert shown.findings == sum(counts)
    with Recording(path) as recording:
        totals = compute_totals(whole_recording(recording)).findings
        assert sum(number for *_, number in totals) == sum(counts)
        lines = exchange_lines(recording, list(recording.read_exchanges()))
        listed = sum(each.finding_counts.count for each in lines if each.finding_counts)
        assert listed <= sum(counts)
        branches = read_findings(recording, None).branches
        assert {each.words for each in branches} == {
            all_rules()[rule].title for rule, *_ in totals if rule in all_rules()
        }
    return counts
