"""Clients of stdio agents: the same conversation with `a2a-proxy stdio` before the agent's command
and without."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

import msgspec

from support_cli import SECONDS, environment, program, until

AGENT = Path(__file__).resolve().parent / "peers" / "stdio" / "agent.py"


def agent(manner: str = "plain", *received: object) -> list[str]:
    """Return the command of an agent with this behaviour (`peers/stdio/agent.py`)."""
    return [sys.executable, "-SE", str(AGENT), manner, *map(str, received)]


def wrapped(command: Sequence[str], *options: object) -> list[str]:
    """Return the same command behind the proxy."""
    return [program("a2a-proxy"), "stdio", *map(str, options), "--", *command]


def frame(content: Any) -> bytes:
    """Return one message as a client writes it."""
    data = (
        content if isinstance(content, bytes) else json.dumps(content, ensure_ascii=False).encode()
    )
    fields = (
        f"Content-Length: {len(data)}\r\nContent-Type: application/json\r\nA2A-Version: 1.0\r\n\r\n"
    )
    return fields.encode() + data


def request(number: int, method: str, text: str = "") -> bytes:
    """Return a call with its framing."""
    message = {"messageId": f"m-{number}", "role": "ROLE_USER", "parts": [{"text": text}]}
    params = {"message": message} if method.startswith("Send") else {}
    return frame({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


CARD = request(1, "GetExtendedAgentCard")


class Client:
    """Starts an agent and collects its output."""

    def __init__(self, command: Sequence[str], state: Path, **environ: str) -> None:
        pipe = subprocess.PIPE
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            command,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            bufsize=0,
            env=environment(state, **environ),
        )
        self.out, self.err = bytearray(), bytearray()
        pairs = ((self.process.stdout, self.out), (self.process.stderr, self.err))
        self._readers = [
            threading.Thread(target=_collect, args=pair, daemon=True) for pair in pairs
        ]

    def read(self) -> None:
        """Start to read."""
        for reader in self._readers:
            reader.start()

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        rest = memoryview(data)
        while rest:
            rest = rest[self.process.stdin.write(rest) :]

    def expect(self, data: bytes, times: int = 1) -> None:
        """Wait until the agent has written these bytes."""
        until(lambda: self.out.count(data) >= times)

    def close(self) -> None:
        """Close stdin."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def end(self) -> tuple[int, float]:
        """Wait for the end; return the exit code and the seconds that it took."""
        began = time.monotonic()
        code = self.process.wait(SECONDS)
        seconds = time.monotonic() - began
        for reader in self._readers:
            if reader.is_alive():
                reader.join(SECONDS)
        return code, seconds


def _collect(stream: IO[bytes], kept: bytearray) -> None:
    while data := stream.read(65536):
        kept += data


Story = Callable[[Client], None]


class Outcome(msgspec.Struct):
    """The bytes that a client and its agent exchanged, and their ends."""

    code: int
    out: bytes
    err: bytes
    received: bytes
    seconds: float
    """Seconds from the client's last action to the end."""

    @property
    def seen(self) -> tuple[int, bytes, bytes, bytes]:
        """Return everything that must be the same behind a proxy."""
        return self.code, self.out, self.err, self.received


def outcome(folder: Path, manner: str, story: Story, *options: object, proxied: bool) -> Outcome:
    """Play one story with an agent, whose files are in `folder`."""
    folder.mkdir()
    received = folder / "received"
    command = agent(manner, received)
    client = Client(wrapped(command, *options) if proxied else command, folder / "state")
    try:
        client.read()
        story(client)
        code, seconds = client.end()
    finally:
        client.process.kill()
    return Outcome(code, bytes(client.out), bytes(client.err), received.read_bytes(), seconds)
