"""Two agents of a2a-sdk 1.x, mounted at `/a2a/alpha` and `/a2a/beta` of one server, each with a
card of its own. Only alpha streams.

Runs in the `sdk1` environment. `ask URL` makes an agent send `hello` to the agent whose card is
below URL, in the same context, and answer with what it got. Prints `{"http": port}` when it
listens.
"""

from __future__ import annotations

import asyncio
import json
import socket
import uuid

import httpx
import uvicorn
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.helpers import new_task_from_user_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types.a2a_pb2 import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Message,
    Part,
    Role,
    SendMessageRequest,
)
from behaviours import options, watch_stdin
from starlette.applications import Starlette
from starlette.routing import Mount


class Answering(AgentExecutor):
    """Answers each message with one artifact, after it has asked another agent if the message says
    so."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Create the task, work, and complete it."""
        if context.current_task is None:
            await event_queue.enqueue_event(new_task_from_user_message(context.message))
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        await updater.start_work()
        text = context.get_user_input()
        if text.startswith("ask "):
            text = await ask(text.removeprefix("ask "), context.context_id)
        await updater.add_artifact(
            [Part(text=f"{self.name} says {text}")], "answer", last_chunk=True
        )
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Say canceled."""
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


async def ask(url: str, context_id: str) -> str:
    """Send `hello` to the agent whose card is below this URL and return its artifact."""
    async with httpx.AsyncClient(timeout=60) as http:
        card = await A2ACardResolver(http, url).get_agent_card()
        client = ClientFactory(ClientConfig(streaming=True, httpx_client=http)).create(card)
        text = ""
        made = Message(
            message_id=str(uuid.uuid4()), role=Role.ROLE_USER, parts=[Part(text="hello")]
        )
        made.context_id = context_id
        async for event in client.send_message(SendMessageRequest(message=made)):
            if event.HasField("artifact_update"):
                text += event.artifact_update.artifact.parts[0].text
        return text


def mount(name: str, base_url: str) -> Mount:
    """One agent, which speaks JSON-RPC at its base path and REST below it."""
    path = f"/a2a/{name}"
    card = AgentCard(
        name=name,
        description=f"the agent {name}",
        version="1.0.0",
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        capabilities=AgentCapabilities(streaming=name == "alpha"),
        supported_interfaces=[
            AgentInterface(
                protocol_binding="JSONRPC", protocol_version="1.0", url=f"{base_url}{path}/"
            ),
            AgentInterface(
                protocol_binding="HTTP+JSON", protocol_version="1.0", url=f"{base_url}{path}/rest"
            ),
        ],
        skills=[AgentSkill(id=name, name=name, description="answers", tags=["test"])],
    )
    handler = DefaultRequestHandler(
        agent_executor=Answering(name), task_store=InMemoryTaskStore(), agent_card=card
    )
    routes = [
        *create_agent_card_routes(card, cache_control="max-age=3600"),
        *create_jsonrpc_routes(handler, "/"),
        *create_rest_routes(handler, path_prefix="/rest"),
    ]
    return Mount(path, routes=routes)


async def main() -> None:
    """Serve until killed."""
    watch_stdin(options(__doc__).parse_args())
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    base_url = f"http://127.0.0.1:{port}"
    print(json.dumps({"http": port}), flush=True)
    routes = [mount(name, base_url) for name in ("alpha", "beta")]
    config = uvicorn.Config(
        Starlette(routes=routes), log_level="warning", timeout_graceful_shutdown=1
    )
    await uvicorn.Server(config).serve(sockets=[listener])


if __name__ == "__main__":
    asyncio.run(main())
