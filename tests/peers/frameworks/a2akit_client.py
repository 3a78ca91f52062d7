"""The client of a2akit, over the binding that the agent's card prefers."""

from __future__ import annotations

from a2akit import A2AClient
from a2akit.client.result import StreamEvent
from playing import Log, main


async def talk(log: Log, base_url: str) -> None:
    """Every call of the client."""
    async with A2AClient(base_url) as client:
        await log.stream("stream", client.stream("hello"))
        task = log.first("stream").task_id
        await log.call("get", client.get_task(task))
        await log.call("cancel a finished task", client.cancel(task))
        await log.call(
            "set", client.set_push_config(task, url="http://127.0.0.1:9/hook", config_id="hook-1")
        )
        await log.call("get hook", client.get_push_config(task, "hook-1"))
        await log.call("list hooks", client.list_push_configs(task))
        await log.call("delete hook", client.delete_push_config(task, "hook-1"))
        await log.call("send", client.send("fail"))
        asked = await log.call("ask", client.send("ask"))
        await log.call(
            "answer", client.send("blue", task_id=asked.task_id, context_id=asked.context_id)
        )

        async def cancel(event: StreamEvent) -> None:
            if event.text == "on it":
                await log.call("cancel", client.cancel(event.task_id))

        await log.stream("cancelled stream", client.stream("wait"), cancel)
        await log.call("get", client.get_task("00000000-0000-4000-8000-000000000000"))


if __name__ == "__main__":
    main(talk)
