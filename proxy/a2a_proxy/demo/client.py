"""The demo's client: four short conversations, one after another, through one port."""

import json
import uuid
from typing import Any

import aiohttp
import grpc

from a2a_proto import message_class, to_dict
from a2a_proxy.demo.agent import encode_message
from a2a_proxy.demo.story import Json

_SERVICE_PATH = "/lf.a2a.v1.A2AService"
_VERSION_1_1_HEADERS = {"A2A-Version": "1.1"}
_HEADERS = {"A2A-Version": "1.0", "Authorization": "Bearer demo-credential-that-is-never-recorded"}


class DemoClient:
    """Talks to the agent through `host:port`, all bindings on that one port."""

    def __init__(self, authority: str) -> None:
        self._authority = authority
        self._base = f"http://{authority}"

    async def run(self, *, lossy: bool = False) -> None:
        """Hold all conversations; with a lossy agent one more, in which it loses an event."""
        async with aiohttp.ClientSession(headers=_HEADERS) as http:
            await self._fetch_card(http)
            await self._plan_trip_over_jsonrpc(http)
            await self._book_table_over_rest(http)
        async with grpc.aio.insecure_channel(self._authority) as channel:
            await self._plan_trip_over_grpc(channel)
        if lossy:
            async with aiohttp.ClientSession(headers=_HEADERS | _VERSION_1_1_HEADERS) as http:
                await self._follow_lossy_stream(http)

    async def _fetch_card(self, http: aiohttp.ClientSession) -> None:
        async with http.get(f"{self._base}/.well-known/agent-card.json") as response:
            await response.read()

    async def _plan_trip_over_jsonrpc(self, http: aiohttp.ClientSession) -> None:
        """Send a streaming request whose answer has an artifact in three chunks."""
        call = {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage"}
        params = {"message": _user_message("Plan a day in Lisbon for me")}
        async with http.post(f"{self._base}/rpc", json=call | {"params": params}) as response:
            await response.read()

    async def _follow_lossy_stream(self, http: aiohttp.ClientSession) -> None:
        """Read a stream of 1.1, then the task, whose generation shows what the stream omitted."""
        call = {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage"}
        params = {"message": _user_message("Plan a day in Faro for me")}
        async with http.post(f"{self._base}/rpc", json=call | {"params": params}) as response:
            first = (await response.text()).partition("\n")[0].removeprefix("data: ")
        ask = {
            "jsonrpc": "2.0",
            "id": 2,
            "method": "GetTask",
            "params": {"id": json.loads(first)["result"]["task"]["id"]},
        }
        async with http.post(f"{self._base}/rpc", json=ask) as response:
            await response.read()

    async def _book_table_over_rest(self, http: aiohttp.ClientSession) -> None:
        """Answer an input-required task, then request a task that does not exist."""
        first = await self._post_message(http, _user_message("Book a table by the water"))
        task = first["task"]
        answer = _user_message("four people", taskId=task["id"], contextId=task["contextId"])
        await self._post_message(http, answer)
        async with http.get(f"{self._base}/tasks/{uuid.uuid4()}") as response:
            await response.read()

    async def _post_message(self, http: aiohttp.ClientSession, message: Json) -> Any:
        body = json.dumps({"message": message})
        headers = {"Content-Type": "application/a2a+json"}
        async with http.post(f"{self._base}/message:send", data=body, headers=headers) as response:
            return json.loads(await response.read())

    async def _plan_trip_over_grpc(self, channel: grpc.aio.Channel) -> None:
        """Request a plan over gRPC, then the finished task once more."""
        metadata = tuple((name.lower(), value) for name, value in _HEADERS.items())
        request = encode_message(
            "SendMessageRequest", {"message": _user_message("Plan a day in Porto for me")}
        )
        task = ""
        stream = channel.unary_stream(
            f"{_SERVICE_PATH}/SendStreamingMessage", _pass_through, _pass_through
        )
        async for raw in stream(request, metadata=metadata):
            event = to_dict(message_class("1.0", "StreamResponse").FromString(raw))
            task = event["task"]["id"] if "task" in event else task
        get = channel.unary_unary(f"{_SERVICE_PATH}/GetTask", _pass_through, _pass_through)
        await get(encode_message("GetTaskRequest", {"id": task}), metadata=metadata)


def _pass_through(data: bytes) -> bytes:
    """Return the bytes unchanged: messages are encoded and decoded with the project's own
    descriptors."""
    return data


def _user_message(words: str, **ids: str) -> Json:
    return {"messageId": str(uuid.uuid4()), "role": "ROLE_USER", "parts": [{"text": words}], **ids}
