"""One tab: a process of the application, and the bytes between it and the browser.

Both ways a packet is one byte for its type (`D` terminal data, `M` JSON about it), four for its length, and that many.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

_MAX_CELLS = 1000
"""Cells of a terminal, either way."""
_STOP_TIMEOUT = 5.0
"""Seconds until a process that should end is killed."""
_DRIVER_GREETING = b"__GANGLION__\n"
"""What Textual's web driver says before its first packet."""


def tab_command(recording: str, *, write: bool) -> list[str]:
    """What a tab runs. Nothing is looked for in the working directory, and no shell is asked."""
    return [sys.executable, "-P", "-m", "a2a_inspect.web.child", *(["--write"] if write else []), "--", recording]


def make_packet(kind: bytes, payload: bytes) -> bytes:
    """See the module."""
    return kind + len(payload).to_bytes(4, "big") + payload


def packet_from_message(message: str) -> bytes:
    """The packet for a message of the page; empty for what is none: the page may be anything that knows the address."""
    try:
        words = msgspec.json.decode(message, type=list[Any])
    except (msgspec.DecodeError, UnicodeEncodeError):
        return b""
    match words:
        case ["stdin", str(keys)]:
            return make_packet(b"D", keys.encode())
        case ["resize", {"width": int(width), "height": int(height)}]:
            return make_packet(
                b"M",
                msgspec.json.encode({"type": "resize", "width": clamp_cells(width), "height": clamp_cells(height)}),
            )
        case ["focus" | "blur" as which]:
            return make_packet(b"M", msgspec.json.encode({"type": which}))
    return b""


def clamp_cells(number: int) -> int:
    """A size that a terminal can have."""
    return max(1, min(number, _MAX_CELLS))


class Tab:
    """The process of one tab."""

    def __init__(self, process: Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, command: list[str], width: int, height: int) -> Tab:
        """Run it with a terminal of this size. Raises OSError."""
        environment = {
            **os.environ,
            "COLUMNS": str(clamp_cells(width)),
            "ROWS": str(clamp_cells(height)),
            "TEXTUAL_COLOR_SYSTEM": "truecolor",
            "TERM_PROGRAM": "textual",
        }
        return cls(await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, env=environment))

    async def feed(self, message: str) -> None:
        """What the page said goes to the process; after its end nowhere."""
        writer = self._process.stdin
        assert writer is not None
        data = packet_from_message(message)
        if data and not writer.is_closing():
            writer.write(data)
            with contextlib.suppress(ConnectionError):
                await writer.drain()

    async def relay_output(self, send: Callable[[bytes], Awaitable[None]]) -> None:
        """Send what the process draws, until it ends. What else it asks of a browser is not done."""
        reader = self._process.stdout
        assert reader is not None
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            if await reader.readexactly(len(_DRIVER_GREETING)) != _DRIVER_GREETING:
                return
            while True:
                head = await reader.readexactly(5)
                payload = await reader.readexactly(int.from_bytes(head[1:], "big"))
                if head[:1] == b"D":
                    await send(payload)

    async def stop(self) -> None:
        """End the process: its input ends; what does not go by itself is killed."""
        writer = self._process.stdin
        assert writer is not None
        writer.close()
        discard = asyncio.ensure_future(self.relay_output(_discard_output))
        try:
            await asyncio.wait_for(self._process.wait(), _STOP_TIMEOUT)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        finally:
            discard.cancel()


async def _discard_output(data: bytes) -> None:
    """What a process draws while it ends, so that it is not held up by it."""
