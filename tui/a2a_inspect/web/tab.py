"""One tab: an application process, and the bytes between it and the browser.

In both directions a packet is one byte for its type (`D` terminal data, `M` JSON metadata), four
bytes for its length, and the payload.
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
"""Maximum width and height of a terminal, in cells."""
_STOP_TIMEOUT = 5.0
"""Seconds until a process that should end is killed."""
_DRIVER_GREETING = b"__GANGLION__\n"
"""The bytes that Textual's web driver sends before its first packet."""


def tab_command(recording: str, *, write: bool) -> list[str]:
    """Return the command of a tab. It runs without a shell and does not search the working
    directory."""
    return [
        sys.executable,
        "-P",
        "-m",
        "a2a_inspect.web.child",
        *(["--write"] if write else []),
        "--",
        recording,
    ]


def make_packet(kind: bytes, payload: bytes) -> bytes:
    """Return a packet (see the module docstring)."""
    return kind + len(payload).to_bytes(4, "big") + payload


def packet_from_message(message: str) -> bytes:
    """Return the packet for a message of the page; empty for an invalid message, because any client
    that knows the address can send one.
    """
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
                msgspec.json.encode(
                    {"type": "resize", "width": clamp_cells(width), "height": clamp_cells(height)}
                ),
            )
        case ["focus" | "blur" as which]:
            return make_packet(b"M", msgspec.json.encode({"type": which}))
    return b""


def clamp_cells(number: int) -> int:
    """Limit a number to a valid terminal size."""
    return max(1, min(number, _MAX_CELLS))


class Tab:
    """The process of one tab."""

    def __init__(self, process: Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, command: list[str], width: int, height: int) -> Tab:
        """Start the process with a terminal of this size. Raises OSError."""
        environment = {
            **os.environ,
            "COLUMNS": str(clamp_cells(width)),
            "ROWS": str(clamp_cells(height)),
            "TEXTUAL_COLOR_SYSTEM": "truecolor",
            "TERM_PROGRAM": "textual",
        }
        return cls(
            await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, env=environment)
        )

    async def feed(self, message: str) -> None:
        """Send a message of the page to the process; discard it after the process has ended."""
        writer = self._process.stdin
        assert writer is not None
        data = packet_from_message(message)
        if data and not writer.is_closing():
            writer.write(data)
            with contextlib.suppress(ConnectionError):
                await writer.drain()

    async def relay_output(self, send: Callable[[bytes], Awaitable[None]]) -> None:
        """Send the output of the process until it ends. Other requests of the process to the
        browser are ignored."""
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
        """Stop the process: close its input, and kill it if it does not end."""
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
    """Discard the output of a process that ends, so that it does not block on writing."""
