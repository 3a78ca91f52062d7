"""The recorder beside busy processes: how fast it catches up after a burst of events, and how far
it is behind at a rate that it can carry.

starving.py ARGUMENT...      run a2a-proxy with these arguments and a recorder that never yields to
                             the relay
"""

from __future__ import annotations

import asyncio
import bisect
import contextlib
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cost
import msgspec
from conversations import json_text, post
from processes import end, free_port, start, wait_listening, wait_said
from proxies import proxy_command

from a2a_inspect.data.session_lines import lag_words
from a2a_proxy.recording.read.reader import Recording

BUSY = 4
"""Busy processes beside the proxy."""
SHARE = 0.4
"""Part of the measured rate at equal priority that the recorder certainly can carry."""
_SPIN = (
    "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n    for _ in "
    "range(1_000_000):\n        pass"
)
_RECORDER = "--recorder"
"""First argument of this program as a recorder."""
_POLL_SECONDS = 0.1
_DRAIN_SECONDS = 600.0
_TICK_SECONDS = 0.02
_WARM_UP_SECONDS = 2.0
"""Seconds without a sample at the start of a paced stream, while the recorder's first decision is
made."""
_SHOWN = re.compile(r"(\d+) s behind")
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
_REQUEST = post(
    b'{"jsonrpc":"2.0","id":1,"method":"SubscribeToTask","params":{"id":"t0"}}',
    b"Accept: text/event-stream\r\n",
)
_FIRST = b'data: {"jsonrpc":"2.0","id":1,"result":%b}\n\n' % json_text(
    {"task": {"id": "t0", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}}}
)
_NUMBER = b"00000000"
_EVENT = b'data: {"jsonrpc":"2.0","id":1,"result":%b}\n\n' % json_text(
    {
        "statusUpdate": {
            "taskId": "t0",
            "contextId": "c",
            "status": {
                "state": "TASK_STATE_WORKING",
                "message": {
                    "messageId": f"m{_NUMBER.decode()}",
                    "role": "ROLE_AGENT",
                    "parts": [
                        {"text": f"step {_NUMBER.decode()} of the work, which goes on. " * 3}
                    ],
                },
            },
        }
    }
)


class LagSample(msgspec.Struct, frozen=True):
    """A lag that the proxy or the inspector showed, and the least and the most that it really was
    about that time."""

    where: str
    shown: float
    least: float
    """Seconds since the client sent or received the oldest frame that is not recorded."""
    most: float

    @property
    def error(self) -> float:
        """Return the difference in seconds."""
        return max(self.shown - self.most, self.least - self.shown, 0.0)


class Starved(msgspec.Struct, frozen=True):
    """One stream of events through a proxy beside busy processes."""

    events: int
    sent_seconds: float
    """Seconds from the first event to the last, at the client."""
    left: int
    """Events that were not recorded when the last one had been received."""
    drain_seconds: float
    """Seconds from then until they were."""
    worst: float
    """Worst lag, seconds, after the warm-up."""
    samples: list[LagSample]

    @property
    def drain_rate(self) -> float:
        """Return the events recorded per second after the last one had been received."""
        return self.left / self.drain_seconds


@contextlib.contextmanager
def _busy_processes(count: int) -> Iterator[None]:
    """Run that many processes that compute forever while the block runs, each in a session of its
    own."""
    command = [sys.executable, "-c", _SPIN]
    processes = [
        subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
        for _ in range(count)
    ]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def run_stream(
    folder: Path, events: int, rate: float = 0.0, *, yields: bool = True, busy: int = BUSY
) -> Starved:
    """Send a stream of events through a recording proxy, at that many per second or as fast as
    possible.

    The recorder of the proxy yields to the relay, as it does for users, or works at equal priority.
    """
    with cost.state_in(folder), _busy_processes(busy):
        port, agent, log = free_port(), free_port(), folder / "stderr"
        listening = threading.Event()
        serving = threading.Thread(
            target=lambda: asyncio.run(_serve(agent, events, rate, listening)), daemon=True
        )
        serving.start()
        listening.wait()
        command = proxy_command(port, f"127.0.0.1:{agent}", str(folder))
        process = start(command if yields else [sys.executable, __file__, *command[1:]], log)
        wait_listening(process, port, log)
        wait_said(process, "stop with Ctrl-C", log)
        client = _Client(port, events)
        watch = _Watch(folder / "benchmark.a2a.db", log, client)
        try:
            client.start()
            left = watch.run()
        finally:
            end(process, signal.SIGTERM, signal.SIGTERM)
            client.join()
            serving.join()
    return Starved(
        events,
        client.seconds,
        left,
        watch.drained_at - client.frames[-1][0],
        watch.worst,
        watch.samples,
    )


