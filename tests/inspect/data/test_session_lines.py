"""Sessions and connections in `ls` and `show`: without exchanges, several in a file, without an
end."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from a2a_inspect.commands import show
from a2a_inspect.commands.recover import recover_all
from a2a_inspect.data.session_lines import session_line
from a2a_proxy.capture import file_layout
from a2a_proxy.model.values import Finding, Observation, Severity
from a2a_proxy.model.wire import Chunk, ChunkKind, Direction
from a2a_proxy.recorder.recorder_supervisor import RecorderSupervisor
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import ExchangeRow, SessionRow
from a2a_proxy.rules.define.catalogue import all_rules
from support_cli import run, run_here
from support_inspect import MS, changes, exchange, frame, request, sample, status, writer
from support_observer import START, fresh, opening
from support_recording import STARTED, facts


def session_lines_of(path: Path, *words: object) -> list[str]:
    """What a command prints; it must succeed."""
    done = run_here(path.parent / "state", *words, TZ="UTC")
    assert (done.code, done.err) == (0, "")
    return done.lines


def talked(path: Path, *raw: bytes) -> Path:
    """The recording of a session with one connection for each of these, which a client sent."""
    observer = fresh()
    out: list[Observation] = []
    for number, data in enumerate(raw, 1):
        chunks = [
            *opening(number, START),
            Chunk(number, ChunkKind.DATA, Direction.TO_AGENT, START, data),
        ]
        for chunk in [*chunks, Chunk(number, ChunkKind.CLOSED, Direction.TO_AGENT, START)]:
            observer.feed(chunk, out)
    made = writer(path)
    frames = [each for each in out if not isinstance(each, Finding)]
    made.write(frames, [each for each in out if isinstance(each, Finding)], observer.pop_changes())
    made.finish(START)
    return path


def test_undecoded_connections_are_listed(tmp_path: Path) -> None:
    """Encrypted connections and other protocols have a line, and their findings another."""
    path = talked(tmp_path / "r.db", b"\x16\x03\x01\x00\x06\x01bcdef", b"\x00\x01\x02 what")
    lines = session_lines_of(path, "show", path)
    assert "  connection 1  tls  -> agent:8000  11 B, not read: encrypted" in lines
    assert "  connection 2  opaque  -> agent:8000  8 B, not HTTP" in lines
    assert "nothing was recorded" not in "\n".join(lines)
    assert re.match(
        "2 connections not read.*; see a2a-inspect show .*r.db$",
        session_lines_of(path, "ls", path)[-1],
    )


def test_findings_of_connections_are_listed(tmp_path: Path) -> None:
    """Under the session, as objects of their own in JSON, and counted in `ls`."""
    made = writer(tmp_path / "r.db")
    found = Finding("UNDECODABLE", Severity.WARNING, STARTED, "bad \x1b frame", connection=1)
    made.write([request(1)], [found], changes(exchange(1)))
    made.finish(STARTED)
    path = tmp_path / "r.db"
    assert "  connection 1  warning  UNDECODABLE bad ␛ frame" in session_lines_of(
        path, "show", path
    )
    last = json.loads(session_lines_of(path, "show", path, "--json")[-1])
    assert (last["session"], last["finding"]["rule"], last["finding"]["connection"]) == (
        1,
        "UNDECODABLE",
        1,
    )
    assert (
        session_lines_of(path, "ls", path)[-1]
        == f"1 finding of connections; see a2a-inspect show {path}"
    )
    assert not [line for line in session_lines_of(path, "show", path, "1") if "UNDECODABLE" in line]


@pytest.mark.parametrize("command", ["ls", "show"])
def test_a_recording_without_exchanges(tmp_path: Path, command: str) -> None:
    """The session, and that nothing was recorded."""
    path = tmp_path / "r.db"
    writer(path).finish(STARTED)
    lines = session_lines_of(path, command, path)
    assert lines[0].startswith("session 1  ")
    assert [line.strip() for line in lines[1:]] == ["nothing was recorded"]


def test_exchanges_are_addressed_by_session(tmp_path: Path) -> None:
    """`ls` calls it #1:2, `show` takes it; 2 alone is that of each session."""
    path = sample(tmp_path / "r.db")
    more = writer(path, 2)
    more.write([request(2)], changes=changes(exchange(2)))
    more.finish(STARTED)
    starts = [line.split()[0] for line in session_lines_of(path, "ls", path)]
    assert starts == ["session", "#", "#1:1", "#1:2", "#1:3", "session", "#", "#2:2"]
    for word, sessions in (("1:2", [1]), ("#2:2", [2]), ("2", [1, 2])):
        assert [
            json.loads(line)["session"]
            for line in session_lines_of(path, "show", path, word, "--json")
        ] == sessions


def test_the_agents_frames_count_from_the_end_of_the_request(tmp_path: Path) -> None:
    """As the latency in the head does; the client's frames from the first byte."""
    path, at = tmp_path / "r.db", STARTED + 1000 * MS
    made = writer(path)
    frames = [
        request(1),
        frame(1, 1, b"{}", direction=Direction.TO_AGENT),
        status(1, 2, "Thinking"),
    ]
    call = exchange(1, request_ended=at + 150 * MS, first_event=at + 200 * MS)
    made.write(frames, changes=changes(call))
    made.finish(STARTED)
    lines = session_lines_of(path, "show", path)
    assert "first 50 ms" in next(line for line in lines if "#1 " in line)
    moments = [
        line.split("--")[0].strip(" <").split(maxsplit=1)
        for line in lines
        if "-->" in line or "<--" in line
    ]
    assert moments[1:] == [[".1", "+100 ms"], [".2", "+50 ms"]]


