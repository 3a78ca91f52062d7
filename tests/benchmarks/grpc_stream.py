"""Both ends of a gRPC server stream in Python, each a process of its own.

grpc_stream.py server PORT
grpc_stream.py client PORT SECONDS      prints messages per second
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

import grpc

from a2a_proto import from_dict

METHOD = "/lf.a2a.v1.A2AService/SendStreamingMessage"
MESSAGE = from_dict(
    "1.0",
    "StreamResponse",
    {
        "statusUpdate": {
            "taskId": "8f1c7d52-6a0e-4a55-9b1d-3f0e5f6f7a10",
            "contextId": "0d2b7c1e-93a4-4a0c-8f53-9f6b0c7d1e22",
            "status": {
                "state": "TASK_STATE_WORKING",
                "message": {
                    "messageId": "5b0f9f9c-2f5d-4d0e-9d5c-0a4c7f1b6e33",
                    "role": "ROLE_AGENT",
                    "parts": [
                        {
                            "text": (
                                "the report has reached the part about "
                                "the third quarter; figures follow. "
                            )
                            * 2
                        }
                    ],
                },
            },
        }
    },
).SerializeToString()
"""A status update with a sentence, about 300 bytes."""


class Stream(grpc.GenericRpcHandler):
    """Sends messages until the client cancels."""

    def service(self, details: grpc.HandlerCallDetails) -> Any:
        return grpc.unary_stream_rpc_method_handler(self.send) if details.method == METHOD else None

    async def send(self, _request: bytes, _context: Any) -> AsyncIterator[bytes]:
        while True:
            yield MESSAGE


async def serve(port: int) -> None:
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((Stream(),))
    server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    await server.wait_for_termination()


async def read(port: int, seconds: float) -> float:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        call = channel.unary_stream(METHOD)(b"")
        await call.read()
        warm = time.perf_counter() + 0.3
        while time.perf_counter() < warm:
            await call.read()
        began, count = time.perf_counter(), 0
        while time.perf_counter() - began < seconds:
            for _ in range(50):
                message = await call.read()
                assert len(message) == len(MESSAGE)
            count += 50
        rate = count / (time.perf_counter() - began)
        call.cancel()
        return rate


if __name__ == "__main__":
    if sys.argv[1] == "server":
        asyncio.run(serve(int(sys.argv[2])))
    else:
        print(asyncio.run(read(int(sys.argv[2]), float(sys.argv[3]))))
