"""The answers of the demo's travel agent: from a message to a list of events in 1.0 JSON. Uses no
network."""

import uuid
from collections.abc import Iterator
from typing import Any

import msgspec

Json = dict[str, Any]

_DAY_PLAN = (
    "Morning: the castle before the crowds, then down through the old town on foot.\n",
    "Afternoon: tram along the river, custard tarts while they are warm.\n",
    "Evening: fado in a cellar with eight tables; be there by seven.\n",
)


class DemoTask(msgspec.Struct):
    """A task of the demo's agent."""

    id: str
    context: str
    status: Json = msgspec.field(default_factory=lambda: {"state": "TASK_STATE_SUBMITTED"})
    artifacts: list[Json] = []
    generation: int = 0
    """Number of its last change (1.1 draft); 0 if its client does not support generations."""

    def as_json(self) -> Json:
        """Return the task as `Task` (A2A 1.0 section 4.1)."""
        task: Json = {"id": self.id, "contextId": self.context, "status": self.status}
        if self.artifacts:
            task["artifacts"] = self.artifacts
        return task | self.generation_metadata()

    def generation_metadata(self) -> Json:
        """Return the generation members of an event or of the task."""
        return {"generation": str(self.generation)} if self.generation else {}

    def next_generation(self) -> Json:
        """Return the same members after one more change."""
        self.generation += bool(self.generation)
        return self.generation_metadata()


class TravelAgent:
    """Plans days and books tables; keeps its tasks as long as it runs."""

    def __init__(self) -> None:
        self._tasks: dict[str, DemoTask] = {}

    def find_task(self, identifier: str) -> DemoTask | None:
        """Return the task of that id, or None."""
        return self._tasks.get(identifier)

    def answer_message(self, message: Json, *, numbered: bool = False) -> Iterator[Json]:
        """Yield the events that answer `message`, each a StreamResponse; `numbered` adds
        generations to a new task."""
        known = self._tasks.get(message.get("taskId", ""))
        context = message.get("contextId") or str(uuid.uuid4())
        task = known or DemoTask(str(uuid.uuid4()), context, generation=int(numbered))
        self._tasks[task.id] = task
        yield {"task": task.as_json()}
        words = " ".join(part.get("text", "") for part in message.get("parts", []))
        if known is not None:
            yield from self._book_table(task, words)
        elif "table" in words:
            yield self._status_update(
                task, "TASK_STATE_WORKING", "Looking for a table by the water"
            )
            yield self._status_update(task, "TASK_STATE_INPUT_REQUIRED", "For how many people?")
        else:
            yield from self._plan_day(task)

    def _plan_day(self, task: DemoTask) -> Iterator[Json]:
        yield self._status_update(task, "TASK_STATE_WORKING", "Reading the map")
        for index, line in enumerate(_DAY_PLAN):
            yield self._artifact_update(
                task, "plan", line, append=index > 0, last=index == len(_DAY_PLAN) - 1
            )
        yield self._status_update(task, "TASK_STATE_COMPLETED")

    def _book_table(self, task: DemoTask, words: str) -> Iterator[Json]:
        yield self._status_update(task, "TASK_STATE_WORKING", "Booking")
        yield self._artifact_update(
            task, "booking", f"Table booked, 19:30, {words}", append=False, last=True
        )
        yield self._status_update(task, "TASK_STATE_COMPLETED")

    def _status_update(self, task: DemoTask, state: str, words: str = "") -> Json:
        status: Json = {"state": state}
        if words:
            ids = {"messageId": str(uuid.uuid4()), "taskId": task.id, "contextId": task.context}
            status["message"] = {**ids, "role": "ROLE_AGENT", "parts": [{"text": words}]}
        task.status = status
        return {
            "statusUpdate": {
                "taskId": task.id,
                "contextId": task.context,
                "status": status,
                **task.next_generation(),
            }
        }

    def _artifact_update(
        self, task: DemoTask, name: str, line: str, *, append: bool, last: bool
    ) -> Json:
        artifact: Json = {"artifactId": name, "name": name, "parts": [{"text": line}]}
        if append:
            task.artifacts[-1]["parts"].append({"text": line})
        else:
            task.artifacts.append({"artifactId": name, "name": name, "parts": [{"text": line}]})
        update: Json = {
            "taskId": task.id,
            "contextId": task.context,
            "artifact": artifact,
            **task.next_generation(),
        }
        if append:
            update["append"] = True
        if last:
            update["lastChunk"] = True
        return {"artifactUpdate": update}


def agent_card(base: str, grpc: str, *, numbered: bool = False) -> Json:
    """Return the agent card: JSON-RPC and REST at `base`, gRPC at `grpc` (`host:port`); `numbered`
    adds JSON-RPC 1.1.
    """
    ways = [("JSONRPC", f"{base}/rpc", "1.0"), ("HTTP+JSON", base, "1.0"), ("GRPC", grpc, "1.0")]
    if numbered:
        ways.append(("JSONRPC", f"{base}/rpc", "1.1"))
    return {
        "name": "Demo travel agent",
        "description": "Plans a day and books a table; built into a2a-proxy.",
        "version": "1.0.0",
        "supportedInterfaces": [
            {"url": url, "protocolBinding": binding, "protocolVersion": version}
            for binding, url, version in ways
        ],
        "capabilities": {"streaming": True},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [
            {
                "id": "plan",
                "name": "Plan a day",
                "description": "A day in a city.",
                "tags": ["travel"],
            }
        ],
    }
