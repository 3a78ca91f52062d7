"""Cassettes: lossless both ways, readable, and with clear errors."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from a2a_proto import from_dict
from a2a_proxy.model.values import (
    ArtifactState,
    Binding,
    Changes,
    Connection,
    Dialect,
    Exchange,
    Finding,
    Frame,
    FrameKind,
    Severity,
    Task,
)
from a2a_proxy.model.wire import Direction
from a2a_proxy.recording.cassette.file import (
    is_cassette,
    open_recording_or_cassette,
    read_cassette,
    write_cassette,
)
from a2a_proxy.recording.cassette.rewrite import rewrite_cassette
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.store.database import open_private
from a2a_proxy.recording.write.writer import Writer
from support_recording import STARTED, changes, event_frames, facts, findings, frames

_slow = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def _content(recording: Recording) -> list[object]:
    """Everything that is recorded, by session in order."""
    places = {row.id: place for place, row in enumerate(recording.read_sessions())}
    sessions = [
        msgspec.structs.replace(row, id=0, position=None, snapshot=None)
        for row in recording.read_sessions()
    ]
    frames = [
        (places[row.session], msgspec.structs.astuple(row.frame))
        for row in recording.frames_after(0)
    ]
    return [
        sessions,
        frames,
        [(places[row.session], row.connection) for row in recording.read_connections()],
        [(places[row.session], row.exchange) for row in recording.read_exchanges()],
        [(places[row.session], row.task) for row in recording.read_tasks()],
        [(places[row.session], row.finding) for row in recording.read_findings()],
    ]


_written = st.tuples(st.lists(frames(), max_size=4), st.lists(findings, max_size=2), changes())


@_slow
@given(st.lists(st.tuples(st.integers(0, 1), _written), max_size=5), st.booleans())
def test_conversion_between_recording_and_cassette_loses_nothing(tmp_path_factory, written, ended):
    """SQLite to cassette to SQLite to cassette: the same values, the same bytes; also for values of
    no sense."""
    folder = tmp_path_factory.mktemp("lossless")
    db = open_private()
    writers = [
        Writer.on_connection(db, facts(number, started=STARTED + number, command=("a", "b")))
        for number in (1, 2)
    ]
    for session, (stored, found, snapshots) in written:
        writers[session].write(stored, found, snapshots)
    if ended:
        writers[1].finish(STARTED + 99, how="unclean", complete="all but 3 bytes", lost=3, edits=2)
    first = Recording.from_connection(db, "first")
    write_cassette(first, folder / "one.a2a.jsonl", with_command=True)
    read_cassette(folder / "one.a2a.jsonl", folder / "back.a2a.db")
    with Recording(folder / "back.a2a.db") as back:
        assert _content(back) == _content(first)
        write_cassette(back, folder / "two.a2a.jsonl", with_command=True)
    assert (folder / "two.a2a.jsonl").read_bytes() == (folder / "one.a2a.jsonl").read_bytes()
    with open_recording_or_cassette(folder / "one.a2a.jsonl") as opened:
        assert _content(opened) == _content(first)
    db.close()


def test_command_lines_and_process_ids_stay_out_unless_asked_for(tmp_path: Path):
    """Nor the folders in the command line of a stdio agent, which is its name; a rewritten cassette
    keeps them."""
    agent = (
        "/usr/bin/python3 '/home/me/agents/agent.py' "
        "--config=/home/me/x.json --url http://h/a/b ./own/c"
    )
    name = "python3 'agent.py' --config=x.json --url http://h/a/b ./own/c"
    db = open_private()
    command = ("a2a-proxy", "stdio", "--", "/usr/bin/python3")
    writer = Writer.on_connection(
        db, facts(command=command, listens=("stdio",), upstreams=(agent,))
    )
    connection = Connection(1, "c", "stdio", agent, STARTED)
    writer.write([], [], Changes([connection], [], [Task(agent, "t", first=STARTED, last=STARTED)]))
    writer.finish(STARTED + 50)
    recording = Recording.from_connection(db, "stdio")
    write_cassette(recording, plain := tmp_path / "plain.a2a.jsonl")
    write_cassette(recording, full := tmp_path / "full.a2a.jsonl", with_command=True)
    db.close()
    header, line, task = map(json.loads, plain.read_bytes().splitlines()[:3])
    assert {"command", "pid"}.isdisjoint(header["sessions"][0])
    assert (header["sessions"][0]["upstreams"], line["upstream"], task["agent"]) == (
        [name],
        name,
        name,
    )
    (session,) = json.loads(full.read_bytes().splitlines()[0])["sessions"]
    assert (session["command"], session["pid"], session["upstreams"]) == ([*command], 4711, [agent])
    assert not rewrite_cassette(plain, check=True).changed
    assert not rewrite_cassette(full, check=True).changed
    with open_recording_or_cassette(plain) as opened, open_recording_or_cassette(full) as same:
        assert opened.read_sessions()[0].facts == facts(
            listens=("stdio",), upstreams=(name,), pid=0
        )
        assert same.read_sessions()[0].facts.command == command


def _story() -> tuple[list[Frame], list[Finding], Changes]:
    message = from_dict(
        "1.0",
        "StreamResponse",
        {"statusUpdate": {"taskId": "t", "status": {"state": "TASK_STATE_WORKING"}}},
    )
    data = message.SerializeToString()
    base = Frame(
        1,
        1,
        0,
        Direction.TO_AGENT,
        FrameKind.REQUEST,
        STARTED,
        STARTED + 5,
        0,
        9,
        b'{"id":1}',
        8,
        schema="json",
    )
    change = msgspec.structs.replace
    unknown = data + b"\xfa\x3e\x03abc"
    stored = [
        base,
        change(
            base,
            seq=1,
            payload=data,
            size=len(data),
            schema="lf.a2a.v1.StreamResponse",
            task_id="t",
            state=2,
        ),
        change(base, seq=2, payload=unknown, size=len(unknown), schema="lf.a2a.v1.StreamResponse"),
        change(base, seq=3, payload=b'{"id": 1}', size=9),
        change(base, seq=4, payload=b"\xff", size=1, schema="bytes"),
    ]
    exchange = Exchange(
        1,
        1,
        0,
        Binding.JSONRPC,
        STARTED,
        Dialect.V1_0,
        "SendMessage",
        request_headers=((b"Host", b"caf\xe9"),),
    )
    artifact = ArtifactState("a", "report", 2, 1, 100, True, STARTED + 3, STARTED + 4)
    task = Task(
        "agent:1",
        "t",
        state=6,
        states=((STARTED + 5, 2),),
        first=STARTED,
        last=STARTED,
        artifacts=(artifact,),
    )
    finding = Finding("A2A-GEN-001", Severity.WARNING, STARTED + 7, "a gap", exchange=1, seq=1)
    return (
        stored,
        [finding],
        Changes([Connection(1, "c:1", "l:1", "u:1", STARTED)], [exchange], [task]),
    )


def _cassette(path: Path) -> list[bytes]:
    db = open_private()
    writer = Writer.on_connection(db, facts())
    writer.write(*_story())
    writer.finish(STARTED + 50)
    write_cassette(Recording.from_connection(db, "story"), path)
    db.close()
    return path.read_bytes().splitlines(keepends=True)


with tempfile.TemporaryDirectory() as _folder:
    _STORY_LINES = _cassette(Path(_folder, "story.a2a.jsonl"))


def test_cassettes_are_readable_json_lines(tmp_path: Path):
    """Each row has its line, before the first line that refers to it; payloads are JSON if that is
    exact, else text or base64."""
    lines = [json.loads(line) for line in _cassette(tmp_path / "s.a2a.jsonl")]
    assert [next(iter(line)) for line in lines] == (
        ["cassette", "connection", "exchange", *["frame"] * 5, "task", "finding", "end"]
    )
    first, proto, unknown, spaced, raw = lines[3:8]
    assert first == {
        "frame": "request",
        "connection": 1,
        "exchange": 1,
        "seq": 0,
        "direction": "to_agent",
        "began": 0,
        "at": 5,
        "start": 0,
        "end": 9,
        "schema": "json",
        "data": {"id": 1},
    }
    assert proto["data"] == {
        "statusUpdate": {"taskId": "t", "status": {"state": "TASK_STATE_WORKING"}}
    }
    assert proto["state"] == "working"
    assert unknown["view"] == proto["data"]
    assert "raw_b64" in unknown
    assert (spaced["data"], spaced["json"]) == ({"id": 1}, "spaced")
    assert raw["raw_b64"] == "/w=="
    assert lines[2]["request_headers"] == [["Host", "café"]]
    assert lines[8]["states"] == [[5, "working"]]
    assert lines[8]["state"] == "input-required"
    assert lines[10]["end"] == {
        "connections": 1,
        "exchanges": 1,
        "frames": 5,
        "tasks": 1,
        "findings": 1,
    }


def _refused(path: Path, data: bytes) -> RecordingError:
    path.write_bytes(data)
    into = path.with_name("into.a2a.db")
    with pytest.raises(RecordingError) as caught:
        read_cassette(path, into)
    assert sorted(file.name for file in path.parent.iterdir()) == [path.name]
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: lines[:-1], "line 10: the file is truncated: its last line"),
        (lambda lines: [*lines[:5], lines[5][:20]], "line 6: truncated in the middle of a line"),
        (lambda lines: [*lines[:3], b"{]\n", *lines[4:]], "line 4: not a JSON object"),
        (lambda lines: [*lines[:3], *lines[4:]], "line 10: lines are missing"),
        (
            lambda lines: [*lines[:3], lines[3].replace(b'"at":5', b'"at":6'), *lines[4:]],
            "line 11: the file was changed",
        ),
        (lambda lines: [*lines, b"{}\n"], "line 12: lines follow the end line"),
        (
            lambda lines: [lines[0].replace(b'"version":1', b'"version":99'), *lines[1:]],
            "line 1: written by a newer",
        ),
        (
            lambda lines: [*lines[:2], b'{"whatever":1}\n', *lines[2:]],
            "line 3: this line is not valid",
        ),
        (
            lambda lines: [*lines[:2], b'{"frame":"nonsense"}\n', *lines[2:]],
            "line 3: this line is not valid",
        ),
        (
            lambda lines: [*lines[:2], b'{"exchange":1,"session":9}\n', *lines[2:]],
            "line 3: this line is not valid",
        ),
        (
            lambda lines: [*lines[:2], b'{"frame":"event","blob":"../x"}\n', *lines[2:]],
            "line 3: this line is not valid",
        ),
        (lambda lines: [b'{"log":{"version":"1.2"}}\n'], "line 1: not a cassette"),
        (lambda lines: [], "line 1: truncated"),
    ],
)
def test_an_invalid_cassette_is_refused_with_its_line(tmp_path: Path, change, message: str):
    """The message names file, line and reason; no recording is created."""
    path = tmp_path / "s.a2a.jsonl"
    lines = _cassette(path)
    error = _refused(path, b"".join(change(lines)))
    assert error.message.startswith(f"{path}, {message}")


def test_every_truncation_is_noticed(tmp_path: Path):
    """A cassette cut anywhere is never taken for a whole one."""
    path = tmp_path / "s.a2a.jsonl"
    data = b"".join(_cassette(path))
    for size in range(0, len(data), 37):
        _refused(path, data[:size])


_json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
_damages = st.lists(
    st.tuples(
        st.integers(0, 200),
        st.integers(0, 500),
        st.integers(0, 30),
        st.binary(max_size=12) | _json_values,
    ),
    min_size=1,
    max_size=3,
)


def _damage(lines: list[bytes], number: int, place: int, length: int, new: object) -> None:
    """Replace some bytes of a line, or one value of its object."""
    number %= len(lines)
    line = lines[number]
    if isinstance(new, bytes):
        lines[number] = line[: place % len(line)] + new + line[place % len(line) + length :]
        return
    with contextlib.suppress(ValueError):  # it was damaged before
        values = json.loads(line)
        if isinstance(values, dict) and values:
            values[sorted(values)[place % len(values)]] = new
            lines[number] = json.dumps(values).encode() + b"\n"


@_slow
@given(_damages)
def test_a_damaged_cassette_is_refused_with_its_line_or_read(
    damages: list[tuple[int, int, int, object]],
) -> None:
    """Nothing else can happen, also without verification, and what was read is a whole
    recording."""
    with tempfile.TemporaryDirectory() as folder:
        path, into = Path(folder, "s.a2a.jsonl"), Path(folder, "into.a2a.db")
        lines = list(_STORY_LINES)
        for number, place, length, new in damages:
            _damage(lines, number, place, length, new)
        path.write_bytes(b"".join(lines))
        refusal = _read_damaged(path, into)
        if refusal is None:
            with Recording(into) as recording:
                assert len(_content(recording)) == 6
        else:
            assert refusal.message.startswith(f"{path}, line ")
            assert refusal.hint
            assert not into.exists()


def _read_damaged(path: Path, into: Path) -> RecordingError | None:
    """Return why it was refused."""
    try:
        read_cassette(path, into, verify=False)
    except RecordingError as error:
        return error
    return None


def test_a_cassette_edited_by_hand_is_read_without_verification(tmp_path: Path):
    """`verify=False` accepts edited lines."""
    path = tmp_path / "s.a2a.jsonl"
    lines = _cassette(path)
    path.write_bytes(b"".join(lines).replace(b'"data":{"id":1}', b'"data":{"id":2}'))
    read_cassette(path, tmp_path / "r.a2a.db", verify=False)
    with Recording(tmp_path / "r.a2a.db") as recording:
        assert next(recording.frames_after(0)).frame.payload == b'{"id":2}'


def test_large_payloads_may_be_separate_files(tmp_path: Path):
    """With `blobs` a big payload is a private file named by its hash; a missing or changed one is
    noticed."""
    path = tmp_path / "s.a2a.jsonl"
    db = open_private()
    frame = msgspec.structs.replace(event_frames(1)[0], payload=b"x" * 100_000)
    Writer.on_connection(db, facts()).write([frame])
    write_cassette(Recording.from_connection(db, "big"), path, blobs=True)
    blob = next((tmp_path / "blobs").iterdir())
    assert blob.stat().st_mode & 0o777 == 0o600
    with open_recording_or_cassette(path) as recording:
        assert next(recording.frames_after(0)).frame == frame
    blob.write_bytes(b"y")
    with pytest.raises(RecordingError, match="has been changed"):
        open_recording_or_cassette(path)
    blob.unlink()
    with pytest.raises(RecordingError, match="is missing"):
        open_recording_or_cassette(path)


def test_selected_sessions_are_exported(tmp_path: Path):
    """A session can be taken out of a recording of several."""
    db = open_private()
    for number in (1, 2):
        Writer.on_connection(db, facts(number)).write(event_frames(3, seed=number))
    write_cassette(Recording.from_connection(db, "two"), tmp_path / "s.a2a.jsonl", sessions=[2])
    with open_recording_or_cassette(tmp_path / "s.a2a.jsonl") as recording:
        assert [row.facts for row in recording.read_sessions()] == [facts(2, pid=0)]
        assert [row.frame for row in recording.frames_after(0)] == event_frames(3, seed=2)


def test_files_are_not_overwritten_without_force(tmp_path: Path):
    """Neither a cassette nor a recording."""
    path = tmp_path / "s.a2a.jsonl"
    before = b"".join(_cassette(path))
    with (
        open_recording_or_cassette(path) as recording,
        pytest.raises(RecordingError, match="exists"),
    ):
        write_cassette(recording, path)
    with pytest.raises(RecordingError, match="exists"):
        read_cassette(path, path)
    assert path.read_bytes() == before
    with open_recording_or_cassette(path) as recording:
        write_cassette(recording, path, overwrite=True)
    assert path.read_bytes() == before
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_recording_is_not_taken_for_a_cassette(tmp_path: Path):
    """`open_recording_or_cassette` tells them by their first bytes."""
    path = tmp_path / "r.a2a.db"
    Writer(path, facts()).open()
    assert not is_cassette(path)
    assert is_cassette(tmp_path / "nothing") is False
    with open_recording_or_cassette(path) as recording:
        assert recording.count_rows().sessions == 1


def test_memory_of_export_and_import_is_bounded(tmp_path: Path):
    """Writing and reading a cassette of 16,000 frames takes no more memory than one of 4,000, but
    for filling caches.

    To hold the frames would take 16 MiB more.
    """
    script = """
