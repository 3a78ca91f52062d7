"""An agent of A2A 0.1: `tasks/*` methods, task ids made by the client, `type` in parts, artifacts
numbered by `index`.

A stream result is `{id, status, final}` or `{id, artifact}`; the chunk flags lie inside the
artifact. The card is at /.well-known/agent.json.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from aiohttp import web

from wire import Gates, Json, RpcError, answer, behaviours, listen, now, part, refuse, serve, stream

TERMINAL = {"completed", "canceled", "failed", "unknown"}


def words(state: str) -> str:
    """The state in the words of 0.1, which has no `rejected`."""
    return "failed" if state == "rejected" else state


class Agent:
    """The tasks of this agent, and its five methods."""

    def __init__(self, base: str) -> None:
        self.base = base
        self.tasks: dict[str, Json] = {}
        self.pushes: dict[str, Json] = {}
        self.gates = Gates()

    async def card(self, request: web.Request) -> web.Response:
        """The card of 0.1."""
        skill = {"id": "play", "name": "play", "description": "plays a behaviour", "tags": ["test"]}
        capabilities = {
            "streaming": True,
            "pushNotifications": True,
            "stateTransitionHistory": False,
        }
        card = {
            "name": "0.1 agent",
            "description": "plays behaviours",
            "url": self.base + "/",
            "version": "0.1.0",
        }
        auth = {
            "authentication": {"schemes": ["public"]},
            "capabilities": capabilities,
            "skills": [skill],
        }
        modes = {"defaultInputModes": ["text"], "defaultOutputModes": ["text"]}
        return web.json_response({**card, **auth, **modes})

    async def rpc(self, request: web.Request) -> web.StreamResponse:
        """Answer one call."""
        body = await request.json()
        rpc_id, params = body.get("id"), body.get("params", {})
        try:
            match body.get("method"):
                case "tasks/send":
                    task = self.accept(params)
                    async for _ in self.play(task, params["message"]):
                        pass
                    return answer(rpc_id, task)
                case "tasks/sendSubscribe":
                    return await stream(
                        request, self.play(self.accept(params), params["message"]), rpc_id
                    )
                case "tasks/get":
                    return answer(rpc_id, self.known(params["id"]))
                case "tasks/cancel":
                    return answer(rpc_id, self.cancel(params["id"]))
                case "tasks/pushNotification/set":
                    self.pushes[self.known(params["id"])["id"]] = params
                    return answer(rpc_id, params)
                case "tasks/pushNotification/get":
                    return answer(rpc_id, self.pushes[self.known(params["id"])["id"]])
                case _:
                    raise RpcError(-32601, "Method not found")
        except RpcError as why:
            return refuse(rpc_id, why)

    def known(self, task_id: str) -> Json:
        """The task, or the error of 0.1."""
        if task_id not in self.tasks:
            raise RpcError(-32001, "Task not found")
        return self.tasks[task_id]

    def accept(self, params: Json) -> Json:
        """The task that a message belongs to, new if its id is."""
        session = params.get("sessionId") or "session-" + params["id"]
        new: Json = {
            "id": params["id"],
            "sessionId": session,
            "status": {"state": "submitted", "timestamp": now()},
        }
        task = self.tasks.setdefault(params["id"], new)
        if task["status"]["state"] in TERMINAL:
            raise RpcError(-32009, "Invalid task state", {"state": task["status"]["state"]})
        return task

    def cancel(self, task_id: str) -> Json:
        """End a running task."""
        task = self.known(task_id)
        if task["status"]["state"] in TERMINAL:
            raise RpcError(-32002, "Task cannot be canceled")
        task["status"] = {"state": "canceled", "timestamp": now()}
        self.gates.end(task_id, canceled=True)
        return task

    async def play(self, task: Json, message: Json) -> AsyncIterator[Json]:
        """Play the message's behaviour, yielding what a stream would say."""
        following_up = task["status"]["state"] == "input-required"
        if not following_up:
            yield {"id": task["id"], "status": task["status"], "final": False}
        indexes: dict[str, int] = {}
        for step in behaviours.steps_for(message["parts"][0]["text"], following_up):
            for result in await self.step(step, task, indexes):
                yield result
                if result.get("final"):
                    return

    async def step(self, step: behaviours.Step, task: Json, indexes: dict[str, int]) -> list[Json]:
        """Play one step; what it makes the agent say."""
        match step:
            case behaviours.State(state, text):
                return [self.status(task, words(state), text)]
            case behaviours.Chunk(name, append=append, last=last):
                index = indexes.setdefault(name, len(indexes))
                flags = {"index": index, "append": append, "lastChunk": last}
                return [self.artifact(task, {"name": name, "parts": [part(step, "type")], **flags})]
            case behaviours.Pause(seconds):
                await asyncio.sleep(seconds)
            case behaviours.Hold():
                if await self.gates.of(task["id"]):
                    return [{"id": task["id"], "status": task["status"], "final": True}]
            case behaviours.Open(other):
                self.gates.end(other, canceled=False)
            case behaviours.Answer(text):
                return [self.status(task, "completed", text)]
            case behaviours.Crash():
                raise RpcError(-32603, "Internal error")
        return []

    def status(self, task: Json, state: str, text: str | None) -> Json:
        """Move the task, and say so."""
        task["status"] = {"state": state, "timestamp": now()}
        if text:
            task["status"]["message"] = {"role": "agent", "parts": [{"type": "text", "text": text}]}
        return {
            "id": task["id"],
            "status": task["status"],
            "final": state in TERMINAL or state == "input-required",
        }

    def artifact(self, task: Json, chunk: Json) -> Json:
        """Keep the chunk, and say so."""
        kept = task.setdefault("artifacts", [])
        if chunk["append"]:
            kept[chunk["index"]]["parts"].extend(chunk["parts"])
        else:
            kept.append({**chunk, "parts": list(chunk["parts"])})
        return {"id": task["id"], "artifact": chunk}


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
