"""A closed terminal ends every command as SIGTERM does, although nothing can be printed any
more."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import socket
import subprocess
import sys
import termios
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from a2a_proxy.recording.read.reader import Recording
from support_cli import SECONDS, Agent, Proxy, call, environment, program, until
from support_process import state_of

Start = Callable[..., Proxy]
SAMPLES = Path(__file__).parents[2] / "recordings"


class Terminal:
    """A program whose standard streams are a terminal of its own, until `close`."""

    def __init__(self, state: Path, *words: object, stdin: int | None = None) -> None:
        self._master, slave = pty.openpty()
        self._shown = bytearray()
        self.process = subprocess.Popen(
            [program(str(words[0])), *map(str, words[1:])],
            stdin=slave if stdin is None else stdin,
            stdout=slave,
            stderr=slave,
            env=environment(state, TERM="xterm-256color"),
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(slave, termios.TIOCSCTTY, 0),
        )
        os.close(slave)
        self._stop, self._stopping = os.pipe()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            while self._stop not in select.select([self._master, self._stop], [], [])[0]:
                self._shown += os.read(self._master, 1 << 16)

    @property
    def shown(self) -> str:
        return self._shown.decode(errors="replace")

    def close(self) -> None:
        """The window is closed: the program gets SIGHUP, and its writes fail with EIO."""
        os.close(self._stopping)
        self._reader.join(SECONDS)
        os.close(self._master)
        os.close(self._stop)

    def end(self) -> int:
        """Close it; the program's exit code."""
        self.close()
        return self.process.wait(SECONDS)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    """Starts programs that end with the test."""
    made: list[Terminal] = []

    def start(*words: object, **options: int) -> Terminal:
        made.append(Terminal(tmp_path / "state", *words, **options))
        return made[-1]

    yield start
    for each in made:
        each.process.kill()
        each.process.wait()


def ended_cleanly(recording: Path) -> bool:
    """Its one session is recorded to its end."""
    with Recording(recording) as stored:
        (session,) = stored.read_sessions()
        return (session.how, session.complete) == ("clean", "complete")


def test_the_relay_ends_with_its_terminal(
    terminal: Callable[..., Terminal], agent: Agent, tmp_path: Path
) -> None:
    """The last call is stored, the session is ended, no journal is left, the code is that of
    SIGTERM."""
    file = tmp_path / "r.db"
    one = terminal("a2a-proxy", "-l", "127.0.0.1:0", "-u", agent.upstream, "--record", file)
    until(lambda: "stop with" in one.shown)
    address = one.shown.split(" listens on ")[1].split()[0]
    call(address)
    assert one.end() == 0
    assert ended_cleanly(file)
    with Recording(file) as stored:
        assert [row.exchange.how for row in stored.read_exchanges()] == ["complete"]
    assert not list((tmp_path / "state" / "journals").iterdir())


def test_a_hangup_ignored_by_nohup_stays_ignored(
    proxy: Start, agent: Agent, tmp_path: Path
) -> None:
    before = ["/bin/sh", "-c", 'trap "" HUP; exec "$@"', "sh"]
    one = proxy(
        "-l", "127.0.0.1:0", "-u", agent.upstream, "--record", tmp_path / "r.db", before=before
    )
    (address,) = one.addresses()
    one.process.send_signal(signal.SIGHUP)
    call(address)
    one.process.send_signal(signal.SIGHUP)
    call(address)
    one.process.terminate()
    assert one.wait() == 0
    assert ended_cleanly(tmp_path / "r.db")


def test_a_second_hangup_does_not_cut_the_shutdown_short(
    proxy: Start, agent: Agent, tmp_path: Path
) -> None:
    """A terminal and a shell may each send one, and a supervisor SIGTERM as well: all of it is
    still recorded."""
    one = proxy("-l", "127.0.0.1:0", "-u", agent.upstream, "--record", tmp_path / "r.db")
    (address,) = one.addresses()
    call(address)
    recorder = one.recorder()
    os.kill(recorder, signal.SIGSTOP)
    try:
        for number in (signal.SIGHUP, signal.SIGHUP, signal.SIGTERM, signal.SIGHUP):
            one.process.send_signal(number)
            until(lambda: "stopping: " in one.err)
    finally:
        os.kill(recorder, signal.SIGCONT)
    assert one.wait() == 0
    assert ended_cleanly(tmp_path / "r.db")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="finds the recorder in /proc")
