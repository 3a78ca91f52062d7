"""The cost of a hook for the recorder: the time for a journal, with and without a hook on the same
recording."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from journals import Made, session
from spinning import CALLED, HERE

from a2a_proxy.follower.supervisor import FollowerSupervisor

_SECONDS = 120.0


def rate(made: Made, first: Made, folder: Path, hook: str = "") -> float:
    """Return the A2A messages that a recorder stores per second of wall time, at its priority while
    the relay lives.

    The file already has a session, made of `first`; the hook has been called for it when the
    measurement starts.
    """
    name = f"beside-{time.monotonic_ns()}"
    recording = folder / f"{name}.a2a.db"
    _record(first, folder / f"{name}-first", recording)
    with _hooked(hook, recording, folder / f"{name}-called") if hook else contextlib.nullcontext():
        began = time.monotonic()
        _record(made, folder / f"{name}-journal", recording)
        took = time.monotonic() - began
    for end in ("", "-wal", "-shm"):
        Path(f"{recording}{end}").unlink(missing_ok=True)
    return made.messages / took


def _record(made: Made, journal: Path, recording: Path) -> None:
    """Run a recorder as the relay starts it; its wake-up pipe stays open, as the relay's does."""
    session(made, journal, recording)
    wake, relay = os.pipe()
    options = ["--wake", str(wake), "--status", "-1", "--patience", "0"]
    line = [sys.executable, "-P", "-m", "a2a_proxy.recorder", str(journal), *options]
    try:
        subprocess.run(line, pass_fds=(wake,), start_new_session=True, check=True, timeout=_SECONDS)
    finally:
        os.close(wake)
        os.close(relay)
    if journal.exists():
        raise RuntimeError(f"{journal} was not recorded to its end")


@contextlib.contextmanager
def _hooked(hook: str, recording: Path, called: Path) -> Iterator[None]:
    """Run a hook that has been called for the content of the recording, until the block ends."""
    known = {name: os.environ.get(name) for name in ("PYTHONPATH", CALLED)}
    os.environ |= {"PYTHONPATH": str(HERE), CALLED: str(called)}
    supervisor = FollowerSupervisor(
        hook, str(recording), lambda *told: print(*told, file=sys.stderr), follow=True
    )
    try:
        supervisor.start()
        deadline = time.monotonic() + _SECONDS
        while not called.exists():
            if time.monotonic() > deadline:
                raise RuntimeError(f"hook {hook} was never called, see {supervisor.log}")
            time.sleep(0.01)
        yield
    finally:
        supervisor.finish()
        for name, value in known.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
