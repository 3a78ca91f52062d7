"""A conversation of two peers as bytes with times, the form of every rule example.

Scripts are built from exchanges (`a2a_proxy.rules.examples.conversation`), in sequence (`+`) or
concurrently (`run_together`). They cost nothing until `make_chunks` or `format_lines` is called.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from a2a_proxy.model.wire import Chunk, ChunkKind, ConnectionFacts, DialFacts, Direction

MS = 1_000_000
"""One millisecond in ns."""
START = 1_767_225_600_000_000_000
"""Start time of every script: 2026-01-01 00:00:00 UTC, ns."""
STEP = 10 * MS
"""Time between two steps of a conversation, ns."""
UPSTREAM = "http://localhost:8000"
_SCRIPT_PAUSE = 300 * MS
"""Shortest pause that is shown, ns."""
_MAX_LINE = 2000
"""Maximum characters shown of a line of an example."""


class PeerStep(msgspec.Struct, frozen=True):
    """One action of a peer."""

    at: int
    """Time in ns after the start of its exchange."""
    direction: Direction
    data: bytes = b""
    kind: ChunkKind = ChunkKind.DATA
    text: str = ""
    """The step as text, one or more lines; empty if it is not shown."""
    is_delivery: bool = False
    """Whether it belongs to a webhook delivery, in which the agent is the client of the
    connection."""


class ScriptConnection(msgspec.Struct, frozen=True):
    """One connection: its steps in order. `length` is its duration, ns."""

    steps: tuple[PeerStep, ...]
    length: int
    upstream: str = UPSTREAM
    client: str = "127.0.0.1"
    closes: bool = True
    """False if it is still open when the session ends, so that the proxy ends it, not a peer."""
    transport: str = "tcp"
    """`tcp`, or `stdio` if the upstream is a command."""


class _ScheduledConnection(msgspec.Struct, frozen=True):
    """A connection and its start, ns after the start of the script."""

    at: int
    connection: ScriptConnection


Build = Callable[[], tuple[list[_ScheduledConnection], int]]


class Script:
    """A timed sequence of exchanges."""

    def __init__(self, build: Build) -> None:
        self._build = build

    @classmethod
    def of(cls, make: Callable[[], ScriptConnection]) -> Script:
        """Return the script of one connection."""

        def build() -> tuple[list[_ScheduledConnection], int]:
            talk = make()
            return [_ScheduledConnection(0, talk)], talk.length

        return cls(build)

    def __add__(self, other: Script) -> Script:
        """Return this script followed by the other."""
        return self.then(other, STEP)

    def then(self, other: Script, pause: int) -> Script:
        """Return this script followed by the other after a pause, ns."""

        def build() -> tuple[list[_ScheduledConnection], int]:
            first, length = self._build()
            second, more = other._build()
            shift = length + pause
            return [
                *first,
                *(_ScheduledConnection(shift + each.at, each.connection) for each in second),
            ], shift + more

        return Script(build)

    def make_chunks(self) -> list[Chunk]:
        """Return the session as chunks, in the form the relay writes them, with END last."""
        placed, length = self._build()
        found: list[Chunk] = []
        for number, each in enumerate(sorted(placed, key=lambda one: one.at), 1):
            found += _connection_chunks(number, START + each.at, each.connection)
        found.sort(key=lambda chunk: chunk.at)
        end = max([START + length, *(chunk.at for chunk in found)]) + STEP
        return [*found, Chunk(0, ChunkKind.END, Direction.TO_AGENT, end)]

    def format_lines(self) -> list[str]:
        """Return the conversation as text in order of time: `client -> ...` and `agent  <- ...`."""
        placed, _ = self._build()
        steps = [
            (each.at + step.at, step)
            for each in placed
            for step in each.connection.steps
            if step.text
        ]
        steps.sort(key=lambda pair: pair[0])
        found: list[str] = []
        before = 0
        for at, step in steps:
            if at - before >= _SCRIPT_PAUSE:
                found.append(f"       ... {_format_seconds(at - before)} s later")
            before = at
            is_request = step.direction is Direction.TO_AGENT
            peer = "client" if is_request is not step.is_delivery else "agent "
            head = f"{peer} {'->' if is_request else '<-'}"
            first, *rest = map(_shorten_line, step.text.split("\n"))
            found += [f"{head} {first}", *(f"          {line}" for line in rest)]
        return found


def _format_seconds(pause: int) -> str:
    """Return seconds, below ten with one decimal unless it is zero."""
    seconds = pause / (1000 * MS)
    return f"{seconds:.1f}".removesuffix(".0") if seconds < 10 else f"{seconds:.0f}"


def _shorten_line(line: str) -> str:
    """Shorten a long line; large payloads are not useful as examples."""
    return line if len(line) <= _MAX_LINE else f"{line[:_MAX_LINE]}... ({len(line)} characters)"


def run_together(first: Script, second: Script, *, after: int = STEP // 2) -> Script:
    """Return both scripts running concurrently; the second one starts `after` ns."""

    def build() -> tuple[list[_ScheduledConnection], int]:
        one, length = first._build()
        two, other = second._build()
        return [
            *one,
            *(_ScheduledConnection(after + each.at, each.connection) for each in two),
        ], max(length, after + other)

    return Script(build)


def _connection_chunks(number: int, at: int, connection: ScriptConnection) -> list[Chunk]:
    if connection.transport == "stdio":
        facts = ConnectionFacts(
            f"pid {400 + number}", "stdio", connection.upstream, connection.transport
        )
        dialed = DialFacts(connection.upstream, peer=f"pid {500 + number}")
    else:
        facts = ConnectionFacts(
            f"{connection.client}:{5000 + number}", "127.0.0.1:9000", connection.upstream
        )
        dialed = DialFacts(connection.upstream.partition("://")[2], peer="127.0.0.1:8000")
    up = Direction.TO_AGENT
    chunks = [
        Chunk(number, ChunkKind.OPEN, up, at, msgspec.json.encode(facts)),
        Chunk(number, ChunkKind.DIALED, up, at, msgspec.json.encode(dialed)),
    ]
    chunks += [
        Chunk(number, step.kind, step.direction, at + step.at, step.data)
        for step in connection.steps
    ]
    if connection.closes:
        chunks.append(Chunk(number, ChunkKind.CLOSED, up, at + connection.length))
    return chunks
