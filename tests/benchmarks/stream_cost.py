"""The processor time of each process for an event of an agent of the Python SDK: directly, through
this project while recording, and through mitmdump that streams bodies: `stream-cost` of
`tests/benchmarks/run`.

    stream_cost.py PORT CALLS     read the streams of so many calls as the client, and print the
                                  number of events
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from processes import child, end, free_port, running, start, wait_listening, wait_said
from proxies import proxy_command
from setup import program

STREAMS = 8
CALLS = 12
"""Calls of each stream, one after another on one connection."""
CHUNKS = 100
"""Pieces of the artifact that an agent makes for a call, as a language model writes them."""
EVENTS_OF_CALL = CHUNKS + 3
"""The task, its work, the pieces, and its end."""
AGENT, CLIENT, RELAY, RECORDER, PROXY = "agent", "client", "relay", "recorder", "proxy"
SECONDS = 120.0
"""Seconds that a turn may take."""
_ROOT = Path(__file__).resolve().parents[2]
_PEER = _ROOT / ".peers" / "sdk1" / "bin" / "python"
_AGENT = _ROOT / "tests" / "peers" / "agents" / "sdk1_agent.py"
_ADDON = "def responseheaders(flow):\n    flow.response.stream = True\n"
_IDLE_SECONDS = 1.0
"""Seconds without work after which a recorder has recorded everything."""

Pids = dict[str, int]
"""Name of a process of a contestant -> its pid."""


@contextlib.contextmanager
def direct(_folder: Path, origin: int) -> Iterator[tuple[int, Pids]]:
    """Run no proxy."""
    yield origin, {}


@contextlib.contextmanager
def ours(folder: Path, origin: int) -> Iterator[tuple[int, Pids]]:
    """Run this project with a recording."""
    port, log = free_port(), folder / "stderr"
    command = proxy_command(port, f"127.0.0.1:{origin}", str(folder))
    process = start(command, log, A2A_PROXY_STATE=str(folder))
    try:
        wait_listening(process, port, log)
        wait_said(process, "stop with Ctrl-C", log)
        recorder = child(process.pid, "a2a_proxy.recorder")
        yield port, {RELAY: process.pid, RECORDER: recorder}
    finally:
        end(process, signal.SIGTERM, signal.SIGTERM)


@contextlib.contextmanager
def mitmdump(folder: Path, origin: int) -> Iterator[tuple[int, Pids]]:
    """Run mitmdump, which forwards each chunk of a body when it has arrived and records nothing."""
    (folder / "stream.py").write_text(_ADDON)
    port = free_port()
    command = [str(program("mitmdump")), "-q", "-s", str(folder / "stream.py")]
    command += ["--mode", f"reverse:http://127.0.0.1:{origin}", "-p", str(port)]
    command += ["--listen-host", "127.0.0.1", "--set", f"confdir={folder}"]
    with running(command, port, folder / "stderr") as process:
        yield port, {PROXY: process.pid}


Contestant = Callable[[Path, int], contextlib.AbstractContextManager[tuple[int, Pids]]]


def measure(folder: Path, contestant: Contestant) -> dict[str, float]:
    """Return the microseconds of processor time of each process for an event.

    Raises RuntimeError: the client did not receive all events.
    """
    with (
        tempfile.TemporaryDirectory(dir=folder) as place,
        _agent() as (agent, origin),
        contestant(Path(place), origin) as (port, pids),
    ):
        pids |= {AGENT: agent}
        _run_client(port, 1)  # which loads modules
        _wait_until_idle(pids.get(RECORDER, 0))
        before = {name: processor_seconds(pid) for name, pid in pids.items()}
        client_seconds = _run_client(port, CALLS)
        _wait_until_idle(pids.get(RECORDER, 0))
        spent = {name: processor_seconds(pid) - before[name] for name, pid in pids.items()}
    spent[CLIENT] = client_seconds
    return {
        name: 1e6 * seconds / (STREAMS * CALLS * EVENTS_OF_CALL) for name, seconds in spent.items()
    }


def _run_client(port: int, calls: int) -> float:
    """Return the processor seconds of a client that has received all events of so many calls on
    each stream. Raises RuntimeError if it has not."""
    command = [sys.executable, __file__, str(port), str(calls)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode:
        raise RuntimeError(f"the client failed: {done.stderr[-2000:]}")
    events, seconds = done.stdout.split()
    if int(events) != (expected := STREAMS * calls * EVENTS_OF_CALL):
        raise RuntimeError(f"the client received {events} of {expected} events")
    return float(seconds)


@contextlib.contextmanager
def _agent() -> Iterator[tuple[int, int]]:
    """Run the agent, and yield its pid and port."""
    command = [str(_PEER), str(_AGENT), "--until-stdin-closes"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield process.pid, json.loads(process.stdout.readline())["http"]
        finally:
            end(process)  # type: ignore[arg-type]


def processor_seconds(pid: int) -> float:
    """Return the processor time of a process so far. The one of `stat` counts ticks of the clock,
    with which timers wake threads at the same time."""
    found = 0
    for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with contextlib.suppress(OSError):  # the thread has ended
            found += int(path.read_text().split()[0])
    return found / 1e9


def _wait_until_idle(pid: int) -> None:
    """Wait until a process does no more work, for a limited time."""
    deadline = time.monotonic() + SECONDS
    last = -1.0
    while pid and time.monotonic() < deadline and (spent := processor_seconds(pid)) > last + 0.01:
        last = spent
        time.sleep(_IDLE_SECONDS)


async def _read_streams(port: int, calls: int) -> int:
    """Return the number of events of all streams."""
    streams = (_read_stream(port, number, calls) for number in range(STREAMS))
    return sum(await asyncio.gather(*streams))


async def _read_stream(port: int, number: int, calls: int) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    count = 0
    for call in range(calls):
        message = {
            "messageId": f"m-{number}-{call}",
            "role": "ROLE_USER",
            "parts": [{"text": f"chunks:{CHUNKS}"}],
        }
        asked = {"jsonrpc": "2.0", "id": call, "method": "SendStreamingMessage"}
        body = json.dumps({**asked, "params": {"message": message}}).encode()
        writer.write(
            b"POST /a2a/jsonrpc HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nA2A-Version: 1.0\r\n"
            b"Content-Type: application/json\r\nAccept: text/event-stream\r\n"
            b"Content-Length: %d\r\n\r\n%b" % (port, len(body), body)
        )
        await reader.readuntil(b"\r\n\r\n")
        while size := int(await reader.readline(), 16):
            count += (await reader.readexactly(size + 2)).count(b"data: ")
        await reader.readline()
    writer.close()
    return count


if __name__ == "__main__":
    received = asyncio.run(_read_streams(*map(int, sys.argv[1:])))
    print(received, time.process_time())
