"""A long run of mixed traffic through one proxy. `tests/benchmarks/soak` calls it.

Clients open streams and calls on all bindings, and close them; some die in the middle. The agent is
killed and started again, the recorder is killed every minute. At the end, each event that a client
received must be in the recording once, in order, with equal bytes, and the memory, descriptors,
threads and journal of the proxy must not have grown.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import json
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import aiohttp
import grpc
from processes import end, free_port
from soak_agent import SERVICE

sys.path.append(str(Path(__file__).resolve().parents[1]))
from a2a_proxy.recording.read.reader import Recording
from support_cli import recorder_of
from support_kills import next_recorder
from support_process import memory_mib
from support_proxy import Proxy, proxy
from support_recorder import kill_blamelessly

MARK = re.compile(rb"mark ([a-z0-9-]+) (\d+)\.")
LONGEST = 300
"""Events of the longest stream."""
DEATH = 0.08
"""Share of clients that die in the middle of a stream."""
SAMPLE_SECONDS = 5.0
RESTART_SECONDS = 97.0
"""Seconds between two kills of the agent."""
KILL_SECONDS = 60.0
"""Seconds between two kills of the recorder."""
GROWTH = 1.25
"""Times the first tenth of the samples that the last tenth may have."""
SLACK = {"memory": 8.0, "descriptors": 16, "threads": 2, "journal": 64.0}
"""Growth that is always allowed: MiB, count, count, MiB."""
CATCH_UP_SECONDS = 600.0


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="tests/benchmarks/soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600.0, help="duration (3600)")
    parser.add_argument(
        "--clients", type=int, default=16, help="streams and calls at the same time (16)"
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of the choices (1)")
    parser.add_argument(
        "--folder", type=Path, help="keep the recording and the outputs in this folder"
    )
    return parser.parse_args()


class Received:
    """The events that one client received: their number, and a hash over their bytes in order."""

    def __init__(self) -> None:
        self.count = 0
        self.complete = False
        self._hash = hashlib.blake2b(digest_size=16)

    def add(self, payload: bytes) -> None:
        """Add the next event."""
        self.count += 1
        self._hash.update(payload)

    def digest(self) -> bytes:
        """Return the hash of all events so far."""
        return self._hash.digest()


class Clients:
    """Clients on all bindings that come and go until `stop`."""

    def __init__(self, address: str, seed: int) -> None:
        self.streams: dict[str, Received] = {}
        self.deaths = self.failures = 0
        self._address = address
        self._random = random.Random(seed)
        self._stopped = False
        self._ways = {
            "grpc": self._grpc,
            "live": self._live,
            "rpc": self._http("/rpc/{}", "SendStreamingMessage"),
            "rest": self._http("/{}/v1/message:stream", ""),
            "call": self._http("/rpc/{}", "SendMessage"),
            "send": self._http("/{}/v1/message:send", ""),
        }

    def stop(self) -> None:
        """Let each client finish its stream and begin no other."""
        self._stopped = True

    async def run(self, name: int) -> None:
        """Be one client after another."""
        number = 0
        while not self._stopped:
            number += 1
            way = self._random.choice(sorted(self._ways))
            events = 1 if way in ("call", "send") else self._random.randint(1, LONGEST)
            dies = (
                self._random.randrange(events)
                if self._random.random() < DEATH and events > 1
                else events
            )
            stream = f"{way}{name}x{number}-{events}"
            received = self.streams[stream] = Received()
            try:
                await self._ways[way](stream, received, dies)
            except (grpc.RpcError, aiohttp.ClientError, OSError, asyncio.IncompleteReadError):
                self.failures += 1
                await asyncio.sleep(0.2)  # the agent is being started
            else:
                received.complete = received.count == events
                self.deaths += dies < events

    async def _grpc(self, stream: str, received: Received, dies: int) -> None:
        async with self._channel() as channel:
            call = channel.unary_stream(f"{SERVICE}SendStreamingMessage", None, None)
            async for message in call(b"", metadata=(("stream", stream),)):
                received.add(message)
                if received.count > dies:
                    return

    async def _live(self, stream: str, received: Received, dies: int) -> None:
        async with self._channel() as channel:
            call = channel.stream_stream(f"{SERVICE}SendLiveMessage", None, None)(
                metadata=(("stream", stream),)
            )
            for _ in range(int(stream.rpartition("-")[2])):
                await call.write(b"")
                message = await call.read()
                if message is grpc.aio.EOF:
                    return
                received.add(message)
                if received.count > dies:
                    return
            await call.done_writing()
            await call.read()

    def _channel(self) -> grpc.aio.Channel:
        return grpc.aio.insecure_channel(
            self._address, options=(("grpc.use_local_subchannel_pool", 1),)
        )

    def _http(self, path: str, method: str) -> Callable[[str, Received, int], Any]:
        async def run(stream: str, received: Received, dies: int) -> None:
            parts = [{"text": "begin"}]
            params = {"message": {"messageId": f"m-{stream}", "role": "ROLE_USER", "parts": parts}}
            body = (
                {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
                if method
                else params
            )
            headers = {"A2A-Version": "1.0"}
            url = f"http://{self._address}{path.format(stream)}"
            async with (
                aiohttp.ClientSession() as session,
                session.post(url, json=body, headers=headers) as response,
            ):
                response.raise_for_status()
                if response.content_type == "application/json":
                    received.add(await response.read())
                    return
                async for line in response.content:
                    if line.startswith(b"data: "):
                        received.add(line[6:].rstrip(b"\n"))
                        if received.count > dies:
                            response.close()
                            return

        return run


class RestartedAgent:
    """The agent's process, which is killed and started again on the same ports."""

    def __init__(self, folder: Path) -> None:
        self.http_port, self.grpc_port = free_port(), free_port()
        self.restarts = -1
        self._log = folder / "agent.err"

    def start(self) -> None:
        """Start it and wait until it serves."""
        program = Path(__file__).with_name("soak_agent.py")
        words = [sys.executable, str(program), str(self.http_port), str(self.grpc_port)]
        with self._log.open("ab") as err:
            self._process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=err
            )
        assert self._process.stdout
        if self._process.stdout.readline() != b"ready\n":
            raise RuntimeError(f"the agent did not start: {self._log.read_text()[-2000:]}")
        self.restarts += 1

    def kill(self) -> None:
        """Send SIGKILL."""
        self._process.kill()
        self._process.wait()

    def end(self) -> None:
        """End it."""
        end(self._process)


