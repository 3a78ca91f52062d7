"""`a2a-proxy stdio`: refused arguments, options and the exit code."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from pathlib import Path

import pytest

from a2a_proxy.cli.command.process_table import read_descendants
from a2a_proxy.recording.read.reader import Recording
from support_cli import SECONDS, Ran, environment, program, run, until
from support_stdio import CARD, Client, outcome


def stdio(folder: Path, *words: object, **environ: str) -> Ran:
    """Run it in `folder`."""
    return run(folder / "state", "a2a-proxy", "stdio", *words, **environ)


def _nothing_left(folder: Path) -> bool:
    return not any((folder / "state").rglob("*.a2aj")) and not list(folder.rglob("*.a2a.db"))


@pytest.mark.parametrize(
    ("name", "text", "code", "message", "hint"),
    [
        ("nowhere", None, 127, "command not found", "PATH"),
        ("plain.txt", "hello", 126, "permission denied", "chmod +x"),
        ("old", "#!/no/such/interpreter\n", 126, "its interpreter is missing", "head -1"),
        ("text", "echo hello\n", 126, "exec format error", "is it a program?"),
    ],
)
def test_a_command_that_cannot_run_exits_as_a_shell_would(
    tmp_path: Path, name: str, text: str | None, code: int, message: str, hint: str
) -> None:
    """The exit code is a shell's, stdout stays empty and nothing is left behind."""
    command = tmp_path / name
    if text is not None:
        command.write_text(text)
        command.chmod(0o644 if name == "plain.txt" else 0o755)
    ran = stdio(tmp_path, "--record", tmp_path / "r.a2a.db", "--", command)
    assert (ran.code, ran.out) == (code, "")
    error, how = ran.err.splitlines()
    assert error.startswith("a2a-proxy: error: ")
    assert message in error
    assert hint in how
    assert _nothing_left(tmp_path)
    assert not list((tmp_path / "state" / "journals").iterdir())


def test_a_folder_is_no_command(tmp_path: Path) -> None:
    ran = stdio(tmp_path, "--", tmp_path)
    assert ran.code == 126
    assert "cannot run" in ran.err


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        ([], "the agent's command is missing", "a2a-proxy stdio -- python my_agent.py"),
        (["--record", "r.db", "--"], "the agent's command is missing", "a2a-proxy stdio -- "),
        (["--journal-max", "much", "--", "true"], "'much' is not a size", "--journal-max 4GiB"),
        (
            ["--record", "/nowhere/r.db", "--", "true"],
            "/nowhere does not exist",
            "mkdir -p /nowhere",
        ),
        (["--record", os.devnull, "--", "true"], "is not a file", "recording"),
        (["--listen", ":9000", "--", "true"], "no such option", "a2a-proxy stdio --help"),
    ],
)
def test_invalid_use_is_refused(tmp_path: Path, words: list[str], message: str, hint: str) -> None:
    ran = stdio(tmp_path, *words)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert hint in ran.err


def test_a_file_that_is_no_recording_is_refused_before_the_agent_runs(tmp_path: Path) -> None:
    other = tmp_path / "notes.txt"
    other.write_text("mine")
    ran = stdio(tmp_path, "--record", other, "--", "touch", tmp_path / "ran")
    assert ran.code == 2
    assert "is not a recording" in ran.err
    assert other.read_text() == "mine"
    assert not (tmp_path / "ran").exists()


