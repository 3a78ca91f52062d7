"""Many streaming calls of one gRPC connection, and how each ended."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import grpc
import grpc.aio

SECONDS = 600


async def stream_many(
    port: int, method: str, request: Any, calls: int, at_once: int
) -> dict[str, int]:
    """Make `calls` streaming calls to a port of 127.0.0.1, `at_once` at a time; return how often
    each number of events, or status, ended a call. Raises TimeoutError if they stop."""
    found: Counter[str] = Counter()
    room, data = asyncio.Semaphore(at_once), request.SerializeToString()

    async def call(stub: Any) -> None:
        async with room:
            events = 0
            try:
                async for _ in stub(data):
                    events += 1
            except grpc.aio.AioRpcError as error:
                found[error.code().name] += 1
                return
            found[str(events)] += 1

    async with asyncio.timeout(SECONDS), grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub: Any = channel.unary_stream(method, bytes, bytes)
        await asyncio.gather(*[call(stub) for _ in range(calls)])
    return dict(found)
