"""Driving a stdio agent: `a2a-proxy stdio` starts it, relays it and records it."""

from __future__ import annotations

import asyncio
import shutil
import sys
from pathlib import Path

from a2a_proxy.capture import file_layout
from a2a_proxy.cli.errors import UserError
from a2a_proxy.drive.stdio import StdioTransport
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.read.reader import Recording

_PROXY_CODE = "from a2a_proxy.cli.main import main; main()"
_RECORD_SECONDS = 60.0
"""Seconds that its recorder may take to finish."""


def connect_stdio_agent(command: tuple[str, ...], record: Path) -> StdioTransport:
    """Return the transport to the agent. Raises UserError if the command does not exist."""
    if shutil.which(command[0]) is None:
        raise UserError(
            f"command not found: {command[0]}", "check the spelling and the PATH; no shell reads the command"
        )
    return StdioTransport((sys.executable, "-c", _PROXY_CODE, "stdio", "--record", str(record), "--", *command))


async def wait_until_recorded(record: Path, pid: int) -> None:
    """Wait until the recorder, which outlives the agent, has finished."""
    async with asyncio.timeout(_RECORD_SECONDS):
        while not await asyncio.to_thread(_is_recorded, record, pid):
            await asyncio.sleep(0.02)


def _is_recorded(record: Path, pid: int) -> bool:
    if not record.exists():
        return False
    try:
        with Recording(record) as recording:
            own = [session for session in recording.sessions() if session.facts.pid == pid and session.how]
            return bool(own) and own[-1].facts.uuid not in file_layout.sessions_with_journal()
    except RecordingError:  # it is being created
        return False
