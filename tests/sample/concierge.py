"""A small agent system: a concierge who has another agent plan days and book tables, over A2A
1.0."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator
from typing import Any

import aiohttp

_HEADERS = {"A2A-Version": "1.0"}


class Concierge:
    """Talks JSON-RPC to the agent whose card lies at `url`."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._endpoint = ""

    async def book_table(self, people: int) -> str:
        """What the agent says about the table; it asks for how many people first."""
        async with aiohttp.ClientSession(headers=_HEADERS) as http:
            task = (
                await self._call(http, "SendMessage", _message("A table by the water, please"))
            )["task"]
            if task["status"]["state"] != "TASK_STATE_INPUT_REQUIRED":
                raise RuntimeError(f"the agent does not ask: {task['status']}")
            answer = _message(f"for {people}", taskId=task["id"], contextId=task["contextId"])
            task = (await self._call(http, "SendMessage", answer))["task"]
            return _text(task["artifacts"][0])

    async def plan_day(self, city: str) -> AsyncIterator[str]:
        """The lines of a plan, each as it comes."""
        async with aiohttp.ClientSession(headers=_HEADERS) as http:
            call = _request("SendStreamingMessage", _message(f"Plan a day in {city}"))
            async with http.post(await self._found(http), json=call) as response:
                async for line in response.content:
                    if line.startswith(b"data:"):
                        update = json.loads(line[5:])["result"].get("artifactUpdate")
                        if update:
                            yield _text(update["artifact"]).strip()

    async def _call(self, http: aiohttp.ClientSession, method: str, params: dict[str, Any]) -> Any:
        async with http.post(await self._found(http), json=_request(method, params)) as response:
            said = await response.json()
        if "error" in said:
            raise RuntimeError(f"the agent refuses: {said['error']['message']}")
        return said["result"]

    async def _found(self, http: aiohttp.ClientSession) -> str:
        """Where its card says that it speaks JSON-RPC."""
        if not self._endpoint:
            async with http.get(f"{self._url}/.well-known/agent-card.json") as response:
                card = await response.json()
            ways = {each["protocolBinding"]: each["url"] for each in card["supportedInterfaces"]}
            self._endpoint = ways["JSONRPC"]
        return self._endpoint


def _request(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": str(uuid.uuid4()), "method": method, "params": params}


def _message(text: str, **ids: str) -> dict[str, Any]:
    return {
        "message": {
            "messageId": str(uuid.uuid4()),
            "role": "ROLE_USER",
            "parts": [{"text": text}],
            **ids,
        }
    }


def _text(artifact: dict[str, Any]) -> str:
    return "".join(part["text"] for part in artifact["parts"])
