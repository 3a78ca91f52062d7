"""`a2a-proxy replay` as a user runs it: output, exit codes and bad input."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from a2a_proxy.cli.main import cli, replay, run_cli
from a2a_proxy.cli.replay import replay_config
from a2a_proxy.replay.core.match_rules import MatchName
from support_cli import SECONDS, Proxy, environment, program, run, until

SAMPLES = Path(__file__).parents[2] / "recordings"
SAMPLE = SAMPLES / "sdk-1.x-jsonrpc.a2a.jsonl"


@pytest.fixture
def refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """What is said of a command that cannot be carried out: an error, a hint, code 2."""

    def run(*words: object) -> str:
        monkeypatch.setattr(sys, "argv", ["a2a-proxy", "replay", *map(str, words)])
        code = run_cli("a2a-proxy", cli)
        output = capsys.readouterr()
        assert (code, output.out) == (2, "")
        error, *_, hint = output.err.splitlines()  # between them the faults, with a caret
        assert error.startswith("a2a-proxy: error: ")
        assert hint.startswith("a2a-proxy: hint: ")
        return error

    return run


def test_bad_input_is_refused(tmp_path: Path, refused: Callable[..., str]) -> None:
    """One error line."""
    assert "nothing" in refused(tmp_path / "nothing.a2a")
    text = tmp_path / "notes.txt"
    text.write_text("no recording")
    assert "notes.txt" in refused(text)
    cut = tmp_path / "cut.a2a.jsonl"
    cut.write_text("".join(SAMPLE.read_text().splitlines(keepends=True)[:-1]))
    assert "truncated" in refused(cut)
    newer = tmp_path / "newer.a2a.jsonl"
    newer.write_text(SAMPLE.read_text().replace('"version":1', '"version":99', 1))
    assert "newer" in refused(newer)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--listen", "nowhere"), "no port"),
        (("--stdio", "--listen", ":9001"), "--stdio"),
        (("--speed", "fast"), "--speed"),
        (("--policy", "GetTask=never"), "--policy"),
        (("--policy", "SendMessage=by-progress"), "only GetTask can follow"),
        (("--speed", "1e-300"), "--speed"),
        (("--gap", "1e305"), "is not a valid time"),
        (("--patience", "1e305"), "is not a valid time"),
        (("--policy", "Nothing=sequence"), "Nothing"),
        (("--fault", "break #3"), "--fault"),
        (("--fault", "drop #9999.1"), "#9999"),
        (("--session", "7"), "session 7"),
        (("--agent", "nobody:1"), "no call to the agent nobody:1"),
        (("--patience", "nan"), "--patience: nan"),
        (("--gap", "inf"), "--gap: inf"),
        (("--match", "odd"), "odd"),
        (("--match-on", "text,texts"), "--match-on: 'texts' is not one of tenant, task"),
        (
            ("--match-on", "no_such_module:matcher"),
            "no_such_module:matcher cannot be imported: ModuleNotFoundError",
        ),
        (("--match-on", "os:sep"), "os:sep is not a function"),
        (("--ignore", "$."), "--ignore: '$.' is not a path"),
        (("--normalize", "("), "--normalize: '(' is not a regular expression"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_contradictory_options_are_refused(
    refused: Callable[..., str], words: tuple[str, ...], message: str
) -> None:
    """Each is refused before anything listens."""
    assert message in refused(SAMPLE, *words)


def test_a_port_in_use(tmp_path: Path) -> None:
    """The port is named."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run(tmp_path, "a2a-proxy", "replay", SAMPLE, "--listen", f"127.0.0.1:{port}")
    assert done.code == 2
    assert done.err.startswith(f"a2a-proxy: error: port {port} is in use\na2a-proxy: hint: ")


