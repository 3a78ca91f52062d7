"""A stdio relay alone: no recorder, its journal left for the test to read."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from a2a_proxy.model.wire import Chunk, ChunkKind, Direction
from support_cli import until
from support_journal import read_all
from support_process import stat

_RELAY = """
import sys
from pathlib import Path
from a2a_proxy.capture.journal import Journal
from a2a_proxy.relay.clock import session_clock
from a2a_proxy.relay.stdio import StdioRelay
from a2a_proxy.relay.stdio_agent import exit_like
from a2a_proxy.relay.journal_buffer import JournalBuffer
relay = StdioRelay(sys.argv[2:])
journal = Journal(Path(sys.argv[1]), lambda *_: None)
relay.start(JournalBuffer(journal, session_clock()))
code = relay.wait()
journal.close(0, 60)
exit_like(code)
"""
"""A program that runs a relay without a recorder and keeps its journal."""
PYTHON = [sys.executable, "-SEc"]


def relayed(folder: Path, command: Sequence[object]) -> list[str]:
    """Return the command line of a relay whose journal is in `folder`."""
    return [sys.executable, "-c", _RELAY, str(folder / "journal"), *map(str, command)]


def both(folder: Path, command: Sequence[object]) -> list[list[str]]:
    """Run the agent alone, and behind a relay."""
    return [[str(word) for word in command], relayed(folder, command)]


def spawn(command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen(command, bufsize=0, **{**streams, **options})


def journal(folder: Path) -> list[Chunk]:
    """Return the journal of the relay."""
    return read_all(folder / "journal")


def story(chunks: Sequence[Chunk]) -> list[str]:
    """Return the kinds of the records in order, with consecutive DATA and LOG of one side
    joined."""
    words = [f"{chunk.kind.name} {chunk.direction.name}" for chunk in chunks]
    return [word for index, word in enumerate(words) if index == 0 or word != words[index - 1]]


def data(chunks: Sequence[Chunk], kind: ChunkKind, direction: Direction) -> bytes:
    return b"".join(
        chunk.data for chunk in chunks if chunk.kind is kind and chunk.direction is direction
    )


def of_kind(chunks: Sequence[Chunk], kind: ChunkKind) -> list[Any]:
    return [json.loads(chunk.data) for chunk in chunks if chunk.kind is kind]


def child_of(pid: int) -> int:
    """Return the process id of a relay's agent, when it runs."""
    return int(
        until(lambda: Path(f"/proc/{pid}/task/{pid}/children").read_text().split() or None)[0]
    )


def blocked(child: int) -> bool:
    """Return whether the process sleeps and has used no processor time for a while."""
    before = stat(child)
    time.sleep(0.2)
    after = stat(child)
    return before[0] == after[0] == "S" and before[11:13] == after[11:13]
