"""The client of python-a2a: it tries paths until one answers."""

from __future__ import annotations

import asyncio
from typing import Any

from playing import Log, main
from python_a2a import A2AClient, Message, MessageRole, Task, TextContent


def task(text: str) -> Task:
    """A task with this text, under an id that the test can compare."""
    message = Message(content=TextContent(text=text), role=MessageRole.USER, message_id="m-1")
    return Task(id="00000000-0000-4000-8000-0000000000aa", message=message.to_dict())


async def talk(log: Log, base_url: str) -> None:
    """Every call of the client that is one of A2A."""
    client: Any = await asyncio.to_thread(A2AClient, base_url)
    log.note("card", client.agent_card)
    await log.call("ask", asyncio.to_thread(client.ask, "hello"))
    client.endpoint_url = base_url  # `ask` leaves the last one that it tried
    await log.call("send", client.send_task_async(task("hello")))
    await log.call(
        "get", asyncio.to_thread(client.get_task, "00000000-0000-4000-8000-0000000000aa")
    )
    await log.call(
        "cancel", asyncio.to_thread(client.cancel_task, "00000000-0000-4000-8000-0000000000aa")
    )
    await log.call(
        "get", asyncio.to_thread(client.get_task, "00000000-0000-4000-8000-0000000000bb")
    )


if __name__ == "__main__":
    main(talk)
