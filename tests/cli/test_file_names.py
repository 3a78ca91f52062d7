"""File names that are not UTF-8 or contain terminal control characters."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from a2a_proxy.recording.read.reader import Recording
from support_cli import SECONDS, Agent, Proxy, call, environment, program, run, until

Start = Callable[..., Proxy]
NAMES = {
    "no UTF-8": b"caf\xe9.a2a.db",
    "escape": b"a\x1b[31mred\x07 b.a2a.db",
    "both": b"\xff\x1b]0;own\x07'.a2a.db",
}
ACTS = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]")


@pytest.fixture(params=NAMES.values(), ids=NAMES)
def name(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    file = tmp_path / os.fsdecode(request.param)
    try:
        file.touch()
    except OSError:
        pytest.skip("the file system takes no such name")
    file.unlink()
    return file


def command_output(state: Path, *words: str | Path, code: int = 0) -> bytes:
    """What a command prints on both streams."""
    line = [program(str(words[0])), *map(str, words[1:])]
    done = subprocess.run(
        line, capture_output=True, env=environment(state), timeout=SECONDS, check=False
    )
    printed = done.stdout + done.stderr
    assert done.returncode == code, printed
    assert not ACTS.search(printed), printed
    assert b"Traceback" not in printed
    return printed


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_the_relay_records_to_an_odd_file_name(
    proxy: Start, agent: Agent, name: Path, tmp_path: Path, log_format: str
) -> None:
    """The console shows symbols in the place of what acts on a terminal; the recorder may die as
    always."""
    words = (
        "-l",
        "127.0.0.1:0",
        "-u",
        agent.upstream,
        "--record",
        name,
        "--log-format",
        log_format,
    )
    one = proxy(*words)
    (address,) = one.addresses()
    call(address)
    os.kill(one.recorder(), 9)
    call(address)
    assert one.stop() == 0
    printed = one.out_file.read_bytes() + one.err_file.read_bytes()
    assert not ACTS.search(printed), printed
    with Recording(name) as stored:
        (session,) = stored.read_sessions()
        assert session.how == "clean"
        assert len(list(stored.read_exchanges())) == 2
        assert Path(session.facts.command[6]) == name
    if log_format == "json":
        assert json.loads(one.out.splitlines()[0])["recording"] == str(name)
    assert not one.journals


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_commands_on_the_console_can_be_pasted_into_a_shell(
    proxy: Start, agent: Agent, name: Path, tmp_path: Path
) -> None:
    one = proxy("-l", "127.0.0.1:0", "-u", agent.upstream, "--record", name)
    one.addresses()
    (line,) = [line for line in one.err.splitlines() if line.startswith("inspect it: ")]
    typed = line.removeprefix("inspect it: ").replace("a2a-inspect", "printf %s", 1)
    assert subprocess.run(
        ["bash", "-c", typed], capture_output=True, check=True
    ).stdout == os.fsencode(name)
    assert one.stop() == 0


def test_a_stdio_agent_is_recorded_to_an_odd_file_name(name: Path, tmp_path: Path) -> None:
    command_output(
        tmp_path / "state",
        "a2a-proxy",
        "stdio",
        "--record",
        name,
        "--",
        sys.executable,
        "-c",
        "print('x')",
    )
    journals = tmp_path / "state" / "journals"
    until(lambda: not list(journals.iterdir()))
    with Recording(name) as stored:
        assert [session.how for session in stored.read_sessions()] == ["clean"]


def test_followers_of_a_stdio_agent_take_an_odd_file_name(name: Path, tmp_path: Path) -> None:
    """Its process is given the name."""
    (tmp_path / "own.py").write_text("class Hook:\n    def on_frame(self, *_):\n        pass\n")
    line = [
        program("a2a-proxy"),
        "stdio",
        "--record",
        str(name),
        "--hook",
        "own:Hook",
        "--",
        "true",
    ]
    state = tmp_path / "state"
    env = environment(state, PYTHONPATH=str(tmp_path))
    assert subprocess.run(line, env=env, timeout=SECONDS, check=False).returncode == 0
    until(
        lambda: (
            "recorded from a stdio agent"
            in "".join(map(Path.read_text, (state / "hooks").glob("stdio*")))
        )
    )
    until(
        lambda: "hook own:Hook: " in "".join(map(Path.read_text, (state / "hooks").glob("stdio*")))
    )
    until(lambda: not list((state / "journals").iterdir()))


def test_journals_of_odd_file_names_are_recovered(
    proxy: Start, agent: Agent, name: Path, tmp_path: Path
) -> None:
    one = proxy("-l", "127.0.0.1:0", "-u", agent.upstream, "--record", name)
    (address,) = one.addresses()
    call(address)
    os.kill(one.process.pid, 19)
    os.kill(one.recorder(), 9)
    os.kill(one.process.pid, 9)
    one.wait()
    until(lambda: b"recovered " in command_output(one.state, "a2a-inspect", "recover"))
    with Recording(name) as stored:
        assert [session.how for session in stored.read_sessions()] == ["unclean"]


def test_errors_name_the_odd_file_name_safely(name: Path, tmp_path: Path) -> None:
    """A folder that is missing, a command that is, a recording that is: each with a hint."""
    state = tmp_path / "state"
    pair = ("-l", "127.0.0.1:0", "-u", "127.0.0.1:1")
    printed = command_output(state, "a2a-proxy", *pair, "--record", name / "r.db", code=2)
    assert b"hint: create it first: mkdir -p " in printed
    printed = command_output(
        state, "a2a-proxy", "stdio", "--record", name / "r.db", "--", "true", code=2
    )
    assert b"hint: create it first: mkdir -p " in printed
    assert b"there is no recording" in command_output(state, "a2a-inspect", "ls", name, code=2)
    assert b"command not found" in command_output(
        state, "a2a-proxy", "stdio", "--", str(name), code=127
    )
    assert not list((state / "journals").iterdir())


def test_commands_print_an_odd_file_name_safely(name: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    command_output(state, "a2a-proxy", "demo", "--record", name)
    for words in (
        ("ls",),
        ("show",),
        ("check",),
        ("export", "--dry-run"),
        ("check", "--format", "json"),
    ):
        command_output(state, "a2a-inspect", *words, name)
    done = run(
        state, "a2a-inspect", "check", name, "--format", "json", "-o", name.with_suffix(".json")
    )
    assert done.code == 0
    first = json.loads(name.with_suffix(".json").read_text().splitlines()[0])
    assert first["recording"] == str(name)
