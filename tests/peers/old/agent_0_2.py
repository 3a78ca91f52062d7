"""An agent of A2A 0.2: `message/send` and `message/stream`, ids made by the agent, `kind` in
everything, `final`.

The card is at /.well-known/agent.json; push configurations know `set` and `get` only, as before
0.2.5.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator

from aiohttp import web

from wire import Gates, Json, RpcError, answer, behaviours, listen, now, part, refuse, serve, stream

TERMINAL = {"completed", "canceled", "failed", "rejected", "unknown"}


class Agent:
    """The tasks of this agent, and its methods."""

    def __init__(self, base: str) -> None:
        self.base = base
        self.tasks: dict[str, Json] = {}
        self.watchers: dict[str, list[asyncio.Queue[Json | None]]] = {}
        self.pushes: dict[str, Json] = {}
        self.gates = Gates()

    async def card(self, request: web.Request) -> web.Response:
        """The card of 0.2."""
        skill = {"id": "play", "name": "play", "description": "plays a behaviour", "tags": ["test"]}
        capabilities = {"streaming": True, "pushNotifications": True}
        card = {
            "name": "0.2 agent",
            "description": "plays behaviours",
            "url": self.base + "/",
            "version": "0.2.0",
        }
        modes = {"defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"]}
        return web.json_response({**card, "capabilities": capabilities, "skills": [skill], **modes})

    async def rpc(self, request: web.Request) -> web.StreamResponse:
        """Answer one call."""
        body = await request.json()
        rpc_id, params = body.get("id"), body.get("params", {})
        try:
            match body.get("method"):
                case "message/send":
                    return answer(rpc_id, await self.send(params["message"]))
                case "message/stream":
                    return await stream(
                        request,
                        self.play(self.accept(params["message"]), params["message"]),
                        rpc_id,
                    )
                case "tasks/resubscribe":
                    return await stream(request, self.watch(self.known(params["id"])), rpc_id)
                case "tasks/get":
                    return answer(rpc_id, self.known(params["id"]))
                case "tasks/cancel":
                    return answer(rpc_id, self.cancel(params["id"]))
                case "tasks/pushNotificationConfig/set":
                    self.pushes[self.known(params["taskId"])["id"]] = params
                    return answer(rpc_id, params)
                case "tasks/pushNotificationConfig/get":
                    return answer(rpc_id, self.pushes[self.known(params["id"])["id"]])
                case _:
                    raise RpcError(-32601, "Method not found")
        except RpcError as why:
            return refuse(rpc_id, why)

    def known(self, task_id: str) -> Json:
        """The task, or the error of 0.2."""
        if task_id not in self.tasks:
            raise RpcError(-32001, "Task not found")
        return self.tasks[task_id]

    def accept(self, message: Json) -> Json:
        """The task that a message continues, or a new one."""
        if "taskId" in message:
            task = self.known(message["taskId"])
            if task["status"]["state"] in TERMINAL:
                raise RpcError(-32600, "Task is in terminal state")
            task["history"].append(message)
            return task
        ids = {"id": str(uuid.uuid4()), "contextId": message.get("contextId") or str(uuid.uuid4())}
        status = {"state": "submitted", "timestamp": now()}
        return {"kind": "task", **ids, "status": status, "history": [message], "artifacts": []}

    async def send(self, message: Json) -> Json:
        """The task at the end of the turn, or the bare message that answers."""
        task = self.accept(message)
        said = [result async for result in self.play(task, message)]
        return said[-1] if said[-1]["kind"] == "message" else task

    def cancel(self, task_id: str) -> Json:
        """End a running task."""
        task = self.known(task_id)
        if task["status"]["state"] in TERMINAL:
            raise RpcError(-32002, "Task cannot be canceled")
        task["status"] = {"state": "canceled", "timestamp": now()}
        self.gates.end(task_id, canceled=True)
        return task

    async def watch(self, task: Json) -> AsyncIterator[Json]:
        """What a resubscriber hears: the task as it is, then the rest."""
        queue: asyncio.Queue[Json | None] = asyncio.Queue()
        self.watchers.setdefault(task["id"], []).append(queue)
        yield {**task, "artifacts": list(task["artifacts"])}
        while (result := await queue.get()) is not None:
            yield result

    async def play(self, task: Json, message: Json) -> AsyncIterator[Json]:
        """Play the message's behaviour, yielding what a stream would say, and telling those who
        watch."""
        following_up = task["status"]["state"] == "input-required"
        steps = behaviours.steps_for(message["parts"][0]["text"], following_up)
        if not any(isinstance(step, behaviours.Answer) for step in steps):
            self.tasks[task["id"]] = task
            if not following_up:
                yield task
        for step in steps:
            for result in await self.step(step, task):
                for queue in self.watchers.get(task["id"], []):
                    queue.put_nowait(result)
                yield result
                if result.get("final"):
                    self.leave(task)
                    return

    def leave(self, task: Json) -> None:
        """End the streams of those who watch."""
        for queue in self.watchers.pop(task["id"], []):
            queue.put_nowait(None)

    async def step(self, step: behaviours.Step, task: Json) -> list[Json]:
        """Play one step; what it makes the agent say."""
        match step:
            case behaviours.State(state, text):
                return [self.status(task, state, text)]
            case behaviours.Chunk(name, append=append, last=last):
                chunk = {"artifactId": name, "name": f"the {name}", "parts": [part(step, "kind")]}
                return [self.artifact(task, chunk, append, last)]
            case behaviours.Pause(seconds):
                await asyncio.sleep(seconds)
            case behaviours.Hold():
                if await self.gates.of(task["id"]):
                    return [self.update(task, "status-update", status=task["status"], final=True)]
            case behaviours.Open(other):
                self.gates.end(other, canceled=False)
            case behaviours.Answer(text):
                return [self.says(text, contextId=task["contextId"])]
            case behaviours.Crash():
                raise RpcError(-32603, "Internal error")
        return []

    def says(self, text: str, **ids: str) -> Json:
        """A message of the agent."""
        parts = [{"kind": "text", "text": text}]
        return {
            "kind": "message",
            "role": "agent",
            "messageId": str(uuid.uuid4()),
            "parts": parts,
            **ids,
        }

    def update(self, task: Json, kind: str, **members: object) -> Json:
        """An event of a task."""
        return {"kind": kind, "taskId": task["id"], "contextId": task["contextId"], **members}

    def status(self, task: Json, state: str, text: str | None) -> Json:
        """Move the task, and say so."""
        task["status"] = {"state": state, "timestamp": now()}
        if text:
            task["status"]["message"] = self.says(
                text, taskId=task["id"], contextId=task["contextId"]
            )
        final = state in TERMINAL or state == "input-required"
        return self.update(task, "status-update", status=task["status"], final=final)

    def artifact(self, task: Json, chunk: Json, append: bool, last: bool) -> Json:
        """Keep the chunk, and say so."""
        if append:
            task["artifacts"][-1]["parts"].extend(chunk["parts"])
        else:
            task["artifacts"].append({**chunk, "parts": list(chunk["parts"])})
        return self.update(task, "artifact-update", artifact=chunk, append=append, lastChunk=last)


async def main() -> None:
    """Serve until killed."""
    args = behaviours.options(__doc__).parse_args()
    listener, base = listen()
    agent = Agent(args.advertise_http or base)
    app = web.Application()
    app.add_routes([web.get("/.well-known/agent.json", agent.card), web.post("/", agent.rpc)])
    await serve(app, listener, args)


if __name__ == "__main__":
    asyncio.run(main())
