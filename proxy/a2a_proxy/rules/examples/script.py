"""A conversation of two peers as bytes with times: what an example of a rule is made of.

Scripts are made of exchanges (`a2a_proxy.rules.examples.conversation`), one after the other (`+`) or at once (`both`).
They
cost nothing until `chunks` or `lines` asks for them.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from a2a_proxy.model.chunk import Chunk, ChunkKind, ConnectionFacts, DialFacts, Direction

MS = 1_000_000
"""ns."""
START = 1_767_225_600_000_000_000
"""When every script begins: 2026-01-01 00:00:00 UTC, ns."""
STEP = 10 * MS
"""Between one step of a conversation and the next."""
UPSTREAM = "http://localhost:8000"
_SCRIPT_PAUSE = 300 * MS
"""From here on a pause is shown."""
_MAX_LINE = 2000
"""Characters of a line of an example that are shown."""


class PeerStep(msgspec.Struct, frozen=True):
    """What one peer does."""

    at: int
    """ns after the beginning of its exchange."""
    direction: Direction
    data: bytes = b""
    kind: ChunkKind = ChunkKind.DATA
    text: str = ""
    """The same for people: a line or more; empty where there is nothing to say."""


class ScriptConnection(msgspec.Struct, frozen=True):
    """One connection: its steps in order. `length` is the time it takes, ns."""

    steps: tuple[PeerStep, ...]
    length: int
    upstream: str = UPSTREAM
    client: str = "127.0.0.1"
    closes: bool = True
    """False: it is open still when the session ends, so it ends with the proxy, not by a peer."""
    transport: str = "tcp"
    """`tcp`, or `stdio`: then the upstream is a command."""


class _ScheduledConnection(msgspec.Struct, frozen=True):
    """A connection and when it begins, ns after the script's beginning."""

    at: int
    connection: ScriptConnection


Build = Callable[[], tuple[list[_ScheduledConnection], int]]


class Script:
    """Exchanges in time."""

    def __init__(self, build: Build) -> None:
        self._build = build

    @classmethod
    def of(cls, make: Callable[[], ScriptConnection]) -> Script:
        """The script of one connection."""

        def build() -> tuple[list[_ScheduledConnection], int]:
            talk = make()
            return [_ScheduledConnection(0, talk)], talk.length

        return cls(build)

    def __add__(self, other: Script) -> Script:
        """First this one, then the other."""
        return self.then(other, STEP)

    def then(self, other: Script, pause: int) -> Script:
        """First this one, after a pause of so many ns the other."""

        def build() -> tuple[list[_ScheduledConnection], int]:
            first, length = self._build()
            second, more = other._build()
            shift = length + pause
            return [*first, *(_ScheduledConnection(shift + each.at, each.connection) for each in second)], shift + more

        return Script(build)

    def chunks(self) -> list[Chunk]:
        """The session: records as the relay writes them, END last."""
        placed, length = self._build()
        found: list[Chunk] = []
        for number, each in enumerate(sorted(placed, key=lambda one: one.at), 1):
            found += _connection_chunks(number, START + each.at, each.connection)
        found.sort(key=lambda chunk: chunk.at)
        end = max([START + length, *(chunk.at for chunk in found)]) + STEP
        return [*found, Chunk(0, ChunkKind.END, Direction.TO_AGENT, end)]

    def lines(self) -> list[str]:
        """The conversation for people: `client -> ...` and `agent  <- ...`, in order of time."""
        placed, _ = self._build()
        steps = [(each.at + step.at, step) for each in placed for step in each.connection.steps if step.text]
        steps.sort(key=lambda pair: pair[0])
        found: list[str] = []
        before = 0
        for at, step in steps:
            if at - before >= _SCRIPT_PAUSE:
                found.append(f"       ... {_format_seconds(at - before)} s later")
            before = at
            head = "client ->" if step.direction is Direction.TO_AGENT else "agent  <-"
            first, *rest = map(_shorten_line, step.text.split("\n"))
            found += [f"{head} {first}", *(f"          {line}" for line in rest)]
        return found


def _format_seconds(pause: int) -> str:
    """Below ten with one decimal, where it has one."""
    seconds = pause / (1000 * MS)
    return f"{seconds:.1f}".removesuffix(".0") if seconds < 10 else f"{seconds:.0f}"


def _shorten_line(line: str) -> str:
    """Nobody reads megabytes."""
    return line if len(line) <= _MAX_LINE else f"{line[:_MAX_LINE]}... ({len(line)} characters)"


def run_together(first: Script, second: Script, *, after: int = STEP // 2) -> Script:
    """Two scripts at once, the second begins `after` ns."""

    def build() -> tuple[list[_ScheduledConnection], int]:
        one, length = first._build()
        two, other = second._build()
        return [*one, *(_ScheduledConnection(after + each.at, each.connection) for each in two)], max(
            length, after + other
        )

    return Script(build)


def _connection_chunks(number: int, at: int, connection: ScriptConnection) -> list[Chunk]:
    if connection.transport == "stdio":
        facts = ConnectionFacts(f"pid {400 + number}", "stdio", connection.upstream, connection.transport)
        dialed = DialFacts(connection.upstream, peer=f"pid {500 + number}")
    else:
        facts = ConnectionFacts(f"{connection.client}:{5000 + number}", "127.0.0.1:9000", connection.upstream)
        dialed = DialFacts(connection.upstream.partition("://")[2], peer="127.0.0.1:8000")
    up = Direction.TO_AGENT
    chunks = [
        Chunk(number, ChunkKind.OPEN, up, at, msgspec.json.encode(facts)),
        Chunk(number, ChunkKind.DIALED, up, at, msgspec.json.encode(dialed)),
    ]
    chunks += [Chunk(number, step.kind, step.direction, at + step.at, step.data) for step in connection.steps]
    if connection.closes:
        chunks.append(Chunk(number, ChunkKind.CLOSED, up, at + connection.length))
    return chunks
