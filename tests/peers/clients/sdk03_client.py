"""A client of a2a-sdk 0.3.x that runs scenarios over one binding and writes what the SDK gave it.

Runs in the `sdk03` environment. The card is fetched from the base URL; its interfaces keep their
paths and get the authorities of the command line, unless --follow-card. What the SDK has no method
for (listing and deleting push configurations) is asked for by hand.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import grpc
import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.grpc import a2a_pb2, a2a_pb2_grpc
from a2a.types import (
    AgentCard,
    Artifact,
    GetTaskPushNotificationConfigParams,
    Message,
    Part,
    PushNotificationAuthenticationInfo,
    PushNotificationConfig,
    Role,
    Task,
    TaskArtifactUpdateEvent,
    TaskIdParams,
    TaskPushNotificationConfig,
    TaskQueryParams,
    TaskStatus,
    TextPart,
    TransportProtocol,
)
from kit import Event, First, Transcript, Webhook, arguments, run_scenarios, text_of, working

BINDINGS = {
    "jsonrpc": TransportProtocol.jsonrpc,
    "rest": TransportProtocol.http_json,
    "grpc": TransportProtocol.grpc,
}
UNKNOWN = "00000000-0000-4000-8000-000000000000"


def part(one: Part) -> Event:
    """A part, by what it carries."""
    shown = one.root
    if shown.kind == "text":
        return text_of(shown.text)
    if shown.kind == "data":
        return {"data": shown.data}
    file = shown.file
    body = {"raw": file.bytes} if getattr(file, "bytes", None) is not None else {"url": file.uri}
    return {**body, "media": file.mime_type or "", "name": file.name or ""}


def state(status: TaskStatus) -> Event:
    """State and text of a status."""
    text = "".join(p.root.text for p in status.message.parts) if status.message else None
    return {"state": status.state.value, "text": text or None}


def artifact(one: Artifact) -> Event:
    """An artifact without its envelope."""
    return {"artifact": one.artifact_id, "name": one.name, "parts": [part(p) for p in one.parts]}


def task(one: Task) -> Event:
    """A task snapshot."""
    shown = {"kind": "task", "task": one.id, "context": one.context_id, **state(one.status)}
    return {
        **shown,
        "artifacts": [artifact(a) for a in one.artifacts or ()],
        "history": len(one.history or ()),
    }


def streamed(one: Any) -> Event:
    """What `send_message` and `resubscribe` yield: a message, or the task so far and its newest
    update."""
    if isinstance(one, Message):
        ids = {
            "task": one.task_id or "",
            "context": one.context_id or "",
            "message": one.message_id,
        }
        return {
            "kind": "message",
            **ids,
            "role": one.role.value,
            "parts": [part(p) for p in one.parts],
        }
    whole, update = one
    if update is None:
        return task(whole)
    ids = {"task": update.task_id, "context": update.context_id}
    if isinstance(update, TaskArtifactUpdateEvent):
        chunk = {"append": bool(update.append), "last": bool(update.last_chunk)}
        return {"kind": "artifact", **ids, **artifact(update.artifact), **chunk}
    return {"kind": "status", **ids, **state(update.status), "final": update.final}


def push(one: TaskPushNotificationConfig) -> Event:
    """A push configuration."""
    config, auth = one.push_notification_config, one.push_notification_config.authentication
    shown = {
        "kind": "push",
        "task": one.task_id,
        "id": config.id,
        "url": config.url,
        "token": config.token,
    }
    return {
        **shown,
        "scheme": auth and ",".join(auth.schemes),
        "credentials": auth and auth.credentials,
    }


def card(one: AgentCard) -> Event:
    """A card: who, and where."""
    where = [[i.transport, one.protocol_version, i.url] for i in one.additional_interfaces or ()]
    return {
        "kind": "card",
        "name": one.name,
        "description": one.description,
        "url": one.url,
        "interfaces": where,
    }


def error(why: Exception) -> Event:
    """What the SDK raised: an HTTP error, a JSON-RPC error, or grpcio's own."""
    if isinstance(why, grpc.aio.AioRpcError):
        return {
            "kind": "error",
            "type": "AioRpcError",
            "code": why.code().name,
            "message": why.details(),
        }
    code = getattr(why, "status_code", None) or getattr(getattr(why, "error", None), "code", None)
    code = str(code) if code is not None else None
    return {"kind": "error", "type": type(why).__name__, "code": code, "message": str(why)}


