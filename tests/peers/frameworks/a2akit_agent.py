"""An agent of a2akit; `--rest` names the REST binding in its card instead of JSON-RPC, both are
served."""

from __future__ import annotations

import asyncio
import sys

from a2akit import A2AServer, AgentCardConfig, CapabilitiesConfig, TaskContext, Worker
from fastapi import FastAPI
from serving import serve


class Answering(Worker):
    """Plays a behaviour by the text of the message."""

    async def handle(self, ctx: TaskContext) -> None:
        match ctx.user_text:
            case "fail":
                await ctx.fail("no such luck")
            case "ask":
                await ctx.request_input("which colour?")
            case "direct":
                await ctx.reply_directly("no task is needed")
            case "wait":
                await ctx.send_status("on it")
                while not ctx.is_cancelled:
                    await asyncio.sleep(0.01)
            case text:
                await ctx.send_status("on it")
                await ctx.emit_text_artifact("you said ", artifact_id="answer")
                await asyncio.sleep(
                    0.05
                )  # an event that is not yet written would get the next chunk as well
                await ctx.emit_text_artifact(
                    text, artifact_id="answer", append=True, last_chunk=True
                )
                await ctx.complete()


def make(port: int) -> FastAPI:
    """The application."""
    protocol = "http+json" if "--rest" in sys.argv else "jsonrpc"
    card = AgentCardConfig(
        name="a2akit agent",
        description="answers each message",
        version="1.0.0",
        protocol=protocol,
        capabilities=CapabilitiesConfig(streaming=True, push_notifications=True),
    )
    server = A2AServer(worker=Answering(), agent_card=card)
    return server.as_fastapi_app()


if __name__ == "__main__":
    serve(make)
