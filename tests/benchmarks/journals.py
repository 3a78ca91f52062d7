"""Generated journals full of A2A traffic, as a relay writes them."""

from __future__ import annotations

import importlib
import itertools
import math
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import msgspec
from conversations import Step, agent_connection, grpc_connection, sse_connection, unary_connection
from english import English

from a2a_proxy.capture.file_layout import SessionFile, write_session
from a2a_proxy.capture.journal_files import JournalLimits
from a2a_proxy.capture.record_format import pack_record, segment_header, segment_path

try:
    from a2a_proxy.model.wire import ChunkKind, ConnectionFacts, DialFacts, Direction
except ImportError:  # `paired` runs this with older trees, which have them in another module
    chunk = importlib.import_module("a2a_proxy.model.chunk")
    ChunkKind, ConnectionFacts = chunk.ChunkKind, chunk.ConnectionFacts
    DialFacts, Direction = chunk.DialFacts, chunk.Direction

Record = tuple[ChunkKind, Direction, int, bytes, int]
"""Kind, direction, connection, bytes, and the number of A2A messages that they complete."""

STARTED = 1_790_000_000_000_000_000
STEP_NS = 20_000
LIFE = 20_000
"""Messages after which a connection is closed and a new one opened."""


class Made(msgspec.Struct, frozen=True):
    """A generated journal."""

    folder: Path
    messages: int
    """Number of A2A messages; there are more frames, because the ends of exchanges and the settings
    of connections are frames."""
    byte_count: int
    """Bytes that the peers sent."""


def make(folder: Path, messages: int, together: int = 1) -> Made:
    """Generate a journal with at least that many A2A messages, in segments of the relay's size.

    At most `together` messages of one direction arrive in one read, as from a peer that sends fast.
    """
    english, numbers = English(), itertools.count(1)
    lives = [life(partial(source, kind, english), numbers, together) for kind in range(18)]
    return written(folder, (next(life) for life in itertools.cycle(lives)), messages)


def make_agent(folder: Path, messages: int, together: int = 1) -> Made:
    """Generate a journal of agents that write with a language model: eight at a time."""
    english, numbers = English(), itertools.count(1)
    lives = [life(partial(agent_connection, english), numbers, together) for _ in range(8)]
    return written(folder, (next(life) for life in itertools.cycle(lives)), messages)


def written(folder: Path, records: Iterator[Record], messages: float = math.inf) -> Made:
    """Write a journal of these records, up to that many messages."""
    folder.mkdir(mode=0o700)
    writer = Segments(folder)
    count = raw = 0
    at = STARTED
    for kind, direction, connection, data, done in records:
        at += STEP_NS
        writer.put(kind, direction, connection, at, data)
        count += done
        raw += len(data) if kind is ChunkKind.DATA else 0
        if count >= messages and done:
            break
    writer.put(ChunkKind.END, Direction.TO_AGENT, 0, at + STEP_NS, b"")
    writer.close()
    return Made(folder, count, raw)


def session(made: Made, folder: Path, recording: Path) -> None:
    """Create a journal folder with links to the same segments for one recorder, which deletes
    them."""
    folder.mkdir(mode=0o700)
    for segment in made.folder.glob("*.a2aj"):
        os.link(segment, folder / segment.name)
    facts = SessionFile(
        str(recording), os.getpid(), STARTED, f"benchmark {folder.name}", ("a2a-proxy",)
    )
    write_session(folder, facts)


def life(
    source: Callable[[], Iterator[Step]], numbers: Iterator[int], together: int
) -> Iterator[Record]:
    """Yield connections one after another, each with the steps of a new source."""
    while True:
        number = next(numbers)
        facts = ConnectionFacts(
            f"127.0.0.1:{40000 + number % 20000}", "127.0.0.1:9000", "127.0.0.1:8000"
        )
        yield ChunkKind.OPEN, Direction.TO_AGENT, number, msgspec.json.encode(facts), 0
        yield (
            ChunkKind.DIALED,
            Direction.TO_AGENT,
            number,
            msgspec.json.encode(DialFacts("127.0.0.1:8000")),
            0,
        )
        done = 0
        for direction, data, messages in _together(source(), together):
            yield ChunkKind.DATA, direction, number, data, messages
            done += messages
            if done >= LIFE:
                break
        yield ChunkKind.EOF, Direction.TO_AGENT, number, b"", 0
        yield ChunkKind.CLOSED, Direction.TO_AGENT, number, b"", 0


def _together(steps: Iterator[Step], most: int) -> Iterator[Step]:
    """Yield the same bytes in fewer reads."""
    if most == 1:
        yield from steps
        return
    way, parts, count = Direction.TO_AGENT, [b""], 0
    for direction, data, messages in steps:
        if direction != way or count >= most:
            yield way, b"".join(parts), count
            way, parts, count = direction, [], 0
        parts.append(data)
        count += messages


def source(kind: int, english: English) -> Iterator[Step]:
    """Return the steps of one connection: of 18 kinds, eight are gRPC, eight SSE, two unary."""
    if kind < 8:
        return grpc_connection(english, streams=4)
    return sse_connection(english) if kind < 16 else unary_connection(english)


class Segments:
    """Writes segment files of the relay's size."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._limit = JournalLimits().segment_bytes
        self._number = self._size = 0
        self._pieces: list[bytes] = []
        self._next()

    def put(self, kind: int, direction: int, connection: int, at: int, data: bytes) -> None:
        """Write one record."""
        pieces = pack_record(kind, direction, connection, at, data)
        self._pieces += pieces
        self._size += sum(map(len, pieces))
        if self._size >= self._limit:
            self.close()
            self._next()

    def _next(self) -> None:
        self._pieces = [segment_header(self._number + 1, self._size)]
        self._number, self._size = self._number + 1, len(self._pieces[0])

    def close(self) -> None:
        """Write the segment."""
        segment_path(self._folder, self._number).write_bytes(b"".join(self._pieces))
