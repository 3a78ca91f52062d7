"""A client of a2a-sdk 1.x that runs scenarios over one binding and writes what the SDK gave it.

Runs in the `sdk1` environment. The card is fetched from the base URL; its interfaces keep their
paths and get the authorities of the command line, unless --follow-card.
"""

from __future__ import annotations

import asyncio
import base64
import uuid
from typing import Any
from urllib.parse import urlsplit

import grpc
import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types.a2a_pb2 import (
    AgentCard,
    AuthenticationInfo,
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
    TaskState,
)
from google.protobuf.json_format import MessageToDict
from kit import Event, First, Transcript, Webhook, arguments, run_scenarios, text_of, working

BINDINGS = {"jsonrpc": "JSONRPC", "rest": "HTTP+JSON", "grpc": "GRPC"}
UNKNOWN = "00000000-0000-4000-8000-000000000000"


def part(one: Part) -> Event:
    """A part, by what it carries."""
    match one.WhichOneof("content"):
        case "text":
            return text_of(one.text)
        case "raw":
            return {
                "raw": base64.b64encode(one.raw).decode(),
                "media": one.media_type,
                "name": one.filename,
            }
        case "url":
            return {"url": one.url, "media": one.media_type}
        case other:
            return {str(other): MessageToDict(one).get("data")}


def state(status: Any) -> Event:
    """State and text of a status."""
    word = TaskState.Name(status.state).removeprefix("TASK_STATE_").lower().replace("_", "-")
    return {"state": word, "text": "".join(p.text for p in status.message.parts) or None}


def artifact(one: Any) -> Event:
    """An artifact without its envelope."""
    return {"artifact": one.artifact_id, "name": one.name, "parts": [part(p) for p in one.parts]}


def task(one: Any) -> Event:
    """A task snapshot."""
    shown = {"kind": "task", "task": one.id, "context": one.context_id, **state(one.status)}
    return {**shown, "artifacts": [artifact(a) for a in one.artifacts], "history": len(one.history)}


def message(one: Any) -> Event:
    """A bare message."""
    role = Role.Name(one.role).removeprefix("ROLE_").lower()
    ids = {"task": one.task_id, "context": one.context_id, "message": one.message_id}
    return {"kind": "message", **ids, "role": role, "parts": [part(p) for p in one.parts]}


def streamed(one: Any) -> Event:
    """A StreamResponse."""
    match one.WhichOneof("payload"):
        case "task":
            return task(one.task)
        case "message":
            return message(one.message)
        case "status_update":
            update = one.status_update
            return {
                "kind": "status",
                "task": update.task_id,
                "context": update.context_id,
                **state(update.status),
            }
        case "artifact_update":
            update = one.artifact_update
            ids = {"kind": "artifact", "task": update.task_id, "context": update.context_id}
            return {
                **ids,
                **artifact(update.artifact),
                "append": update.append,
                "last": update.last_chunk,
            }
        case other:
            return {"kind": "other", "which": str(other)}


def push(one: TaskPushNotificationConfig) -> Event:
    """A push configuration."""
    shown = {"kind": "push", "task": one.task_id, "id": one.id, "url": one.url, "token": one.token}
    return {
        **shown,
        "scheme": one.authentication.scheme,
        "credentials": one.authentication.credentials,
    }


def card(one: AgentCard) -> Event:
    """A card: who, and where."""
    where = [[i.protocol_binding, i.protocol_version, i.url] for i in one.supported_interfaces]
    return {"kind": "card", "name": one.name, "description": one.description, "interfaces": where}


def error(why: Exception) -> Event:
    """What the SDK raised."""
    code = getattr(why, "code", None)
    if isinstance(why, grpc.aio.AioRpcError):
        return {
            "kind": "error",
            "type": "AioRpcError",
            "code": why.code().name,
            "message": why.details(),
        }
    code = str(code) if code is not None else None
    return {"kind": "error", "type": type(why).__name__, "code": code, "message": str(why)}


def http(answer: httpx.Response) -> Event:
    """A raw HTTP answer."""
    kind = answer.headers.get("content-type", "")
    return {"kind": "http", "status": answer.status_code, "type": kind, "body": answer.text}


def said(text: str, **ids: str) -> SendMessageRequest:
    """A request to send this text."""
    made = Message(
        message_id=str(uuid.uuid4()), role=Role.ROLE_USER, parts=[Part(text=text)], **ids
    )
    return SendMessageRequest(message=made)


