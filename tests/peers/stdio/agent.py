"""An agent that talks over stdin and stdout as manual/protocol.md "Stdio" has it;
`agent.py MANNER [RECEIVED]`.

MANNER says how it writes, logs and ends. What it reads it appends to the file RECEIVED. Standard
library only, nothing of this project.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any

MANNER = sys.argv[1]
RECEIVED = (
    os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600) if len(sys.argv) > 2 else -1
)


def frame(content: dict[str, Any]) -> bytes:
    """One message as it stands on the pipe."""
    data = json.dumps(content, ensure_ascii=False).encode()
    return b"Content-Length: %d\r\nContent-Type: application/json\r\n\r\n%s" % (len(data), data)


def put(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


def log(data: bytes) -> None:
    while data:
        data = data[os.write(2, data) :]


def send(*contents: dict[str, Any]) -> None:
    """Write messages in the manner of this agent."""
    frames = [frame(content) for content in contents]
    if MANNER == "joined":
        put(b"".join(frames))
        return
    for data in frames:
        if MANNER == "chunked":
            for start in range(0, len(data), 7):
                put(data[start : start + 7])
        elif MANNER == "split-header":
            for piece in (data[:5], data[5:18], data[18:23], data[23:]):
                put(piece)
                time.sleep(0.01)
        elif MANNER == "garbage":
            put(b"debug: about to answer\n" + data + b"\x00\xff left over\n")
        elif MANNER == "dies":
            put(data[: len(data) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        else:
            put(data)


def task(number: int, state: str) -> dict[str, Any]:
    return {
        "id": f"task-{number}",
        "contextId": "ctx-1",
        "status": {"state": f"TASK_STATE_{state}"},
    }


def update(number: int, state: str) -> dict[str, Any]:
    return {
        "statusUpdate": {
            "taskId": f"task-{number}",
            "contextId": "ctx-1",
            "status": task(0, state)["status"],
        }
    }


def answers(call: dict[str, Any]) -> list[dict[str, Any]]:
    """The results of one call, in order."""
    number, method, params = call["id"], call["method"], call.get("params", {})
    if method == "GetExtendedAgentCard":
        interface = {"url": "agent.py", "protocolBinding": "stdio", "protocolVersion": "1.0"}
        return [
            {
                "name": "piped",
                "description": "an agent for tests",
                "version": "1",
                "supportedInterfaces": [interface],
                "capabilities": {"streaming": True, "extendedAgentCard": True},
                "defaultInputModes": ["text/plain"],
                "defaultOutputModes": ["text/plain"],
                "skills": [
                    {"id": "echo", "name": "echo", "description": "says it again", "tags": ["echo"]}
                ],
            }
        ]
    text = params["message"]["parts"][0]["text"]
    if method == "SendMessage":
        parts = [{"text": text}]
        return [
            {
                "message": {
                    "messageId": f"a-{number}",
                    "contextId": "ctx-1",
                    "role": "ROLE_AGENT",
                    "parts": parts,
                }
            }
        ]
    artifact = {"artifactId": "echo", "parts": [{"text": text}]}
    return [
        {"task": task(number, "SUBMITTED")},
        update(number, "WORKING"),
        {
            "artifactUpdate": {
                "taskId": f"task-{number}",
                "contextId": "ctx-1",
                "artifact": artifact,
                "lastChunk": True,
            }
        },
        update(number, "COMPLETED"),
    ]


def calls() -> Iterator[dict[str, Any]]:
    """What the client asks, until it closes stdin."""
    buffer = b""
    while data := os.read(0, 65536):
        if RECEIVED >= 0:
            os.write(RECEIVED, data)
        buffer += data
        while b"\r\n\r\n" in buffer:
            head, _, rest = buffer.partition(b"\r\n\r\n")
            fields = dict(line.lower().split(b":", 1) for line in head.split(b"\r\n"))
            length = int(fields[b"content-length"])
            if len(rest) < length:
                break
            buffer = rest[length:]
            yield json.loads(rest[:length])


def farewell(_number: int, _frame: object) -> None:
    put(b"bye\n")
    sys.exit(7)


def main() -> None:
    if MANNER == "graceful":
        signal.signal(signal.SIGTERM, farewell)
    if MANNER == "noisy":
        log(b"starting \xc3\xa9\xff\n")
    if MANNER == "flood":
        log((b"0123456789abcdef" * 100 + b"\n") * 2_000)
    for call in calls():
        if MANNER == "noisy":
            log(f"asked for {call['method']}\nhalf a line".encode())
        found = answers(call)[:2] if MANNER == "stays-open" else answers(call)
        send(*({"jsonrpc": "2.0", "id": call["id"], "result": result} for result in found))
        if MANNER == "exit3":
            sys.exit(3)
        if MANNER == "closes-stdout":
            os.close(1)
        if MANNER == "spews":
            while True:
                put(
                    frame({"jsonrpc": "2.0", "id": call["id"], "result": update(1, "WORKING")})
                    * 100
                )
    log(b"no more calls\n" if MANNER == "noisy" else b"")


if __name__ == "__main__":
    main()