Sample = dict[str, float]


def sample(pid: int, journal: Path | None = None) -> Sample:
    """Return what a process uses; raises OSError if it has ended."""
    used: Sample = {
        "memory": memory_mib(pid)[0],
        "descriptors": sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir()),
        "threads": sum(1 for _ in Path(f"/proc/{pid}/task").iterdir()),
    }
    if journal:
        used["journal"] = sum(each.stat().st_size for each in journal.glob("*.a2aj")) / 2**20
    return used


@dataclass
class Soak:
    """One run and its result."""

    seconds: float
    count: int
    seed: int
    relay: list[Sample] = field(default_factory=list)
    recorder: list[Sample] = field(default_factory=list)
    kills: int = 0
    failures: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    async def run(self, folder: Path) -> None:
        """Run all of it; `failures` is empty afterwards if all is well."""
        agent = RestartedAgent(folder)
        agent.start()
        try:
            upstream, grpc_upstream = f"127.0.0.1:{agent.http_port}", f"127.0.0.1:{agent.grpc_port}"
            with proxy(
                folder, upstream, grpc_upstream, "--quiet", "--journal-segment", "4M"
            ) as between:
                clients = Clients(between.address, self.seed)
                tasks = [asyncio.ensure_future(clients.run(number)) for number in range(self.count)]
                await self._disturb(between, agent, clients)
                clients.stop()
                await asyncio.gather(*tasks)
                (journal,) = (between.state / "journals").iterdir()
                async with asyncio.timeout(CATCH_UP_SECONDS):
                    while len(list(journal.glob("*.a2aj"))) > 2:
                        await asyncio.sleep(0.1)
                summary = await asyncio.to_thread(between.stop)
        finally:
            agent.end()
        self._judge(between, clients, agent, summary)

    async def _disturb(self, between: Proxy, agent: RestartedAgent, clients: Clients) -> None:
        began = time.monotonic()
        restart, kill, report = began + RESTART_SECONDS, began + KILL_SECONDS, began + 60
        recorder = await next_recorder(between.process.pid)
        (journal,) = (between.state / "journals").iterdir()
        while (now := time.monotonic()) < began + self.seconds:
            await asyncio.sleep(SAMPLE_SECONDS)
            self.relay.append(sample(between.process.pid, journal))
            with contextlib.suppress(OSError):  # it has just died
                if pid := recorder_of(between.process.pid):
                    self.recorder.append(sample(pid))
            if now > kill:
                await asyncio.to_thread(kill_blamelessly, recorder, journal, between.recording)
                recorder = await next_recorder(between.process.pid, recorder)
                self.kills += 1
                kill += KILL_SECONDS
            if now > restart:
                agent.kill()
                await asyncio.to_thread(agent.start)
                restart += RESTART_SECONDS
            if now > report:
                events = sum(each.count for each in clients.streams.values())
                used = (
                    f"relay {self.relay[-1]['memory']:.0f} MiB, recorder "
                    f"{self.recorder[-1]['memory']:.0f} MiB"
                )
                print(
                    f"{now - began:6.0f} s  {len(clients.streams):,} "
                    f"streams, {events:,} events; {used}",
                    flush=True,
                )
                report += 60

    def _judge(
        self, between: Proxy, clients: Clients, agent: RestartedAgent, summary: dict[str, Any]
    ) -> None:
        counts = compare(between.recording, clients.streams)
        self.failures += [
            f"{what}: {count}" for what, count in sorted(counts.items()) if what != "frames"
        ]
        if not summary["complete"]:
            self.failures.append(f"the recording is not complete: {json.dumps(summary)}")
        if between.err:
            self.failures.append(f"stderr of the proxy: {between.err[:5]}")
        troubles = [each["message"] for each in between.said("trouble")]
        if len(troubles) != self.kills:
            self.failures.append(
                f"{len(troubles)} troubles, {self.kills} kills: {sorted(set(troubles))[:5]}"
            )
        received = sum(each.count for each in clients.streams.values())
        size = between.recording.stat().st_size
        whole = sum(each.complete for each in clients.streams.values())
        ended = f"died {clients.deaths:,}, ended by a restart of the agent {clients.failures:,}"
        frames = counts["frames"]
        self.lines += [
            f"streams and calls {len(clients.streams):,}: complete {whole:,}, {ended}",
            (
                f"events received {received:,}, recorded {frames:,}, "
                f"{size / max(frames, 1):.0f} bytes each on disk"
            ),
            f"kills of the recorder {self.kills}, restarts of the agent {agent.restarts}",
        ]
        for name, samples in (("relay", self.relay), ("recorder", self.recorder)):
            for what, first, last, most in growth(samples):
                self.lines.append(
                    f"{name} {what}: first tenth {first:.0f}, "
                    f"last tenth {last:.0f}, peak {most:.0f}"
                )
                if last > first * GROWTH + SLACK[what]:
                    self.failures.append(f"{name} {what} grew from {first:.0f} to {last:.0f}")