def test_the_recorder_survives_a_hangup(proxy: Start, agent: Agent, tmp_path: Path) -> None:
    """A supervisor that sends SIGHUP to all processes of a service."""
    one = proxy("-l", "127.0.0.1:0", "-u", agent.upstream, "--record", tmp_path / "r.db")
    (address,) = one.addresses()
    recorder = one.recorder()
    os.kill(recorder, signal.SIGHUP)
    call(address)
    assert one.recorder() == recorder
    assert state_of(recorder) not in "ZX"
    assert one.stop() == 0
    assert ended_cleanly(tmp_path / "r.db")


def test_a_mock_ends_with_its_terminal(terminal: Callable[..., Terminal]) -> None:
    one = terminal("a2a-proxy", "replay", SAMPLES / "demo.a2a.jsonl", "-l", "127.0.0.1:0")
    until(lambda: "stop with" in one.shown)
    assert one.end() == 0


def test_a_drive_ends_with_its_terminal(terminal: Callable[..., Terminal], tmp_path: Path) -> None:
    """The agent does not answer; the exit code is that of Ctrl-C, and the calls driven so far are
    recorded."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        words = (
            "--upstream",
            f"http://127.0.0.1:{silent.getsockname()[1]}",
            "--record",
            tmp_path / "r.db",
        )
        one = terminal("a2a-proxy", "drive", SAMPLES / "demo.a2a.jsonl", *words)
        silent.settimeout(SECONDS)
        while not (tmp_path / "r.db").exists():
            silent.accept()[0].close()  # it asks for a card
        silent.accept()
        assert one.end() == 130
    assert ended_cleanly(tmp_path / "r.db")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_drive_of_a_stdio_agent_ends_cleanly(tmp_path: Path, number: int) -> None:
    """The agent ends with it, and its recording is whole."""
    file = tmp_path / "r.db"
    words = (
        "drive",
        SAMPLES / "demo.a2a.jsonl",
        "--record",
        file,
        "--",
        "/bin/sh",
        "-c",
        "read x; exec cat >/dev/null",
    )
    line = [program("a2a-proxy"), *map(str, words)]
    with subprocess.Popen(
        line, stderr=subprocess.PIPE, text=True, env=environment(tmp_path / "state")
    ) as one:
        until(lambda: file.exists())
        one.send_signal(number)
        assert one.wait(SECONDS) == 130
        assert one.stderr is not None
        assert "stopped before all calls were sent" in one.stderr.read()
    until(lambda: not list((tmp_path / "state" / "journals").iterdir()))
    assert ended_cleanly(file)


def test_the_demo_ends_with_its_terminal(terminal: Callable[..., Terminal], tmp_path: Path) -> None:
    one = terminal("a2a-proxy", "demo", "--record", tmp_path / "r.db")
    until(lambda: "recording to" in one.shown)
    assert one.end() == 0
    assert ended_cleanly(tmp_path / "r.db")


def test_a_stdio_agent_ends_with_its_terminal(
    terminal: Callable[..., Terminal], tmp_path: Path
) -> None:
    """It gets the signal that it would get without the proxy; the session is recorded to its
    end."""
    agent = "import time; print('there', flush=True); time.sleep(600)"
    words = ("stdio", "--record", tmp_path / "r.db", "--", sys.executable, "-c", agent)
    one = terminal("a2a-proxy", *words)
    until(lambda: "there" in one.shown)
    assert one.end() == -signal.SIGHUP
    until(lambda: not list((tmp_path / "state" / "journals").iterdir()))
    assert ended_cleanly(tmp_path / "r.db")


@pytest.mark.parametrize("words", [("tail", "-f"), ("screen",)], ids=lambda words: words[0])
def test_follow_commands_end_with_their_terminal(
    terminal: Callable[..., Terminal], words: tuple[str, ...]
) -> None:
    """Exit code as of Ctrl-C."""
    one = terminal("a2a-inspect", *words, SAMPLES / "generations.a2a.jsonl")
    until(lambda: "GetTask" in one.shown)
    assert one.end() == 130


@pytest.mark.parametrize("words", [("tail", "-f"), ("screen",)], ids=lambda words: words[0])
def test_follow_commands_end_by_sigterm(
    terminal: Callable[..., Terminal], words: tuple[str, ...]
) -> None:
    """The screen puts the terminal back as it was."""
    one = terminal("a2a-inspect", *words, SAMPLES / "generations.a2a.jsonl")
    until(lambda: "GetTask" in one.shown)
    one.process.terminate()
    assert one.process.wait(SECONDS) == 130
    if words == ("screen",):
        until(lambda: "\x1b[?1049l" in one.shown)
