"""`a2a-inspect plugins`: installed hooks listed, hooks called for recordings."""

from __future__ import annotations

import os
import select
import signal
import subprocess
from pathlib import Path

import pytest

from support_cli import SECONDS, Ran, environment, program, run, until
from support_hooks import install, methods, noted, write_hooks
from support_inspect import changes, exchange, request, sample, writer
from support_recording import STARTED

DEMO = Path(__file__).parents[3] / "recordings/demo.a2a.jsonl"


@pytest.fixture
def hooks(tmp_path: Path) -> dict[str, str]:
    """Hooks to be found; one is installed."""
    made = write_hooks(tmp_path / "hooks")
    install(tmp_path / "hooks", "notes", "noting:Notes")
    return made


def inspect(tmp_path: Path, hooks: dict[str, str], *words: object) -> Ran:
    return run(tmp_path / "state", "a2a-inspect", "plugins", *words, **hooks)


def test_installed_hooks_are_listed(hooks: dict[str, str], tmp_path: Path) -> None:
    """Name, class and package of each, before the extensions; none is installed with the proxy
    itself."""
    done = inspect(tmp_path, hooks)
    assert (done.code, done.err) == (0, "")
    assert [line.split() for line in done.lines[:2]] == [
        ["KIND", "NAME", "CLASS", "OR", "URI", "FROM"],
        ["hook", "notes", "noting:Notes", "hooked-package", "1.2"],
    ]
    assert {line.split()[0] for line in done.lines[2:]} == {"extension"}
    assert {line.split()[0] for line in inspect(tmp_path, {}).lines[1:]} == {"extension"}


def test_hooks_run_over_recordings_and_cassettes_and_print(
    hooks: dict[str, str], tmp_path: Path
) -> None:
    """Output of the hooks goes to stdout, in order; a cassette is read like a recording."""
    done = inspect(
        tmp_path, hooks, sample(tmp_path / "r.db"), "--hook", "noting:Prints", "--hook", "notes"
    )
    assert done.code == 0
    assert done.lines == ["printed 0", "printed 1", "printed 2"] * 3
    assert done.err.splitlines() == [
        "a2a-inspect: hook noting:Prints: 9 calls",
        "a2a-inspect: hook notes: 14 calls",
    ]
    assert inspect(tmp_path, hooks, DEMO, "--hook", "noting:Prints").lines[0] == "printed 0"


def test_every_session_has_its_own_hook_instance(hooks: dict[str, str], tmp_path: Path) -> None:
    """One after the other, though they were written at the same time."""
    one, two = writer(tmp_path / "r.db", 1), writer(tmp_path / "r.db", 2)
    for number in (1, 2):
        for each in (one, two):
            each.write([request(number)], changes=changes(exchange(number)))
    assert inspect(tmp_path, hooks, tmp_path / "r.db", "--hook", "notes").code == 0
    story = ["start", "on_frame", "on_exchange_end", "on_frame", "on_exchange_end", "close"]
    assert methods(hooks) == story * 2
    assert len({call["uuid"] for call in noted(hooks) if call["method"] == "start"}) == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("r.db",), "--hook is missing"),
        (("--follow",), "--hook is missing"),
        (("none.db", "--hook", "notes"), "there is no recording none.db"),
    ],
)
def test_invalid_use_is_refused(
    hooks: dict[str, str],
    tmp_path: Path,
    words: tuple[str, ...],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A message and a hint, exit code 2."""
    monkeypatch.chdir(tmp_path)
    sample(tmp_path / "r.db")
    done = inspect(tmp_path, hooks, *words)
    assert (done.code, done.err.splitlines()[0]) == (2, f"a2a-inspect: error: {message}")
    assert done.err.splitlines()[1].startswith("a2a-inspect: hint: ")


def test_a_hook_that_fails_fails_the_command(hooks: dict[str, str], tmp_path: Path) -> None:
    """Exit code 1, and where to look."""
    sample(tmp_path / "r.db")
    done = inspect(tmp_path, hooks, tmp_path / "r.db", "--hook", "noting:Fails")
    assert done.code == 1
    assert "hook noting:Fails: 14 calls, 10 of them failed: see " in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("name", ["nowhere:Hook", "broken:Hook", "os:path"])
def test_an_unusable_hook_is_one_error(hooks: dict[str, str], tmp_path: Path, name: str) -> None:
    """One exit code, whether it is not there, cannot be imported or is no class."""
    sample(tmp_path / "r.db")
    done = inspect(tmp_path, hooks, tmp_path / "r.db", "--hook", name)
    assert done.code == 2
    assert f"error: hook {name}" in done.err
    assert "hint: " in done.err


def following(recording: Path, hook: str) -> list[str]:
    """Return the command line that calls a hook for the frames to come."""
    return [program("a2a-inspect"), "plugins", str(recording), "--follow", "--hook", hook]


def test_follow_until_ctrl_c(hooks: dict[str, str], tmp_path: Path) -> None:
    """Later frames are handed over too; Ctrl-C ends it cleanly."""
    made = writer(tmp_path / "r.db")
    made.open()
    line = following(tmp_path / "r.db", "notes")
    env = environment(tmp_path / "state", **hooks)
    with subprocess.Popen(line, stderr=subprocess.PIPE, env=env, text=True) as process:
        until(lambda: methods(hooks) == ["start"])
        made.write([request(1)], changes=changes(exchange(1)))
        until(lambda: methods(hooks)[1:] == ["on_frame", "on_exchange_end"])
        os.kill(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, err) == (0, "a2a-inspect: hook notes: 4 calls\n")
    assert methods(hooks)[-1] == "close"


def test_output_while_following_is_not_buffered(hooks: dict[str, str], tmp_path: Path) -> None:
    """Also into a pipe."""
    made = writer(tmp_path / "r.db")
    made.write([request(1)], changes=changes(exchange(1)))
    line = following(tmp_path / "r.db", "noting:Prints")
    env = environment(tmp_path / "state", PYTHONUNBUFFERED="", **hooks)
    with subprocess.Popen(line, stdout=subprocess.PIPE, env=env, text=True) as process:
        assert process.stdout is not None
        try:
            until(lambda: select.select([process.stdout], [], [], 0)[0])
            assert process.stdout.readline() == "printed 0\n"
        finally:
            os.kill(process.pid, signal.SIGINT)
    assert process.returncode == 0


def test_follow_until_the_session_ends(hooks: dict[str, str], tmp_path: Path) -> None:
    """Then nobody has to stop it."""
    made = writer(tmp_path / "r.db")
    made.write([request(1)], changes=changes(exchange(1)))
    made.finish(STARTED + 10**10)
    assert inspect(tmp_path, hooks, tmp_path / "r.db", "--follow", "--hook", "notes").code == 0
    assert methods(hooks) == ["start", "on_frame", "on_exchange_end", "close"]
