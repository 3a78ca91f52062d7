"""`a2a-proxy drive`, from a recording to a verdict, with the agent of the demo."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from junitparser import JUnitXml

from a2a_proxy.capture import file_layout
from a2a_proxy.capture.file_layout import SessionFile
from a2a_proxy.cli.drive import run as command
from a2a_proxy.cli.drive.options import HEADERS_VARIABLE, DriveCommandOptions, drive_command_options
from a2a_proxy.cli.drive.run import run_drive
from a2a_proxy.model.errors import UserError
from a2a_proxy.recording.cassette.file import read_cassette
from a2a_proxy.recording.read.reader import Recording
from support_drive import SAMPLES, Ports, demo_agent
from support_inspect import writer
from support_recording import STARTED

STORY = Path(__file__).resolve().parents[2] / "peers" / "stdio" / "story.py"
SECRET = "Bearer of-the-live-agent"
OTHER_SECRET = "not-to-be-seen-anywhere"
_DEFAULTS: dict[str, Any] = {
    "header": (),
    "strict": False,
    "shape": False,
    "ignore": (),
    "speed": "instant",
    "timeout": 30.0,
    "binding": None,
    "dialect": None,
    "command": (),
}


def options(sample: str = "demo", **more: Any) -> DriveCommandOptions:
    """As the command line makes them."""
    recording = SAMPLES / f"{sample}.a2a.jsonl"
    return drive_command_options(**{**_DEFAULTS, "recording": recording, "upstream": "", **more})


@pytest.fixture(scope="module")
def agent() -> Iterator[Ports]:
    with demo_agent() as ports:
        yield ports


@pytest.fixture
def drive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agent: Ports) -> Callable[..., int]:
    """Drives the demo's agent; the exit code."""
    monkeypatch.setenv("A2A_PROXY_STATE", str(tmp_path / "state"))
    return lambda sample="demo", **more: run_drive(options(sample, **{**agent.words, **more}))


