"""Sessions with many streams of one task: JSON-RPC subscriptions, each on a connection of its
own."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

import msgspec

from a2a_proxy.model.wire import Chunk, ChunkKind
from support_conversation import Http
from support_observer import DOWN, START, UP, opening

MS = 1_000_000
TASK = {"id": "t1", "contextId": "c1", "status": {"state": "TASK_STATE_WORKING"}}
_FACTS = {"taskId": "t1", "contextId": "c1"}


def working(text: str, **members: Any) -> dict[str, Any]:
    """Return a status update with a message."""
    said = {"messageId": f"m-{text}", "role": "ROLE_AGENT", "parts": [{"text": text}]}
    return {
        "statusUpdate": {
            **_FACTS,
            **members,
            "status": {"state": "TASK_STATE_WORKING", "message": said},
        }
    }


def in_state(state: str, **members: Any) -> dict[str, Any]:
    """Return a status update with only the state."""
    return {"statusUpdate": {**_FACTS, **members, "status": {"state": f"TASK_STATE_{state}"}}}


def piece(artifact: str, text: str, **members: Any) -> dict[str, Any]:
    """Return an artifact update."""
    made = {"artifactId": artifact, "parts": [{"text": text}]}
    return {"artifactUpdate": {**_FACTS, **members, "artifact": made}}


class Streams:
    """The records of a session; `at` is in ms since its beginning."""

    def __init__(self) -> None:
        self._records: list[tuple[float, int, Chunk]] = []

    def _put(self, at: float, number: int, kind: ChunkKind, way: Any, data: bytes = b"") -> None:
        chunk = Chunk(number, kind, way, START + int(at * MS), data)
        self._records.append((at, len(self._records), chunk))

    def open(
        self, number: int, at: float, version: str = "1.0", snapshot: dict[str, Any] | None = None
    ) -> None:
        """Add a subscription that is answered with a snapshot."""
        for chunk in opening(number, START + int(at * MS)):
            self._records.append((at, len(self._records), chunk))
        call = (
            Http()
            .call("SubscribeToTask", {"id": "t1"}, A2A_Version=version)
            .stream(cache_control="no-cache")
        )
        for (_, way, data), after in zip(
            call.rpc_event({"task": snapshot or TASK}).steps, (0, 0.2, 0.4), strict=True
        ):
            self._put(at + after, number, ChunkKind.DATA, way, data)

    def tell(self, number: int, at: float, event: dict[str, Any]) -> None:
        """Add one event of a stream."""
        for _, way, data in Http().rpc_event(event).steps:
            self._put(at, number, ChunkKind.DATA, way, data)

    def end(self, number: int, at: float, *, leaves: bool = False) -> None:
        """End a stream, by the agent or by its client."""
        if leaves:
            self._put(at, number, ChunkKind.EOF, UP)
        else:
            self._put(at, number, ChunkKind.DATA, DOWN, b"0\r\n\r\n")
        self._put(at + 0.1, number, ChunkKind.CLOSED, UP)

    def chunks(self) -> list[Chunk]:
        """Return the chunks in order of time, with the end of the session."""
        found = [chunk for _, _, chunk in sorted(self._records, key=lambda each: each[:2])]
        return [*found, Chunk(0, ChunkKind.END, UP, found[-1].at + 1)]


def random_session(seed: int) -> list[Chunk]:
    """Streams that join late, lag, leave, lose events, tell them twice or in another order;
    numbered or not."""
    dice = random.Random(seed)
    numbered, line, at = dice.random() < 0.5, list[tuple[int, dict[str, Any]]](), 1000
    for number in range(1, dice.randint(8, 50)):
        at += dice.choice([1, 20, 100, 400, 1500, 3000])
        counted = {"generation": str(number)} if numbered else {}
        made = (
            working(f"x{number % 9}", **counted)
            if dice.random() < 0.5
            else piece("a", f"p{number}", **counted)
        )
        line.append((at, made if dice.random() < 0.95 else in_state("INPUT_REQUIRED", **counted)))
    streams = Streams()
    for stream in range(1, dice.choice([2, 3, 8, 9, 12, 16]) + 1):
        joins = 0 if dice.random() < 0.5 else dice.randint(0, at)
        known = sum(when <= joins for when, _ in line)
        counted = {"generation": str(known)} if numbered and known else {}
        streams.open(stream, joins, "1.1" if numbered else "1.0", {**TASK, **counted})
        lag, loses, repeats = (
            dice.choice([0, 0, 50, 700, 4000]),
            dice.choice([0, 0.05]),
            dice.choice([0, 0.05]),
        )
        told = [
            (when + lag, event) for when, event in line if when > joins and dice.random() >= loses
        ]
        told += [
            (when + dice.choice([10, 4000]), event)
            for when, event in told
            if dice.random() < repeats
        ]
        last = joins + dice.randint(100, at) if dice.random() < 0.4 else at + 20_000
        for when, event in told:
            if joins + 1 < when < last:
                streams.tell(stream, when, event)
        if dice.random() < 0.8:
            streams.end(stream, last, leaves=dice.random() < 0.4)
    return streams.chunks()


def opcodes_run(work: Callable[[], object]) -> int:
    """Instructions of Python that `work` runs: the same on any machine."""
    count = 0

    def trace(frame: FrameType, event: str, _value: object) -> Any:
        nonlocal count
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def told_by_each(
    streams: Streams, numbers: Iterable[int], at: float, events: Iterable[dict[str, Any]]
) -> None:
    """Each event on each of these streams, one after the other."""
    for step, event in enumerate(events):
        for number in numbers:
            streams.tell(number, at + step + number / 10_000, event)


def packed(values: object) -> bytes:
    """Findings and the like, to be compared."""
    return msgspec.json.encode(values)
