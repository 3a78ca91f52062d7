"""The time of a replayed call: `a2a-proxy replay` and a client, one call after another."""

from __future__ import annotations

import json
import statistics
import subprocess
import sysconfig
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

import grpc

RECORDING = Path(__file__).parents[2] / "recordings" / "sdk-1.x-jsonrpc.a2a.jsonl"
_HEADERS = {"Content-Type": "application/json", "A2A-Version": "1.0"}
_WARM = 50


@contextmanager
def mock() -> Iterator[str]:
    """Run a mock of a sample and yield its address."""
    line = [str(Path(sysconfig.get_path("scripts")) / "a2a-proxy"), "replay", str(RECORDING)]
    pipe = subprocess.PIPE
    line += ["--listen", "127.0.0.1:0", "--log-format", "json"]
    with subprocess.Popen(line, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["listen"][0]
        finally:
            process.kill()


def p50(address: str, binding: str, seconds: float) -> float:
    """Return the milliseconds of a GetTask over this binding."""
    call = _callers(address)[binding]
    took: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(took) < _WARM * 2:
        began = time.perf_counter()
        call()
        took.append(1e3 * (time.perf_counter() - began))
    return statistics.median(took[_WARM:])


def _callers(address: str) -> dict[str, Callable[[], object]]:
    """Return callers that fetch the task created by a first send."""
    task = _task(address)
    body = json.dumps(
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "GetTask",
            "params": {"id": task, "historyLength": 10},
        }
    )
    http = HTTPConnection(address)
    channel = grpc.insecure_channel(address)
    get = channel.unary_unary("/lf.a2a.v1.A2AService/GetTask")
    data = b"\x12" + bytes([len(task)]) + task.encode() + b"\x18\x0a"

    def ask(method: str, target: str, sent: str | None) -> bytes:
        http.request(method, target, sent, _HEADERS)
        answer = http.getresponse()
        said = answer.read()
        assert b"TASK_STATE_COMPLETED" in said, said
        return said

    return {
        "jsonrpc": lambda: ask("POST", "/", body),
        "rest": lambda: ask("GET", f"/tasks/{task}?historyLength=10", None),
        "grpc": lambda: get(data, metadata=(("a2a-version", "1.0"),)),
    }


def _task(address: str) -> str:
    message = {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "unary"}]}
    configuration = {"acceptedOutputModes": []}
    params = {"message": message, "configuration": configuration}
    sent = json.dumps(
        {"jsonrpc": "2.0", "id": 0, "method": "SendMessage", "params": params}
    ).encode()
    request = urllib.request.Request(f"http://{address}/", sent, _HEADERS)
    with urllib.request.urlopen(request) as answer:
        found = json.load(answer)
    return str(found["result"]["task"]["id"])
