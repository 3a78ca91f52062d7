"""The API server of Google's ADK with two apps, `alpha` and `beta`, at `/a2a/alpha` and
`/a2a/beta`."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from fastapi import FastAPI
from google.adk.cli.fast_api import get_fast_api_app
from serving import serve

_AGENT = """
from google.adk.agents import BaseAgent
from google.adk.events import Event
from google.genai.types import Content, Part


class Answering(BaseAgent):
    async def _run_async_impl(self, ctx):
        content = Content(role="model", parts=[Part(text=f"{self.name} says hello")])
        yield Event(invocation_id=ctx.invocation_id, author=self.name, content=content)


root_agent = Answering(name=NAME)
"""


def make(port: int) -> FastAPI:
    """The server's application, for a folder of two apps that this process leaves in its temporary
    folder."""
    folder = Path(tempfile.mkdtemp())
    for name in ("alpha", "beta"):
        (folder / name).mkdir()
        (folder / name / "agent.py").write_text(_AGENT.replace("NAME", repr(name)))
        (folder / name / "agent.json").write_text(json.dumps(_card(name, port)))
    return get_fast_api_app(agents_dir=str(folder), web=False, a2a=True, port=port)


def _card(name: str, port: int) -> dict[str, object]:
    return {
        "name": name,
        "description": f"the agent {name}",
        "version": "1.0.0",
        "capabilities": {"streaming": name == "alpha"},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [{"id": name, "name": name, "description": "answers", "tags": ["test"]}],
        "supportedInterfaces": [
            {
                "url": f"http://127.0.0.1:{port}/a2a/{name}",
                "protocolBinding": "JSONRPC",
                "protocolVersion": "1.0",
            }
        ],
    }


if __name__ == "__main__":
    serve(make)
