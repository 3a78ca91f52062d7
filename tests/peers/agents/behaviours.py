"""What every agent does for which text: one table of steps that each dialect's agent plays in its
own words.

Standard library only, so that every interpreter can import it. Deterministic, except for the ids
and times of an SDK.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from typing import NamedTuple

UNIT = "A2A carries agents' work. "
UNICODE = 'größe \U0001f916 "quoted" \\ slash\nnew line'
# Line ends to Python's splitlines and so to httpx, but not to SSE: the 1.x client breaks on them, a
# decoder must not.
TRICKY = 'line one\nline two \u2028 separator \u0085 next-line \U0001f916 ünïcödé "quoted" \\ slash'
QUESTION = "Which colour?"


class State(NamedTuple):
    """The task takes `state`, in the lower-case words of 0.2; `text` is the status message, None
    for none."""

    state: str
    text: str | None = None


class Chunk(NamedTuple):
    """A piece of artifact `artifact`: `kind` says how `body` is carried (text, raw bytes, url or
    data)."""

    artifact: str
    body: object
    append: bool = False
    last: bool = True
    kind: str = "text"
    media: str | None = None


class Pause(NamedTuple):
    """Nothing happens for this many seconds."""

    seconds: float


class Hold(NamedTuple):
    """Nothing happens until somebody opens the gate of this task, or cancels it."""


class Open(NamedTuple):
    """Open the gate of the task whose id is `task`; the SDK agents wait until somebody has
    subscribed to it."""

    task: str


class Answer(NamedTuple):
    """Answer with a bare message, without any task."""

    text: str


class Crash(NamedTuple):
    """The agent's code raises."""


Step = State | Chunk | Pause | Hold | Open | Answer | Crash


def chunks(artifact: str, pieces: int, gap: float = 0.0) -> list[Step]:
    """An artifact of so many text pieces, `gap` seconds before each."""
    steps: list[Step] = []
    for n in range(pieces):
        if gap:
            steps.append(Pause(gap))
        steps.append(
            Chunk(artifact, f"piece {n + 1} of {pieces}; ", append=n > 0, last=n == pieces - 1)
        )
    return steps


WORK, DONE = State("working", "on it"), State("completed", "done")

TABLE: dict[str, list[Step]] = {
    "unary": [WORK, Chunk("answer", "forty-two"), DONE],
    "stream": [
        WORK,
        *chunks("report", 4),
        State("working", UNICODE),
        Chunk("notes", UNICODE),
        DONE,
    ],
    "tricky": [WORK, State("working", TRICKY), Chunk("notes", TRICKY), DONE],
    "parts": [
        WORK,
        Chunk("file", b"\x00\x01\xfe\xff raw bytes", kind="raw", media="application/octet-stream"),
        Chunk("link", "https://example.com/picture.png", kind="url", media="image/png"),
        Chunk("table", {"rows": [1, 2.5, None, True], "name": "größe"}, kind="data"),
        DONE,
    ],
    "slow-stream": [WORK, *chunks("report", 5, gap=0.2), DONE],
    "paced": [WORK, *chunks("report", 6, gap=0.02), DONE],
    "input": [WORK, State("input-required", QUESTION)],
    "long": [WORK, Hold()],
    "gate": [WORK, Hold(), *chunks("late", 3), DONE],
    "fail": [WORK, State("failed", "no such luck")],
    "reject": [State("rejected", "not my job")],
    "crash": [WORK, Chunk("answer", "half of"), Pause(0.3), Crash()],
    "big": [WORK, Chunk("big", UNIT * (1_048_576 // len(UNIT)), media="text/plain"), DONE],
    "message": [Answer("a message and no task")],
}


def steps_for(text: str, following_up: bool) -> list[Step]:
    """The steps for a message with this text; `following_up` says that it continues a task that
    waits for input.

    `open:<task id>` opens the gate of another task; `chunks:<number>` makes a report of so many
    pieces. A text that is not in the table is answered by a message saying so.
    """
    if following_up:
        return [WORK, Chunk("answer", f"you said {text}"), DONE]
    if text.startswith("open:"):
        return [Open(text.removeprefix("open:")), Answer("opened")]
    if text.startswith("chunks:"):
        return [WORK, *chunks("report", int(text.removeprefix("chunks:"))), DONE]
    return TABLE.get(text) or [Answer(f"no behaviour is called {text}")]


def options(description: str) -> argparse.ArgumentParser:
    """The command line that all agents share: what their card says about where they are."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--advertise-http", metavar="URL", help="base URL in the card instead of the agent's own"
    )
    parser.add_argument(
        "--advertise-grpc",
        metavar="HOST:PORT",
        help="gRPC target in the card instead of the agent's own",
    )
    parser.add_argument(
        "--until-stdin-closes", action="store_true", help="end with the process that holds stdin"
    )
    return parser


def watch_stdin(args: argparse.Namespace) -> None:
    """With --until-stdin-closes, end this process when stdin does, so that no agent outlives a
    killed test run."""

    def readable() -> None:
        if not os.read(sys.stdin.fileno(), 4096):
            os._exit(0)

    if args.until_stdin_closes:
        asyncio.get_running_loop().add_reader(sys.stdin.fileno(), readable)
