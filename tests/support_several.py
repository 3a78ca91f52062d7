"""Recordings that belong together: of two proxies, each in front of an agent, with one conversation
through both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec.structs import replace

from a2a_proxy.model.values import Changes, Connection, Task
from a2a_proxy.recording.write.writer import Writer
from support_inspect import MS, TASK, exchange, request, status
from support_recording import STARTED, facts

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
OTHER = "0b5e3a52-3a0e-4a9e-9a39-9a1f6b6a0d01"


def begin(path: Path, number: int) -> Writer:
    """Return the writer of session `number`, of a proxy in front of agent `number`."""
    ways = {"listens": (f"127.0.0.1:900{number}",), "upstreams": (f"agent-{number}:8000",)}
    writer = Writer(path, facts(number, started=STARTED + number * MS, **ways))
    writer.open()
    return writer


def call(writer: Writer, session: int, number: int, second: int, **more: Any) -> None:
    """Write exchange `number`, `second` seconds after the start of both recordings, with its frames
    and task."""
    shift = (second - number) * 1000 * MS
    agent = f"agent-{session}:8000"
    values: dict[str, Any] = {"task_id": TASK, "context_id": "ctx", "agent": agent, **more}
    moments = (
        "started",
        "request_ended",
        "response_started",
        "first_event",
        "last_event",
        "closed",
    )
    plain = exchange(number)
    moved = exchange(
        number, **{**{name: getattr(plain, name) + shift for name in moments}, **values}
    )
    told = f"Question {session}.{number}"
    frames = [
        moved_frame(frame, shift)
        for frame in (request(number, told), status(number, 1, "Thinking"))
    ]
    line = Connection(
        1, "127.0.0.1:5000", f"127.0.0.1:900{session}", agent, STARTED, kind="http/1.1"
    )
    at = STARTED + second * 1000 * MS
    task = Task(
        agent,
        values["task_id"],
        "ctx",
        state=2,
        states=((at, 2),),
        first=at,
        last=at,
        exchanges=(number,),
    )
    writer.write(frames, changes=Changes([line], [moved], [task] if values["task_id"] else []))


def moved_frame(frame: Any, shift: int) -> Any:
    """Return the same frame that much later, of another task."""
    return replace(frame, at=frame.at + shift, began=frame.began + shift)


def pair(folder: Path) -> tuple[Path, Path]:
    """Write two finished recordings: calls at seconds 1, 3 and 5 in the first, at 2 and 4 in the
    second, one task in both.

    The calls at 1 and 2 are of one trace; the one at 4 is about a task of its own.
    """
    first, second = folder / "first.a2a.db", folder / "second.a2a.db"
    one, two = begin(first, 1), begin(second, 2)
    call(one, 1, 1, 1, traceparent=f"00-{TRACE}-00f067aa0ba902b7-01")
    call(one, 1, 2, 3)
    call(one, 1, 3, 5, error="TASK_NOT_FOUND -32001: no such task", task_id="", context_id="")
    call(two, 2, 1, 2, traceparent=f"00-{TRACE}-11f067aa0ba902b7-01", context_id="")
    call(two, 2, 2, 4, task_id=OTHER, context_id="elsewhere")
    one.finish(STARTED + 10_000 * MS)
    two.finish(STARTED + 11_000 * MS)
    return first, second