class Scenarios:
    """The scenarios, over one binding, one HTTP client and one gRPC channel."""

    def __init__(self, args: Any) -> None:
        self.args = args
        self.http = httpx.AsyncClient(timeout=100)
        self.channel: Any = None

    async def connect(self) -> None:
        """Fetch the card and make a streaming and a unary client of it."""
        self.fetched = await A2ACardResolver(self.http, self.args.base_url).get_agent_card()
        self.card = AgentCard()
        self.card.CopyFrom(self.fetched)
        if not self.args.follow_card:
            for one in self.card.supported_interfaces:
                path = urlsplit(one.url).path
                one.url = (
                    self.args.grpc
                    if one.protocol_binding == "GRPC"
                    else self.args.base_url.rstrip("/") + path
                )
        self.url = next(
            i.url
            for i in self.card.supported_interfaces
            if i.protocol_binding == BINDINGS[self.args.binding]
        )
        if self.args.binding == "grpc":
            tls = self.args.base_url.startswith("https:")
            secure, insecure = grpc.aio.secure_channel, grpc.aio.insecure_channel
            self.channel = (
                secure(self.url, grpc.ssl_channel_credentials()) if tls else insecure(self.url)
            )
        self.client, self.unary = self.make(True), self.make(False)

    def make(self, streaming: bool) -> Any:
        """A client of the SDK."""
        config = ClientConfig(
            streaming=streaming,
            httpx_client=self.http,
            grpc_channel_factory=lambda _url: self.channel,
            supported_protocol_bindings=[BINDINGS[self.args.binding]],
        )
        return ClientFactory(config).create(self.card)

    def send(self, text: str, **ids: str) -> Any:
        """A stream of the answer to this text."""
        return self.client.send_message(said(text, **ids))

    async def play(
        self, log: Transcript, text: str, stream: str = "main", **ids: str
    ) -> list[Event]:
        """Stream the answer to this text into the transcript."""
        return await log.drain(self.send(text, **ids), streamed, error, stream)

    async def once(self, log: Transcript, text: str, **ids: str) -> list[Event]:
        """Send this text unary."""
        return await log.drain(self.unary.send_message(said(text, **ids)), streamed, error)

    async def scenario_card(self, log: Transcript) -> None:
        """The public card, then the extended one."""
        log.add(card(self.fetched))
        await log.call(
            self.client.get_extended_agent_card(GetExtendedAgentCardRequest()), card, error
        )

    async def scenario_unary(self, log: Transcript) -> None:
        """Send, get and list, each answered once."""
        (event,) = await self.once(log, "unary")
        await log.call(
            self.client.get_task(GetTaskRequest(id=event["task"], history_length=10)), task, error
        )
        listed = self.client.list_tasks(ListTasksRequest(context_id=event["context"], page_size=5))
        await log.call(
            listed, lambda page: {"kind": "tasks", "tasks": [task(t) for t in page.tasks]}, error
        )

    async def scenario_streaming(self, log: Transcript) -> None:
        """States, artifacts in chunks, and awkward text."""
        await self.play(log, "stream")

    async def scenario_parts(self, log: Transcript) -> None:
        """One artifact of each kind of part."""
        await self.play(log, "parts")

    async def scenario_tricky(self, log: Transcript) -> None:
        """Text with characters that only look like line ends."""
        await self.play(log, "tricky")

    async def scenario_slow(self, log: Transcript) -> None:
        """Events 200 ms apart."""
        await self.play(log, "slow-stream")

    async def scenario_message_only(self, log: Transcript) -> None:
        """An answer without a task, streamed and unary."""
        await self.play(log, "message")
        await self.once(log, "message")

    async def scenario_input(self, log: Transcript) -> None:
        """The agent asks, the client answers; then the same by unary calls."""
        asked = (await self.play(log, "input"))[-1]
        await self.play(log, "blue", task_id=asked["task"], context_id=asked["context"])
        asked = (await self.once(log, "input"))[-1]
        await self.once(log, "green", task_id=asked["task"], context_id=asked["context"])

    async def begin(self, log: Transcript, text: str) -> tuple[Event, asyncio.Task[list[Event]]]:
        """Start a stream, and wait until its agent works."""
        begun = First(working)
        running = asyncio.create_task(log.drain(self.send(text), streamed, error, "first", begun))
        return await begun.found, running

    async def scenario_subscribe(self, log: Transcript) -> None:
        """A second stream on a running task sees the rest of it."""
        event, first = await self.begin(log, "gate")
        rest = self.client.subscribe(SubscribeToTaskRequest(id=event["task"]))
        second = asyncio.create_task(log.drain(rest, streamed, error, "second"))
        await log.drain(
            self.unary.send_message(said("open:" + event["task"])), streamed, error, "opener"
        )
        await asyncio.gather(first, second)

    async def scenario_cancel(self, log: Transcript) -> None:
        """Cancel a running task while a stream watches it, then cancel it again."""
        event, first = await self.begin(log, "long")
        for _ in range(2):
            await log.call(
                self.client.cancel_task(CancelTaskRequest(id=event["task"])), task, error
            )
        await first

    async def scenario_push(self, log: Transcript) -> None:
        """Create, get, list and delete a push configuration."""
        (event,) = await self.once(log, "input")
        made = TaskPushNotificationConfig(
            task_id=event["task"],
            id="hook-1",
            url="http://127.0.0.1:9/hook",
            token="push-token-1",
            authentication=AuthenticationInfo(scheme="Bearer", credentials="push-credentials-1"),
        )
        ids = {"task_id": event["task"], "id": "hook-1"}
        client, listing = self.client, ListTaskPushNotificationConfigsRequest(task_id=event["task"])
        await log.call(client.create_task_push_notification_config(made), push, error)
        get = GetTaskPushNotificationConfigRequest(**ids)
        await log.call(client.get_task_push_notification_config(get), push, error)
        for _ in range(2):
            listed = client.list_task_push_notification_configs(listing)
            await log.call(
                listed,
                lambda page: {"kind": "pushes", "configs": [push(c) for c in page.configs]},
                error,
            )
            gone = client.delete_task_push_notification_config(
                DeleteTaskPushNotificationConfigRequest(**ids)
            )
            await log.call(gone, lambda _: {"kind": "ok"}, error)

    async def scenario_webhook(self, log: Transcript) -> None:
        """The agent posts each event of a task to a webhook that came with the message."""
        async with Webhook() as hook:
            request = said("unary")
            config = TaskPushNotificationConfig(url=hook.url, token="push-token-2")
            request.configuration.task_push_notification_config.CopyFrom(config)
            await log.drain(self.client.send_message(request), streamed, error)
            await hook.until_completed(log)

    async def scenario_errors(self, log: Transcript) -> None:
        """Calls that a healthy agent must refuse, each by the SDK's own means."""
        finished = (await self.once(log, "unary"))[0]["task"]
        client = self.client
        await log.call(client.get_task(GetTaskRequest(id=UNKNOWN)), task, error)
        await log.call(client.cancel_task(CancelTaskRequest(id=UNKNOWN)), task, error)
        await log.call(client.cancel_task(CancelTaskRequest(id=finished)), task, error)
        await log.drain(client.subscribe(SubscribeToTaskRequest(id=UNKNOWN)), streamed, error)
        await log.drain(client.subscribe(SubscribeToTaskRequest(id=finished)), streamed, error)
        await self.play(log, "unary", task_id=finished)
        await self.play(log, "unary", task_id=UNKNOWN)
        empty = SendMessageRequest(message=Message(role=Role.ROLE_USER))
        await log.drain(client.send_message(empty), streamed, error)
        unknown = GetTaskPushNotificationConfigRequest(task_id=finished, id="none")
        await log.call(client.get_task_push_notification_config(unknown), push, error)

    async def scenario_malformed(self, log: Transcript) -> None:
        """Requests no SDK would send."""
        if self.args.binding == "grpc":
            for method, body in (("NoSuchMethod", b""), ("GetTask", b"\xff\xff\xff\xff")):
                call = self.channel.unary_unary(f"/lf.a2a.v1.A2AService/{method}")
                await log.call(
                    call(body), lambda answer: {"kind": "bytes", "size": len(answer)}, error
                )
            return
        version = {"A2A-Version": "1.0", "Content-Type": "application/json"}
        if self.args.binding == "rest":
            await log.call(
                self.http.post(self.url + "/message:send", content=b"{", headers=version),
                http,
                error,
            )
            await log.call(
                self.http.post(self.url + "/message:stream", content=b"{}", headers=version),
                http,
                error,
            )
            await log.call(self.http.get(self.url + "/no/such/path", headers=version), http, error)
            return
        for body in (b"{", b'{"jsonrpc":"2.0","id":"r-1","method":"NoSuchMethod"}', b"[]"):
            await log.call(self.http.post(self.url, content=body, headers=version), http, error)
        get = b'{"jsonrpc":"2.0","id":7,"method":"GetTask","params":{"id":"x"}}'
        await log.call(
            self.http.post(self.url, content=get, headers={**version, "A2A-Version": ""}),
            http,
            error,
        )

    async def scenario_failures(self, log: Transcript) -> None:
        """Tasks that end badly: failed, rejected, and an agent whose code breaks in mid-stream."""
        for text in ("fail", "reject", "crash"):
            await self.play(log, text)
        await self.once(log, "fail")

    async def scenario_big(self, log: Transcript) -> None:
        """An artifact of one megabyte, streamed, then unary."""
        await self.play(log, "big")
        await self.once(log, "big")

    async def scenario_concurrent(self, log: Transcript) -> None:
        """Eight streams at once, over one HTTP client or one gRPC channel."""
        await asyncio.gather(*(self.play(log, "paced", f"stream-{n}") for n in range(8)))

    async def close(self) -> None:
        """Close both."""
        await self.http.aclose()
        if self.channel:
            await self.channel.close()


async def main() -> None:
    """Connect, run, close."""
    args = arguments(__doc__, tuple(BINDINGS))
    scenarios = Scenarios(args)
    await scenarios.connect()
    await run_scenarios(scenarios, args.scenarios)
    await scenarios.close()


if __name__ == "__main__":
    asyncio.run(main())
