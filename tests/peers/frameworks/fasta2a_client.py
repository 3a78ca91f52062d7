"""The client of fasta2a: it reads the card, sends, streams and gets, and writes what it was
given."""

from __future__ import annotations

from fasta2a.client import A2AClient
from fasta2a.schema import Message, Part
from playing import Log, main

HELLO = Message(role="user", parts=[Part(text="hello")], message_id="m-1")


async def talk(log: Log, base_url: str) -> None:
    """Call the agent that the card at `base_url` names."""
    client = A2AClient(base_url, fetch_card=True)
    log.note("card", client.agent_card)
    await log.stream("stream", client.stream_message(HELLO))
    first = log.first("stream")
    await log.call("get", client.get_task(first["result"]["task"]["id"]))
    await log.call("get", client.get_task("00000000-0000-4000-8000-000000000000"))
    await log.call("send", client.send_message(HELLO))
    await client.http_client.aclose()


if __name__ == "__main__":
    main(talk)