def test_an_unusable_state_directory_is_refused_before_the_agent_runs(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ran = run(tmp_path / "file" / "state", "a2a-proxy", "stdio", "--", "touch", tmp_path / "ran")
    assert ran.code == 2
    assert "the state directory cannot be used" in ran.err
    assert not (tmp_path / "ran").exists()


def test_options_before_the_subcommand_are_refused(tmp_path: Path) -> None:
    ran = run(tmp_path / "state", "a2a-proxy", "--record", "x.db", "stdio", "--", "true")
    assert ran.code == 2
    assert "a2a-proxy stdio --record FILE" in ran.err


def test_options_of_the_agent_command_are_passed_on(tmp_path: Path) -> None:
    """With and without `--` before it."""
    for words in (["--", "echo", "--record", "--help"], ["echo", "--record", "--help"]):
        assert (stdio(tmp_path, *words).out, stdio(tmp_path, *words).code) == (
            "--record --help\n",
            0,
        )


def test_the_environment_sets_options_too(tmp_path: Path) -> None:
    recording = tmp_path / "from-environment.a2a.db"
    assert stdio(tmp_path, "--", "true", A2A_PROXY_RECORD=str(recording)).code == 0
    until(recording.exists)
    with Recording(recording) as stored:
        until(lambda: stored.read_sessions() and stored.read_sessions()[0].how)
        (row,) = stored.read_sessions()
    assert row.facts.command == ("a2a-proxy", "stdio", "--", "true")
    assert row.facts.listens == ("stdio",)
    assert row.facts.upstreams == ("true",)


def test_without_a_name_the_recording_is_in_the_state_directory(tmp_path: Path) -> None:
    assert stdio(tmp_path, "--", "true").code == 0
    until(lambda: list((tmp_path / "state" / "recordings").glob("*.a2a.db")))


@pytest.mark.parametrize(
    ("manner", "severity", "code"),
    [
        ("garbage", "warning", 1),
        ("garbage", "error", 0),
        ("plain", "warning", 0),
        ("exit3", "info", 3),
    ],
)
def test_fail_on_applies_only_if_the_agent_exits_with_0(
    tmp_path: Path, manner: str, severity: str, code: int
) -> None:
    def story(client: Client) -> None:
        client.write(CARD)
        client.expect(b'"id": 1')
        client.close()

    seen = outcome(tmp_path / "x", manner, story, "--fail-on", severity, proxied=True)
    assert seen.code == code
    assert not seen.err


def test_an_unknown_verdict_fails_the_run(tmp_path: Path) -> None:
    """The recording's folder is gone when the recorder comes."""
    gone = tmp_path / "gone"
    gone.mkdir()
    words = ["--record", gone / "r.db", "--fail-on", "error", "--", "rmdir", gone]
    assert stdio(tmp_path, *words).code == 1


def test_help_names_an_example(tmp_path: Path) -> None:
    ran = stdio(tmp_path, "--help")
    assert ran.code == 0
    assert "a2a-proxy stdio --" in ran.out
    assert "wrap-card" in ran.out


def test_no_process_keeps_the_signal_mask_of_the_relay(tmp_path: Path) -> None:
    """The relay blocks signals, because it waits for them; the agent, the recorder, the followers'
    process and a hook do not."""
    hook = (
        "from a2a_proxy.hooks import Hook\n\n\n"
        "class Own(Hook):\n    def on_frame(self, frame):\n        pass\n"
    )
    (tmp_path / "own_hook.py").write_text(hook)
    wanted = {"recorder", "cli.stdio_followers", "follower", ""}
    with subprocess.Popen(
        [
            program("a2a-proxy"),
            "stdio",
            "--record",
            str(tmp_path / "r.a2a.db"),
            "--hook",
            "own_hook:Own",
            "--",
            "cat",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        cwd=tmp_path,
        env=environment(tmp_path / "state", PYTHONPATH=str(tmp_path)),
    ) as process:
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
        until(lambda: wanted <= _signal_masks(process.pid).keys())
        until(lambda: set(_signal_masks(process.pid).values()) == {"0" * 16})
        process.stdin.close()
        assert process.wait(SECONDS) == 0


def _signal_masks(relay: int) -> dict[str, str]:
    """Return the blocked signals of the relay's descendants, by module of this project; the agent
    has none."""
    found = {}
    for process in read_descendants(relay)[1:]:
        folder = Path(f"/proc/{process.pid}")
        with contextlib.suppress(OSError):
            words = (folder / "cmdline").read_text()
            module = re.search(r"\0a2a_proxy\.([a-z_.]+)\0", words)
            mask = re.search(r"SigBlk:\s*(\w+)", (folder / "status").read_text())
            found[module[1] if module else ""] = mask[1] if mask else ""
    return found
