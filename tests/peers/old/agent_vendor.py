"""An agent of the vendor dialect: POST /api/v1/a2a/{agent_id} with x-api-key.

Frames are `{id, status{state, message, progress}, final}`. No `kind`, no Task and no artifact: the
first frame is a status-update, the output is the text of the last status, and contextId stands on
the last frame only. The text `error` ends in a JSON-RPC error -32000 in mid-stream.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator

from aiohttp import web

from wire import EVENT_STREAM, Json, RpcError, behaviours, listen, refuse, serve, stream

KEY = "vendor-key-1"
STEPS = ("reading", "thinking", "writing")


def frame(task_id: str, state: str, final: bool = False, **more: object) -> Json:
    """One frame's result."""
    return {"id": task_id, "status": {"state": state, **more}, "final": final}


async def play(text: str) -> AsyncIterator[Json]:
    """Progress by steps, then the answer, or an error in mid-stream; `slow` pauses 200 ms before
    each step."""
    task_id = str(uuid.uuid4())
    yield frame(task_id, "submitted")
    for number, name in enumerate(STEPS, start=1):
        if text == "slow":
            await asyncio.sleep(0.2)
        if text == "error" and number == 3:
            raise RpcError(
                -32000, "Agent execution failed", {"taskId": task_id, "details": "the tool broke"}
            )
        yield frame(
            task_id, "working", progress={"current": number, "total": len(STEPS), "message": name}
        )
    said = {"role": "agent", "parts": [{"type": "text", "text": f"you said {text}"}]}
    yield {**frame(task_id, "completed", final=True, message=said), "contextId": str(uuid.uuid4())}


async def rpc(request: web.Request) -> web.StreamResponse:
    """Answer one call, or refuse it as HTTP (key, Accept) or as JSON-RPC (method)."""
    if request.headers.get("x-api-key") != KEY:
        return web.json_response({"detail": "Invalid API key"}, status=401)
    if EVENT_STREAM not in request.headers.get("Accept", ""):
        return web.json_response({"detail": "Accept must be text/event-stream"}, status=406)
    body = await request.json()
    if body["method"] != "message/stream":
        return refuse(body["id"], RpcError(-32601, "Method not found"))
    return await stream(request, play(body["params"]["message"]["parts"][0]["text"]), body["id"])


async def main() -> None:
    """Serve until killed."""
    args = behaviours.options(__doc__).parse_args()
    listener, _ = listen()
    app = web.Application()
    app.add_routes([web.post("/api/v1/a2a/{agent_id}", rpc)])
    await serve(app, listener, args)


if __name__ == "__main__":
    asyncio.run(main())
