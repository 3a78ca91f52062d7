"""ADK's `RemoteA2aAgent` in a runner: it writes what the runner of the calling agent yields.

`--legacy` asks for the older executor of an agent that has both.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from typing import Any

from google.adk.agents.remote_a2a_agent import RemoteA2aAgent
from google.adk.runners import InMemoryRunner
from google.genai.types import Content, Part
from playing import Log, main


async def said(runner: InMemoryRunner, session: str, text: str) -> AsyncIterator[dict[str, Any]]:
    """The events that follow this text, without their own times."""
    content = Content(role="user", parts=[Part(text=text)])
    async for event in runner.run_async(user_id="user", session_id=session, new_message=content):
        yield event.model_dump(
            mode="json", exclude_none=True, exclude={"timestamp", "id", "invocation_id"}
        )


async def talk(log: Log, base_url: str) -> None:
    """Say three things to the agent; at the last one it fails."""
    card, legacy = f"{base_url}/.well-known/agent-card.json", "--legacy" in sys.argv
    agent = RemoteA2aAgent(name="remote", agent_card=card, use_legacy=legacy)
    runner = InMemoryRunner(agent, app_name="test")
    session = await runner.session_service.create_session(app_name="test", user_id="user")
    for text in ("hello", "again", "fail"):
        await log.stream(text, said(runner, session.id, text))
    await agent.cleanup()


if __name__ == "__main__":
    main(talk)
