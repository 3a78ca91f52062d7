"""Both programs on machines where they seldom run: no traceback, no signal, a documented exit code,
an end in time."""

from __future__ import annotations

import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from support_cli import SECONDS, environment, program, run_here, until
from support_environments import fill, obeying, small_disk, unknown_user
from support_process import listening_ports

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="finds listening sockets in /proc"
)
SAMPLE = Path(__file__).parents[2] / "recordings" / "stdio.a2a.jsonl"
READING = ("version", "ls", "check", "screen")
RECORDING = ("demo", "run", "listen", "import")
STATE = (*RECORDING, "stdio")
"""Commands that use the state directory."""
ALL = (*READING, "replay", *STATE)
_ENDLESS = ("listen", "replay")
"""Commands that end with a signal."""


class Machine:
    """An environment, in which commands run at the same time, each with a state directory of its
    own."""

    def __init__(
        self,
        folder: Path,
        har: Path,
        before: Sequence[str] = (),
        shell: str = "",
        **environ: str | None,
    ) -> None:
        """`har` is imported. `shell` is a redirection or a command of the shell that starts the
        programs; None removes a variable."""
        self.folder, self.output, self.har = folder, folder / "output", har
        self._before, self._shell, self._environ = before, shell, environ
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self.output.mkdir()

    def _words(self, name: str, record: Path) -> list[object]:
        proxy, inspect = program("a2a-proxy"), program("a2a-inspect")
        lines: dict[str, list[object]] = {
            "version": [proxy, "--version"],
            "ls": [inspect, "ls", SAMPLE],
            "check": [inspect, "check", SAMPLE],
            "screen": [inspect, SAMPLE],
            "import": [inspect, "import", self.har, "-o", record],
            "stdio": [proxy, "stdio", "--", "cat"],
            "run": [proxy, "run", "--record", record, "--", "true"],
            "demo": [proxy, "demo", "--record", record],
            "listen": [proxy, "-l", "127.0.0.1:0", "-u", "127.0.0.1:9", "--record", record],
            "replay": [proxy, "replay", SAMPLE, "-l", "127.0.0.1:0"],
        }
        return lines[name]

    def start(self, name: str, disk: Path | None = None) -> None:
        """Start a command; its recording and state directory are on `disk`."""
        place = (disk or self.folder) / "files" / name
        made = {**environment(place / "state"), **self._environ}
        shell = (
            f'{self._shell}; exec "$@"'
            if self._shell and "&" not in self._shell
            else f'exec "$@" {self._shell}'
        )
        with (self.output / name).open("wb") as out:
            self._running[name] = subprocess.Popen(
                [
                    "sh",
                    "-c",
                    shell,
                    "sh",
                    *self._before,
                    *map(str, self._words(name, self.record_of(name, disk))),
                ],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env={key: value for key, value in made.items() if value is not None},
                cwd=self.folder,
            )

    def record_of(self, name: str, disk: Path | None = None) -> Path:
        return (disk or self.folder) / f"{name}.a2a.db"

    def _is_ready(self, name: str) -> bool:
        process = self._running[name]
        if process.poll() is not None:
            return True
        return (
            self.record_of(name).exists()
            if name == "listen"
            else bool(listening_ports(process.pid))
        )

    def finish(self, expected: Mapping[str, int]) -> None:
        """Wait for all commands, and check how they ended; commands that are not in `expected` end
        with 0."""
        for name, process in self._running.items():
            if name in _ENDLESS:
                until(lambda name=name: self._is_ready(name))
                process.send_signal(signal.SIGINT)
        codes = {name: process.wait(SECONDS) for name, process in self._running.items()}
        outputs = {name: (self.output / name).read_text("utf-8", "replace") for name in codes}
        assert codes == {name: expected.get(name, 0) for name in codes}, outputs
        for name, output in outputs.items():
            assert "Traceback" not in output, (name, output)
            assert "report this as a bug" not in output, (name, output)
            assert codes[name] != 2 or not output or "hint: " in output, (name, output)

    def output_of(self, name: str) -> str:
        return (self.output / name).read_text()

    def kill(self) -> None:
        for process in self._running.values():
            process.kill()
            process.wait()


MakeMachine = Callable[..., Machine]


