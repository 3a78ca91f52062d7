"""`ls` and `show`: readable, lazy, safe on a terminal, stable as JSON."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import msgspec
import pytest

from a2a_inspect.commands.show import show_conversation
from a2a_inspect.commands.show_selection import ShowSelection
from a2a_proxy.model.errors import UserError
from a2a_proxy.model.values import ConnectionTls, Frame
from a2a_proxy.model.wire import (
    CertificateFacts,
    Chunk,
    ChunkKind,
    ClientProcess,
    ConnectionFacts,
    DialFacts,
    Direction,
    TlsFacts,
)
from a2a_proxy.recording.cassette.file import open_recording_or_cassette, write_cassette
from a2a_proxy.recording.read.conversations import read_conversations
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.write.writer import Writer
from support_cli import SECONDS, environment, program, run, run_here
from support_conversation import Grpc, Http
from support_observer import (
    START,
    fresh,
    grpc_call,
    interleaved,
    opening,
    scripted,
    streaming,
    unary,
)
from support_recording import facts

ACTS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""What could act on a terminal."""
EVIL = "\x1b]0;owned\x07\x9b31m\u202e\n\r\x00"


def record(path: Path, chunks: list[Chunk]) -> Path:
    """The recording of a session."""
    observer = fresh()
    out: list[object] = []
    for chunk in chunks:
        observer.feed(chunk, out)  # type: ignore[arg-type]
    session = facts(1, started=START, listens=("127.0.0.1:9000",), upstreams=("agent:8000",))
    writer = Writer(path, session)
    findings = [each for each in out if not isinstance(each, Frame)]
    writer.write(
        [each for each in out if isinstance(each, Frame)], findings, observer.pop_changes()
    )  # type: ignore[arg-type]
    writer.finish(chunks[-1].at)
    return path


