"""Start programs on loopback and end them, each by its own pid."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from setup import environment

from support_process import memory_mib as memory_mib

READY_SECONDS = 20.0
END_SECONDS = 5.0


def free_port() -> int:
    """Return a port of 127.0.0.1 on which nothing listens."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def start(command: list[str], log: Path, **extra: str) -> subprocess.Popen[bytes]:
    """Start a program in a session of its own; its stderr goes to `log`."""
    with log.open("wb") as err:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=err,
            env={**environment(dict(os.environ)), **extra},
            start_new_session=True,
        )


def wait_listening(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Wait until it accepts connections. Raises RuntimeError if it ends before that, or does not
    accept any."""
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        time.sleep(0.02)
    end(process)
    raise RuntimeError(
        f"{process.args!r} does not listen on {port}: {log.read_text(errors='replace')[-2000:]}"
    )


def wait_said(process: subprocess.Popen[bytes], words: str, log: Path) -> None:
    """Wait until its log contains `words`."""
    deadline = time.monotonic() + READY_SECONDS
    while words not in log.read_text(errors="replace"):
        if process.poll() is not None or time.monotonic() > deadline:
            end(process)
            raise RuntimeError(
                f"{process.args!r} did not say {words!r}: {log.read_text(errors='replace')[-2000:]}"
            )
        time.sleep(0.02)


def end(process: subprocess.Popen[bytes], *signals: signal.Signals) -> None:
    """Send SIGTERM (or these signals, a moment apart), and SIGKILL if it does not end."""
    for number in signals or (signal.SIGTERM,):
        if process.poll() is None:
            process.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.1)
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def child(pid: int, word: str) -> int:
    """Return the child of this process with `word` in its command. Raises RuntimeError if none
    appears."""
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            for each in children.read_text().split():
                if word in Path(f"/proc/{each}/cmdline").read_text().split("\0"):
                    return int(each)
        time.sleep(0.02)
    raise RuntimeError(f"process {pid} starts no {word}")


@contextlib.contextmanager
def running(command: list[str], port: int, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program that listens on `port` while the block runs."""
    process = start(command, log)
    wait_listening(process, port, log)
    try:
        yield process
    finally:
        end(process)
