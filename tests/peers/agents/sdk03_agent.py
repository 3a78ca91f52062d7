"""An agent of a2a-sdk 0.3.x that plays the shared behaviours over JSON-RPC (at /), REST (at /v1)
and gRPC of A2A 0.3.

Runs in the `sdk03` environment. Prints `{"http": port, "grpc": port}` when both listen.
"""

from __future__ import annotations

import asyncio
import base64
import json
import socket

import grpc
import httpx
import uvicorn
from a2a.grpc import a2a_pb2_grpc
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.apps import A2ARESTFastAPIApplication, A2AStarletteApplication
from a2a.server.events import EventQueue, InMemoryQueueManager
from a2a.server.request_handlers import DefaultRequestHandler, GrpcHandler
from a2a.server.tasks import (
    BasePushNotificationSender,
    InMemoryPushNotificationConfigStore,
    InMemoryTaskStore,
    TaskUpdater,
)
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    DataPart,
    FilePart,
    FileWithBytes,
    FileWithUri,
    Part,
    TaskState,
    TextPart,
    TransportProtocol,
)
from a2a.utils import new_agent_text_message, new_task
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


def part_of(chunk: Chunk) -> Part:
    """The chunk's body as a 0.3 part."""
    if chunk.kind == "raw":
        encoded = base64.b64encode(chunk.body).decode()
        return Part(
            root=FilePart(
                file=FileWithBytes(bytes=encoded, mime_type=chunk.media, name="bytes.bin")
            )
        )
    if chunk.kind == "url":
        return Part(root=FilePart(file=FileWithUri(uri=chunk.body, mime_type=chunk.media)))
    if chunk.kind == "data":
        return Part(root=DataPart(data=chunk.body))
    return Part(root=TextPart(text=chunk.body))


class Queues(InMemoryQueueManager):
    """Knows when somebody has joined a running task; a 0.3 client does not, for it is told nothing
    on joining."""

    def __init__(self) -> None:
        super().__init__()
        self.joined: dict[str, asyncio.Event] = {}

    async def tap(self, task_id: str) -> EventQueue | None:
        """Join, and say so."""
        queue = await super().tap(task_id)
        if queue is not None:
            # The first listener that reads the last event throws away what the others have not
            # read: who misses the end is chance. Joined queues keep theirs, so that two runs can be
            # compared.
            queue.close = lambda immediate=False: EventQueue.close(queue)
            queue.clear_events = lambda clear_child_queues=True: asyncio.sleep(0)
        self.joined.setdefault(task_id, asyncio.Event()).set()
        return queue

    async def wait(self, task_id: str) -> None:
        """Until somebody has joined, ten seconds at most."""
        await asyncio.wait_for(self.joined.setdefault(task_id, asyncio.Event()).wait(), 10)


class Player(AgentExecutor):
    """Plays the steps of the table that the message's text names."""

    def __init__(self, queues: Queues) -> None:
        self.queues = queues
        self.gates: dict[str, asyncio.Event] = {}

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Play, creating the task before its first step unless the answer is a bare message."""
        steps = steps_for(context.get_user_input(), following_up=context.current_task is not None)
        if context.current_task is None and not any(isinstance(step, Answer) for step in steps):
            await event_queue.enqueue_event(new_task(context.message))
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        for step in steps:
            await self.play(step, updater, event_queue)

    async def play(self, step: object, updater: TaskUpdater, queue: EventQueue) -> None:
        """Play one step."""
        match step:
            case State(state, text):
                message = (
                    updater.new_agent_message([Part(root=TextPart(text=text))]) if text else None
                )
                final = state in ("completed", "failed", "rejected", "input-required")
                await updater.update_status(TaskState(state), message, final=final)
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
                await self.queues.wait(task)
                self.gates.setdefault(task, asyncio.Event()).set()
            case Answer(text):
                await queue.enqueue_event(
                    new_agent_text_message(text, context_id=updater.context_id)
                )
            case Crash():
                raise RuntimeError("the agent's code broke")

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Say canceled; the handler ends the running steps."""
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def card_for(http: str, target: str, description: str) -> AgentCard:
    """The card: JSON-RPC preferred, REST and gRPC as additional interfaces."""
    return AgentCard(
        name="sdk03 agent",
        description=description,
        version="1.2.3",
        url=f"{http}/",
        preferred_transport=TransportProtocol.jsonrpc,
        additional_interfaces=[
            AgentInterface(transport=TransportProtocol.jsonrpc, url=f"{http}/"),
            AgentInterface(transport=TransportProtocol.http_json, url=http),
            AgentInterface(transport=TransportProtocol.grpc, url=target),
        ],
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        capabilities=AgentCapabilities(streaming=True, push_notifications=True),
        supports_authenticated_extended_card=True,
        skills=[AgentSkill(id="play", name="play", description="plays a behaviour", tags=["test"])],
    )


async def main() -> None:
    """Serve until killed."""
    args = options(__doc__).parse_args()
    watch_stdin(args)
    listener = socket.create_server(("127.0.0.1", 0))
    http_port = listener.getsockname()[1]
    server = grpc.aio.server()
    grpc_port = server.add_insecure_port("127.0.0.1:0")
    places = (
        args.advertise_http or f"http://127.0.0.1:{http_port}",
        args.advertise_grpc or f"127.0.0.1:{grpc_port}",
    )
    card, extended = (
        card_for(*places, "plays behaviours"),
        card_for(*places, "plays behaviours, extended"),
    )
    push = InMemoryPushNotificationConfigStore()
    queues = Queues()
    handler = DefaultRequestHandler(
        agent_executor=Player(queues),
        task_store=InMemoryTaskStore(),
        queue_manager=queues,
        push_config_store=push,
        push_sender=BasePushNotificationSender(httpx.AsyncClient(), push),
    )
    a2a_pb2_grpc.add_A2AServiceServicer_to_server(GrpcHandler(card, handler), server)
    await server.start()
    app = A2ARESTFastAPIApplication(card, handler, extended_agent_card=extended).build()
    A2AStarletteApplication(card, handler, extended_agent_card=extended).add_routes_to_app(app)
    print(json.dumps({"http": http_port, "grpc": grpc_port}), flush=True)
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1)
    await uvicorn.Server(config).serve(sockets=[listener])
    await server.stop(0)


if __name__ == "__main__":
    asyncio.run(main())
