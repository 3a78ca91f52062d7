"""The client of Agno, in its REST form."""

from __future__ import annotations

from agno.client.a2a import A2AClient
from playing import Log, main


async def talk(log: Log, base_url: str) -> None:
    """Every call of the client."""
    client = A2AClient(f"{base_url}/a2a/agents/answering")
    await log.call("card", client.aget_agent_card())
    sent = await log.call("send", client.send_message("hello"))
    await log.call("send", client.send_message("again", context_id=sent.context_id))
    await log.stream("stream", client.stream_message("hello"))
    await log.call("fail", client.send_message("fail"))


if __name__ == "__main__":
    main(talk)
