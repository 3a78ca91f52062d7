"""What the processes of the system share: an agent of a2a-sdk 1.x, and a call to another one.
Nobody sends traces."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path

import grpc
import httpx

sys.path.append(str(Path(__file__).resolve().parents[1] / "agents"))
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.helpers import get_stream_response_text, new_task_from_user_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
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
    TaskState,
)
from serving import Made, serve

SECONDS = 100
"""Seconds after which a call has failed."""
Work = Callable[[str], Awaitable[str]]
"""Returns the answer to a text."""


def options() -> argparse.Namespace:
    """Return the options of an agent."""
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--calls", type=Path, required=True, help="file that gets a line for each call"
    )
    parser.add_argument("--next", default="", help="URL of the agent that this one asks")
    parser.add_argument("--binding", default="JSONRPC")
    parser.add_argument("--seconds", type=float, default=0.0, help="time that the work takes")
    return parser.parse_args()


class Worker(AgentExecutor):
    """Answers with what `work` returns, and counts its calls."""

    def __init__(self, work: Work, calls: Path) -> None:
        self._work = work
        self._calls = calls

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Work on one message."""
        with self._calls.open("a") as file:
            file.write(f"{context.get_user_input()}\n")
        await event_queue.enqueue_event(new_task_from_user_message(context.message))
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        await updater.update_status(TaskState.TASK_STATE_WORKING)
        await updater.add_artifact(
            [Part(text=await self._work(context.get_user_input()))], "answer"
        )
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Nothing here takes long enough."""
        raise NotImplementedError


async def serve_agent(name: str, work: Work, calls: Path) -> None:
    """Serve until stdin closes; print the ports when they listen."""
    asyncio.get_running_loop().add_reader(
        sys.stdin.fileno(), lambda: sys.stdin.buffer.read1() or os._exit(0)
    )

    def make(http: str, target: str) -> Made:
        where = [
            ("JSONRPC", f"{http}/a2a/jsonrpc"),
            ("HTTP+JSON", f"{http}/a2a/rest"),
            ("GRPC", target),
        ]
        card = AgentCard(
            name=name,
            description="asks on",
            version="1.0.0",
            supported_interfaces=[
                AgentInterface(protocol_binding=binding, url=url, protocol_version="1.0")
                for binding, url in where
            ],
            default_input_modes=["text/plain"],
            default_output_modes=["text/plain"],
            capabilities=AgentCapabilities(streaming=True),
            skills=[AgentSkill(id="ask", name="ask", description="asks on", tags=["test"])],
        )
        executor = Worker(work, calls)
        return card, DefaultRequestHandler(
            agent_executor=executor, task_store=InMemoryTaskStore(), agent_card=card
        )

    await serve(make)


async def ask(url: str, binding: str, text: str) -> str:
    """Ask the agent at this URL over this binding, and return its answer."""
    async with httpx.AsyncClient(timeout=SECONDS) as http:
        card = await A2ACardResolver(http, url).get_agent_card()
        config = ClientConfig(
            streaming=True,
            httpx_client=http,
            grpc_channel_factory=grpc.aio.insecure_channel,
            supported_protocol_bindings=[binding],
        )
        client = ClientFactory(config).create(card)
        said = Message(message_id=str(uuid.uuid4()), role=Role.ROLE_USER, parts=[Part(text=text)])
        async with asyncio.timeout(SECONDS):
            stream = client.send_message(SendMessageRequest(message=said))
            texts = [get_stream_response_text(event) async for event in stream]
        await client.close()
    return next(each for each in reversed(texts) if each)
