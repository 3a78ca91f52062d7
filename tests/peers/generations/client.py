"""A client that knows generations: reads the task again after a gap, polls for changes, sets
preconditions.

Prints what it saw as JSON lines, as all clients of these tests do (`support_peers`).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import grpc

from a2a_proto import from_dict, message_class, to_dict

Json = dict[str, Any]
VERSION = {"A2A-Version": "1.1"}


class Refused(Exception):
    """The agent returned an error."""


class Way(ABC):
    """One binding."""

    @abstractmethod
    def stream(self, params: Json) -> AsyncIterator[Json]:
        """The events of a send."""

    @abstractmethod
    async def send(self, params: Json) -> Json:
        """The answer to a send."""

    @abstractmethod
    async def get(self, task_id: str, current: int | None = None) -> Json:
        """A task."""

    @abstractmethod
    async def close(self) -> None:
        """Let go of the connection."""


class OverHttp(Way):
    """What JSON-RPC and REST share."""

    content = "application/json"

    def __init__(self, base: str) -> None:
        self._base = base
        self._http = aiohttp.ClientSession(headers=VERSION | {"Content-Type": self.content})
        self._number = 0

    async def _events(self, path: str, body: Json) -> AsyncIterator[Json]:
        headers = {"Accept": "text/event-stream"}
        async with self._http.post(self._base + path, json=body, headers=headers) as response:
            async for line in response.content:
                if line.startswith(b"data: "):
                    yield json.loads(line[6:])

    async def close(self) -> None:
        await self._http.close()


class JsonRpc(OverHttp):
    """JSON-RPC."""

    def _call(self, method: str, params: Json) -> Json:
        self._number += 1
        return {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}

    async def stream(self, params: Json) -> AsyncIterator[Json]:
        async for event in self._events("/rpc", self._call("SendStreamingMessage", params)):
            yield event["result"]

    async def _one(self, method: str, params: Json) -> Json:
        async with self._http.post(
            self._base + "/rpc", json=self._call(method, params)
        ) as response:
            answer = await response.json()
        if "error" in answer:
            raise Refused(answer["error"]["data"][0]["reason"])
        return dict(answer["result"])

    async def send(self, params: Json) -> Json:
        return await self._one("SendMessage", params)

    async def get(self, task_id: str, current: int | None = None) -> Json:
        more = {} if current is None else {"currentGeneration": str(current)}
        return await self._one("GetTask", {"id": task_id, **more})


class Rest(OverHttp):
    """HTTP+JSON."""

    content = "application/a2a+json"

    def stream(self, params: Json) -> AsyncIterator[Json]:
        return self._events("/message:stream", params)

    async def send(self, params: Json) -> Json:
        async with self._http.post(self._base + "/message:send", json=params) as response:
            return await self._read(response)

    async def get(self, task_id: str, current: int | None = None) -> Json:
        query = "" if current is None else f"?currentGeneration={current}"
        async with self._http.get(f"{self._base}/tasks/{task_id}{query}") as response:
            return await self._read(response)

    @staticmethod
    async def _read(response: aiohttp.ClientResponse) -> Json:
        answer = json.loads(await response.read())
        if response.status >= 400:
            raise Refused(answer["error"]["details"][0]["reason"])
        return dict(answer)


class Grpc(Way):
    """gRPC."""

    def __init__(self, target: str) -> None:
        self._channel = grpc.aio.insecure_channel(target)
        self._metadata = tuple((name.lower(), value) for name, value in VERSION.items())

    def _method(self, name: str) -> str:
        return f"/lf.a2a.v1.A2AService/{name}"

    async def stream(self, params: Json) -> AsyncIterator[Json]:
        call = self._channel.unary_stream(self._method("SendStreamingMessage"))
        async for data in call(written("SendMessageRequest", params), metadata=self._metadata):
            yield read("StreamResponse", data)

    async def _one(self, method: str, request: bytes, answer: str) -> Json:
        try:
            data = await self._channel.unary_unary(self._method(method))(
                request, metadata=self._metadata
            )
        except grpc.aio.AioRpcError as error:
            raise Refused(error.code().name) from None
        return read(answer, data)

    async def send(self, params: Json) -> Json:
        return await self._one(
            "SendMessage", written("SendMessageRequest", params), "SendMessageResponse"
        )

    async def get(self, task_id: str, current: int | None = None) -> Json:
        more = {} if current is None else {"currentGeneration": str(current)}
        return await self._one(
            "GetTask", written("GetTaskRequest", {"id": task_id, **more}), "Task"
        )

    async def close(self) -> None:
        await self._channel.close()


def read(name: str, data: bytes) -> Json:
    """A message as 1.0 JSON."""
    return to_dict(message_class("1.0", name).FromString(data))


def written(name: str, value: Json) -> bytes:
    """1.0 JSON as a message."""
    return from_dict("1.0", name, value).SerializeToString()


def message(text: str, task_id: str = "", **configuration: object) -> Json:
    """The parameters of a send."""
    said: Json = {"messageId": f"m{time.time_ns()}", "role": "ROLE_USER", "parts": [{"text": text}]}
    if task_id:
        said["taskId"] = task_id
    return {"message": said, "configuration": configuration} if configuration else {"message": said}


def number(event: Json) -> int:
    """The generation that an event tells."""
    return int(next(iter(event.values())).get("generation", 0))


async def gap(way: Way) -> AsyncIterator[Json]:
    """A stream that jumps: the client reads the task at once."""
    task_id, last = "", 0
    async for event in way.stream(message("last=6 drop=4 read=5")):
        task_id, before, last = event.get("task", {}).get("id", task_id), last, number(event)
        yield event
        if before and last > before + 1:
            yield {"task": await way.get(task_id)}


async def poll(way: Way) -> AsyncIterator[Json]:
    """Long polls: two that are held until there is news, one that comes back with what the client
    has."""
    answer = await way.send(message("last=3 pause=0.1 polled", returnImmediately=True))
    yield answer
    task_id, known = answer["task"]["id"], int(answer["task"]["generation"])
    for _ in range(3):
        task = await way.get(task_id, known)
        known = int(task["generation"])
        yield {"task": task}


async def precondition(way: Way) -> AsyncIterator[Json]:
    """Two answers to one question: the second one comes too late."""
    answer = await way.send(message("last=3 ends=INPUT_REQUIRED"))
    yield answer
    task_id, known = answer["task"]["id"], answer["task"]["generation"]
    yield await way.send(message("last=3 ends=INPUT_REQUIRED", task_id, ifGenerationMatch=known))
    try:
        await way.send(message("last=2", task_id, ifGenerationMatch=known))
    except Refused as refusal:
        yield {"refused": str(refusal)}


SCENARIOS = {"gap": gap, "poll": poll, "precondition": precondition}


async def main() -> None:
    """Play what the command line names."""
    parser = argparse.ArgumentParser()
    for name in ("binding", "base-url", "grpc", "scenarios"):
        parser.add_argument(f"--{name}")
    options = parser.parse_args()
    way: Way = (
        Grpc(options.grpc)
        if options.binding == "grpc"
        else {"jsonrpc": JsonRpc, "rest": Rest}[options.binding](options.base_url)
    )
    for name in options.scenarios.split(","):
        async for event in SCENARIOS[name](way):
            print(
                json.dumps(
                    {"scenario": name, "stream": "all", "at": time.time_ns(), "event": event}
                ),
                flush=True,
            )
    await way.close()


if __name__ == "__main__":
    asyncio.run(main())