def test_driving_the_same_agent_finds_no_difference(
    drive: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On three bindings; the recording of the drive holds the label of the credential, not the
    credential."""
    kept = tmp_path / "live.a2a.db"
    given = (f"authorization: {SECRET}", f"x-own: {OTHER_SECRET}")
    monkeypatch.setattr(sys, "argv", ["a2a-proxy", "drive", "-H", *given])
    assert drive(record=kept, header=given, strict=True) == 0
    out = capsys.readouterr().out
    assert "same: 7 calls compared" in out
    assert "is a label" not in out
    assert f"a2a-inspect diff {SAMPLES / 'demo.a2a.jsonl'} {kept}" in out
    assert SECRET.encode() not in kept.read_bytes()
    assert OTHER_SECRET.encode() not in kept.read_bytes()
    with Recording(kept) as recording:
        sent = [dict(row.exchange.request_headers) for row in recording.read_exchanges()]
    assert len(sent) == 7
    assert all(b"redacted-" in headers.get(b"authorization", b"") for headers in sent)


def test_driving_another_agent_finds_differences(
    drive: Callable[..., int], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """One that knows nothing of generations, nor of the words it is asked with."""
    report = tmp_path / "report.xml"
    assert (
        drive("generations", timeout=2.0, output_format="junit", output=report, where="op:GetTask")
        == 1
    )
    (suite,) = JUnitXml.fromfile(str(report))
    assert suite.failures == sum(case.is_failure for case in suite) > 0
    assert all(case.time for case in suite)
    out = capsys.readouterr().out
    assert "different: of" in out


def test_json_output_lists_calls_differences_and_what_is_missing(
    drive: Callable[..., int], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Also of a recording that lacks something, where that is wanted. The credential that went
    missing is named, with what to type."""
    lossy = tmp_path / "lossy.a2a.db"
    read_cassette(SAMPLES / "demo.a2a.jsonl", lossy)
    with contextlib.closing(sqlite3.connect(lossy)) as db, db:
        db.execute("UPDATE session SET complete = '2 KiB lost', lost = 2048")
    with pytest.raises(UserError, match="not complete: session 1: 2 KiB lost") as wrong:
        drive(recording=lossy)
    assert wrong.value.code == 3
    assert (
        drive(recording=lossy, allow_incomplete=True, output_format="json", where="op:SendMessage")
        == 0
    )
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (lines[0]["kind"], lines[0]["same"]) == ("summary", True)
    (note,) = (line["message"] for line in lines if line["kind"] == "note")
    assert "--header 'authorization: VALUE'" in note
    assert HEADERS_VARIABLE in note


def test_a_recording_of_three_bindings_is_driven_over_one(
    drive: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    """Ids, artifacts and errors arrive all the same; how the binding carries them does not
    count."""
    assert drive(binding="rest") == 0
    assert "same: 7 calls compared" in capsys.readouterr().out


def test_a_stdio_agent_is_driven(
    drive: Callable[..., int], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Is started for it, behind the proxy, and ended."""
    command = (sys.executable, str(STORY))
    kept = tmp_path / "live.a2a.db"
    assert drive("stdio", upstream="", upstream_grpc="", command=command, record=kept) == 0
    assert "same: 9 calls compared" in capsys.readouterr().out
    with Recording(kept) as recording:
        assert [session.how for session in recording.read_sessions()] == ["clean"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"command": ("python3",)}, "two agents"),
        ({"binding": "stdio"}, "command of the stdio agent is missing"),
        (
            {"upstream": "", "command": ("no-such-command-here",)},
            "command not found: no-such-command-here",
        ),
        (
            {"upstream": "", "command": ("python3",), "binding": "rest"},
            "a command is a stdio agent",
        ),
        ({"where": "op:ListTasks"}, "there is no call to drive"),
        ({"where": "op:Nothing"}, "there is no operation"),
    ],
)
def test_incompatible_agent_and_recording_are_refused(
    drive: Callable[..., int], more: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message) as wrong:
        drive(**more)
    assert wrong.value.code == 2


def test_a_recording_without_calls_is_refused_with_the_command_that_lists_it(
    drive: Callable[..., int], tmp_path: Path
) -> None:
    path = tmp_path / "empty.a2a.db"
    writer(path).finish(STARTED)
    with pytest.raises(UserError, match="there is no call to drive") as wrong:
        drive(recording=path)
    assert wrong.value.hint == f"list the recorded calls: a2a-inspect ls {path}"


def test_a_stdio_recording_needs_a_command_or_another_binding(
    drive: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    """An address has no pipe: the error names the first such call and both ways out."""
    with pytest.raises(
        UserError, match=r"#1 GetExtendedAgentCard was recorded over stdio"
    ) as wrong:
        drive("stdio")
    assert wrong.value.code == 2
    assert "--binding jsonrpc" in wrong.value.hint
    assert "-- COMMAND" in wrong.value.hint
    assert drive("stdio", binding="jsonrpc", timeout=2.0) == 1
    assert "different: of" in capsys.readouterr().out


def test_a_stdio_agent_has_no_card_to_fetch(
    drive: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    """Requests that are plain HTTP are left out, and the report says so."""
    command = (sys.executable, str(STORY))
    assert drive("demo", upstream="", upstream_grpc="", command=command, timeout=2.0) == 1
    assert (
        "not driven: #1 GetAgentCard: it is an HTTP request, which a stdio agent does not answer"
        in capsys.readouterr().out
    )


def test_an_unreachable_agent_is_an_error(drive: Callable[..., int]) -> None:
    with pytest.raises(
        UserError, match=r"cannot reach 127\.0\.0\.1:1: connection refused"
    ) as wrong:
        drive(upstream="127.0.0.1:1")
    assert wrong.value.code == 2


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"speed": "fast"}, "--speed"),
        ({"speed": "-1"}, "--speed"),
        ({"timeout": 0.0}, "--timeout"),
        ({"header": ("Bearer secret",)}, "--header"),
        ({"ignore": ("..",)}, "--ignore: '..' is not a path in a message"),
        ({"normalize": ("(",)}, "--normalize: '\\(' is not a regular expression"),
        ({"match_on": ("text,texts",)}, "--match-on: 'texts' is not one of tenant, task"),
        ({"match_on": ("no_such_module:matcher",)}, "no_such_module:matcher cannot be imported"),
        ({"strict": True, "shape": True}, "contradict"),
        ({"upstream": ""}, "--upstream is missing"),
    ],
)
def test_invalid_arguments_are_refused(
    drive: Callable[..., int], more: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message) as wrong:
        drive(**more)
    assert "secret" not in wrong.value.message


def test_names_and_functions_choose_what_counts(
    drive: Callable[..., int],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As for `replay`: only these, and the reason of a function is in the report."""
    (tmp_path / "drive_matchers.py").write_text(
        "def no_streams(recorded, live):\n"
        "    assert not isinstance(live.value, list), 'a stream of events'\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert drive(match_on=("text,task",)) == 0
    capsys.readouterr()
    assert drive(match_on=("text", "drive_matchers:no_streams")) == 1
    assert "a stream of events" in capsys.readouterr().out


def test_headers_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """One per line; headers from options follow them."""
    monkeypatch.setenv(HEADERS_VARIABLE, "Authorization: Bearer a\nX-Api-Key: b")
    made = options(upstream="a:1", header=("X-Other: c",)).credentials.headers
    assert made == ((b"Authorization", b"Bearer a"), (b"X-Api-Key", b"b"), (b"X-Other", b"c"))


def test_the_driven_recording_is_not_overwritten(drive: Callable[..., int]) -> None:
    with pytest.raises(UserError, match="is the recording that is driven"):
        drive(output=SAMPLES / "demo.a2a.jsonl")


def test_an_interrupted_drive_leaves_nothing_to_recover(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its recording was a temporary one. Those of others stay."""
    monkeypatch.setenv("A2A_PROXY_STATE", str(tmp_path / "state"))

    def broken_off(options: DriveCommandOptions, file: Path) -> int:
        for number, recording in enumerate((file, tmp_path / "other.a2a.db")):
            session = SessionFile(
                recording=str(recording), pid=1, started=number + 1, uuid=str(number)
            )
            file_layout.create_journal(session).release_locks()
        assert len(file_layout.find_leftovers()) == 2
        raise UserError("stopped before all calls were sent", "nothing was compared", 130)

    monkeypatch.setattr(
        command, "drive_agent", lambda _plan, options, file: broken_off(options, file)
    )
    with pytest.raises(UserError, match="stopped"):
        run_drive(options(upstream="127.0.0.1:1"))
    assert [left.session.uuid for left in file_layout.find_leftovers()] == ["1"]
