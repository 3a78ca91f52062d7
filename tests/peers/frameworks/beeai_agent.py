"""A runnable of BeeAI behind its A2A server: gRPC of 0.3 with the card on a port of its own, or
`--jsonrpc`."""

from __future__ import annotations

import json
import os
import sys
import threading
from typing import Any, TextIO

from beeai_framework.adapters.a2a.serve.server import A2AServer, A2AServerConfig
from beeai_framework.backend import AssistantMessage
from beeai_framework.emitter import Emitter
from beeai_framework.runnable import Runnable, RunnableOutput, runnable_entry
from ports import free_port, wait_for
from serving import end_with_stdin


class Answering(Runnable[RunnableOutput]):
    """Answers with the last message; `fail` makes it raise."""

    @property
    def emitter(self) -> Emitter:
        """Where its events go."""
        return Emitter.root().child(namespace=["answering"], creator=self)

    @runnable_entry
    async def run(self, messages: list[Any], /, **options: Any) -> RunnableOutput:
        text = messages[-1].text
        if text == "fail":
            raise RuntimeError("the agent's code broke")
        return RunnableOutput(output=[AssistantMessage(f"you said {text}")])


def announce(ports: dict[str, int], stdout: TextIO) -> None:
    """Print the ports when all are listened on, then end the process with stdin."""
    for port in ports.values():
        wait_for(port)
    print(json.dumps(ports), file=stdout, flush=True)
    while True:
        end_with_stdin()


def main() -> None:
    """Serve until stdin closes."""
    http = free_port()
    if "--jsonrpc" in sys.argv:
        ports = {"http": http}
        config = A2AServerConfig(host="127.0.0.1", port=http, protocol="jsonrpc")
    else:
        ports = {"http": http, "grpc": free_port()}
        config = A2AServerConfig(
            host="127.0.0.1", port=ports["grpc"], protocol="grpc", agent_card_port=http
        )
    stdout = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # it logs to stdout
    threading.Thread(target=announce, args=(ports, stdout), daemon=True).start()
    A2AServer(config=config).register(
        Answering(), name="beeai agent", description="answers each message"
    ).serve()


if __name__ == "__main__":
    main()
