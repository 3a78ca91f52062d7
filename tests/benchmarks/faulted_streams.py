"""Faulted gRPC streams on one connection, through a real proxy and its recorder.
`tests/benchmarks/faults` calls it.

Every stream loses an event, gets another one twice and all of them in slices; some are cut, reset
or refused. Prints how the streams ended, the seconds that they took, and the summary of the
recording. Exits with 1 if a stream ended otherwise.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

sys.path.insert(0, str(Path(__file__).parents[1]))

from a2a_proto import from_dict
from support_faulted_streams import stream_many
from support_proxy import proxy

METHOD = "/lf.a2a.v1.A2AService/SendStreamingMessage"
OPERATION = "SendStreamingMessage"
STATES = ("SUBMITTED", "WORKING", "WORKING", "WORKING", "COMPLETED")
ENDINGS = {
    "cut 4 of {} call {}": "INTERNAL",
    "reset at {} call {}": "INTERNAL",
    "fail UNAVAILABLE at {} call {}": "UNAVAILABLE",
}
"""Faults that end a stream, each with the status that the client sees."""


class Agent(grpc.GenericRpcHandler):  # type: ignore[type-arg]
    """Answers each call with a stream of five events, the third one of 2 KiB."""

    def service(self, details: Any) -> Any:
        return grpc.unary_stream_rpc_method_handler(self.stream)

    async def stream(self, request: bytes, context: Any) -> AsyncIterator[bytes]:
        for place, state in enumerate(STATES):
            status: dict[str, Any] = {"state": f"TASK_STATE_{state}"}
            if place == 2:
                status["message"] = {
                    "messageId": "m",
                    "role": "ROLE_AGENT",
                    "parts": [{"text": "word " * 400}],
                }
            event = {"statusUpdate": {"taskId": "t", "contextId": "c", "status": status}}
            yield from_dict("1.0", "StreamResponse", event).SerializeToString()


async def run(streams: int, at_once: int) -> int:
    """Run the streams and return the exit code."""
    server = grpc.aio.server(options=[("grpc.max_concurrent_streams", at_once)])
    server.add_generic_rpc_handlers((Agent(),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    endings = {
        number: list(ENDINGS)[number // 97 % len(ENDINGS)] for number in range(97, streams, 97)
    }
    faults = [f"drop 2 of {OPERATION}", f"dup 3 of {OPERATION}", f"slice 500 of {OPERATION}"]
    faults += [fault.format(OPERATION, number) for number, fault in endings.items()]
    request = from_dict(
        "1.0", "SendMessageRequest", {"message": {"messageId": "m", "role": "ROLE_USER"}}
    )
    with (
        tempfile.TemporaryDirectory() as folder,
        proxy(
            Path(folder),
            f"127.0.0.1:{port}",
            "",
            *[word for each in faults for word in ("--fault", each)],
        ) as between,
    ):
        begin, cpu = time.monotonic(), time.process_time()
        ended = await stream_many(between.port, METHOD, request, streams, at_once)
        seconds = time.monotonic() - begin
        summary = await asyncio.to_thread(between.stop)
    await server.stop(0)
    expected: dict[str, int] = {str(len(STATES)): streams - len(endings)}
    for fault in endings.values():
        expected[ENDINGS[fault]] = expected.get(ENDINGS[fault], 0) + 1
    own = time.process_time() - cpu
    print(
        f"{streams} streams, {at_once} at once: "
        f"{seconds:.1f} s (client and agent: {own:.1f} s of CPU time)"
    )
    print(f"ended: {ended}; expected: {expected}")
    print(
        json.dumps(
            {
                name: summary[name]
                for name in ("exchanges", "frames", "findings", "lost")
                if name in summary
            }
        )
    )
    return int(ended != expected)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="tests/benchmarks/faults", description=__doc__)
    parser.add_argument("--streams", type=int, default=10_000)
    parser.add_argument("--at-once", type=int, default=100)
    options = parser.parse_args()
    sys.exit(asyncio.run(run(options.streams, options.at_once)))
