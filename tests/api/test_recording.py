"""The Python API of recordings, beyond the examples of the manual."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from a2a_proxy import Recording
from a2a_proxy.api import EventKind, FrameKind, QueryError, RecordingError, Severity
from a2a_proxy.model.values import Finding
from support_inspect import MS, TASK, changes, exchange, frame, request, status
from support_recording import STARTED
from support_several import OTHER, TRACE, begin, call, pair


def test_several_files_are_merged_by_time(tmp_path: Path) -> None:
    """Calls and frames of both, each with the file that has it."""
    with Recording(*pair(tmp_path)) as recording:
        assert [(call.file, call.number) for call in recording.exchanges()] == [
            ("first", 1),
            ("second", 1),
            ("first", 2),
            ("second", 2),
            ("first", 3),
        ]
        times = [frame.at for frame in recording.frames()]
        assert len(times) == 10
        assert times == sorted(times)
        assert [(session.file, session.agents) for session in recording.sessions()] == [
            ("first", ("agent-1:8000",)),
            ("second", ("agent-2:8000",)),
        ]


def test_the_filter_holds_for_all_files(tmp_path: Path) -> None:
    """An invalid filter is an error before anything is read."""
    with Recording(*pair(tmp_path)) as recording:
        assert [(call.file, call.outcome) for call in recording.exchanges("err")] == [
            ("first", "error")
        ]
        assert [frame.file for frame in recording.frames("Question agent:agent-2")] == [
            "second",
            "second",
        ]
        with pytest.raises(QueryError):
            recording.frames("nonsense:1")


def test_a_task_in_several_files_is_returned_once(tmp_path: Path) -> None:
    """With all of its calls by time."""
    with Recording(*pair(tmp_path)) as recording:
        tasks = list(recording.tasks())
        assert [(task.id, task.files) for task in tasks] == [
            (TASK, ["first", "second"]),
            (OTHER, ["second"]),
        ]
        assert [(call.file, call.number) for call in tasks[0].exchanges()] == [
            ("first", 1),
            ("second", 1),
            ("first", 2),
        ]
        assert [state for _, state in tasks[0].states] == ["working"]
        assert recording.task("no such task") is None


def test_a_non_uuid_task_id_is_unique_per_agent_only(tmp_path: Path) -> None:
    """Two agents may both have a task 1."""
    files = tmp_path / "a.a2a.db", tmp_path / "b.a2a.db"
    for number, path in enumerate(files, 1):
        writer = begin(path, number)
        call(writer, number, 1, number, task_id="1")
        writer.finish(0)
    with Recording(*files) as recording:
        assert [(task.id, task.agent, task.files) for task in recording.tasks()] == [
            ("1", "agent-1:8000", ["a"]),
            ("1", "agent-2:8000", ["b"]),
        ]


def test_a_trace_is_followed_over_files(tmp_path: Path) -> None:
    """By its id, by a context, by how they begin; an id that is not there has no calls."""
    with Recording(*pair(tmp_path)) as recording:
        assert [(call.file, call.trace_id) for call in recording.trace(TRACE)] == [
            ("first", TRACE),
            ("second", TRACE),
        ]
        assert [(call.agent, call.number) for call in recording.trace("ctx")] == [
            ("agent-1:8000", 1),
            ("agent-1:8000", 2),
        ]
        assert list(recording.trace(TRACE[:8])) != []
        assert list(recording.trace("ffff")) == []
        with pytest.raises(ValueError):
            recording.trace("")


def test_hand_offs_between_agents_of_two_files_are_found(tmp_path: Path) -> None:
    """Neither file shows it alone: while the first agent is at work, its trace goes on at the
    second."""
    files = pair(tmp_path)
    for path in files:
        with Recording(path) as alone:
            assert alone.handoffs() == []
    with Recording(*files) as recording:
        (found,) = recording.handoffs()
    assert (found.kind, found.evidence) == ("delegation", "traceparent")
    assert (found.agent, found.to_agent) == ("agent-1:8000", "agent-2:8000")
    assert found.latency == 100 * MS
    assert found.exchange is not None
    assert (found.exchange.file, found.exchange.number, found.exchange.trace_id) == (
        "second",
        1,
        TRACE,
    )
    assert found.to_exchange is not None
    assert found.to_exchange.number == 1


def test_a_session_in_two_files_is_read_once(tmp_path: Path) -> None:
    """A copy adds nothing."""
    first, second = pair(tmp_path)
    shutil.copy(first, tmp_path / "copy.a2a.db")
    with Recording(first, tmp_path / "copy.a2a.db", second) as recording:
        assert len(list(recording.exchanges())) == 5
        assert len(list(recording.frames())) == 10
        assert [task.files for task in recording.tasks()] == [["first", "second"], ["second"]]


def test_overlapping_and_separate_sessions_are_read_by_time(tmp_path: Path) -> None:
    """Calls are by time all the same: of one file with three runs, the second and third at once."""
    path = tmp_path / "a.a2a.db"
    for number, seconds in ((1, (1, 2)), (2, (3, 5, 7)), (3, (4, 6))):
        writer = begin(path, number)
        for place, second in enumerate(seconds, 1):
            call(writer, number, place, second)
        writer.finish(0)
    with Recording(path) as recording:
        seen = [(call.session, call.number) for call in recording.exchanges()]
        assert seen == [(1, 1), (1, 2), (2, 1), (3, 1), (2, 2), (3, 2), (2, 3)]
        assert [
            (call.session, call.number) for call in recording.exchanges("rec:2 OR rec:3")
        ] == seen[2:]


def test_rows_written_while_the_recording_is_open_are_found(tmp_path: Path) -> None:
    """An open session is marked as such."""
    writer = begin(tmp_path / "live.a2a.db", 1)
    call(writer, 1, 1, 1)
    with Recording(tmp_path / "live.a2a.db") as recording:
        assert len(list(recording.exchanges())) == 1
        assert recording.sessions()[0].complete is None
        call(writer, 1, 2, 2)
        assert [call.number for call in recording.exchanges()] == [1, 2]
        writer.finish(0, complete="2 bytes are missing")
        assert (recording.sessions()[0].complete, recording.sessions()[0].missing) == (
            False,
            "2 bytes are missing",
        )


def test_payloads_are_read_on_demand(tmp_path: Path) -> None:
    """Left out or not, a frame has the same."""
    with Recording(pair(tmp_path)[0]) as recording:
        with_them, without = list(recording.frames()), list(recording.frames(payloads=False))
        assert {frame.facts.payload for frame in without} == {b""}
        assert [frame.payload for frame in without] == [frame.payload for frame in with_them]
        assert [frame.decoded() for frame in without] == [frame.decoded() for frame in with_them]
        statuses = [frame for frame in without if frame.event is EventKind.STATUS]
        update = statuses[0].typed_event().status_update
        assert update is not None
        assert update.task_id == TASK
        assert without[0].text() == 'message user "Question 1.1"'


def test_frame_findings_exclude_those_of_the_exchange(tmp_path: Path) -> None:
    """Of a call's frames and of a connection's; those of the whole call are the call's."""
    writer = begin(tmp_path / "a.a2a.db", 1)
    settings = frame(0, 1, b"{}", kind=FrameKind.CONTROL, schema="control")
    found = [
        Finding("A2A-X-001", Severity.ERROR, STARTED, "of a frame", 1, 1, 1),
        Finding("A2A-X-002", Severity.ERROR, STARTED, "of the call", 1, 1),
        Finding("A2A-X-003", Severity.ERROR, STARTED, "of a connection's frame", 1, 0, 1),
        Finding("A2A-X-004", Severity.ERROR, STARTED, "of another connection's", 2, 0, 1),
    ]
    writer.write([request(1), status(1, 1, "Thinking"), settings], found, changes(exchange(1)))
    writer.finish(0)
    with Recording(tmp_path / "a.a2a.db") as recording:
        summaries = [[each.summary for each in frame.findings()] for frame in recording.frames()]
        assert summaries == [[], ["of a frame"], ["of a connection's frame"]]
        assert [frame.exchange is None for frame in recording.frames()] == [False, False, True]
        (call,) = recording.exchanges()
        assert [each.summary for each in call.findings()] == ["of a frame", "of the call"]
        assert [
            (each.file, each.session, each.exchange and each.exchange.number)
            for each in recording.findings()
        ] == [
            ("a", 1, 1),
            ("a", 1, 1),
            ("a", 1, None),
            ("a", 1, None),
        ]


def test_a_file_that_is_not_a_recording_is_refused(tmp_path: Path) -> None:
    """The error names it; without a name there is nothing to open."""
    first, _ = pair(tmp_path)
    with pytest.raises(RecordingError, match="absent"):
        Recording(first, tmp_path / "absent.a2a.db")
    with pytest.raises(ValueError):
        Recording()
