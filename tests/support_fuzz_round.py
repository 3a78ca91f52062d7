"""Mutated conversations through real proxies, and the checks of the recordings afterwards.

A round has two proxies with their recorders: connections of even numbers use a proxy that changes
nothing, the others a proxy with the usual options, whose edits do not apply to these conversations.
Both take TLS and are forward proxies if connections use such ways.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import subprocess
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from a2a_proxy.observer import DECODERS_LOST
from a2a_proxy.protocol.completeness import UNENDED
from a2a_proxy.recording.read.reader import Recording
from support_cli import recorder_of
from support_fuzz import Plan, plan, way_of
from support_player import Played, play
from support_process import memory_mib
from support_proxy import Proxy, environment, program
from support_ways import OPENED, Contexts, Line, Way

UNCHANGED = ("--rewrite-card", "never", "--keep-host")
DEFAULTS: tuple[str, ...] = ()
CHECK_SECONDS = 3600.0
"""Seconds; enough on a machine that is busy with other work."""
SEGMENT = "1M"
"""Bytes. Small, so that decoders are saved often and the files on disk are not recorded yet."""
MAX_AHEAD = 50
"""Number of connections that one proxy may be ahead of the other."""
OWN_RULES = ("RECORDER", "RULES")
"""Findings about the proxy itself: a recorder that could not read something, a rule that failed."""

Memory = tuple[float, float]
"""MiB of the relay and of its recorder."""


class Failure(msgspec.Struct, frozen=True):
    """A fault that a round found."""

    number: int
    """Number of the connection; -1 for a whole round."""
    what: str
    changes: tuple[str, ...] = ()
    """The sample and its mutators."""

    def line(self, seed: int) -> str:
        """Return the fault in words, with the command that repeats it."""
        if self.number < 0:
            return self.what
        again = f"--seed {seed} --first {self.number} --connections 1"
        return f"{again}: {self.what} ({' '.join(self.changes)})"


class Totals(msgspec.Struct):
    """Counts of a run."""

    connections: int = 0
    bytes: int = 0
    """Bytes that clients and agents sent."""
    broken: int = 0
    """Connections that a peer reset."""
    refused: int = 0
    """Connections that the proxy answered, because the client used HTTP/2 and the agent did not."""
    unjudged: int = 0
    """Connections whose requests in absolute form are compared only up to the first that a test
    cannot predict."""
    unequal: int = 0
    """Connections whose peer received other bytes, or another end, than the other peer sent."""
    deaths: int = 0
    """Ends of relays and recorders."""
    findings: Counter[str] = msgspec.field(default_factory=Counter)
    """Number of findings by rule."""
    differences: Counter[str] = msgspec.field(default_factory=Counter)
    """Number of findings by rule that were reported live but not by `a2a-inspect check`, or the
    reverse."""
    memory: list[Memory] = []
    """Samples of the memory of each proxy, by round."""
    failures: list[Failure] = []

    def add(self, failure: Failure) -> None:
        """Add a failure."""
        self.failures.append(failure)


def is_captured(missing: str) -> bool:
    """Whether a capture lacks nothing but bytes of peers that cannot be decoded, which is what
    hostile peers send."""
    return not any(words in missing for words in ("not captured", "killed", DECODERS_LOST, UNENDED))


def judge(path: Path, state: Path, totals: Totals) -> Iterator[str]:
    """Yield the faults of a finished recording, from its content and from `a2a-inspect check`;
    count its findings."""
    live: Counter[tuple[object, ...]] = Counter()
    incomplete = 0
    with Recording(path) as recording:
        for session in recording.read_sessions():
            if session.missing_text:
                incomplete = 3
            if not is_captured(session.missing_text):
                yield f"capture complete: {session.complete}"
            for row in recording.read_findings(session.id):
                one = row.finding
                totals.findings[one.rule] += 1
                live[session.id, one.rule, one.connection, one.exchange, one.seq] += 1
                if one.rule in OWN_RULES:
                    yield f"{one.rule}: {one.summary}"
    line = [program("a2a-inspect"), "check", str(path), "--format", "json", "--fail-on", "never"]
    done = subprocess.run(
        line,
        capture_output=True,
        text=True,
        timeout=CHECK_SECONDS,
        env=environment(state),
        check=False,
    )
    if done.returncode != incomplete or (done.stderr and not incomplete):
        yield f"check ended with {done.returncode}: {done.stderr[-3000:]}"
        return
    found: Counter[tuple[object, ...]] = Counter()
    for said in map(json.loads, done.stdout.splitlines()):
        # Endings are evaluated when the recording is read.
        if said["event"] == "finding" and not said["rule"].startswith("A2A-END-"):
            found[
                said["session"], said["rule"], said["connection"], said["exchange"], said["seq"]
            ] += 1
    totals.differences.update(
        str(rule) for _, rule, *_ in ((live - found) + (found - live)).elements()
    )


class Link:
    """One proxy, an agent's listener for each of its lanes, and the expected content of its
    recording."""

    def __init__(
        self, folder: Path, options: tuple[str, ...], lanes: int, *, secure: bool = False
    ) -> None:
        """Start it; with `secure` it takes TLS and is a forward proxy."""
        folder.mkdir()
        self.listeners = [_listener() for _ in range(lanes * (1 + secure))]
        """Of each lane; with `secure`, then of each lane with TLS."""
        self.contexts = Contexts(folder) if secure else None
        addresses = [f"127.0.0.1:{each.getsockname()[1]}" for each in self.listeners]
        first, *others = addresses[:lanes] + [f"https://{each}" for each in addresses[lanes:]]
        more = [word for each in others for word in ("--listen", "127.0.0.1:0", "--upstream", each)]
        if self.contexts is not None:
            more += ["--tls", "--forward", "127.0.0.1:0", "--intercept", OPENED]
            more += ["--upstream-ca", str(self.contexts.origin_ca)]
        self.proxy = Proxy(
            folder, first, "", "--quiet", "--journal-segment", SEGMENT, *options, *more
        ).start()
        (start,) = self.proxy.said("start")
        self.ports = [int(route["listen"][0].rpartition(":")[2]) for route in start["routes"]]
        if self.contexts is not None:
            self.contexts.trust_proxy(self.proxy.state)
            self._forward_port = int(start["forwards"][0][0].rpartition(":")[2])
        self.recorder = recorder_of(self.proxy.process.pid)
        self._wanted: dict[tuple[str, str], deque[tuple[int, int] | None]] = {}
        """Addresses of client and listener, which no two open connections share -> bytes in both
        directions, in order of the connections; None: not known."""
        self._uncertain: set[tuple[str, str]] = set()
        """Addresses of connections that are recorded or not."""

    @contextlib.contextmanager
    def line(self, lane: int, way: Way = Way.PLAIN) -> Iterator[Line]:
        """Yield a connection of a lane that is to be made."""
        lanes = len(self.listeners) // (1 if self.contexts is None else 2)
        if way in (Way.PLAIN, Way.TLS, Way.TLS_BOTH):
            place = lane + lanes * (way is Way.TLS_BOTH)
            yield Line(way, self.ports[place], self.listeners[place], self.contexts)
            return
        with _listener() as own:
            yield Line(way, self._forward_port, own, self.contexts)

    def expect(self, line: Line, played: Played) -> None:
        """Add an expected connection."""
        key = played.address, f"127.0.0.1:{line.port}"
        is_undialled = played.agent.channel is None and line.way is Way.ABSOLUTE
        if is_undialled or (
            played.broken and line.way.is_forwarded
        ):  # a peer may be gone before the record begins
            self._uncertain.add(key)
        self._wanted.setdefault(key, deque()).append(played.recorded_sizes)

    def memory(self) -> Memory:
        """Return the current memory."""
        with contextlib.suppress(OSError):
            return memory_mib(self.proxy.process.pid)[0], memory_mib(self.recorder)[0]
        return 0.0, 0.0

    def behind(self) -> int:
        """Return the bytes of journal on disk, without the snapshot of the decoders, which may be
        larger."""
        return _size(self.proxy.state / "journals", "*.a2aj")

    def size(self) -> int:
        """Return the disk space of this proxy, in bytes."""
        return _size(self.proxy.folder)

    def deaths(self) -> list[str]:
        """Return descriptions of the processes that died."""
        code = self.proxy.process.poll()
        relay = [f"the relay ended with {code}"] if code is not None else []
        return relay + [each["message"] for each in self.proxy.said("trouble")]

    def finish(self, totals: Totals) -> None:
        """Stop the proxy and check its files."""
        for what in self.deaths():
            totals.deaths += 1
            totals.add(Failure(-1, what))
        try:
            summary = self.proxy.stop()
        except RuntimeError as wrong:
            totals.deaths += 1
            totals.add(Failure(-1, str(wrong)[-3000:]))
            return
        finally:
            for listener in self.listeners:
                listener.close()
        if not is_captured(summary["missing"]):
            totals.add(Failure(-1, f"the capture is not complete: {summary}"))
        if self.proxy.err:
            totals.add(Failure(-1, "on stderr: " + " | ".join(self.proxy.err)[-3000:]))
        for what in self._recorded(totals):
            totals.add(Failure(-1, what))

    def _recorded(self, totals: Totals) -> Iterator[str]:
        """Yield the faults of the recording."""
        with Recording(self.proxy.recording) as recording:
            for row in recording.read_connections():
                one = row.connection
                if (one.client, one.listen) in self._uncertain:
                    continue
                wanted = self._wanted.get((one.client, one.listen), deque())
                sizes = wanted.popleft() if wanted else None
                recorded = one.bytes_to_agent, one.bytes_to_client
                if not one.closed:
                    yield f"connection {one.id} was not closed in the recording"
                elif sizes is not None and sizes != recorded:
                    yield (
                        f"connection {one.id} has {recorded} "
                        f"bytes in the recording, sent were {sizes}"
                    )
            if any(left for key, left in self._wanted.items() if key not in self._uncertain):
                yield "connections are missing in the recording"
        yield from judge(self.proxy.recording, self.proxy.state, totals)

    def kill(self) -> None:
        """Kill the proxy if it still runs."""
        self.proxy.kill()
        for listener in self.listeners:
            listener.close()


class Round:
    """Two proxies in one folder, from their start to `finish`."""

    def __init__(
        self, folder: Path, totals: Totals, lanes: int = 4, ways: Sequence[Way] = (Way.PLAIN,)
    ) -> None:
        """Start a round with at most `lanes` open connections through each proxy, on these ways."""
        secure = tuple(ways) != (Way.PLAIN,)
        self.links = [
            Link(folder / name, options, lanes, secure=secure)
            for name, options in (("unchanged", UNCHANGED), ("defaults", DEFAULTS))
        ]
        self._ways = ways
        self.totals = totals
        self._lanes = lanes
        self._may_go_on = asyncio.Event()
        self._may_go_on.set()

    async def play(self, seed: int, numbers: Iterator[int]) -> None:
        """Play the connections of these numbers, each through its proxy."""
        queues: list[deque[int]] = [deque(), deque()]

        def next_of(half: int) -> int | None:
            while not queues[half]:
                number = next(numbers, None)
                if number is None:
                    return None
                queues[number % 2].append(number)
            return queues[half].popleft()

        async def lane(half: int, index: int) -> None:
            while (number := next_of(half)) is not None:
                await self._may_go_on.wait()
                while len(queues[1 - half]) > MAX_AHEAD:
                    await asyncio.sleep(0.01)
                link = self.links[half]
                with link.line(index, way_of(seed, number, self._ways)) as line:
                    await self._play(
                        link, line, plan(seed, number, way=line.way, authority=line.authority)
                    )

        await asyncio.gather(
            *(lane(half, index) for half in (0, 1) for index in range(self._lanes))
        )

    def wait_for_recorders(self, behind: int) -> None:
        """Wait while a recorder has more than `behind` bytes to read."""
        if any(link.behind() > behind for link in self.links):
            self._may_go_on.clear()
        else:
            self._may_go_on.set()

    def sample(self) -> None:
        """Sample the memory of both proxies and report those that died."""
        self.totals.memory += [link.memory() for link in self.links]

    def finish(self) -> None:
        """Stop both proxies and check their recordings."""
        self.sample()
        for link in self.links:
            link.finish(self.totals)

    def kill(self) -> None:
        """Kill the proxies that still run."""
        for link in self.links:
            link.kill()

    async def _play(self, link: Link, line: Line, one: Plan) -> None:
        totals = self.totals
        totals.connections += 1
        try:
            played = await play(one.steps, line, one.pause, notifies=one.notifies)
        except (OSError, TimeoutError) as wrong:
            totals.add(
                Failure(
                    one.number, f"no connection: {wrong!r}", (one.way, one.sample, *one.changes)
                )
            )
            return
        totals.bytes += played.byte_count
        totals.broken += played.broken
        totals.refused += played.refused
        totals.unjudged += not played.is_judged
        link.expect(line, played)
        problems = played.problems()
        totals.unequal += bool(problems)
        for what in problems:
            totals.add(Failure(one.number, what, (one.way, one.sample, *one.changes)))


def _listener() -> socket.socket:
    """Return a listener of an agent on a free port."""
    found = socket.create_server(("127.0.0.1", 0))
    found.setblocking(False)
    return found


def _size(folder: Path, pattern: str = "*") -> int:
    """Return the size of the files in a folder, in bytes."""
    total = 0
    for path in folder.rglob(pattern):
        with contextlib.suppress(OSError):
            total += path.stat().st_size
    return total


def peak(memory: list[Memory]) -> Memory:
    """Return the largest of each value."""
    return max((each[0] for each in memory), default=0.0), max(
        (each[1] for each in memory), default=0.0
    )
