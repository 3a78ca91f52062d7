"""An agent of Google's ADK, served by `to_a2a`: each run yields one event; `--legacy` takes the
older executor."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator

from google.adk.a2a.executor.a2a_agent_executor import A2aAgentExecutor
from google.adk.a2a.utils.agent_to_a2a import to_a2a
from google.adk.agents import BaseAgent
from google.adk.agents.invocation_context import InvocationContext
from google.adk.events import Event
from google.genai.types import Content, Part
from serving import serve
from starlette.applications import Starlette


class Answering(BaseAgent):
    """Answers a message; `fail` makes it raise, and `wait` wait for its cancellation."""

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        parts = (ctx.user_content and ctx.user_content.parts) or []
        text = "".join(part.text or "" for part in parts)
        if text == "fail":
            raise RuntimeError("the agent's code broke")
        if text == "wait":
            await asyncio.sleep(30)
        content = Content(role="model", parts=[Part(text=f"you said {text}")])
        yield Event(invocation_id=ctx.invocation_id, author=self.name, content=content)


def make(port: int) -> Starlette:
    """The application of `to_a2a`, with the executor of the command line."""
    legacy = "--legacy" in sys.argv
    return to_a2a(
        Answering(name="answering", description="answers each message"),
        host="127.0.0.1",
        port=port,
        agent_executor_factory=lambda runner: A2aAgentExecutor(
            runner=runner, use_legacy=legacy, force_new_version=not legacy
        ),
    )


if __name__ == "__main__":
    serve(make)
