"""A task that counts its changes: what the numbered agent says, whatever the binding
(manual/protocol.md "Generations").

The client's message says what is to happen: `last=6 drop=4 read=5` plays six changes, does not tell
the fourth one to any stream, and after the fifth waits until somebody has read the task.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from typing import Any

Json = dict[str, Any]
PATIENCE = 30.0
"""Seconds that the agent waits for a reader."""


class Mismatch(Exception):
    """`ifGenerationMatch` does not hold."""

    def __init__(self, task_id: str, expected: int, current: int) -> None:
        super().__init__("the task has changed")
        self.metadata = {
            "taskId": task_id,
            "expectedGeneration": str(expected),
            "currentGeneration": str(current),
        }


class Plan:
    """The words of a message."""

    def __init__(self, message: Json) -> None:
        said = "".join(part.get("text", "") for part in message.get("parts", []))
        words = dict(word.split("=", 1) for word in said.split() if "=" in word)
        self.last = int(words.get("last", "4"))
        self.drop = {int(each) for each in words.get("drop", "").split(",") if each}
        self.read = int(words.get("read", "0"))
        self.pause = float(words.get("pause", "0.02"))
        self.polled = "polled" in said.split()
        """Each change waits until somebody waits for it."""
        self.ends = words.get("ends", "COMPLETED")


class Task:
    """One task; each change has a number, and wakes whoever waits for one."""

    def __init__(self, context: str) -> None:
        self.id, self.context = str(uuid.uuid4()), context or str(uuid.uuid4())
        self.generation, self.state = 1, "SUBMITTED"
        self.artifacts: list[Json] = []
        self.changed, self.read = asyncio.Condition(), asyncio.Event()
        self.polls: set[int] = set()
        """Generations after which somebody has asked for the next."""

    def snapshot(self) -> Json:
        """The task as it is."""
        about = {"id": self.id, "contextId": self.context, "generation": str(self.generation)}
        return about | {"status": self.status(), "artifacts": list(self.artifacts)}

    def status(self) -> Json:
        """The state; where somebody has to answer, with the question."""
        status: Json = {"state": f"TASK_STATE_{self.state}"}
        if self.state == "INPUT_REQUIRED":
            parts = [{"text": "which one?"}]
            status["message"] = {
                "messageId": f"q{self.generation}-{self.id}",
                "role": "ROLE_AGENT",
                "parts": parts,
            }
        return status

    async def change(self, state: str = "") -> Json:
        """The next change, into a state or else an artifact; its event."""
        async with self.changed:
            self.generation += 1
            about = {
                "taskId": self.id,
                "contextId": self.context,
                "generation": str(self.generation),
            }
            self.changed.notify_all()
            if state:
                self.state = state
                return {"statusUpdate": about | {"status": self.status()}}
            artifact = {
                "artifactId": f"a{self.generation}",
                "parts": [{"text": f"change {self.generation}"}],
            }
            self.artifacts.append(artifact)
            return {"artifactUpdate": about | {"artifact": artifact, "lastChunk": True}}

    async def play(self, plan: Plan) -> AsyncIterator[tuple[int, Json]]:
        """The rest of the changes; those that are dropped happen, and nobody is told."""
        first = self.generation
        for number in range(first + 1, first + plan.last):
            if plan.polled:
                async with asyncio.timeout(PATIENCE), self.changed:
                    await self.changed.wait_for(lambda: self.generation in self.polls)
            await asyncio.sleep(plan.pause)
            state = (
                "WORKING"
                if number == first + 1
                else plan.ends
                if number == first + plan.last - 1
                else ""
            )
            event = await self.change(state)
            if number not in plan.drop:
                yield number, event
            if number == plan.read:
                self.read.clear()
                async with asyncio.timeout(PATIENCE):
                    await self.read.wait()


class Agent:
    """All tasks."""

    def __init__(self, hold: float) -> None:
        """`hold`: seconds after which a long poll is answered with what the client knows
        already."""
        self._hold = hold
        self._tasks: dict[str, Task] = {}
        self._running: set[asyncio.Task[None]] = set()

    async def stream(self, params: Json) -> AsyncIterator[Json]:
        """The events of a send. Raises Mismatch, KeyError."""
        task, plan = self._accept(params), Plan(params["message"])
        yield {"task": task.snapshot()}
        async for _, event in task.play(plan):
            yield event

    async def send(self, params: Json) -> Json:
        """A send that gives the task, at once where the client wants that. Raises as `stream`."""
        task, plan = self._accept(params), Plan(params["message"])
        answer = {"task": task.snapshot()}
        running = asyncio.create_task(_drain(task, plan))
        self._running.add(running)
        running.add_done_callback(self._running.discard)
        if params.get("configuration", {}).get("returnImmediately"):
            return answer
        await running
        return {"task": task.snapshot()}

    async def get(self, task_id: str, current: int | None) -> Json:
        """The task; where `current` is its generation, held until it changes. Raises KeyError."""
        task = self._tasks[task_id]
        if current is not None:
            try:
                async with asyncio.timeout(self._hold), task.changed:
                    task.polls.add(current)
                    task.changed.notify_all()
                    await task.changed.wait_for(lambda: task.generation > current)
            except TimeoutError:
                pass
        task.read.set()
        return task.snapshot()

    def _accept(self, params: Json) -> Task:
        message = params["message"]
        if not message.get("taskId"):
            task = Task(message.get("contextId", ""))
            self._tasks[task.id] = task
            return task
        task = self._tasks[message["taskId"]]
        match = params.get("configuration", {}).get("ifGenerationMatch")
        if match is not None and int(match) != task.generation:
            raise Mismatch(task.id, int(match), task.generation)
        return task


async def _drain(task: Task, plan: Plan) -> None:
    async for _ in task.play(plan):
        pass
