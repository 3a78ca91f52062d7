"""One agent of a chain, of a2a-sdk 1.x: it asks the next one what it is asked, and answers with
what that one says.

Runs in the `traced` environment. Prints `{"http": port, "grpc": port}` when both listen.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1] / "agents"))
from behaviours import watch_stdin
from hop import Traces, ask, next_of, options

from serving import Made, serve  # isort: skip  # after `hop`, which says what the SDK shall not do
from a2a.helpers import new_task_from_user_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types.a2a_pb2 import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Part,
    TaskState,
)


def headers_of(context: RequestContext) -> dict[str, str]:
    """The headers, or the gRPC metadata, of the call."""
    state = context.call_context.state
    if "headers" in state:
        return dict(state["headers"])
    return {
        key: value
        for key, value in state["grpc_context"].invocation_metadata()
        if isinstance(value, str)
    }


class Link(AgentExecutor):
    """A link of the chain."""

    def __init__(self, args: Any) -> None:
        self._args = args
        self._traces = Traces(args)

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Ask whom the book names, in the same context; who asks nobody knows the answer."""
        with self._traces.serving(headers_of(context)):
            await event_queue.enqueue_event(new_task_from_user_message(context.message))
            updater = TaskUpdater(event_queue, context.task_id, context.context_id)
            await updater.update_status(TaskState.TASK_STATE_WORKING)
            whom = next_of(self._args.name, self._args.book)
            answer = "room 12"
            if whom is not None:
                answer = await ask(self._traces, whom, context.get_user_input(), context.context_id)
            await updater.add_artifact([Part(text=answer)], "answer")
            await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Nothing here takes long enough."""
        raise NotImplementedError


def card_for(name: str, http: str, target: str) -> AgentCard:
    """All three bindings."""
    where = [
        ("JSONRPC", f"{http}/a2a/jsonrpc"),
        ("HTTP+JSON", f"{http}/a2a/rest"),
        ("GRPC", target),
    ]
    return AgentCard(
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


async def main() -> None:
    """Serve until killed."""
    parser = options(__doc__ or "")
    parser.add_argument(
        "--until-stdin-closes", action="store_true", help="end with the process that holds stdin"
    )
    args = parser.parse_args()
    watch_stdin(args)

    def make(http: str, target: str) -> Made:
        card = card_for(args.name, http, target)
        executor, store = Link(args), InMemoryTaskStore()
        return card, DefaultRequestHandler(
            agent_executor=executor, task_store=store, agent_card=card
        )

    await serve(make)


if __name__ == "__main__":
    asyncio.run(main())
