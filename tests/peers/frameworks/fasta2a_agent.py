"""An agent of Pydantic AI, served by fasta2a: a test model in place of a real one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from fasta2a.broker import InMemoryBroker, TaskOperation
from fasta2a.pydantic_ai import agent_to_a2a
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel
from serving import serve
from starlette.applications import Starlette


class LateBroker(InMemoryBroker):
    """Waits before a task is worked on, so that the answer to a message always says that it is
    submitted."""

    async def receive_task_operations(self) -> AsyncIterator[TaskOperation]:
        async for operation in super().receive_task_operations():
            await asyncio.sleep(0.05)
            yield operation


def make(port: int) -> Starlette:
    """The application; a message with a data part makes its worker fail."""
    agent = Agent(TestModel(custom_output_text="forty two it is"), name="fasta2a agent")
    url = f"http://127.0.0.1:{port}"
    return agent_to_a2a(
        agent, broker=LateBroker(), url=url, description="answers each message alike"
    )


if __name__ == "__main__":
    serve(make)
