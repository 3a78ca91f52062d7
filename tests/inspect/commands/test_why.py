"""`why`: causes of calls and tasks that did not end well."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from a2a_inspect.commands import why
from a2a_inspect.data import observed
from a2a_proxy.model.values import Severity
from a2a_proxy.model.wire import Chunk, ChunkKind, ConnectionFacts, Direction
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.rules.define.catalogue import all_rules
from a2a_proxy.rules.examples.conversation import (
    CLEAN_SEND,
    EventPause,
    grpc,
    http,
    rest_stream,
    rpc,
    rpc_error,
    rpc_stream,
)
from a2a_proxy.rules.examples.objects import agent_reply, chunk, send, snapshot, status, task
from a2a_proxy.rules.examples.script import MS, Script, run_together
from support_cli import run_here
from support_rules import record

_BEGIN = (snapshot(), status("WORKING"))
_HUNG = run_together(
    rpc_stream("SendStreamingMessage", send(), *_BEGIN, EventPause(14), finish="leave"),
    rpc("GetTask", {"id": "t1"}, task("COMPLETED", second=1), id=2),
    after=6000 * MS,
)
_UNANSWERED = rpc("SendMessage", send(id="m5"), finish="cut")
_LEFT = rpc_stream("SendStreamingMessage", send(id="m7"), *_BEGIN, finish="leave")
_FACTS = msgspec.json.encode(ConnectionFacts("127.0.0.1:5000", "127.0.0.1:9000", "http://a:8000"))
_REFUSED = rpc("SendMessage", send(), error=rpc_error(-32602, text="no parts"))


_NO_ANSWER_STEP = (
    "          next: look into the agent's log at that time; if the request is not there, into "
    "that of the proxy in front of it"
)


def _why(folder: Path, script: Script, *words: str) -> list[str]:
    folder.mkdir(exist_ok=True)
    record(folder / "r.db", script.make_chunks())
    done = run_here(folder, "why", folder / "r.db", *words)
    assert not done.code, done.err
    return done.lines


def test_most_important_first(tmp_path: Path) -> None:
    """Three lines each, and how to read more."""
    lines = _why(tmp_path, _REFUSED + _HUNG + _UNANSWERED + CLEAN_SEND)
    assert lines[:3] == [
        "  error   #4 SendMessage  no-answer  must act: agent",
        "          the agent's side reset the connection without an answer, after 10 ms",
        _NO_ANSWER_STEP,
    ]
    assert lines[3].startswith("  warning #2 SendStreamingMessage  end-not-sent  must act: agent")
    assert lines[6] == "  -       #1 SendMessage  agent-error"
    assert lines[7].endswith("INVALID_PARAMS -32602: no parts")
    assert lines[9:] == [
        "3 of 5 calls did not end well",
        f"the whole account of one: a2a-inspect why {tmp_path / 'r.db'} 4",
    ]


def test_equal_endings_are_one(tmp_path: Path) -> None:
    """A page of them would hide the others."""
    script = _UNANSWERED
    for number in range(11):
        script += rpc("SendMessage", send(id=f"n{number}"), finish="cut")
    lines = _why(tmp_path, script)
    assert lines[0].startswith("  error   #1, #2, #3, #4, #5, #6, #7, #8 and 4 more SendMessage")
    assert lines[3] == "12 of 12 calls did not end well"


def test_endings_after_other_times_are_one(tmp_path: Path) -> None:
    """Real calls never last equally long."""
    script = _UNANSWERED
    for number in range(3):
        message = send(id=f"n{number}")
        script += rpc("SendMessage", message, seconds=number / 5 + 0.1, finish="cut")
    for number in range(2):
        message = send(id=f"s{number}")
        script += rpc_stream("SendStreamingMessage", message, *_BEGIN, finish="open")
    lines = _why(tmp_path, script)
    assert lines[0] == "  error   #1, #2, #3, #4 SendMessage  no-answer  must act: agent"
    assert lines[1].endswith("without an answer, after 10 ms (the first)")
    assert lines[3] == "  -       #5, #6 SendStreamingMessage  not-recorded"
    assert lines[4].endswith("since status working (the first)")
    assert lines[6] == "4 of 6 calls did not end well; open or waiting for an answer: 2"


def test_several_sessions(tmp_path: Path) -> None:
    """The places can be typed."""
    record(tmp_path / "a.db", (_UNANSWERED + _LEFT).make_chunks())
    record(tmp_path / "b.db", (_UNANSWERED + CLEAN_SEND).make_chunks(), 2)
    files = [tmp_path / name for name in ("both.db", "a.db", "b.db")]
    assert not run_here(tmp_path, "merge", *files).code
    lines = run_here(tmp_path, "why", tmp_path / "both.db").lines
    assert lines[0].startswith("  error   #1:1, #2:1 SendMessage  no-answer")
    shown = next(line for line in lines if " --raw" in line)
    assert shown.endswith(f"a2a-inspect show {tmp_path / 'both.db'} 1:2.2 --raw")
    for line in (lines[-1], shown):
        words = line.partition("a2a-inspect ")[2].split()
        assert not run_here(tmp_path, *words).code


def test_operations_that_end_alike(tmp_path: Path) -> None:
    page = {
        "answer": "<h1>down</h1>",
        "status": 502,
        "reply_headers": {"Content-Type": "text/html"},
    }
    calls = [rpc(each, send(id=each), **page) for each in ("SendMessage", "SendStreamingMessage")]
    lines = _why(tmp_path, calls[0] + calls[1])
    assert lines[0].startswith(
        "  error   #1, #2 SendMessage, SendStreamingMessage  answered-between"
    )


def test_connection_without_a_call(tmp_path: Path) -> None:
    """TLS that was not established, and bytes that are not HTTP."""
    hello = [
        Chunk(1, ChunkKind.OPEN, Direction.TO_AGENT, 1, _FACTS),
        Chunk(1, ChunkKind.RESET, Direction.TO_AGENT, 2, b"TLS handshake failed: no; trust it"),
        Chunk(2, ChunkKind.OPEN, Direction.TO_AGENT, 3, _FACTS),
        Chunk(2, ChunkKind.DATA, Direction.TO_AGENT, 4, b"\x16\x03\x01\x02\0\x01\0\x01\xfc\3\3"),
    ]
    record(tmp_path / "r.db", hello)
    lines = run_here(tmp_path, "why", tmp_path / "r.db").lines
    assert lines[:3] == [
        "  warning connection 1  tls-failed  must act: client",
        "          TLS handshake failed: no",
        "          next: trust it",
    ]
    assert lines[3] == "  warning connection 2  wrong-protocol  must act: client"
    assert lines[6] == "no call was recorded"
    objects = [
        json.loads(line) for line in run_here(tmp_path, "why", tmp_path / "r.db", "--json").lines
    ]
    assert [(each["connection"], each["exchange"]) for each in objects] == [(1, None), (2, None)]


def test_call_that_is_open(tmp_path: Path) -> None:
    """It did not end, so it is listed."""
    waiting = rpc_stream("SendStreamingMessage", send(), *_BEGIN, finish="stop")
    lines = _why(tmp_path, CLEAN_SEND + waiting)
    assert lines[0] == "  -       #2 SendStreamingMessage  not-recorded"
    assert lines[1].strip().startswith("open when the proxy stopped: nothing from the agent for")
    assert lines[3] == "0 of 2 calls did not end well; open or waiting for an answer: 1"


def test_whole_account(tmp_path: Path) -> None:
    """With the frames that it rests on."""
    lines = _why(tmp_path, _HUNG, "1")
    assert lines[0] == "#1 SendStreamingMessage  jsonrpc 1.0  task t1"
    facts = {line[4:16].strip(): line[16:] for line in lines[2:-1]}
    assert facts["cause"].startswith("end-not-sent: ")
    assert facts["ended by"] == "the client, after 14.0 s"
    assert facts["received"].startswith("status working (#1.2)")
    assert facts["rests on"] == "#2 GetTask  ok  completed"
    assert lines[-1] == "  explain the cause: a2a-inspect rules A2A-END-016"


def test_calls_that_end_well(tmp_path: Path) -> None:
    assert _why(tmp_path, CLEAN_SEND) == ["every call ended well (1 call)"]
    done = run_here(tmp_path, "why", tmp_path / "r.db", "1")
    assert done.lines[0].endswith("ok; nothing shows that it did not end well")


@pytest.mark.parametrize("binding", ["jsonrpc", "rest"])
def test_call_that_ended_well_and_lost_something(
    tmp_path: Path, binding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The findings that no ending explains: what, who must act, what to do."""
    chunks = chunk("It rains "), chunk("in Oslo ", append=True), chunk("today", lastChunk=True)
    events = (*_BEGIN, *chunks, status("COMPLETED", second=1))
    path = tmp_path / "r.db"
    if binding == "rest":
        lost = rest_stream("POST", "/message:stream", send(), *events)
    else:
        lost = rpc_stream("SendStreamingMessage", send(), *events)
    lines = _why(tmp_path, lost + rpc("SendMessage", send(id="m2"), agent_reply()))
    assert lines[:3] == [
        "every call ended well (2 calls)",
        f"what the rules found besides, in full: a2a-inspect check {path}",
        "  warning #1.5 SendStreamingMessage  A2A-ART-004  must act: agent",
    ]
    assert "replaces the content" in lines[3]
    assert lines[4].endswith("continues the artifact; a2a-inspect rules A2A-ART-004")
    account = run_here(tmp_path, "why", path, "1").lines
    assert account[0].endswith("ok; nothing shows that it did not end well")
    assert account[1:] == lines[1:]
    with monkeypatch.context() as patched:  # judging a session again takes its whole time
        patched.setattr(why, "recheck_session", None)
        assert run_here(tmp_path, "why", path, "1").lines == account
    assert len(run_here(tmp_path, "why", path, "2").lines) == 1
    (line,) = run_here(tmp_path, "why", path, "--json").lines
    assert json.loads(line)["finding"]["rule"] == "A2A-ART-004"