def test_an_answer_before_the_end_of_its_request(tmp_path: Path) -> None:
    """It stands where its bytes were, and words say why it has no latency."""
    script = (
        Http()
        .call("GetTask", {"id": "t-1"}, A2A_Version="1.0")
        .result({"id": "t-1", "status": {"state": 3}})
    )
    (what, way, request), answer = script.steps
    script.steps[:] = [(what, way, request[:-9]), answer, (what, way, request[-9:])]
    path = record(tmp_path / "r.db", scripted(script))
    assert " early" in run_here(tmp_path, "ls", path).out
    lines = run_here(tmp_path, "show", path).lines
    (head,) = (index for index, line in enumerate(lines) if "#1 GetTask" in line)
    assert lines[head].endswith("  ok  answered before the request body had arrived")
    assert [line.split()[2] for line in lines[head + 1 : head + 3]] == ["<--", "us"]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    talks = interleaved(
        scripted(streaming("t-1"), 1), scripted(unary(), 2), scripted(grpc_call(), 3)
    )
    return record(tmp_path_factory.mktemp("small") / "small.db", talks)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every text that a peer may choose has characters that act on a terminal."""

    def bad(tag: str) -> str:
        return tag + EVIL

    message = {
        "messageId": bad("m"),
        "contextId": bad("c"),
        "role": "ROLE_USER",
        "parts": [{"text": bad("hi")}],
    }
    http = Http().call("SendMessage", {"message": message}, rpc_id=bad("id"))
    http.answer(
        {"jsonrpc": "2.0", "id": bad("id"), "error": {"code": -32001, "message": bad("error")}}
    )
    http.call(bad("method"), {"x": [bad("y"), "\ud800"]}).answer(
        EVIL.encode(), content_type="text/plain"
    )
    http.request("GET /\x1b[2J").answer({"a": EVIL}, "200 \x1b[31mOK")
    artifact = {
        "artifactId": bad("a"),
        "name": bad("n"),
        "parts": [{"text": EVIL}, {"data": {bad("k"): 1}}],
    }
    status = {"state": bad("TASK_STATE_X"), "message": message}
    stream = Http().call("SendStreamingMessage", {"message": message}).stream()
    stream.rpc_event(
        {"task": {"id": bad("t"), "contextId": bad("x"), "status": status, "artifacts": [artifact]}}
    )
    stream.rpc_event(
        {"artifactUpdate": {"taskId": bad("t"), "contextId": bad("x"), "artifact": artifact}}
    )
    stream.chunk(b": comment \x1b[31m\n\n").chunk(b"event: \x1b[32m\ndata: \x1b[31m\n\n").done()
    grpc = Grpc().open("/lf.a2a.v1.A2AService/\x1b[31mGetTask").send(b"\xff\x1b\x07")
    grpc.trailers_only(5, grpc_message="no\x1b[31m such")
    talks = interleaved(scripted(http, 1), scripted(stream, 2), scripted(grpc, 3))
    return record(tmp_path_factory.mktemp("hostile") / "hostile.db", talks)


def shown_lines(path: Path, *words: object) -> list[str]:
    """What a command prints; it must succeed."""
    done = run_here(path.parent / "state", *words, TZ="UTC")
    assert (done.code, done.err) == (0, "")
    return done.lines


def test_ls(small: Path) -> None:
    """A line per exchange under a heading, columns in line."""
    lines = shown_lines(small, "ls", small)
    assert re.split(" {2,}", lines[0])[:6] == [
        "#",
        "TIME",
        "OUTCOME",
        "FOUND",
        "OPERATION",
        "BINDING",
    ]
    assert [re.split(" {2,}", line)[:6] for line in lines[1:]] == [
        ["1", "22:13:20.000", "ok", "!2 I", "SendStreamingMessage", "jsonrpc 1.0"],
        ["2", "22:13:20.000", "ok", "!1 I", "SendMessage", "jsonrpc 1.0"],
        ["3", "22:13:20.000", "error", "!1 E", "GetTask", "grpc 1.0"],
    ]
    assert "submitted > working > completed" in lines[1]
    assert lines[3].endswith("NOT_FOUND: no such task")


def test_ls_tasks(small: Path) -> None:
    """A line per task."""
    lines = shown_lines(small, "ls", small, "--tasks")
    assert {line.split()[0]: line.split()[1] for line in lines[1:]} == {
        "t-1": "completed",
        "t-u": "input-required",
    }


def test_ls_json(small: Path) -> None:
    """One object a line, with stable names."""
    exchanges = [json.loads(line) for line in shown_lines(small, "ls", small, "--json")]
    assert [each["operation"] for each in exchanges] == [
        "SendStreamingMessage",
        "SendMessage",
        "GetTask",
    ]
    assert exchanges[0]["states"] == ["submitted", "working", "completed"]
    assert exchanges[2]["grpc_status"] == 5
    tasks = {
        each["task_id"]: each
        for each in map(json.loads, shown_lines(small, "ls", small, "--json", "--tasks"))
    }
    assert tasks["t-1"]["artifacts"] == [
        {"artifact_id": "a", "name": "", "chunks": 3, "parts": 3, "bytes": 21, "complete": True}
    ]


def test_show_is_a_tree(small: Path) -> None:
    """Session, context, task, exchange, frame: each one deeper."""
    lines = shown_lines(small, "show", small)
    assert lines[0].startswith(
        "session 1  2023-11-14 22:13:20  127.0.0.1:9000 -> agent:8000  capture complete"
    )
    depth = {re.split(" +", line.strip())[0]: len(line) - len(line.lstrip()) for line in lines}
    assert depth["session"] < depth["context"] < depth["task"] < depth["#1"] < depth[".0"]
    arrows = [
        re.sub(r"^\s+\.\d+\s+\S+( [mu]s)?", "", line).split()[0]
        for line in lines
        if "-->" in line or "<--" in line
    ]
    assert arrows[:7] == ["-->", "<--", "<--", "<--", "<--", "<--", "<--"]
    assert [line for line in lines if '"part 1 "' in line]


@pytest.mark.parametrize("word", ["2", "#2", "t-u"])
def test_show_one_exchange(small: Path, word: str) -> None:
    """By number or by task id, with the payload decoded."""
    text = "\n".join(shown_lines(small, "show", small, word, "--payloads"))
    assert "#2 SendMessage" in text
    assert "#1 " not in text
    assert '"state": "TASK_STATE_INPUT_REQUIRED"' in text
    assert "A2A-Version: 1.0" in text


def test_show_groups_by_agent_and_task(tmp_path: Path) -> None:
    """Two agents have tasks of the same id in the same context."""
    first = scripted(unary())
    start = first[-1].at
    second = [*opening(2, start, "other:8000"), *scripted(unary(), 2, start)[2:]]
    path = record(tmp_path / "two.a2a.db", [*first, *second])
    words = [line.split()[0] for line in shown_lines(path, "show", path)]
    assert [each for each in words if each in ("context", "task", "#1", "#2")] == [
        "context",
        "task",
        "#1",
        "task",
        "#2",
    ]


def test_show_names_edits_of_the_proxy(tmp_path: Path) -> None:
    chunks = scripted(unary())
    edit = b'{"kind":"traceparent","stream":1,"after":"00-1-2-01"}'
    chunks.insert(3, Chunk(1, ChunkKind.EDIT, Direction.TO_AGENT, START, edit))
    path = record(tmp_path / "sent.a2a.db", chunks)
    line = "--> traceparent: 00-1-2-01 (added by the proxy)"
    assert [each.strip() for each in shown_lines(path, "show", path, "1", "--payloads")].count(
        line
    ) == 1
    assert (
        json.loads(shown_lines(path, "show", path, "1", "--json")[0])["sent_traceparent"]
        == "00-1-2-01"
    )


def test_show_of_a_missing_place_is_an_error(small: Path) -> None:
    """Two lines, exit code 2."""
    done = run(small.parent / "state", "a2a-inspect", "show", small, "99")
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        f"a2a-inspect: error: {small.name} has no exchange 99; it has #1 to #3\n"
        f"a2a-inspect: hint: list the exchanges: a2a-inspect ls {small}\n"
    )


def test_show_json(small: Path) -> None:
    """Frames with decoded payloads, whatever the binding."""
    (shown,) = [json.loads(line) for line in shown_lines(small, "show", small, "3", "--json")]
    request, _, end = shown["frames"]
    assert (request["kind"], request["direction"], request["payload"]) == (
        "request",
        "to_agent",
        {"id": "t-g"},
    )
    assert (end["kind"], end["error_code"]) == ("end", 5)
    assert ["a2a-version", "1.0"] in shown["request_headers"]


@pytest.mark.parametrize(
    "words",
    [
        ["ls"],
        ["ls", "--tasks"],
        ["ls", "--json"],
        ["show"],
        ["show", "-p"],
        ["show", "--raw"],
        ["show", "--json"],
    ],
)
def test_hostile_text_is_shown_as_symbols(hostile: Path, words: list[str]) -> None:
    """No control or direction mark of a peer reaches the terminal, in no command."""
    lines = shown_lines(hostile, words[0], hostile, *words[1:])
    assert len(lines) >= 2
    assert not [ascii(line) for line in lines if ACTS.search(line)]


def test_a_long_exchange_is_printed_incrementally(tmp_path: Path) -> None:
    """Of 5,000 frames, more than a pipe holds, the first lines come, and the reader may go: code 0,
    no traceback."""
    path = record(tmp_path / "long.db", scripted(streaming("t-1", chunks=5_000)))
    line = [program("a2a-inspect"), "show", str(path)]
    env = environment(tmp_path / "state")
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert b"session 1" in process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(SECONDS) == 0
    assert len(shown_lines(path, "show", path)) > 5_000


def test_show_numbers_the_frames(small: Path) -> None:
    """The numbers are those of `--fault "drop #2.4"`; the arrows stay in one column."""
    frames = [
        line for line in shown_lines(small, "show", small, "1") if "--> " in line or "<-- " in line
    ]
    assert [line.split()[0] for line in frames] == [f".{number}" for number in range(len(frames))]
    assert len({max(line.find("-->"), line.find("<--")) for line in frames}) == 1


def test_show_reads_frames_page_by_page(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first line is there before the last frame has been read."""
    from a2a_inspect.commands import show
    from a2a_inspect.data.finding_words import RuleMeanings

    read: list[int] = []
    frames = Recording.read_frames

    def counted(self: Recording, *arguments: object, **more: object) -> object:
        for row in frames(self, *arguments, **more):  # type: ignore[arg-type]
            read.append(row.id)
            yield row

    monkeypatch.setattr(Recording, "read_frames", counted)
    with Recording(small) as stored:
        (session,) = stored.read_sessions()
        lines = show._session_tree_lines(
            stored, session, list(stored.read_exchanges()), show.ShowSelection(), RuleMeanings(), {}
        )
        while "-->" not in next(lines):
            pass
        assert len(read) == 1


