"""An agent of Pydantic AI, served by fasta2a: a test model in place of a real one."""

from __future__ import annotations

from fasta2a.pydantic_ai import agent_to_a2a
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel
from serving import serve
from starlette.applications import Starlette


def make(port: int) -> Starlette:
    """The application; a message with a data part makes its worker fail."""
    agent = Agent(TestModel(custom_output_text="forty two it is"), name="fasta2a agent")
    return agent_to_a2a(agent, url=f"http://127.0.0.1:{port}", description="answers each message alike")


if __name__ == "__main__":
    serve(make)
