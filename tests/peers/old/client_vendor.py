"""A client of the vendor dialect, which runs scenarios as the SDK clients do."""

from __future__ import annotations

import asyncio
import uuid

import aiohttp

from wire import EVENT_STREAM, Json, Rpc, error, kit, status_shown

KEY = "vendor-key-1"


def streamed(one: Json) -> kit.Event:
    """A frame; `context` only where it has one."""
    progress = one["status"].get("progress")
    shown = {
        "kind": "status",
        "task": one["id"],
        "context": one.get("contextId"),
        **status_shown(one["status"]),
    }
    return {**shown, "progress": progress, "final": one["final"]}


class Scenarios:
    """The scenarios, over one HTTP client."""

    def __init__(self, base_url: str, http: aiohttp.ClientSession) -> None:
        self.http, self.url = http, base_url.rstrip("/") + "/api/v1/a2a/agent-7"
        self.rpc = Rpc(http, self.url, {"x-api-key": KEY})

    async def play(self, log: kit.Transcript, text: str, stream: str = "main") -> None:
        """Stream the answer."""
        message = {
            "role": "user",
            "parts": [{"type": "text", "text": text}],
            "messageId": str(uuid.uuid4()),
        }
        await log.drain(
            self.rpc.stream("message/stream", {"message": message}), streamed, error, stream
        )

    async def scenario_streaming(self, log: kit.Transcript) -> None:
        """Progress, then the answer on the last frame."""
        await self.play(log, "hello")

    async def scenario_slow(self, log: kit.Transcript) -> None:
        """Frames 200 ms apart."""
        await self.play(log, "slow")

    async def scenario_failures(self, log: kit.Transcript) -> None:
        """A JSON-RPC error in mid-stream."""
        await self.play(log, "error")

    async def scenario_errors(self, log: kit.Transcript) -> None:
        """No key, no Accept, no such method."""
        for headers in ({}, {"x-api-key": KEY}):
            async with self.http.post(
                self.url, json={"method": "message/stream"}, headers=headers
            ) as response:
                log.add({"kind": "http", "status": response.status, "body": await response.text()})
        call = Rpc(self.http, self.url, {"x-api-key": KEY, "Accept": EVENT_STREAM}).call(
            "message/send", {}
        )
        await log.call(call, streamed, error)

    async def scenario_concurrent(self, log: kit.Transcript) -> None:
        """Eight streams at once."""
        await asyncio.gather(*(self.play(log, f"hello {n}", f"stream-{n}") for n in range(8)))


async def main() -> None:
    """Run the scenarios."""
    args = kit.arguments(__doc__, ("jsonrpc",))
    async with aiohttp.ClientSession() as http:
        await kit.run_scenarios(Scenarios(args.base_url, http), args.scenarios)


if __name__ == "__main__":
    asyncio.run(main())
