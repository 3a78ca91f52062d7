"""A client of a2a-sdk 1.x that calls what its standard input says, a line at a time, so that a test
can change the world between two calls.

Runs in the `sdk1` environment. Commands are `connect`, `send TEXT`, `stream TEXT`, `get`, `cancel`
and `subscribe`; the last three name the task that was seen last. `stream`, `subscribe` return at
the first `working`, and the stream goes on; `wait` waits until it has ended. Each command is
answered by a line of JSON: the last event, or the error, as in the transcripts of `sdk1_client`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import httpx
from a2a.types.a2a_pb2 import CancelTaskRequest, GetTaskRequest, SubscribeToTaskRequest
from sdk1_client import BINDINGS, Event, Scenarios, error, said, streamed, task


class Caller:
    """One client, the task that it saw last and the stream that it reads."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.scenarios = Scenarios(args)
        headers = dict(each.split(": ", 1) for each in args.header)
        self.scenarios.http = httpx.AsyncClient(timeout=args.timeout, headers=headers)
        self.task = ""
        self.reading: asyncio.Task[Event] | None = None

    async def run(self, command: str) -> Event:
        """Return the last event of a command."""
        verb, _, text = command.partition(" ")
        client = self.scenarios
        match verb:
            case "connect":
                await client.connect()
                return {"kind": "ok"}
            case "send":
                return await self.read(client.unary.send_message(said(text)), None)
            case "stream":
                return await self.begin(client.send(text))
            case "subscribe":
                return await self.begin(
                    client.client.subscribe(SubscribeToTaskRequest(id=self.task))
                )
            case "get":
                return task(await client.client.get_task(GetTaskRequest(id=self.task)))
            case "cancel":
                return task(await client.client.cancel_task(CancelTaskRequest(id=self.task)))
        assert self.reading is not None
        return await self.reading

    async def begin(self, events: AsyncIterator[Any]) -> Event:
        """Read a stream, and return its first `working`, or its last event if it ends before."""
        begun: asyncio.Future[Event] = asyncio.get_running_loop().create_future()
        self.reading = asyncio.create_task(self.read(events, begun))
        await asyncio.wait((begun, self.reading), return_when=asyncio.FIRST_COMPLETED)
        return begun.result() if begun.done() else await self.reading

    async def read(self, events: AsyncIterator[Any], begun: asyncio.Future[Event] | None) -> Event:
        """Read events until they end."""
        last: Event = {"kind": "end"}
        async for each in events:
            last = streamed(each)
            self.task = last.get("task") or self.task
            if begun is not None and last.get("state") == "working" and not begun.done():
                begun.set_result(last)
        return last


async def main() -> None:
    """Run the commands until standard input ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binding", choices=tuple(BINDINGS), default="jsonrpc")
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--grpc", default="")
    parser.add_argument("--follow-card", action="store_true")
    parser.add_argument("--timeout", type=float, default=100.0)
    parser.add_argument("--header", action="append", default=[])
    caller = Caller(parser.parse_args())
    while line := await asyncio.to_thread(sys.stdin.readline):
        try:
            event = await caller.run(line.strip())
        except Exception as why:
            event = error(why)
        print(json.dumps(event), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
