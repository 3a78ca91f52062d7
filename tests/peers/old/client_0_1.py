"""A client of A2A 0.1: it makes the task ids, and runs scenarios as the SDK clients do."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import aiohttp

from wire import Json, Rpc, error, kit, part_shown, status_shown

UNKNOWN = "00000000-0000-4000-8000-000000000000"


def artifact(one: Json) -> kit.Event:
    """An artifact; its chunk flags lie inside it."""
    flags = {"append": one.get("append", False), "last": one.get("lastChunk", False)}
    parts = [part_shown(p) for p in one["parts"]]
    return {"artifact": one.get("index", 0), "name": one.get("name"), "parts": parts, **flags}


def task(one: Json) -> kit.Event:
    """A task snapshot."""
    shown = {
        "kind": "task",
        "task": one["id"],
        "context": one.get("sessionId"),
        **status_shown(one["status"]),
    }
    return {**shown, "artifacts": [artifact(a) for a in one.get("artifacts", [])]}


def streamed(one: Json) -> kit.Event:
    """A stream result: a status or an artifact."""
    if "artifact" in one:
        return {"kind": "artifact", "task": one["id"], **artifact(one["artifact"])}
    return {
        "kind": "status",
        "task": one["id"],
        **status_shown(one["status"]),
        "final": one.get("final", False),
    }


class Scenarios:
    """The scenarios, over one HTTP client."""

    def __init__(self, base_url: str, http: aiohttp.ClientSession) -> None:
        self.base, self.http = base_url.rstrip("/"), http
        self.rpc = Rpc(http, self.base + "/")

    def params(self, text: str, earlier: Json | None = None) -> Json:
        """What `tasks/send` and `tasks/sendSubscribe` take; under the ids of an earlier message, or
        under new ones."""
        message = {"role": "user", "parts": [{"type": "text", "text": text}]}
        ids = earlier or {
            "id": str(uuid.uuid4()),
            "sessionId": str(uuid.uuid4()),
            "acceptedOutputModes": ["text"],
        }
        return {**ids, "message": message}

    async def play(
        self, log: kit.Transcript, params: Json, stream: str = "main", on_event: Any = None
    ) -> None:
        """Stream the answer."""
        await log.drain(
            self.rpc.stream("tasks/sendSubscribe", params), streamed, error, stream, on_event
        )

    async def once(self, log: kit.Transcript, params: Json, stream: str = "main") -> None:
        """Send unary."""
        await log.call(self.rpc.call("tasks/send", params), task, error, stream)

    async def scenario_card(self, log: kit.Transcript) -> None:
        """The card, at the old path."""
        async with self.http.get(self.base + "/.well-known/agent.json") as response:
            log.add({"kind": "card", "card": await response.json()})

    async def scenario_unary(self, log: kit.Transcript) -> None:
        """Send, then get."""
        params = self.params("unary")
        await self.once(log, params)
        await log.call(
            self.rpc.call("tasks/get", {"id": params["id"], "historyLength": 10}), task, error
        )

    async def scenario_streaming(self, log: kit.Transcript) -> None:
        """States, and artifacts in chunks."""
        await self.play(log, self.params("stream"))

    async def scenario_parts(self, log: kit.Transcript) -> None:
        """One artifact of each kind of part."""
        await self.play(log, self.params("parts"))

    async def scenario_tricky(self, log: kit.Transcript) -> None:
        """Text with characters that only look like line ends."""
        await self.play(log, self.params("tricky"))

    async def scenario_slow(self, log: kit.Transcript) -> None:
        """Events 200 ms apart."""
        await self.play(log, self.params("slow-stream"))

    async def scenario_input(self, log: kit.Transcript) -> None:
        """The agent asks, the client answers under the same task id; then the same unary."""
        asked = self.params("input")
        await self.play(log, asked)
        await self.play(log, self.params("blue", asked))
        again = self.params("input")
        await self.once(log, again)
        await self.once(log, self.params("green", again))

    async def scenario_cancel(self, log: kit.Transcript) -> None:
        """Cancel a running task while its stream is open, then cancel it again."""
        params, begun = self.params("long"), kit.First(kit.working)
        running = asyncio.create_task(self.play(log, params, "first", begun))
        await begun.found
        for _ in range(2):
            await log.call(self.rpc.call("tasks/cancel", {"id": params["id"]}), task, error)
        await running

    async def scenario_push(self, log: kit.Transcript) -> None:
        """Set and get a push configuration."""
        params = self.params("input")
        await self.once(log, params)
        auth = {"schemes": ["Bearer"], "credentials": "push-credentials-1"}
        config = {"url": "http://127.0.0.1:9/hook", "token": "push-token-1", "authentication": auth}
        made = {"id": params["id"], "pushNotificationConfig": config}
        show = lambda one: {"kind": "push", **one}  # noqa: E731
        await log.call(self.rpc.call("tasks/pushNotification/set", made), show, error)
        await log.call(
            self.rpc.call("tasks/pushNotification/get", {"id": params["id"]}), show, error
        )

    async def scenario_errors(self, log: kit.Transcript) -> None:
        """Calls that the agent must refuse, unary and before the first event of a stream."""
        finished = self.params("unary")
        await self.once(log, finished)
        await log.call(self.rpc.call("tasks/get", {"id": UNKNOWN}), task, error)
        await log.call(self.rpc.call("tasks/cancel", {"id": finished["id"]}), task, error)
        await self.play(log, self.params("unary", finished))
        await log.call(self.rpc.call("tasks/nonsense", {}), task, error)

    async def scenario_failures(self, log: kit.Transcript) -> None:
        """Tasks that end badly, the last by an error in mid-stream."""
        for text in ("fail", "crash"):
            await self.play(log, self.params(text))

    async def scenario_big(self, log: kit.Transcript) -> None:
        """An artifact of one megabyte."""
        await self.once(log, self.params("big"))

    async def scenario_concurrent(self, log: kit.Transcript) -> None:
        """Eight streams at once."""
        await asyncio.gather(
            *(self.play(log, self.params("paced"), f"stream-{n}") for n in range(8))
        )


async def main() -> None:
    """Run the scenarios."""
    args = kit.arguments(__doc__, ("jsonrpc",))
    async with aiohttp.ClientSession(read_bufsize=2**22) as http:
        await kit.run_scenarios(Scenarios(args.base_url, http), args.scenarios)


if __name__ == "__main__":
    asyncio.run(main())
