"""An agent of a2a-sdk 1.x that plays the shared behaviours over JSON-RPC, REST and gRPC of A2A 1.0
(--compat: and 0.3).

Runs in the `sdk1` environment. Prints `{"http": port, "grpc": port}` when both listen.
"""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
from a2a.helpers import new_task_from_user_message, new_text_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.context import ServerCallContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import (
    BasePushNotificationSender,
    InMemoryPushNotificationConfigStore,
    InMemoryTaskStore,
    TaskUpdater,
)
from a2a.types.a2a_pb2 import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Part,
    SubscribeToTaskRequest,
    TaskState,
)
from behaviours import (
    Answer,
    Chunk,
    Crash,
    Hold,
    Open,
    Pause,
    State,
    options,
    steps_for,
    watch_stdin,
)
from google.protobuf.json_format import ParseDict
from serving import Made, serve


def part_of(chunk: Chunk) -> Part:
    """The chunk's body as a 1.0 part."""
    media = chunk.media or ""
    if chunk.kind == "raw":
        return Part(raw=chunk.body, media_type=media, filename="bytes.bin")
    if chunk.kind == "url":
        return Part(url=chunk.body, media_type=media)
    if chunk.kind == "data":
        return ParseDict({"data": chunk.body}, Part())
    return Part(text=chunk.body, media_type=media)


class Joined:
    """Knows when somebody has subscribed to a running task."""

    def __init__(self) -> None:
        self.events: dict[str, asyncio.Event] = {}

    def event(self, task_id: str) -> asyncio.Event:
        """Set as soon as a subscriber of this task is given something."""
        return self.events.setdefault(task_id, asyncio.Event())


class Handler(DefaultRequestHandler):
    """The SDK's handler, telling `joined` of subscribers."""

    def __init__(self, joined: Joined, **parts: Any) -> None:
        super().__init__(**parts)
        self.joined = joined

    async def on_subscribe_to_task(
        self, params: SubscribeToTaskRequest, context: ServerCallContext
    ) -> Any:
        """Subscribe, and tell."""
        async for event in super().on_subscribe_to_task(params, context):
            self.joined.event(params.id).set()
            yield event


class Player(AgentExecutor):
    """Plays the steps of the table that the message's text names."""

    def __init__(self, joined: Joined) -> None:
        self.joined = joined
        self.gates: dict[str, asyncio.Event] = {}

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Play, creating the task before its first step unless the answer is a bare message."""
        steps = steps_for(context.get_user_input(), following_up=context.current_task is not None)
        if context.current_task is None and not any(isinstance(step, Answer) for step in steps):
            await event_queue.enqueue_event(new_task_from_user_message(context.message))
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        for step in steps:
            await self.play(step, updater, event_queue)

    async def play(self, step: object, updater: TaskUpdater, queue: EventQueue) -> None:
        """Play one step."""
        match step:
            case State(state, text):
                message = updater.new_agent_message([Part(text=text)]) if text else None
                name = "TASK_STATE_" + state.upper().replace("-", "_")
                await updater.update_status(TaskState.Value(name), message)
            case Chunk():
                await updater.add_artifact(
                    [part_of(step)],
                    step.artifact,
                    f"the {step.artifact}",
                    append=step.append,
                    last_chunk=step.last,
                )
            case Pause(seconds):
                await asyncio.sleep(seconds)
            case Hold():
                await self.gates.setdefault(updater.task_id, asyncio.Event()).wait()
            case Open(task):
                await asyncio.wait_for(self.joined.event(task).wait(), 10)
                self.gates.setdefault(task, asyncio.Event()).set()
            case Answer(text):
                await queue.enqueue_event(new_text_message(text, context_id=updater.context_id))
            case Crash():
                raise RuntimeError("the agent's code broke")

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Say canceled; the handler ends the running steps."""
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def card_for(
    name: str, http: str, target: str, compat: bool, first: str, description: str
) -> AgentCard:
    """The card: three 1.0 interfaces, that of the binding `first` first, and the same of 0.3 with
    `compat`."""
    places = [
        ("JSONRPC", f"{http}/a2a/jsonrpc"),
        ("HTTP+JSON", f"{http}/a2a/rest"),
        ("GRPC", target),
    ]
    places.sort(key=lambda place: place[0] != first)
    versions = ("1.0", "0.3") if compat else ("1.0",)
    return AgentCard(
        name=name,
        description=description,
        version="1.2.3",
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        capabilities=AgentCapabilities(
            streaming=True, push_notifications=True, extended_agent_card=True
        ),
        supported_interfaces=[
            AgentInterface(protocol_binding=binding, protocol_version=version, url=url)
            for version in versions
            for binding, url in places
        ],
        skills=[AgentSkill(id="play", name="play", description="plays a behaviour", tags=["test"])],
    )


async def main() -> None:
    """Serve until killed."""
    parser = options(__doc__)
    parser.add_argument(
        "--compat", action="store_true", help="speak A2A 0.3 as well, on the same ports"
    )
    parser.add_argument(
        "--first", default="JSONRPC", metavar="BINDING", help="the binding that the card prefers"
    )
    parser.add_argument("--name", default="sdk1 agent", help="the name in its card")
    args = parser.parse_args()
    watch_stdin(args)
    push = InMemoryPushNotificationConfigStore()
    joined = Joined()

    def make(http: str, target: str) -> Made:
        where = args.advertise_http or http, args.advertise_grpc or target
        card = card_for(args.name, *where, args.compat, args.first, "plays behaviours")
        handler = Handler(
            joined,
            agent_executor=Player(joined),
            task_store=InMemoryTaskStore(),
            agent_card=card,
            push_config_store=push,
            push_sender=BasePushNotificationSender(httpx.AsyncClient(), push),
            extended_agent_card=card_for(
                args.name, *where, args.compat, args.first, "plays behaviours, extended"
            ),
        )
        return card, handler

    await serve(make, compat=args.compat)


if __name__ == "__main__":
    asyncio.run(main())
