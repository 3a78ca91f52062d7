"""What the Python clients share: the command line, the transcript they write, and how scenarios
run.

Standard library only, so that every interpreter can import it. A transcript is JSON lines on
stdout, `{"scenario", "stream", "at", "event"}`: `at` is the receive time in ns since the epoch,
`event` an object with a kind:

    card, push, pushes, tasks, http, ok, webhook    as the scenario says
    task      task, context, state, text, artifacts, history (how many)
    message   task, context, role, parts
    status    task, context, state, text, final (0.x only)
    error     type, code, message
    artifact  task, context, artifact, name, parts, append, last
    end       the stream closed cleanly
    left      the client gave up a stream that stayed open
    broken    the scenario raised or hung

States are the lower-case words of 0.2; a text over 200 characters is given by its length and
SHA-256.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

Event = dict[str, Any]
SCENARIO_SECONDS = 120


def text_of(text: str) -> Event:
    """A text as an event shows it."""
    if len(text) <= 200:
        return {"text": text}
    return {"length": len(text), "sha256": hashlib.sha256(text.encode()).hexdigest()}


def arguments(description: str, bindings: tuple[str, ...]) -> argparse.Namespace:
    """The command line that all clients share."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--binding", choices=bindings, default=bindings[0])
    parser.add_argument(
        "--base-url",
        required=True,
        help="where HTTP goes; the path of the card's interface is kept",
    )
    parser.add_argument("--grpc", default="", metavar="HOST:PORT", help="where gRPC goes")
    parser.add_argument(
        "--follow-card", action="store_true", help="use the URLs of the card as they are"
    )
    parser.add_argument(
        "--scenarios", required=True, help="names, separated by commas; they run in this order"
    )
    return parser.parse_args()


class Transcript:
    """Writes the events of one scenario as they come."""

    def __init__(self, scenario: str) -> None:
        self.scenario = scenario

    def add(self, event: Event, stream: str = "main") -> Event:
        """Write an event of a stream, and give it back."""
        line = {"scenario": self.scenario, "stream": stream, "at": time.time_ns(), "event": event}
        sys.stdout.write(json.dumps(line, ensure_ascii=True) + "\n")
        sys.stdout.flush()
        return event

    async def call(
        self,
        call: Awaitable[Any],
        show: Callable[[Any], Event],
        error: Callable[[Exception], Event],
        stream: str = "main",
    ) -> Any:
        """Await a unary call and write its answer or its error; None after an error."""
        try:
            answer = await call
        except Exception as why:
            self.add(error(why), stream)
            return None
        self.add(show(answer), stream)
        return answer

    async def drain(
        self,
        events: AsyncIterator[Any],
        show: Callable[[Any], Event],
        error: Callable[[Exception], Event],
        stream: str = "main",
        on_event: Callable[[Event], None] | None = None,
    ) -> list[Event]:
        """Write every event of a stream until it ends, and how it ended."""
        seen = []
        try:
            async for event in events:
                seen.append(self.add(show(event), stream))
                if on_event:
                    on_event(seen[-1])
        except Exception as why:
            self.add(error(why), stream)
        else:
            self.add({"kind": "end"}, stream)
        return seen


class First:
    """Waits for the first event of a stream that `wanted` accepts."""

    def __init__(self, wanted: Callable[[Event], bool]) -> None:
        self.wanted = wanted
        self.found: asyncio.Future[Event] = asyncio.get_running_loop().create_future()

    def __call__(self, event: Event) -> None:
        """To be given as `on_event`."""
        if not self.found.done() and self.wanted(event):
            self.found.set_result(event)


def working(event: Event) -> bool:
    """Is this the event that says that the agent has begun?"""
    return event.get("state") == "working"


async def run_scenarios(client: Any, names: str) -> None:
    """Run `client.scenario_<name>(transcript)` one after the other; one that raises or hangs is
    written as broken."""
    for name in names.split(","):
        transcript = Transcript(name)
        try:
            async with asyncio.timeout(SCENARIO_SECONDS):
                await getattr(client, "scenario_" + name.replace("-", "_"))(transcript)
        except Exception as why:
            transcript.add({"kind": "broken", "type": type(why).__name__, "message": str(why)})


class Webhook:
    """A small HTTP/1.1 server on loopback that answers every POST with 200 and keeps what it was
    sent."""

    def __init__(self) -> None:
        self.posts: asyncio.Queue[Event] = asyncio.Queue()
        self.open: list[asyncio.StreamWriter] = []
        self.serving: list[asyncio.Task[Any]] = []

    async def __aenter__(self) -> Webhook:
        """Listen; `url` is what to register."""
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self.server.sockets[0].getsockname()[1]}/hook"
        return self

    async def until_completed(self, log: Transcript) -> None:
        """Write what is posted, up to the post that says that the task is completed."""
        completed = ""
        while "completed" not in completed.lower():
            post = log.add(await self.posts.get(), "webhook")
            task = post["body"].get("task") or post["body"].get("statusUpdate") or post["body"]
            completed = task.get("status", {}).get("state", "")

    async def __aexit__(self, *why: object) -> None:
        """Close the connections and wait for their handlers."""
        self.server.close()
        for writer in self.open:
            writer.close()
        await asyncio.gather(*self.serving, return_exceptions=True)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection's requests."""
        self.open.append(writer)
        if (task := asyncio.current_task()) is not None:
            self.serving.append(task)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                headers = {
                    k.strip().lower(): v.strip()
                    for k, _, v in (line.partition(":") for line in head[1:] if line)
                }
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                kept = ("content-type", "x-a2a-notification-token", "authorization")
                shown = {name: headers[name] for name in kept if name in headers}
                await self.posts.put(
                    {"kind": "webhook", "headers": shown, "body": json.loads(body)}
                )
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