import resource, sys
sys.path[:0] = sys.argv[2:]
from pathlib import Path
from support_recording import event_frames, facts
from a2a_proxy.recording.cassette.file import read_cassette, write_cassette
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.cassette.rewrite import rewrite_cassette
from a2a_proxy.recording.write.writer import Writer
folder = Path(sys.argv[1])
for rounds in (2, 8):
    writer = Writer(folder / f"{rounds}.db", facts())
    for seed in range(rounds):
        writer.write(event_frames(2000, seed=seed))
    writer.close()
    with Recording(folder / f"{rounds}.db") as recording:
        write_cassette(recording, folder / f"{rounds}.jsonl")
    read_cassette(folder / f"{rounds}.jsonl", folder / f"{rounds}.back.db")
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
    command = [sys.executable, "-c", script, str(tmp_path), *sys.path]
    early, late = map(
        int, subprocess.run(command, capture_output=True, check=True, timeout=120).stdout.split()
    )
    assert late - early < 10_000, "KiB"


_HIDDEN = (
    *(
        0x7F,
        *range(0x80, 0xA0),
        0xAD,
        0x61C,
        0x200B,
        0x200D,
        0x200E,
        0x200F,
        0x2028,
        0x2029,
        *range(0x202A, 0x202F),
    ),
    *(0x2060, *range(0x2066, 0x206A), 0xFEFF, 0xFFF9, 0xE0041),
)
"""Characters that act on a terminal, reorder a line or cannot be seen."""


