"""The launcher: in processes of their own, because it forks and blocks signals."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from a2a_proxy.cli.command.launcher import EXIT_NOT_FOUND, EXIT_NOT_RUN, Launcher, command_error
from a2a_proxy.cli.command.process_table import read_descendants
from a2a_proxy.model.errors import EXIT_USAGE, UserError

_LAUNCH = """
import os, sys, time
from a2a_proxy.cli.command.launcher import Launcher
from a2a_proxy.model.errors import UserError

launcher = Launcher(sys.argv[2:])
try:
    if sys.argv[1] == "cancel":
        launcher.cancel()
    else:
        launcher.start({"A": "1", "B": "\\udcff=", "PATH": os.environ["PATH"]})
except UserError as wrong:
    print(wrong.message, wrong.code)
    sys.exit()
if sys.argv[1] == "terminate":
    launcher.send_signal(15)
while (code := launcher.poll()) is None:
    time.sleep(0.01)
print("ended", code)
"""


def launch(how: str, *command: object) -> list[str]:
    """Return the lines of the command and of the process that launched it."""
    line = [sys.executable, "-c", _LAUNCH, how, *map(str, command)]
    done = subprocess.run(line, capture_output=True, timeout=120, check=True)
    assert done.stderr == b""
    return done.stdout.decode("utf-8", "surrogateescape").splitlines()


@pytest.mark.parametrize(
    ("how", "command", "lines"),
    [
        ("start", ["sh", "-c", "exit 3"], ["ended 3"]),
        ("start", ["sh", "-c", "echo $A$B $0 $1", "zero", "a b"], ["1\udcff= zero a b", "ended 0"]),
        ("start", ["sh", "-c", "kill -USR1 $$"], ["ended -10"]),
        ("terminate", ["sleep", "60"], ["ended -15"]),
        ("cancel", ["sh", "-c", "echo never"], ["ended 0"]),
        ("start", ["sh", "-c", "kill -PIPE $$"], ["ended -13"]),
        ("start", ["env"], ["A=1", "B=\udcff=", "ended 0"]),
    ],
    ids=[
        "exit code",
        "words and variables",
        "killed",
        "signal",
        "cancelled",
        "SIGPIPE as a shell has it",
        "environment",
    ],
)
def test_the_child_becomes_the_command(how: str, command: list[str], lines: list[str]) -> None:
    """Nothing of it is left in the child, and nothing else is in its environment."""
    assert [line for line in launch(how, *command) if not line.startswith("PATH=")] == lines


def test_signals_are_not_blocked_in_the_command() -> None:
    """Although they are in this process."""
    (line, end) = launch("start", "sh", "-c", "grep SigBlk /proc/self/status")
    assert (line.split()[1].strip("0"), end) == ("", "ended 0")


_TREE = "sleep 60 & setsid sleep 60 & (sleep 60 &); pwd; wait"
"""A command with a child, a process in a session of its own, and an orphan."""


@pytest.mark.skipif(
    sys.platform != "linux", reason="other systems do not tell a process that its parent has died"
)
def test_all_processes_of_the_command_end_if_the_proxy_is_killed() -> None:
    """The guard kills them, and ends; of the guard's end the command learns alone."""
    line = [sys.executable, "-c", _LAUNCH, "start", "sh", "-c", _TREE]
    with subprocess.Popen(line, stdout=subprocess.PIPE) as proxy:
        assert proxy.stdout is not None
        proxy.stdout.readline()
        guard, command, *others = [each.pid for each in read_descendants(proxy.pid)[1:]]
        assert len(others) == 3
        handles = [os.pidfd_open(pid) for pid in (guard, command, *others)]
        os.kill(guard, signal.SIGTERM)  # means nothing while the proxy lives
        proxy.kill()
        for handle in handles:
            assert select.select([handle], [], [], 60)[0]
            os.close(handle)


def test_programs_that_cannot_run(tmp_path: Path) -> None:
    """The system refuses only when the child is to become the command."""
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    assert launch("start", script) == [f"cannot run {script}: its interpreter is missing 126"]
    script.write_text("no program")
    assert launch("start", script) == [f"cannot run {script}: exec format error 126"]


@pytest.mark.parametrize(
    ("name", "code"),
    [("no-such-program", EXIT_NOT_FOUND), ("/no/such", EXIT_NOT_FOUND), ("/", EXIT_NOT_RUN)],
)
def test_a_missing_command_is_refused_before_anything_is_forked(name: str, code: int) -> None:
    with pytest.raises(UserError) as caught:
        Launcher([name])
    assert caught.value.code == code != EXIT_USAGE


def test_errors_name_the_program() -> None:
    wrong = command_error("planner", PermissionError(13, "Permission denied"))
    assert (wrong.message, wrong.hint) == (
        "cannot run planner: permission denied",
        "is it a program? try: chmod +x planner",
    )