def post(address: str, method: str) -> dict[str, object]:
    """A JSON-RPC call without parameters."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {}}).encode()
    with urllib.request.urlopen(urllib.request.Request(f"http://{address}/", body)) as answer:
        found: dict[str, object] = json.load(answer)
    return found


def address(running: Proxy) -> str:
    """Where it listens, as the banner says."""
    until(lambda: "stop with Ctrl-C" in running.err)
    return running.err.splitlines()[0].rpartition(" on ")[2].partition(",")[0]


def test_the_rules_of_the_command_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Names and functions of the current folder, paths, expressions."""
    (tmp_path / "my_own_matchers.py").write_text(
        "def same(recorded, requested):\n    return True\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    words = [
        "--match-on",
        "text,task",
        "--match-on",
        "my_own_matchers:same",
        "--ignore",
        "$.a",
        "--normalize",
        "x+",
    ]
    context = replay.make_context("replay", [*words, str(SAMPLE)])
    options = replay_config(**context.params).options
    assert options.match_on[:2] == (MatchName.TEXT, MatchName.TASK)
    assert getattr(options.match_on[2], "__name__", "") == "same"
    assert (options.ignore, options.normalize) == ((("$", "a"),), ("x+",))


def test_a_replay_serves_and_summarizes(tmp_path: Path) -> None:
    """Banner, a line per call, a miss with its text, the count at the end; no failure unless asked
    for."""
    running = Proxy(tmp_path, "replay", SAMPLE, "--listen", "127.0.0.1:0", "--fault", "drop #6.3")
    where = address(running)
    assert "fault: drop #6.3" in running.err.splitlines()
    assert "result" in post(where, "GetExtendedAgentCard")
    assert "error" in post(where, "Nonsense")
    assert running.stop() == 0
    call, miss = running.out.splitlines()[:2]
    assert call.startswith("#2 ")
    assert "GetExtendedAgentCard" in call
    assert miss.startswith("replay miss (unknown-operation): Nonsense")
    assert "1 call played, 1 miss, 36 recorded calls not requested" in running.err


def test_stdio_replay_from_and_to_files(tmp_path: Path) -> None:
    """`--stdio < FILE > FILE`: the loop can wait for neither, and uvloop ends a process that asks
    it to."""
    asked, answered = tmp_path / "asked", tmp_path / "told"
    asked.write_text(
        '{"jsonrpc": "2.0", "id": 1, "method": "GetExtendedAgentCard", "params": {}}\n'
    )
    with asked.open("rb") as stdin, answered.open("wb") as stdout:
        done = subprocess.run(
            [program("a2a-proxy"), "replay", SAMPLE, "--stdio"],
            stdin=stdin,
            stdout=stdout,
            env=environment(tmp_path),
            timeout=SECONDS,
        )
    assert done.returncode == 0
    assert json.loads(answered.read_bytes())["result"]


@pytest.mark.parametrize(("words", "code"), [(("--fail-on-miss",), 1), (("--fail-unused",), 1)])
def test_exit_codes(tmp_path: Path, words: tuple[str, ...], code: int) -> None:
    """Misses and unused calls fail a run where the user wants that."""
    running = Proxy(tmp_path, "replay", SAMPLE, "--listen", "127.0.0.1:0", *words)
    post(address(running), "Nonsense")
    assert running.stop() == code


def test_recorded_calls_that_cannot_be_served_are_reported(tmp_path: Path) -> None:
    """Live streams on gRPC only, and a card that is missing."""
    running = Proxy(tmp_path, "replay", SAMPLES / "live-bidi.a2a.jsonl", "--listen", "127.0.0.1:0")
    where = address(running)
    with pytest.raises(urllib.error.HTTPError) as missing:
        urllib.request.urlopen(f"http://{where}/.well-known/agent-card.json")
    assert missing.value.code == 404
    assert running.stop() == 0
    errors = running.err
    assert "not served on JSON-RPC: #2" in errors
    assert "not served on REST: #2" in errors
    assert "not served on gRPC" not in errors
    assert "the recording has no agent card" in errors