async def _serve(port: int, events: int, rate: float, listening: threading.Event) -> None:
    """Answer the first request with that many events, at that many per second if `rate` is not
    0."""
    done = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not await reader.read(1 << 16):
            writer.close()  # not a request: the caller only wants to know whether the port is open
            return
        writer.write(_HEAD + _FIRST)
        began, sent = time.monotonic(), 0
        while sent < events:
            due = min(events, int((time.monotonic() - began) * rate) if rate else sent + 200)
            writer.write(
                b"".join(_EVENT.replace(_NUMBER, b"%08d" % each) for each in range(sent, due))
            )
            sent = due
            await writer.drain()
            if rate:
                await asyncio.sleep(_TICK_SECONDS)
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        done.set()

    server = await asyncio.start_server(answer, "127.0.0.1", port)
    listening.set()
    await done.wait()
    server.close()


class _Client(threading.Thread):
    """Reads the stream and notes when it received which event."""

    def __init__(self, port: int, events: int) -> None:
        super().__init__(daemon=True)
        self._port = port
        self._events = events
        self.frames: list[tuple[float, int]] = []
        """Times (seconds since the epoch) and the frames sent and received until then: request,
        task and events."""
        self.is_done = False

    def run(self) -> None:
        with socket.create_connection(("127.0.0.1", self._port), 10) as sock:
            sock.settimeout(_DRAIN_SECONDS)
            self.frames.append((time.time(), 1))
            sock.sendall(_REQUEST)
            got, before = 0, len(_HEAD) + len(_FIRST)
            while data := sock.recv(1 << 18):
                got += len(data)
                if got >= before:
                    self.frames.append((time.time(), 2 + (got - before) // len(_EVENT)))
        if self.frames[-1][1] != self._events + 2:
            raise RuntimeError(f"{self.frames[-1][1] - 2} of {self._events} events were received")
        self.is_done = True

    @property
    def seconds(self) -> float:
        """Return the seconds from the first event to the last."""
        return self.frames[-1][0] - self.frames[1][0]

    def lag_after(self, recorded: int, now: float) -> float:
        """Return for how many seconds the oldest frame after the first `recorded` ones has been
        known to the client; 0 if the client knows no more."""
        at = bisect.bisect_right(self.frames, recorded, key=lambda each: each[1])
        return now - self.frames[at][0] if at < len(self.frames) else 0.0


class _Watch:
    """Compares the recording, what is shown about it, and what the client has received."""

    def __init__(self, recording: Path, log: Path, client: _Client) -> None:
        self._recording = recording
        self._log = log
        self._client = client
        self._read = 0
        self.worst = 0.0
        self.drained_at = 0.0
        self.samples: list[LagSample] = []

    def run(self) -> int:
        """Watch until everything is recorded; return the number of events that were left at the end
        of the stream."""
        began, left = time.time(), -1
        with (
            contextlib.closing(sqlite3.connect(f"file:{self._recording}?mode=ro", uri=True)) as db,
            contextlib.closing(Recording(self._recording)) as reader,
        ):
            before, recorded_before = began, 0
            while True:
                shown = lag_words(reader.read_sessions()[0])
                printed = self._log.read_text(errors="replace")
                done = self._client.is_done  # asked before the recording is read
                recorded = db.execute("SELECT max(id) FROM frame").fetchone()[0] or 0
                now = time.time()
                least = self._client.lag_after(recorded, before)
                most = self._client.lag_after(recorded_before, now)
                for where, words in (("inspector", shown), ("console", printed[self._read :])):
                    for seconds in _SHOWN.findall(words):
                        self.samples.append(LagSample(where, float(seconds), least, most))
                self._read = len(printed)
                if now - began > _WARM_UP_SECONDS:
                    self.worst = max(self.worst, self._client.lag_after(recorded, now))
                if done and left < 0:
                    left = self._client.frames[-1][1] - recorded
                if done and recorded >= self._client.frames[-1][1]:
                    self.drained_at = now
                    return left
                if not (self._client.is_alive() or self._client.is_done):
                    raise RuntimeError("the client has failed")
                if now - began > _DRAIN_SECONDS:
                    raise RuntimeError(f"{recorded} events were recorded after {_DRAIN_SECONDS} s")
                time.sleep(_POLL_SECONDS)
                before, recorded_before = now, recorded


def _run_proxy() -> None:
    """Run a2a-proxy; its recorder runs this program too."""
    from a2a_proxy.cli.main import main
    from a2a_proxy.recorder import recorder_supervisor as supervisor

    original = supervisor._recorder_command

    def command(*location: Any, **options: Any) -> list[str]:
        line = original(*location, **options)
        return [sys.executable, __file__, _RECORDER, *line[line.index("a2a_proxy.recorder") + 1 :]]

    supervisor._recorder_command = command
    main()


def _run_recorder() -> None:
    """Run a recorder that works at equal priority."""
    from a2a_proxy.recorder.__main__ import main
    from a2a_proxy.recorder.priority import Pace

    Pace.decide = lambda *_: None  # type: ignore[method-assign]
    main()


if __name__ == "__main__":
    if sys.argv[1] == _RECORDER:
        del sys.argv[1]
        _run_recorder()
    else:
        _run_proxy()
