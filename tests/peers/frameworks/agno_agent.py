"""An agent of Agno behind its A2A interface: REST paths with bodies of JSON-RPC."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from agno.agent import Agent
from agno.db.in_memory import InMemoryDb
from agno.models.base import Model
from agno.models.response import ModelResponse
from agno.os.interfaces.a2a import A2A
from fastapi import FastAPI
from serving import serve


class Answering(Model):
    """Answers with the last message; `fail` makes it raise."""

    def answer(self, messages: list[Any]) -> str:
        text = str(messages[-1].content)
        if text == "fail":
            raise RuntimeError("the agent's code broke")
        return f"you said {text}"

    def invoke(self, messages: list[Any], **more: Any) -> ModelResponse:
        return ModelResponse(content=self.answer(messages))

    async def ainvoke(self, messages: list[Any], **more: Any) -> ModelResponse:
        return self.invoke(messages)

    def invoke_stream(self, messages: list[Any], **more: Any) -> Iterator[ModelResponse]:
        for word in self.answer(messages).split():
            yield ModelResponse(content=f"{word} ")

    async def ainvoke_stream(
        self, messages: list[Any], **more: Any
    ) -> AsyncIterator[ModelResponse]:
        for each in self.invoke_stream(messages):
            yield each

    def _parse_provider_response(self, response: Any, **more: Any) -> ModelResponse:
        return ModelResponse(content=response)

    def _parse_provider_response_delta(self, response: Any) -> ModelResponse:
        return ModelResponse(content=response)


def make(port: int) -> FastAPI:
    """The application: one agent, `answering`."""
    model = Answering(id="answering")
    agent = Agent(id="answering", name="agno agent", model=model, db=InMemoryDb(), telemetry=False)
    application = FastAPI()
    application.include_router(A2A(agents=[agent]).get_router())
    return application


if __name__ == "__main__":
    serve(make)
