"""A client of A2A 0.2, which runs scenarios as the SDK clients do."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import aiohttp

from wire import Json, Rpc, error, kit, part_shown, status_shown

UNKNOWN = "00000000-0000-4000-8000-000000000000"


def artifact(one: Json) -> kit.Event:
    """An artifact without its envelope."""
    parts = [part_shown(p) for p in one["parts"]]
    return {"artifact": one["artifactId"], "name": one.get("name"), "parts": parts}


def shown(one: Json) -> kit.Event:
    """A result, by its kind."""
    if one["kind"] == "message":
        ids = {
            "task": one.get("taskId", ""),
            "context": one.get("contextId", ""),
            "message": one["messageId"],
        }
        return {
            "kind": "message",
            **ids,
            "role": one["role"],
            "parts": [part_shown(p) for p in one["parts"]],
        }
    if one["kind"] == "task":
        ids = {
            "kind": "task",
            "task": one["id"],
            "context": one["contextId"],
            **status_shown(one["status"]),
        }
        return {
            **ids,
            "artifacts": [artifact(a) for a in one["artifacts"]],
            "history": len(one["history"]),
        }
    ids = {"task": one["taskId"], "context": one["contextId"]}
    if one["kind"] == "status-update":
        return {"kind": "status", **ids, **status_shown(one["status"]), "final": one["final"]}
    return {
        "kind": "artifact",
        **ids,
        **artifact(one["artifact"]),
        "append": one["append"],
        "last": one["lastChunk"],
    }


class Scenarios:
    """The scenarios, over one HTTP client."""

    def __init__(self, base_url: str, http: aiohttp.ClientSession) -> None:
        self.base, self.http = base_url.rstrip("/"), http
        self.rpc = Rpc(http, self.base + "/")

    def params(self, text: str, task: str | None = None, context: str | None = None) -> Json:
        """What `message/send` and `message/stream` take."""
        message: Json = {"kind": "message", "role": "user", "messageId": str(uuid.uuid4())}
        message["parts"] = [{"kind": "text", "text": text}]
        ids = {name: value for name, value in (("taskId", task), ("contextId", context)) if value}
        return {
            "message": {**message, **ids},
            "configuration": {"acceptedOutputModes": ["text/plain"], "blocking": True},
        }

    async def play(
        self, log: kit.Transcript, params: Json, stream: str = "main", on_event: Any = None
    ) -> list[kit.Event]:
        """Stream the answer."""
        return await log.drain(
            self.rpc.stream("message/stream", params), shown, error, stream, on_event
        )

    async def once(self, log: kit.Transcript, params: Json, stream: str = "main") -> Json:
        """Send unary; the result itself."""
        result: Json = await log.call(self.rpc.call("message/send", params), shown, error, stream)
        return result

    async def call(self, log: kit.Transcript, method: str, **params: object) -> None:
        """Any other unary call."""
        await log.call(self.rpc.call(method, params), shown, error)

    async def scenario_card(self, log: kit.Transcript) -> None:
        """The card, at the old path."""
        async with self.http.get(self.base + "/.well-known/agent.json") as response:
            log.add({"kind": "card", "card": await response.json()})

    async def scenario_unary(self, log: kit.Transcript) -> None:
        """Send, then get."""
        task = await self.once(log, self.params("unary"))
        await self.call(log, "tasks/get", id=task["id"], historyLength=10)

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

    async def scenario_message_only(self, log: kit.Transcript) -> None:
        """An answer without a task, streamed and unary."""
        await self.play(log, self.params("message"))
        await self.once(log, self.params("message"))

    async def scenario_input(self, log: kit.Transcript) -> None:
        """The agent asks, the client answers; then the same unary."""
        asked = (await self.play(log, self.params("input")))[-1]
        await self.play(log, self.params("blue", asked["task"], asked["context"]))
        again = await self.once(log, self.params("input"))
        await self.once(log, self.params("green", again["id"], again["contextId"]))

    async def begin(
        self, log: kit.Transcript, text: str
    ) -> tuple[kit.Event, asyncio.Task[list[kit.Event]]]:
        """Start a stream, and wait until its agent works."""
        begun = kit.First(kit.working)
        running = asyncio.create_task(self.play(log, self.params(text), "first", begun))
        return await begun.found, running

    async def scenario_subscribe(self, log: kit.Transcript) -> None:
        """A second stream on a running task sees the rest of it."""
        event, first = await self.begin(log, "gate")
        joined = kit.First(lambda _: True)
        rest = self.rpc.stream("tasks/resubscribe", {"id": event["task"]})
        second = asyncio.create_task(log.drain(rest, shown, error, "second", joined))
        await joined.found
        await self.once(log, self.params("open:" + event["task"]), "opener")
        await asyncio.gather(first, second)

    async def scenario_cancel(self, log: kit.Transcript) -> None:
        """Cancel a running task while its stream is open, then cancel it again."""
        event, running = await self.begin(log, "long")
        for _ in range(2):
            await self.call(log, "tasks/cancel", id=event["task"])
        await running

    async def scenario_push(self, log: kit.Transcript) -> None:
        """Set and get a push configuration."""
        task = await self.once(log, self.params("input"))
        auth = {"schemes": ["Bearer"], "credentials": "push-credentials-1"}
        config = {"url": "http://127.0.0.1:9/hook", "token": "push-token-1", "authentication": auth}
        made = {"taskId": task["id"], "pushNotificationConfig": config}
        show = lambda one: {**one, "kind": "push"}  # noqa: E731
        await log.call(self.rpc.call("tasks/pushNotificationConfig/set", made), show, error)
        await log.call(
            self.rpc.call("tasks/pushNotificationConfig/get", {"id": task["id"]}), show, error
        )

    async def scenario_errors(self, log: kit.Transcript) -> None:
        """Calls that the agent must refuse, unary and before the first event of a stream."""
        finished = (await self.once(log, self.params("unary")))["id"]
        await self.call(log, "tasks/get", id=UNKNOWN)
        await self.call(log, "tasks/cancel", id=finished)
        await self.play(log, self.params("unary", finished))
        await self.call(log, "no/such/method")

    async def scenario_failures(self, log: kit.Transcript) -> None:
        """Tasks that end badly, the last by an error in mid-stream."""
        for text in ("fail", "reject", "crash"):
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
