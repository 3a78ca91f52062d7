"""A stdio agent without a fault, and a client's side of the story that is recorded with it
(manual/protocol.md "Stdio").

    python story.py      the agent: reads calls from stdin until it is closed
    story.tell(COMMAND)  the client: spawns COMMAND and holds the conversation of `recordings/stdio`

Standard library only, nothing of this project.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

Json = dict[str, Any]

CARD: Json = {
    "name": "Story teller",
    "description": "Counts, asks, and can be stopped",
    "version": "1.0.0",
    "supportedInterfaces": [
        {"url": "http://127.0.0.1:41000/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
        {
            "url": "python3 story.py",
            "protocolBinding": "https://example.com/bindings/stdio",
            "protocolVersion": "1.0",
        },
    ],
    "capabilities": {"streaming": True, "extendedAgentCard": True},
    "defaultInputModes": ["text/plain"],
    "defaultOutputModes": ["text/plain"],
    "skills": [
        {"id": "count", "name": "Count", "description": "Counts to three", "tags": ["numbers"]}
    ],
}
_NOT_FOUND = {
    "code": -32001,
    "message": "there is no such task",
    "data": [
        {
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": "TASK_NOT_FOUND",
            "domain": "a2a-protocol.org",
        }
    ],
}


def write(pipe: IO[bytes], content: Json, **fields: str) -> None:
    """One message, framed."""
    data = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
    known = {"Content-Length": str(len(data)), "Content-Type": "application/json"}
    lines = [f"{name}: {value}\r\n" for name, value in (known | fields).items()]
    pipe.write("".join(lines).encode() + b"\r\n" + data)
    pipe.flush()


def read(pipe: IO[bytes]) -> Json | None:
    """The next message; None where the pipe is closed."""
    length = 0
    while (line := pipe.readline()) not in (b"\r\n", b""):
        name, _, value = line.decode().partition(":")
        length = int(value) if name.lower() == "content-length" else length
    return json.loads(pipe.read(length)) if length else None


# --- the agent


class Agent:
    """Answers one call after the other; a stream that was asked to go on slowly ends with the next
    call."""

    def __init__(self) -> None:
        self.tasks: dict[str, Json] = {}
        self.open: tuple[Any, str] | None = None
        """Id of the call and of the task of the stream that goes on."""

    def answer(self, call: Json) -> None:
        """All that is said about one call."""
        method, params, number = call["method"], call.get("params", {}), call["id"]
        print(f"{method} {number}", file=sys.stderr, flush=True)
        if method == "GetExtendedAgentCard":
            self.say(number, CARD)
        elif method == "SendMessage":
            self.unary(number, params["message"])
        elif method == "SendStreamingMessage":
            self.stream(number, params["message"])
        else:
            self.of_task(number, method, params["id"])

    def say(self, number: Any, result: Json) -> None:
        """One response."""
        write(sys.stdout.buffer, {"jsonrpc": "2.0", "id": number, "result": result})

    def of_task(self, number: Any, method: str, task_id: str) -> None:
        """GetTask and CancelTask."""
        task = self.tasks.get(task_id)
        if task is None:
            write(sys.stdout.buffer, {"jsonrpc": "2.0", "id": number, "error": _NOT_FOUND})
            return
        if method == "CancelTask":
            self.set(task, "CANCELED")
        self.say(number, task)
        if self.open is not None:
            self.finish(*self.open)

    def unary(self, number: Any, message: Json) -> None:
        """A task that is done at once; `slow`: one that is not."""
        task = self.task(message)
        if message["parts"][0]["text"] == "slow":
            self.say(number, {"task": self.set(task, "WORKING")})
            return
        task["artifacts"] = [{"artifactId": "a-1", "name": "echo", "parts": message["parts"]}]
        self.say(number, {"task": self.set(task, "COMPLETED")})

    def stream(self, number: Any, message: Json) -> None:
        """`count`: goes on after the next call; `ask`: ends with a question, which the next message
        answers."""
        if "taskId" in message:
            self.say(number, {"task": self.set(self.tasks[message["taskId"]], "WORKING")})
            self.tell(number, message["taskId"], "COMPLETED")
            return
        task = self.task(message)
        self.say(number, {"task": task})
        self.tell(number, task["id"], "WORKING")
        if message["parts"][0]["text"] == "ask":
            self.tell(number, task["id"], "INPUT_REQUIRED", "Up to which number? Größe genügt.")
        else:
            self.open = number, task["id"]

    def finish(self, number: Any, task_id: str) -> None:
        """The rest of a stream."""
        self.open = None
        task = self.tasks[task_id]
        for index, text in enumerate(("one ", "two ", "three")):
            chunk = {"artifactId": "a-1", "name": "numbers", "parts": [{"text": text}]}
            update = {"taskId": task_id, "contextId": task["contextId"], "artifact": chunk}
            marks = ({"append": True} if index else {}) | (
                {"lastChunk": True} if index == 2 else {}
            )
            self.say(number, {"artifactUpdate": update | marks})
        self.tell(number, task_id, "COMPLETED")

    def tell(self, number: Any, task_id: str, state: str, text: str = "") -> None:
        """A status update."""
        task = self.tasks[task_id]
        self.set(task, state, text)
        update = {"taskId": task_id, "contextId": task["contextId"], "status": task["status"]}
        self.say(number, {"statusUpdate": update})

    def task(self, message: Json) -> Json:
        """A new one."""
        task: Json = {
            "id": str(uuid.uuid4()),
            "contextId": message.get("contextId") or str(uuid.uuid4()),
        }
        self.tasks[task["id"]] = self.set(task, "SUBMITTED")
        return task

    def set(self, task: Json, state: str, text: str = "") -> Json:
        """The task goes into a state."""
        stamp = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        task["status"] = {"state": f"TASK_STATE_{state}", "timestamp": stamp}
        if text:
            ids = {
                "messageId": str(uuid.uuid4()),
                "taskId": task["id"],
                "contextId": task["contextId"],
            }
            task["status"]["message"] = {**ids, "role": "ROLE_AGENT", "parts": [{"text": text}]}
        return task


def serve() -> None:
    """Until stdin is closed."""
    agent = Agent()
    print("ready", file=sys.stderr, flush=True)
    while (call := read(sys.stdin.buffer)) is not None:
        agent.answer(call)
    print("no more calls", file=sys.stderr, flush=True)


# --- the client


class Client:
    """Calls, and waits for what belongs to them."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.stdin, self.stdout = process.stdin, process.stdout
        self.last = 0

    def ask(self, method: str, params: Json) -> int:
        """A call; its id."""
        self.last += 1
        call = {"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}
        trace = {"traceparent": f"00-{uuid.uuid4().hex}-{uuid.uuid4().hex[:16]}-01"}
        write(self.stdin, call, **{"A2A-Version": "1.0"}, **trace)
        return self.last

    def send(
        self, method: str, text: str, configuration: Json | None = None, **members: Any
    ) -> int:
        """A message."""
        said = {"messageId": str(uuid.uuid4()), "role": "ROLE_USER", "parts": [{"text": text}]}
        more = {"configuration": configuration} if configuration is not None else {}
        return self.ask(method, {"message": said | members, **more})

    def events(self, state: str) -> Iterator[Json]:
        """Responses until a task shows this state."""
        while True:
            found = read(self.stdout)
            assert found is not None
            yield found
            if state in json.dumps(found):
                return


def tell(command: Sequence[str], folder: Path, environ: dict[str, str]) -> None:
    """The whole conversation with an agent that is spawned by `command` in `folder`."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, cwd=folder, env=environ, stdin=pipe, stdout=pipe)
    client = Client(process)
    client.ask("GetExtendedAgentCard", {})
    list(client.events("skills"))
    client.send("SendMessage", "Grüße")
    list(client.events("COMPLETED"))
    client.send("SendStreamingMessage", "count")
    first, *_ = client.events("WORKING")
    task_id = first["result"]["task"]["id"]
    client.ask("GetTask", {"id": task_id})
    list(client.events("COMPLETED"))
    client.send("SendStreamingMessage", "ask")
    first, *_ = client.events("INPUT_REQUIRED")
    task = first["result"]["task"]
    client.send("SendStreamingMessage", "three", taskId=task["id"], contextId=task["contextId"])
    list(client.events("COMPLETED"))
    client.send("SendMessage", "slow", {"returnImmediately": True})
    first, *_ = client.events("WORKING")
    task_id = first["result"]["task"]["id"]
    client.ask("CancelTask", {"id": task_id})
    list(client.events("CANCELED"))
    client.ask("GetTask", {"id": str(uuid.uuid4())})
    list(client.events("-32001"))
    client.stdin.close()
    if process.wait(60):
        raise RuntimeError(f"the agent exited with {process.returncode}")
    client.stdout.close()


if __name__ == "__main__":
    os.chdir(os.path.dirname(os.path.abspath(__file__)))
    serve()