def compare(recording: Path, streams: dict[str, Received]) -> Counter[str]:
    """Return the number of recorded events as `frames`, and how many streams differ from what the
    clients received."""
    counts: Counter[str] = Counter()
    found = {stream: Received() for stream in streams}
    equal = {stream for stream, received in streams.items() if not received.count}
    with Recording(recording) as stored:
        for row in stored.frames_after(0):
            mark = MARK.search(row.frame.payload)
            if mark is None:
                continue
            stream, number = mark[1].decode(), int(mark[2])
            counts["frames"] += 1
            event = found[stream]
            counts["events twice or out of order"] += number < event.count
            counts["events lost within a stream"] += number > event.count
            event.add(row.frame.payload)
            if event.count == streams[stream].count and event.digest() == streams[stream].digest():
                equal.add(stream)
    for stream, received in streams.items():
        counts["streams with fewer events than received"] += found[stream].count < received.count
        counts["complete streams with more events than received"] += (
            received.complete and found[stream].count > received.count
        )
        counts["streams with other bytes"] += (
            stream not in equal and found[stream].count >= received.count
        )
    return +counts


def growth(samples: list[Sample]) -> Iterator[tuple[str, float, float, float]]:
    """Yield the name of each measure, its median in the first and the last tenth of the samples,
    and its peak.

    The first samples after the start do not count: caches fill.
    """
    warm = samples[len(samples) // 20 :]
    tenth = max(1, len(warm) // 10)
    for what in samples[0] if samples else ():
        values = [each[what] for each in warm]
        yield what, median(values[:tenth]), median(values[-tenth:]), max(values)


def main() -> int:
    """Run and report; return 1 if there is a failure."""
    options = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that proxy and agent are ended too
    soak = Soak(options.seconds, options.clients, options.seed)
    with contextlib.ExitStack() as stack:
        folder = options.folder or Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="a2a-soak-"))
        )
        folder.mkdir(parents=True, exist_ok=True)
        asyncio.run(soak.run(folder))
    print("\n".join([f"seed {options.seed}, {options.seconds:.0f} s", *soak.lines]))
    print("\n".join(f"FAILED {each}" for each in soak.failures) or "no failure")
    return 1 if soak.failures else 0


if __name__ == "__main__":
    sys.exit(main())
