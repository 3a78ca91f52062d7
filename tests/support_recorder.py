"""A recorder and its journal: as a real process under its supervisor, or in this process without a
supervisor."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec

from a2a_proxy.capture import file_layout
from a2a_proxy.capture.file_layout import JournalFolder, SessionFile
from a2a_proxy.capture.journal import Journal
from a2a_proxy.capture.journal_files import JournalLimits
from a2a_proxy.capture.recorder_options import RecorderOptions
from a2a_proxy.model.wire import Chunk
from a2a_proxy.recorder.recorder_supervisor import RecorderSupervisor
from a2a_proxy.recorder.status import RecorderDone, RecorderReady, Status
from a2a_proxy.recording.read.reader import Recording
from support_journal import Turns
from support_observer import START
from support_process import state_of

SECONDS = 120.0


def wait_until(what: Callable[[], Any], seconds: float = SECONDS) -> None:
    """Wait until `what()` is true; fail after `seconds`."""
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, what
        time.sleep(0.005)


class Bench:
    """One session: a journal to which the test appends, and a supervisor with its recorder."""

    def __init__(
        self,
        folder: Path,
        limits: JournalLimits | None = None,
        *,
        number: int = 1,
        started: int = START,
        patience: float = SECONDS,
        command: tuple[str, ...] = ("a2a-proxy",),
        card_keys: str = "",
    ) -> None:
        self.recording = folder / "recording.a2a.db"
        self.session = SessionFile(
            recording=str(self.recording),
            pid=os.getpid(),
            started=started,
            uuid=str(uuid.UUID(int=number)),
            command=command,
            listens=("127.0.0.1:9000",),
            upstreams=("agent:8000",),
            options=RecorderOptions(card_keys=card_keys),
        )
        self.folder: JournalFolder = file_layout.create_journal(self.session)
        self.heard: list[Status] = []
        self.killed = 0
        """Process id of the recorder killed last."""
        self.supervisor = RecorderSupervisor(
            self.folder.path, self.heard.append, pauses=(0.01,), patience=patience
        )
        limits = limits or JournalLimits(keep_free=0)
        self.journal = Journal(
            self.folder.path, Turns(), limits, wake_fd=self.supervisor.wake_write
        )

    def write(self, chunks: Iterable[Chunk]) -> None:
        for chunk in chunks:
            self.journal.append(chunk.kind, chunk.direction, chunk.connection, chunk.at, chunk.data)
        self.journal.flush()

    def start(self) -> None:
        answer = self.supervisor.start(SECONDS)
        assert isinstance(answer, RecorderReady), answer

    def end(self, at: int = START + 10**12) -> None:
        """End the relay normally."""
        self.journal.close(at, SECONDS)
        self.supervisor.close_wake_pipe()

    def die(self) -> None:
        """End the relay as if it was killed: close its files without writing END."""
        self.journal.flush()
        wait_until(lambda: not self.journal.get_stats().queued)
        self.journal.set_wake_fd(None)
        self.supervisor.close_wake_pipe()

    def kill_recorder(self) -> None:
        """Send SIGKILL to the running recorder, which has not been killed before."""
        wait_until(lambda: self.supervisor.pid != self.killed)
        self.killed = self.supervisor.pid
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.killed, signal.SIGKILL)

    def kill_blamelessly(self) -> None:
        """Kill the recorder any number of times (`kill_blamelessly`)."""
        wait_until(lambda: self.supervisor.pid != self.killed)
        self.killed = self.supervisor.pid
        kill_blamelessly(self.killed, self.folder.path, self.recording)

    def finish(self) -> RecorderDone:
        """Wait for the outcome."""
        assert self.supervisor.drain_journal(SECONDS)
        assert isinstance(self.supervisor.outcome, RecorderDone), self.supervisor.outcome
        return self.supervisor.outcome

    def close(self) -> None:
        """Close everything that the test left open."""
        self.supervisor.kill()
        self.folder.release_locks()

    @property
    def segments(self) -> list[str]:
        return sorted(path.name for path in self.folder.path.glob("*.a2aj"))


def kill_blamelessly(recorder: int, journal: Path, recording: Path) -> None:
    """Send SIGKILL to a recorder at any position, except where a record would be skipped after it:
    the supervisor attributes the deaths of three recorders at the same record to that record."""
    while True:
        with Recording(recording) as stored:  # not while it is stopped, because it may hold a lock
            position = stored.read_sessions()[-1].position or (1, 0)
        os.kill(recorder, signal.SIGSTOP)
        wait_until(lambda: state_of(recorder) == "T")
        if not _would_blame(journal, position):
            os.kill(recorder, signal.SIGKILL)
            return
        os.kill(recorder, signal.SIGCONT)
        time.sleep(0.01)


def _would_blame(journal: Path, position: tuple[int, int]) -> bool:
    """Return whether other recorders died at the record at this position, and it may still be the
    next (`recorder.crashes`)."""
    try:
        deaths = json.loads((journal / "crashes.json").read_bytes())
    except FileNotFoundError:
        return False
    except ValueError:  # it is being written
        return True
    return bool(deaths["tries"] > 1 and tuple(deaths["at"]) == position)


def contents(path: Path) -> dict[str, list[Any]]:
    """Return the content of all sessions of a recording, in a form that can be compared."""
    with Recording(path) as stored:
        return {
            "sessions": [(row.how, row.complete, row.lost) for row in stored.read_sessions()],
            "connections": [row.connection for row in stored.read_connections()],
            "exchanges": [row.exchange for row in stored.read_exchanges()],
            "frames": [row.frame for row in stored.frames_after(0)],
            "tasks": sorted(msgspec.structs.astuple(row.task) for row in stored.read_tasks()),
            "findings": [row.finding for row in stored.read_findings()],
        }