def test_long_session_is_not_judged_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The findings that are stored are the same, without the time of judging all frames."""
    lines = _why(tmp_path, all_rules()["A2A-SSE-016"].flagged)
    monkeypatch.setattr(why, "recheck_session", None)
    monkeypatch.setattr(why, "_MAX_JUDGED_FRAMES", 2)
    assert run_here(tmp_path, "why", tmp_path / "r.db").lines == lines


def test_rules_that_are_not_listed_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(why, "_MAX_RULES", 1)
    lost = rpc_stream(
        "SendStreamingMessage",
        send(),
        *_BEGIN,
        chunk("a"),
        chunk("b", append=True),
        chunk("c"),
        status("COMPLETED", second=1),
        status("WORKING", second=2),
    )
    lines = _why(tmp_path, lost)
    assert re.fullmatch(r"  and \d+ more rules?: a2a-inspect check .*r.db", lines[-1])
    assert sum("  must act: " in line for line in lines[2:]) == 1


def test_tasks_of_alike_endings_are_counted(tmp_path: Path) -> None:
    """The next step names the first task; of one task, or of calls without one, no number."""
    one = rpc_stream("SendStreamingMessage", send(), *_BEGIN, finish="cut")
    assert " for t1; " in _why(tmp_path / "one", one + one)[2]
    other = status("WORKING", second=1)
    other["statusUpdate"]["taskId"] = "t2"
    two = rpc_stream("SendStreamingMessage", send(), snapshot(id="t2"), other, finish="cut")
    assert " for t1 and 1 more; " in _why(tmp_path / "two", one + two)[2]


def test_explained_finding_is_not_listed(tmp_path: Path) -> None:
    """`check` does not count it either."""
    lines = _why(tmp_path, all_rules()["A2A-END-011"].flagged)
    assert lines[0].startswith("  error   #1 SendStreamingMessage  wrong-container")
    assert lines[-1].startswith("the whole account of one: ")


def test_information_where_nothing_failed(tmp_path: Path) -> None:
    """It may be all that is known of a client that found no event."""
    lines = _why(tmp_path, all_rules()["A2A-SSE-016"].flagged)
    assert lines[2].startswith("  info    #1.2 SendStreamingMessage  A2A-SSE-016")
    assert not any("A2A-SSE-016" in line for line in _why(tmp_path / "b", _UNANSWERED))


def test_json(tmp_path: Path) -> None:
    """One object for each, with stable names."""
    (line,) = _why(tmp_path, _UNANSWERED, "--json")
    value = json.loads(line)
    assert (value["session"], value["exchange"], value["operation"]) == (1, 1, "SendMessage")
    assert value["ending"]["cause"] == "no-answer"
    assert value["ending"]["severity"] == "error"
    assert value["ending"]["evidence"] == ["#1.1"]


def test_show_has_it(tmp_path: Path) -> None:
    """`show` has its line below the call, and the whole ending as JSON."""
    record(path := tmp_path / "r.db", (_UNANSWERED + CLEAN_SEND).make_chunks())
    tree = run_here(tmp_path, "show", path).lines
    place = next(at for at, line in enumerate(tree) if "#1 SendMessage" in line)
    assert tree[place + 1].strip() == (
        "no-answer: the agent's side reset the connection without an answer, after 10 ms"
    )
    found = map(json.loads, run_here(tmp_path, "show", path, "--json").lines)
    causes = [each["ending"] and each["ending"]["cause"] for each in found if "ending" in each]
    assert causes == ["no-answer", None]


def test_ls_has_it(tmp_path: Path) -> None:
    """A column, a member of the JSON, and a field of filters; of an error its own words."""
    record(path := tmp_path / "r.db", (_UNANSWERED + _REFUSED + CLEAN_SEND).make_chunks())
    head, *lines = run_here(tmp_path, "ls", path).lines
    assert head.split()[-1] == "ENDING"
    assert lines[0].endswith(
        "no-answer: the agent's side reset the connection without an answer, after 10 ms"
    )
    assert lines[1].endswith("  INVALID_PARAMS -32602: no parts")
    assert len(lines[2].split()) < len(head.split())
    found = list(map(json.loads, run_here(tmp_path, "ls", path, "--json").lines))
    assert [each["ending"] and each["ending"]["cause"] for each in found] == [
        "no-answer",
        "agent-error",
        None,
    ]
    assert len(run_here(tmp_path, "ls", path, "-f", "ending:no-answer").lines) == 2
    assert len(run_here(tmp_path, "ls", path, "-f", "ending:*").lines) == 3


def test_errors_are_shown_once(tmp_path: Path) -> None:
    """An ending that says no more than the error is no line of its own."""
    record(path := tmp_path / "r.db", _REFUSED.make_chunks())
    tree = run_here(tmp_path, "show", path)
    assert "agent-error" not in tree.out


def test_filter_and_unknown_place(tmp_path: Path) -> None:
    lines = _why(tmp_path, _UNANSWERED + _HUNG, "-f", "op:SendMessage")
    assert lines[3] == "1 of 1 call did not end well"
    assert run_here(tmp_path, "why", tmp_path / "r.db", "99").code == 2
    assert "no exchange 99" in run_here(tmp_path, "why", tmp_path / "r.db", "99").err.lower()


@pytest.mark.parametrize("binding", ["jsonrpc", "rest"])
def test_object_in_an_event_counts_once(tmp_path: Path, binding: str) -> None:
    """GetTask answered by an event: that the object lacks the wrapper of events follows from it."""
    options = {"reply_headers": {"Content-Type": "text/event-stream"}}
    value: object = task("WORKING")
    if binding == "rest":
        call = http("GET", "/tasks/t1", answer=f"data: {json.dumps(value)}\n\n", **options)
    else:
        asked = {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "t1"}}
        event = json.dumps({"jsonrpc": "2.0", "id": 1, "result": value})
        call = http("POST", "/", json.dumps(asked), answer=f"data: {event}\n\n", **options)
    record(tmp_path / "r.db", call.make_chunks())
    done = run_here(tmp_path, "check", tmp_path / "r.db")
    assert "found: 1 error" in done.out


def test_ending_hides_no_error_of_another_call(tmp_path: Path) -> None:
    """A stream that is cut is a warning; the missing status of a later call is an error."""
    cut = grpc("SendStreamingMessage", send(), snapshot(), status("WORKING"), finish="cut")
    later = grpc("GetTask", {"id": "t1"}, task("COMPLETED", second=1), status=None)
    record(tmp_path / "r.db", (cut + later).make_chunks())
    done = run_here(tmp_path, "check", tmp_path / "r.db")
    assert (done.code, "found: 1 error" in done.out) == (1, True)


@pytest.mark.parametrize(
    ("following", "ending"),
    [
        ("A2A-LAT-005", "A2A-END-027"),
        ("A2A-STREAM-007", "A2A-END-018"),
        ("A2A-STREAM-009", "A2A-END-005"),
        ("A2A-GRPC-002", "A2A-END-007"),
        ("A2A-VER-005", "A2A-END-010"),
        ("A2A-RPC-008", "A2A-END-030"),
        ("A2A-GRPC-005", "A2A-END-030"),
        ("A2A-GRPC-007", "A2A-END-030"),
        ("A2A-GRPC-008", "A2A-END-030"),
    ],
)
def test_check_counts_an_ending_once(tmp_path: Path, following: str, ending: str) -> None:
    """The finding that follows from it is listed under it; SARIF leaves it out."""
    rule = all_rules()[ending]
    script = all_rules()[following].flagged if ending != "A2A-END-027" else rule.flagged
    record(tmp_path / "r.db", script.make_chunks())
    check = ("check", tmp_path / "r.db", "--fail-on", "info")
    done = run_here(tmp_path, *check)
    assert done.code == 1
    counts = [int(each is rule.severity) for each in reversed(Severity)]
    found = [json.loads(each) for each in run_here(tmp_path, *check, "--format", "json").lines]
    assert [found[-1][each] for each in ("error", "warning", "info")] == counts
    parent = next(n for n, line in enumerate(done.lines) if ending in line)
    assert any(line.startswith("      ") and following in line for line in done.lines[parent + 1 :])
    sarif = json.loads(run_here(tmp_path, *check, "--format", "sarif").out)
    assert [each["ruleId"] for each in sarif["runs"][0]["results"]] == [ending]
    assert run_here(tmp_path, *check, "--format", "junit").out.count("<failure") == 1
    assert run_here(tmp_path, *check, "--select", following).code == 1


def test_unanswered_call_fails_the_check(tmp_path: Path) -> None:
    record(tmp_path / "r.db", (_UNANSWERED + CLEAN_SEND).make_chunks())
    assert run_here(tmp_path, "check", tmp_path / "r.db").code == 1
    assert run_here(tmp_path, "check", tmp_path / "r.db", "--ignore", "END").code == 0


def test_question_of_a_task_that_failed_is_listed_once(tmp_path: Path) -> None:
    """The answer went astray; a later GetTask shows the same question."""
    astray = all_rules()["A2A-END-026"].flagged
    asked = rpc("GetTask", {"id": "t1"}, task("INPUT_REQUIRED"), id=3)
    lines = _why(tmp_path, astray + asked)
    assert lines[0].startswith("  warning #1 SendMessage  answered-elsewhere")
    assert not any("question-open" in line for line in lines)


def test_call_of_a_running_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its silence counts until now, not until the last bytes, wherever it is shown."""
    waiting = rpc("SendMessage", send(), seconds=1, finish="open")
    record(path := tmp_path / "r.db", (CLEAN_SEND + waiting).make_chunks())
    with Recording(path) as recording:
        (session,) = recording.read_sessions()
    late = session.ended + 40_000_000_000
    monkeypatch.setattr(observed, "is_being_recorded", lambda _: True)
    monkeypatch.setattr(observed, "time", SimpleNamespace(time_ns=lambda: late))
    db = sqlite3.connect(tmp_path / "r.db")
    with db:
        db.execute("UPDATE session SET ended = NULL")
    db.close()
    lines = run_here(tmp_path, "why", tmp_path / "r.db").lines
    assert lines[0].endswith("agent-silent  must act: agent")
    assert lines[1].strip().startswith("nothing from the agent for 4")
    assert "and the call is open" in lines[1]
    assert "agent-silent: nothing from the agent for 4" in run_here(tmp_path, "ls", path).out
    assert "agent-silent: nothing from the agent for 4" in run_here(tmp_path, "show", path).out
    assert run_here(tmp_path, "ls", path, "-f", "ending:agent-silent", "--json").out