def test_the_newest_recording_is_the_default(small: Path, tmp_path: Path) -> None:
    """Without a name; if there is no recording, the hint says how to create one."""
    none = run(tmp_path / "state", "a2a-inspect", "ls")
    assert (none.code, none.err.splitlines()[1]) == (
        2,
        "a2a-inspect: hint: create one: a2a-proxy demo",
    )
    (tmp_path / "state" / "recordings").mkdir(parents=True, exist_ok=True)
    (tmp_path / "state" / "recordings" / "a2a-20260101-000000.000.a2a.db").write_bytes(
        small.read_bytes()
    )
    assert len(run(tmp_path / "state", "a2a-inspect", "ls").lines) == 4
    assert "#2 SendMessage" in run_here(tmp_path / "state", "show", "2").out


def test_a_cassette_is_read_like_a_recording(small: Path, tmp_path: Path) -> None:
    """`ls` and `show` read both, and say the same."""
    tape = tmp_path / "small.a2a.jsonl"
    with Recording(small) as stored:
        write_cassette(stored, tape)
    for words in (["ls"], ["ls", "--json"], ["show", "--payloads"]):
        assert shown_lines(small, words[0], tape, *words[1:]) == shown_lines(
            small, words[0], small, *words[1:]
        )


def test_bad_recordings(small: Path, tmp_path: Path) -> None:
    """Missing, foreign, cut short, a folder, a mistyped command: two lines, exit code 2, no
    traceback."""
    (tmp_path / "text.db").write_text("my diary")
    (tmp_path / "cut.db").write_bytes(small.read_bytes()[:6000])
    (tmp_path / "cut.a2a.jsonl").write_text('{"a2a_cassette": 1')
    cases = {
        "none.db": "there is no recording",
        "text.db": "is not a recording",
        "cut.db": "",
        "cut.a2a.jsonl": "",
        ".": "is not a file",
    }
    for name, error in cases.items():
        for command in ("ls", "show"):
            done = run_here(tmp_path / "state", command, tmp_path / name)
            lines = done.err.splitlines()
            assert (done.code, done.out, len(lines)) == (2, "", 2), (name, done.out, done.err)
            assert lines[0].startswith("a2a-inspect: error: "), done.err
            assert error in lines[0]
            assert lines[1].startswith("a2a-inspect: hint: ")
    wrong = run(tmp_path / "state", "a2a-inspect", "lss")
    assert wrong.code == 2
    assert wrong.err.startswith("a2a-inspect: error: no such command 'lss'")


