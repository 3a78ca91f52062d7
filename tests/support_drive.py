"""Helpers for tests of `drive`: the demo's agent in a process of its own, and steps that need no
recording."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import msgspec

from a2a_proto import from_dict, parse, to_dict
from a2a_proxy.drive.plan import ClientAction, ClientTurn, PlannedCall
from a2a_proxy.model.values import Binding, Dialect, Exchange, Frame, FrameKind
from a2a_proxy.model.wire import Direction
from a2a_proxy.recording.read.rows import ExchangeRow
from support_proxy import environment, program

SAMPLES = Path(__file__).resolve().parent.parent / "recordings"
JUDGED_LATER = ("--ignore", "findings")
"""Options for samples that rules judge which are younger than they are."""
_SERVE = """
import asyncio, sys
from a2a_proxy.demo import agent
async def serve():
    agent._PAUSE_SECONDS = 0.002
    one = agent.DemoAgent(lossy={lossy})
    await one.start()
    print(one.http_port, one.grpc_port, flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await one.stop()
asyncio.run(serve())
"""


class Ports(msgspec.Struct, frozen=True):
    """The ports on which the demo's agent listens."""

    http: int
    grpc: int

    @property
    def words(self) -> dict[str, str]:
        """Return the options that name the agent."""
        return {"upstream": f"127.0.0.1:{self.http}", "upstream_grpc": f"127.0.0.1:{self.grpc}"}


@contextlib.contextmanager
def demo_agent(*, lossy: bool = False) -> Iterator[Ports]:
    """Run the demo's agent while the block runs."""
    line = [sys.executable, "-c", _SERVE.format(lossy=lossy)]
    with subprocess.Popen(
        line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        http, grpc = process.stdout.readline().split()
        try:
            yield Ports(int(http), int(grpc))
        finally:
            process.stdin.close()


def frame(
    number: int, seq: int, at: int, *, agent: bool = False, payload: bytes = b"{}", **facts: object
) -> Frame:
    """Return a frame of exchange `number`, in JSON."""
    direction = Direction.TO_CLIENT if agent else Direction.TO_AGENT
    kind = FrameKind.EVENT if agent else FrameKind.REQUEST
    made = Frame(
        1, number, seq, direction, kind, at, at, 0, 0, payload, len(payload), schema="json"
    )
    return msgspec.structs.replace(made, **facts)


def step(
    number: int, started: int, closed: int, *answers: Frame, payload: bytes = b"{}", **facts: object
) -> PlannedCall:
    """Return call #`number` with one request and these answers."""
    exchange = Exchange(
        number, 1, 1, Binding.JSONRPC, started, Dialect.V1_0, "SendMessage", "SendMessage", "/"
    )
    exchange = msgspec.structs.replace(exchange, **{"closed": closed, "how": "complete", **facts})
    said = ClientTurn(
        ClientAction.SAY, 0, started, 0, 0, (), frame(number, 0, started, payload=payload)
    )
    return PlannedCall(number - 1, ExchangeRow(number, 1, exchange), (said,), answers, 0)


async def driven(sample: str, folder: Path, *words: str) -> list[dict[str, Any]]:
    """Drive a sample as a user does, and return its JSON output."""
    recording = SAMPLES / f"{sample}.a2a.jsonl"
    line = [program("a2a-proxy"), "drive", str(recording), "--format", "json", *words]
    process = await asyncio.create_subprocess_exec(
        *line, stdout=asyncio.subprocess.PIPE, env=environment(folder / "state")
    )
    out, _ = await process.communicate()
    found = [json.loads(each) for each in out.decode().splitlines()]
    assert process.returncode == int(not found[0]["same"])
    return found


@contextlib.contextmanager
def live_agent() -> Iterator[int]:
    """An agent over gRPC that asks again after each message, and completes the task at the end of
    the client's stream."""

    def answer(state: str, text: str) -> bytes:
        said = {"messageId": "a", "role": "ROLE_AGENT", "parts": [{"text": text}]}
        update = {
            "taskId": "t-1",
            "contextId": "c-1",
            "status": {"state": f"TASK_STATE_{state}", "message": said},
        }
        data: bytes = from_dict(
            "1.0", "StreamResponse", {"statusUpdate": update}
        ).SerializeToString()
        return data

    def live(requests: Iterator[bytes], _context: Any) -> Iterator[bytes]:
        for data in requests:
            yield answer(
                "INPUT_REQUIRED",
                to_dict(parse("1.0", "SendMessageRequest", data))["message"]["messageId"],
            )
        yield answer("COMPLETED", "done")

    handler = grpc.stream_stream_rpc_method_handler(live)
    server = grpc.server(ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers(
        (
            grpc.method_handlers_generic_handler(
                "lf.a2a.v1.A2AService", {"SendLiveMessage": handler}
            ),
        )
    )
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield port
    finally:
        server.stop(None)
