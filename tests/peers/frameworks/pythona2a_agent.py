"""An agent of python-a2a: Flask, the methods of A2A 0.1, each at a path of its own."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import AsyncIterator

from python_a2a import A2AServer, AgentCard, AgentSkill, Message, MessageRole, TextContent
from python_a2a.server.http import create_flask_app
from serving import end_with_stdin
from werkzeug.serving import WSGIRequestHandler, make_server


class Quiet(WSGIRequestHandler):
    """Logs no requests; HTTP/1.1, so that streams are chunked."""

    protocol_version = "HTTP/1.1"

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Log nothing."""


class Answering(A2AServer):
    """Answers a message with its text, streamed by words; `fail` makes it raise."""

    def handle_message(self, message: Message) -> Message:
        if message.content.text == "fail":
            raise RuntimeError("the agent's code broke")
        return Message(
            content=TextContent(text=f"you said {message.content.text}"), role=MessageRole.AGENT
        )

    async def stream_response(self, message: Message) -> AsyncIterator[str]:
        for word in ("you", "said", message.content.text):
            await asyncio.sleep(0.05)
            yield word


def watch_stdin() -> None:
    """End the process with stdin."""
    while True:
        end_with_stdin()


def main() -> None:
    """Serve until stdin closes."""
    card = AgentCard(
        name="python-a2a agent",
        description="answers each message",
        url="http://127.0.0.1:1",
        version="1.0.0",
        skills=[AgentSkill(name="answer", description="answers a message", tags=["test"])],
    )
    agent = Answering(card)
    server = make_server(
        "127.0.0.1", 0, create_flask_app(agent), threaded=True, request_handler=Quiet
    )
    card.url = f"http://127.0.0.1:{server.server_port}"
    print(json.dumps({"http": server.server_port}), flush=True)
    sys.stdout = sys.stderr  # its streams print what they do
    threading.Thread(target=watch_stdin, daemon=True).start()
    server.serve_forever()


if __name__ == "__main__":
    main()