@pytest.fixture(scope="module")
def har(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file to import."""
    folder = tmp_path_factory.mktemp("har")
    sample, made = SAMPLE.with_name("demo.a2a.jsonl"), folder / "story.har"
    assert run_here(folder / "state", "export", "har", sample, "-o", made).code == 0
    return made


@pytest.fixture
def make(tmp_path: Path, har: Path) -> Iterator[MakeMachine]:
    """Make the test's machine."""
    machines: list[Machine] = []

    def begin(*before: str, shell: str = "", **environ: str | None) -> Machine:
        machines.append(Machine(tmp_path, har, before, shell, **environ))
        return machines[0]

    yield begin
    for each in machines:
        each.kill()


def run_all(
    machine: Machine,
    expected: Mapping[str, int],
    names: Sequence[str] = ALL,
    disk: Path | None = None,
) -> None:
    """Run the commands at the same time."""
    for name in names:
        machine.start(name, disk)
    machine.finish({"screen": 2, **expected})  # there is no terminal


NO_HOME: dict[str, str | None] = {"HOME": None, "XDG_STATE_HOME": None, "XDG_CONFIG_HOME": None}
"""Variables that name no folder of the user."""


def test_home_is_not_set(make: MakeMachine) -> None:
    """Recordings that are named can be read. Nothing is written, because the passwd entry names a
    folder for it."""
    run_all(make(**NO_HOME, A2A_PROXY_STATE=None), {}, READING)


def test_no_home_directory(make: MakeMachine) -> None:
    """As in a container with an arbitrary user id: recordings can be read, and the error names the
    variable to set."""
    machine = make(*unknown_user(), **NO_HOME, A2A_PROXY_STATE=None)
    run_all(machine, dict.fromkeys(STATE, 2))
    for name in STATE:
        assert (
            "the state directory cannot be used: this user has no home directory"
            in machine.output_of(name)
        )
        assert "export A2A_PROXY_STATE=DIR" in machine.output_of(name)
        assert not machine.record_of(name).exists()


def test_a_state_directory_is_enough(make: MakeMachine) -> None:
    """For a user without an entry and without HOME."""
    run_all(make(*unknown_user(), **NO_HOME), {}, (*STATE, "screen"))


def test_a_home_that_cannot_be_written(make: MakeMachine, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o555)
    machine = make(*obeying(), **{**NO_HOME, "HOME": str(home)}, A2A_PROXY_STATE=None)
    run_all(machine, dict.fromkeys(STATE, 2), (*STATE, "ls"))
    assert (
        f"the state directory cannot be used: {home}/.local: permission denied"
        in machine.output_of("run")
    )


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams(make: MakeMachine, closed: str) -> None:
    """Also for child processes: no other file gets the numbers 0 to 2."""
    more = ("demo", "listen", "replay", "screen") if closed == "<&-" else ()
    run_all(make(shell=closed), {}, ("ls", "run", "stdio", *more))


def test_the_c_locale(make: MakeMachine) -> None:
    run_all(
        make(LANG="C", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0"),
        {},
        ("ls", "check", "run", "import"),
    )


def test_a_full_disk(make: MakeMachine, tmp_path: Path) -> None:
    with small_disk(tmp_path / "small") as disk:
        fill(disk)
        machine = make()
        run_all(machine, dict.fromkeys(STATE, 2), (*STATE, "ls"), disk)
    for name in STATE:
        assert "hint: free some space" in machine.output_of(name), machine.output_of(name)


def test_twenty_open_files(make: MakeMachine) -> None:
    machine, loops = make(shell="ulimit -n 20"), ("demo", "run", "listen", "replay")
    run_all(machine, dict.fromkeys(loops, 2))
    for name in loops:
        assert "the limit of open files is 20, 64 are needed" in machine.output_of(name)
        assert "hint: raise the limit of open files: ulimit -n" in machine.output_of(name)


def test_files_of_four_kib(make: MakeMachine) -> None:
    """`stdio` ends as its agent; its journal is left to `recover`."""
    refused = ("ls", "replay", *RECORDING)
    machine = make(shell="ulimit -f 8")
    run_all(machine, dict.fromkeys(refused, 2), (*refused, "stdio"))
    for name in refused:
        assert "file too large" in machine.output_of(name)
        assert "hint: raise the limit of file sizes: ulimit -f unlimited" in machine.output_of(name)


def test_umask_0(make: MakeMachine, tmp_path: Path) -> None:
    """Recordings, and the topmost folder that is created for the state directory, are for the user
    only."""
    run_all(make(shell="umask 0"), {}, STATE)
    made = [tmp_path / "files", *(tmp_path / f"{name}.a2a.db" for name in RECORDING)]
    assert [path.name for path in made if stat.S_IMODE(path.stat().st_mode) & 0o077] == []