def http(answer: httpx.Response) -> Event:
    """A raw HTTP answer."""
    kind = answer.headers.get("content-type", "")
    return {"kind": "http", "status": answer.status_code, "type": kind, "body": answer.text}


def said(text: str, **ids: str) -> Message:
    """A message with this text."""
    return Message(
        message_id=str(uuid.uuid4()), role=Role.user, parts=[Part(root=TextPart(text=text))], **ids
    )


class Scenarios:
    """The scenarios, over one binding, one HTTP client and one gRPC channel."""

    def __init__(self, args: Any) -> None:
        self.args = args
        self.http = httpx.AsyncClient(timeout=100)
        self.channel: Any = None

    async def connect(self) -> None:
        """Fetch the card and make a streaming and a unary client of it."""
        self.fetched = await A2ACardResolver(self.http, self.args.base_url).get_agent_card()
        self.card = self.fetched.model_copy(deep=True)
        if not self.args.follow_card:
            self.card.url = self.place(self.card.preferred_transport, self.card.url)
            for one in self.card.additional_interfaces or ():
                one.url = self.place(one.transport, one.url)
        where = {self.card.preferred_transport: self.card.url}
        where |= {one.transport: one.url for one in self.card.additional_interfaces or ()}
        self.url = where[BINDINGS[self.args.binding]]
        if self.args.binding == "grpc":
            tls = self.args.base_url.startswith("https:")
            secure, insecure = grpc.aio.secure_channel, grpc.aio.insecure_channel
            self.channel = (
                secure(self.url, grpc.ssl_channel_credentials()) if tls else insecure(self.url)
            )
        self.client, self.unary = self.make(True), self.make(False)

    def place(self, transport: str, url: str) -> str:
        """The same interface at the place of the command line."""
        if transport == TransportProtocol.grpc:
            return str(self.args.grpc)
        return self.args.base_url.rstrip("/") + urlsplit(url).path

    def make(self, streaming: bool, *configs: PushNotificationConfig) -> Any:
        """A client of the SDK."""
        config = ClientConfig(
            streaming=streaming,
            httpx_client=self.http,
            grpc_channel_factory=lambda _url: self.channel,
            supported_transports=[BINDINGS[self.args.binding]],
            push_notification_configs=list(configs),
        )
        return ClientFactory(config).create(self.card)

    async def play(
        self, log: Transcript, text: str, stream: str = "main", **ids: str
    ) -> list[Event]:
        """Stream the answer to this text into the transcript."""
        return await log.drain(self.client.send_message(said(text, **ids)), streamed, error, stream)

    async def once(self, log: Transcript, text: str, **ids: str) -> list[Event]:
        """Send this text unary."""
        return await log.drain(self.unary.send_message(said(text, **ids)), streamed, error)

    async def scenario_card(self, log: Transcript) -> None:
        """The public card, then the extended one."""
        log.add(card(self.fetched))
        await log.call(self.make(True).get_card(), card, error)

    async def scenario_unary(self, log: Transcript) -> None:
        """Send and get, each answered once."""
        (event,) = await self.once(log, "unary")
        await log.call(
            self.client.get_task(TaskQueryParams(id=event["task"], history_length=10)), task, error
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
        running = asyncio.create_task(
            log.drain(self.client.send_message(said(text)), streamed, error, "first", begun)
        )
        return await begun.found, running

    async def scenario_subscribe(self, log: Transcript) -> None:
        """A second stream on a running task sees the rest of it."""
        event, first = await self.begin(log, "gate")
        events: AsyncIterator[Any] = self.client.resubscribe(TaskIdParams(id=event["task"]))
        second = asyncio.create_task(log.drain(events, streamed, error, "second"))
        await log.drain(
            self.unary.send_message(said("open:" + event["task"])), streamed, error, "opener"
        )
        await asyncio.gather(first, second)

    async def scenario_cancel(self, log: Transcript) -> None:
        """Cancel a running task while a stream watches it, then cancel it again."""
        event, first = await self.begin(log, "long")
        for _ in range(2):
            await log.call(self.client.cancel_task(TaskIdParams(id=event["task"])), task, error)
        # A 0.3 agent tells the canceling call only: the task's own stream falls silent and stays
        # open.
        try:
            await asyncio.wait_for(first, 1)
        except TimeoutError:
            log.add({"kind": "left"}, "first")

    async def scenario_push(self, log: Transcript) -> None:
        """Create, get, list and delete a push configuration."""
        (event,) = await self.once(log, "input")
        auth = PushNotificationAuthenticationInfo(
            schemes=["Bearer"], credentials="push-credentials-1"
        )
        config = PushNotificationConfig(
            id="hook-1", url="http://127.0.0.1:9/hook", token="push-token-1", authentication=auth
        )
        made = TaskPushNotificationConfig(task_id=event["task"], push_notification_config=config)
        await log.call(self.client.set_task_callback(made), push, error)
        get = GetTaskPushNotificationConfigParams(
            id=event["task"], push_notification_config_id="hook-1"
        )
        await log.call(self.client.get_task_callback(get), push, error)
        if self.args.binding == "grpc":
            return await self.push_by_grpc(log, event["task"])
        return await self.push_by_http(log, event["task"])

    async def push_by_grpc(self, log: Transcript, task_id: str) -> None:
        """List and delete, by the generated stub."""
        stub = a2a_pb2_grpc.A2AServiceStub(self.channel)
        parent = f"tasks/{task_id}"
        listing = a2a_pb2.ListTaskPushNotificationConfigRequest(parent=parent)
        listed = stub.ListTaskPushNotificationConfig(listing)
        await log.call(
            listed, lambda page: {"kind": "pushes", "names": [c.name for c in page.configs]}, error
        )
        deleting = a2a_pb2.DeleteTaskPushNotificationConfigRequest(
            name=parent + "/pushNotificationConfigs/hook-1"
        )
        await log.call(
            stub.DeleteTaskPushNotificationConfig(deleting), lambda _: {"kind": "ok"}, error
        )

    async def push_by_http(self, log: Transcript, task_id: str) -> None:
        """List and delete, by requests made by hand."""
        if self.args.binding == "rest":
            url = f"{self.url}/v1/tasks/{task_id}/pushNotificationConfigs"
            await log.call(self.http.get(url), http, error)
            await log.call(self.http.delete(url + "/hook-1"), http, error)
            return
        for number, (method, params) in enumerate(
            (
                ("list", {"id": task_id}),
                ("delete", {"id": task_id, "pushNotificationConfigId": "hook-1"}),
            )
        ):
            name = f"tasks/pushNotificationConfig/{method}"
            call = {"jsonrpc": "2.0", "id": f"by-hand-{number}", "method": name, "params": params}
            await log.call(self.http.post(self.url, json=call), http, error)

    async def scenario_webhook(self, log: Transcript) -> None:
        """The agent posts the task to a webhook that came with the message, at each event."""
        async with Webhook() as hook:
            client = self.make(
                True, PushNotificationConfig(id="hook-2", url=hook.url, token="push-token-2")
            )
            await log.drain(client.send_message(said("unary")), streamed, error)
            await hook.until_completed(log)

    async def scenario_errors(self, log: Transcript) -> None:
        """Calls that a healthy agent must refuse, each by the SDK's own means."""
        finished = (await self.once(log, "unary"))[0]["task"]
        client = self.client
        await log.call(client.get_task(TaskQueryParams(id=UNKNOWN)), task, error)
        await log.call(client.cancel_task(TaskIdParams(id=UNKNOWN)), task, error)
        await log.call(client.cancel_task(TaskIdParams(id=finished)), task, error)
        await log.drain(client.resubscribe(TaskIdParams(id=UNKNOWN)), streamed, error)
        await log.drain(client.resubscribe(TaskIdParams(id=finished)), streamed, error)
        await self.once(log, "unary", task_id=finished)
        await self.play(log, "unary", task_id=finished)
        await self.play(log, "unary", task_id=UNKNOWN)
        unknown = GetTaskPushNotificationConfigParams(
            id=finished, push_notification_config_id="none"
        )
        await log.call(client.get_task_callback(unknown), push, error)

    async def scenario_malformed(self, log: Transcript) -> None:
        """Requests no SDK would send."""
        if self.args.binding == "grpc":
            for method, body in (("NoSuchMethod", b""), ("GetTask", b"\xff\xff\xff\xff")):
                call = self.channel.unary_unary(f"/a2a.v1.A2AService/{method}")
                await log.call(
                    call(body), lambda answer: {"kind": "bytes", "size": len(answer)}, error
                )
            return
        headers = {"Content-Type": "application/json"}
        if self.args.binding == "rest":
            await log.call(
                self.http.post(self.url + "/v1/message:send", content=b"{", headers=headers),
                http,
                error,
            )
            await log.call(self.http.get(self.url + "/v1/no/such/path"), http, error)
            return
        for body in (b"{", b'{"jsonrpc":"2.0","id":"r-1","method":"no/such"}', b"[]"):
            await log.call(self.http.post(self.url, content=body, headers=headers), http, error)

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
