"""Sessions of a stdio agent as lists of chunks: messages in either framing, logs, signals, the
exit."""

from __future__ import annotations

from typing import Any

import msgspec

from a2a_proxy.model.wire import Chunk, ChunkKind, ConnectionFacts, DialFacts, Direction, ExitFacts

START = 1_700_000_000_000_000_000
STEP = 1_000_000
"""ns between two steps."""
COMMAND = "python agent.py --stdio"
UP, DOWN = Direction.TO_AGENT, Direction.TO_CLIENT


def framed(content: bytes, length: int | None = None, /, **fields: str) -> bytes:
    """Return a message with the two mandatory fields; `A2A_Version="1.0"` adds one, `length` may be
    wrong."""
    size = len(content) if length is None else length
    lines = [f"Content-Length: {size}", "Content-Type: application/json"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    return "\r\n".join([*lines, "", ""]).encode() + content


class Stdio:
    """One agent process with a step each millisecond. Methods return the session, so that calls can
    be chained."""

    def __init__(self, command: str = COMMAND, *, lines: bool = False) -> None:
        self._lines = lines
        self._pause = 0
        """ns until the next step, beside the usual one."""
        self.chunks: list[Chunk] = []
        self._add(
            ChunkKind.OPEN,
            UP,
            msgspec.json.encode(ConnectionFacts("pid 123", "stdio", command, "stdio")),
        )
        self._add(ChunkKind.DIALED, UP, msgspec.json.encode(DialFacts(command, peer="pid 456")))

    def call(self, method: str, params: Any = None, rpc_id: Any = 1, **fields: str) -> Stdio:
        """Add a request. Its version is 1.0 by default (`A2A_Version=""`: none)."""
        value = {"jsonrpc": "2.0", "id": rpc_id, "method": method, "params": params or {}}
        fields = {"A2A_Version": "1.0"} | fields
        return self.say(value, **{name: value for name, value in fields.items() if value})

    def result(self, value: Any, rpc_id: Any = 1) -> Stdio:
        """Add a response."""
        return self.answer({"jsonrpc": "2.0", "id": rpc_id, "result": value})

    def error(self, code: int, message: str, rpc_id: Any = 1) -> Stdio:
        """Add an error response."""
        return self.answer(
            {"jsonrpc": "2.0", "id": rpc_id, "error": {"code": code, "message": message}}
        )

    def say(self, value: Any, **fields: str) -> Stdio:
        """Add any message of the client."""
        return self.write(self._message(value, **fields))

    def answer(self, value: Any, **fields: str) -> Stdio:
        """Add any message of the agent."""
        return self.read(self._message(value, **fields))

    def write(self, data: bytes) -> Stdio:
        """Add bytes that the client writes to stdin."""
        return self._add(ChunkKind.DATA, UP, data)

    def read(self, data: bytes) -> Stdio:
        """Add bytes that the agent writes to stdout."""
        return self._add(ChunkKind.DATA, DOWN, data)

    def log(self, data: bytes) -> Stdio:
        """Add bytes that the agent writes to stderr."""
        return self._add(ChunkKind.LOG, DOWN, data)

    def signal(self, name: str = "SIGTERM") -> Stdio:
        """Add a signal that is forwarded."""
        return self._add(ChunkKind.SIGNAL, UP, name.encode())

    def eof(self, direction: Direction) -> Stdio:
        """Close the pipe of one side."""
        return self._add(ChunkKind.EOF, direction)

    def hang_up(self) -> Stdio:
        """Close the client's end of the agent's stdout."""
        return self._add(ChunkKind.RESET, UP)

    def exit(self, code: int | None = 0, signal: str | None = None) -> Stdio:
        """Close the agent's stdout, then end its process."""
        self.eof(DOWN)
        return self._add(ChunkKind.EXITED, DOWN, msgspec.json.encode(ExitFacts(code, signal)))

    def wait(self, seconds: float) -> Stdio:
        """Advance the time."""
        self._pause = int(seconds * 1e9)
        return self

    def at(self, moment: int) -> Stdio:
        """Set the time of the next step (ns), or the earliest possible time after it."""
        self._pause = (
            max(moment - self.chunks[-1].at - STEP, self._pause)
            if self.chunks[0].at <= moment
            else 0
        )
        return self

    def closed(self) -> Stdio:
        """Add the last record of the connection."""
        return self._add(ChunkKind.CLOSED, UP)

    def session(self) -> list[Chunk]:
        """Return the whole session with its end."""
        return [*self.chunks, Chunk(0, ChunkKind.END, UP, self.chunks[-1].at + STEP)]

    def _message(self, value: Any, **fields: str) -> bytes:
        content = msgspec.json.encode(value)
        return content + b"\n" if self._lines else framed(content, **fields)

    def _add(self, kind: ChunkKind, direction: Direction, data: bytes = b"") -> Stdio:
        at = self.chunks[-1].at + STEP + self._pause if self.chunks else START
        self._pause = 0
        self.chunks.append(Chunk(1, kind, direction, at, data))
        return self
