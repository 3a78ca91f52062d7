"""BeeAI's `A2AAgent`, which calls an agent over the transport that its card prefers."""

from __future__ import annotations

from typing import Any

from beeai_framework.adapters.a2a.agents import A2AAgent
from beeai_framework.memory import UnconstrainedMemory
from playing import Log, main


async def answer(agent: A2AAgent, text: str, **options: Any) -> dict[str, Any]:
    """The text of the answer to this text, and the event that it came in."""
    output = await agent.run(text, **options)
    return {"text": output.last_message.text, "event": output.event}


async def talk(log: Log, base_url: str) -> None:
    """Ask by a stream and without; go on with a task that the agent does not keep; and have the
    agent fail."""
    agent = A2AAgent(url=base_url, memory=UnconstrainedMemory())
    await log.call("stream", answer(agent, "hello", streaming=True))
    await log.call("send", answer(agent, "again", streaming=False, clear_context=True))
    await log.call("go on", answer(agent, "more", streaming=False))
    await log.call("fail", answer(agent, "fail", streaming=True, clear_context=True))


if __name__ == "__main__":
    main(talk)