def session_of(uuid: str) -> SessionRow:
    """A session without an end."""
    return SessionRow(id=1, facts=facts(uuid=uuid))


def test_a_session_without_an_end_is_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal shows it: held, it is being recorded; left over, `recover` finishes it; gone, it
    stays unfinished."""
    monkeypatch.setenv(file_layout.STATE_VARIABLE, str(tmp_path))
    assert session_line(session_of("u")).endswith("  ended abruptly")
    folder = file_layout.create_journal(
        file_layout.SessionFile(str(tmp_path / "r.db"), os.getpid(), STARTED, uuid="u")
    )
    assert session_line(session_of("u")).endswith("  being recorded")
    recorder = file_layout.lock_recorder(folder.path)
    folder.release_locks()
    assert recorder is not None
    assert session_line(session_of("u")).endswith("  being recorded")
    os.close(recorder)
    assert session_line(session_of("u")).endswith(
        "not recorded to the end; finish with: a2a-inspect recover"
    )
    assert session_line(session_of("other")).endswith("  ended abruptly")


def test_recover_waits_for_a_large_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is recorded of a journal is read once more before it goes on, and that may take longer
    than any start."""
    monkeypatch.setenv(file_layout.STATE_VARIABLE, str(tmp_path))
    monkeypatch.setattr(RecorderSupervisor.start, "__defaults__", (0.001, lambda: None))
    file_layout.create_journal(
        file_layout.SessionFile(str(tmp_path / "r.db"), os.getpid(), STARTED, uuid="u")
    ).release_locks()
    assert recover_all() == 0
    assert (
        capsys.readouterr().out
        == f"recovered {tmp_path / 'r.db'}: 0 exchanges, 0 frames from the journal\n"
    )


def row(number: int, **more: str) -> ExchangeRow:
    """An exchange as the file has it."""
    values = {"task_id": "", "context_id": "", **more}
    return ExchangeRow(number, 1, exchange(number, **values))


def test_exchanges_without_context_stay_in_time_order(tmp_path: Path) -> None:
    """Errors without context or task do not gather at the top; a task without a context stays in
    one place."""
    rows = [
        row(1),
        row(2),
        row(3, context_id="c"),
        row(4),
        row(5, context_id="c"),
        row(6, task_id="t"),
    ]
    rows += [row(7, context_id="d"), row(8), row(9, task_id="t")]
    writer(tmp_path / "r.db").finish(STARTED)
    with Recording(tmp_path / "r.db") as recording:
        groups = [
            (context, {task: [row.exchange.id for row in of] for (_, task), of in members.items()})
            for context, members in show._group_by_context(rows, show._SessionTasks(recording, 1))
        ]
    assert groups == [
        ("", {"": [1, 2]}),
        ("c", {"": [3, 5]}),
        ("", {"": [4], "t": [6, 9]}),
        ("d", {"": [7]}),
        ("", {"": [8]}),
    ]


def test_raw_payloads(tmp_path: Path) -> None:
    """Text is text, also beyond ASCII and with a byte that is none; anything else is a dump of 16
    bytes a line."""
    made, path = writer(tmp_path / "r.db"), tmp_path / "r.db"
    binary = frame(1, 1, b"\x0a\x0bhello\n world\x10\x01\xff", schema="lf.a2a.v1.Task")
    made.write(
        [frame(1, 0, '{\n"ä\u2028"}'.encode() + b"\xff"), binary], changes=changes(exchange(1))
    )
    made.finish(STARTED)
    lines = [line.strip() for line in session_lines_of(path, "show", path, "--raw")]
    assert '"ä<U+2028>"}�' in lines
    assert "00000000  0a 0b 68 65 6c 6c 6f 0a  20 77 6f 72 6c 64 10 01  ␊␋hello␊ world␐␁" in lines
    assert [line for line in lines if line.startswith("00000010  ff ")]


def test_cassette_read_of_a_recording(tmp_path: Path) -> None:
    """The error says that it already is a recording."""
    path = sample(tmp_path / "r.db")
    done = run(tmp_path / "state", "a2a-inspect", "cassette", "read", path, tmp_path / "new.db")
    assert (done.code, (tmp_path / "new.db").exists()) == (2, False)
    assert done.err.splitlines() == [
        f"a2a-inspect: error: {path} is a recording, not a cassette",
        f"a2a-inspect: hint: inspect it: a2a-inspect ls {path}",
    ]


def test_rules_are_explained_once_and_findings_have_evidence(tmp_path: Path) -> None:
    """Once in the whole output, however many findings; the evidence is under each."""
    path = tmp_path / "r.db"
    made = writer(path)
    found = [
        Finding(
            "A2A-SCH-001",
            Severity.ERROR,
            STARTED,
            "`id` is missing",
            exchange=number,
            seq=0,
            evidence=evidence,
        )
        for number, evidence in (
            (1, {"path": "id", "value": "null"}),
            (2, {"path": "id\x1b"}),
            (2, {}),
        )
    ]
    made.write([request(1), request(2)], found, changes(exchange(1), exchange(2)))
    made.finish(STARTED)
    out = [line.strip() for line in session_lines_of(path, "show", path)]
    what = all_rules()["A2A-SCH-001"].description[:40]
    assert [line for line in out if line.startswith("at ")] == ["at id; found: null", "at id␛"]
    (meant,) = (index for index, line in enumerate(out) if line.startswith(what))
    assert out[meant - 1] == "at id; found: null"