def test_hidden_characters_are_escaped(tmp_path: Path) -> None:
    """Whatever peers have said, in payloads, members, headers, findings: escaped, and read back as
    it was."""
    hidden = "".join(map(chr, _HIDDEN))
    payloads = (
        json.dumps({f"k{hidden}": hidden}, ensure_ascii=False, separators=(",", ":")),
        f"text {hidden} é 🤖",
    )
    stored = [
        Frame(
            1,
            1,
            seq,
            Direction.TO_AGENT,
            FrameKind.REQUEST,
            STARTED,
            STARTED + 5,
            0,
            9,
            text.encode(),
            schema=schema,
        )
        for seq, (text, schema) in enumerate(zip(payloads, ("json", "text"), strict=True))
    ]
    exchange = Exchange(
        1,
        1,
        0,
        Binding.JSONRPC,
        STARTED,
        Dialect.V1_0,
        "SendMessage",
        request_headers=((b"X", b"\x9b31m"),),
    )
    found = Finding(
        "A2A-GEN-001", Severity.WARNING, STARTED + 7, f"a gap {hidden}", exchange=1, seq=1
    )
    db = open_private()
    writer = Writer.on_connection(db, facts())
    writer.write(
        stored, [found], Changes([Connection(1, "c:1", "l:1", "u:1", STARTED)], [exchange], [])
    )
    writer.finish(STARTED + 50)
    before = Recording.from_connection(db, "hidden")
    write_cassette(before, path := tmp_path / "h.a2a.jsonl", with_command=True)
    text = path.read_text("utf-8")
    assert not set(text) & set(hidden)
    assert "é 🤖" in text
    with open_recording_or_cassette(path) as back:
        assert _content(back) == _content(before)
    db.close()
    assert not rewrite_cassette(path, check=True).changed
    path.write_text(
        text.replace("\\u009b", "\x9b"), "utf-8"
    )  # an editor may show and write them unescaped
    assert rewrite_cassette(path).edited
    assert path.read_text("utf-8") == text