def test_show_one_frame(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A frame is addressed as in findings, also together with exchanges; a missing one is an
    error."""

    def shown(*words: str) -> list[list[int]]:
        with Recording(small) as recording:
            show_conversation(recording, ShowSelection(words), as_json=True)
        return [
            [frame["seq"] for frame in json.loads(line)["frames"]]
            for line in capsys.readouterr().out.splitlines()
        ]

    whole = shown("1", "2")
    assert shown("#1.2") == [[2]]
    assert shown("1:1.2", "1.0", "2") == [[0, 2], whole[1]]
    assert shown("1.2", "1") == whole[:1]
    with pytest.raises(UserError, match=r"has no frame 1\.99"):
        shown("1.99")


def test_tls_handshakes_are_shown(tmp_path: Path) -> None:
    """From the journal's records through the recording, its cassette, the tree and JSON; another
    host is named."""
    certificate = CertificateFacts("ab" * 32, ("agent\x1b",), "2027-02-20T16:57:57Z", verified=True)
    near = TlsFacts("TLSv1.3", "TLS_AES_256_GCM_SHA384", "h2", "other.example", certificate)
    far = TlsFacts("TLSv1.2", "ECDHE", server=certificate)
    call = scripted(streaming("t-1"))
    opened, dialled = (
        msgspec.json.decode(call[at].data, type=kind)
        for at, kind in ((0, ConnectionFacts), (1, DialFacts))
    )
    for at, each in (
        (0, msgspec.structs.replace(opened, tls=near)),
        (1, msgspec.structs.replace(dialled, tls=far)),
    ):
        call[at] = msgspec.structs.replace(call[at], data=msgspec.json.encode(each))
    path = record(tmp_path / "run.a2a.db", call)
    host = "the call is for agent, the TLS handshake for other.example"
    tree, detailed = shown_lines(path, "show", path), shown_lines(path, "show", "1", path)
    assert [line.strip() for line in tree if "TLS" in line] == [host]
    assert [line.strip().partition(" TLSv")[0] for line in detailed if "TLS" in line] == [
        *("client's TLS:", "agent's TLS:"),
        host,
    ]
    assert any("agent␛, until 2027-02-20, verified" in line for line in detailed)
    (shown,) = (json.loads(each)["tls"] for each in shown_lines(path, "show", path, "--json"))
    tls = ConnectionTls(near, far)
    assert msgspec.convert(shown, ConnectionTls) == tls
    with Recording(path) as recording:
        write_cassette(recording, tmp_path / "run.a2a.jsonl")
    for name in (path, tmp_path / "run.a2a.jsonl"):
        with open_recording_or_cassette(name) as recording:
            assert [row.connection.tls for row in recording.read_connections()] == [tls]


DEMO = Path(__file__).resolve().parents[3] / "recordings" / "demo.a2a.jsonl"


def test_ls_marks_exchanges_with_findings(tmp_path: Path) -> None:
    """The column of the screen, also of several recordings; an `ok` call with an error finding is
    marked."""
    lossy = DEMO.with_name("lossy.a2a.jsonl")
    one = run_here(tmp_path, "ls", lossy).lines
    assert [re.split(" {2,}", line)[2:5] for line in one[8:10]] == [
        ["ok", "!1 E", "SendStreamingMessage"],
        ["ok", "!1 W", "GetTask"],
    ]
    both = run_here(tmp_path, "ls", DEMO, lossy).lines
    marks = [
        re.split(" {2,}", line)[4] for line in both if line.startswith("lossy") and "!" in line
    ]
    assert marks == ["!1 E", "!1 W"]


def test_ls_err_without_a_failed_call_names_the_filter_of_findings(tmp_path: Path) -> None:
    lossy = DEMO.with_name("lossy.a2a.jsonl")
    done = run_here(tmp_path, "ls", lossy, "-f", "err op:SendStreamingMessage")
    assert done.err.splitlines() == [
        "nothing matches err op:SendStreamingMessage",
        "1 exchange has findings of severity error: -f 'sev:error op:SendStreamingMessage'",
    ]
    several = run_here(tmp_path, "ls", lossy, DEMO, "-f", "err op:SendStreamingMessage")
    assert several.err == done.err
    clean = run_here(tmp_path, "ls", DEMO, "-f", "err op:SendStreamingMessage")
    assert clean.err == "nothing matches err op:SendStreamingMessage\n"


def test_ls_prints_the_chosen_columns(tmp_path: Path) -> None:
    """Titles, fields, headers and paths after the number; a filter leaves rows out; nothing is cut
    in a pipe."""
    words = "operation,took,req.header:content-type,$.params.message.parts[0].text,found,state"
    done = run_here(tmp_path, "ls", DEMO, "--columns", words, "-f", "op:Send*")
    assert done.code == 0
    assert done.lines[0].split() == [
        *(
            "#",
            "OPERATION",
            "TOOK",
            "req.content-type",
            "$.params.message.parts[0].text",
            "FOUND",
            "STATE",
        ),
    ]
    assert [line.split()[0] for line in done.lines[1:]] == ["2", "3", "4", "6"]
    assert "submitted, working, completed" in done.lines[1]
    assert (
        run_here(tmp_path, "ls", DEMO, "--columns", "").lines
        == run_here(tmp_path, "ls", DEMO).lines
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--columns", "ttfee"),
            'ttfee is not a column: unknown field "ttfee"; did you mean "ttfe"?',
        ),
        (("--columns", "ttfe", "--json"), "--columns is about the list of exchanges"),
        (("--columns", "ttfe", "--tasks"), "--columns is about the list of exchanges"),
        (("--columns", "ttfe", "--explain"), "--explain can only be combined with --filter"),
        ((str(DEMO), "--columns", "ttfe"), "--columns takes one recording"),
    ],
)
def test_columns_that_ls_cannot_print(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    """One line says why."""
    done = run_here(tmp_path, "ls", DEMO, *words)
    assert done.code == 2
    assert message in done.err


def test_the_process_that_made_a_call_is_shown(tmp_path: Path) -> None:
    """From the journal's record through the recording, its cassette, the tree, JSON and the
    segments."""
    planner = ClientProcess(71, "planner\x1b", (8000, 8001))
    agents = ("127.0.0.1:8000", "127.0.0.1:8002")
    calls = [scripted(streaming(f"t-{number}"), number) for number in (1, 2)]
    for call, upstream in zip(calls, agents, strict=True):
        opened = msgspec.json.decode(call[0].data, type=ConnectionFacts)
        call[0] = msgspec.structs.replace(
            call[0], data=msgspec.json.encode(msgspec.structs.replace(opened, upstream=upstream))
        )
    opened = ConnectionFacts("127.0.0.1:5002", "127.0.0.1:9000", agents[1], client_process=planner)
    calls[1][0] = msgspec.structs.replace(calls[1][0], data=msgspec.json.encode(opened))
    path = record(tmp_path / "run.a2a.db", interleaved(*calls))
    line = next(line for line in shown_lines(path, "show", path) if "#2 SendStreaming" in line)
    assert f"  from planner␛ (pid 71) to {agents[1]}  " in line
    assert "  from " not in next(
        line for line in shown_lines(path, "show", path) if "#1 SendStreaming" in line
    )
    shown = [
        json.loads(each)["client_process"] for each in shown_lines(path, "show", path, "--json")
    ]
    assert shown == [None, {"pid": 71, "name": "planner\x1b", "ports": [8000, 8001]}]
    with Recording(path) as recording:
        write_cassette(recording, tmp_path / "run.a2a.jsonl")
        (session,) = recording.read_sessions()
        (rebuilt,) = read_conversations(recording, session).handoffs
        (live,) = (row.handoff for row in recording.read_handoffs(session.id))
    assert live == rebuilt
    assert (live.kind, live.evidence, live.agent, live.to_agent) == (
        "delegation",
        "process",
        *agents,
    )
    with open_recording_or_cassette(tmp_path / "run.a2a.jsonl") as recording:
        assert [row.connection.client_process for row in recording.read_connections()] == [
            None,
            planner,
        ]
