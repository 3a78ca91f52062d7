"""The two other proposals behind the path of SendLiveMessage: one with media beside messages, one
with uplinks."""

from __future__ import annotations

import asyncio
import base64

from grpc import StatusCode

from peers.live.agent import Call
from peers.live.client import LiveClient
from peers.live.payloads import MEDIA, UPLINKS, Json, Work, fresh, say, send
from peers.live.story import Found, Story

SOUND = "audio/pcm"


def media(mark: str, number: int = 0, data: bytes = b"") -> Json:
    """A piece of sound, or a mark around it: START, DELTA, STOP, PAUSE."""
    made: Json = {"event": "EVENT_INTERRUPT" if mark == "INTERRUPT" else f"EVENT_MEDIA_{mark}"}
    if number:
        made["seqNum"] = str(number)
    if data:
        made["part"] = {"raw": base64.b64encode(data).decode(), "mediaType": SOUND}
    return {"frame": made}


def sound(first: int, count: int) -> list[Json]:
    """A flow from its beginning to its end."""
    pieces = [media("DELTA", first + number, bytes([number] * 320)) for number in range(count)]
    return [media("START"), *pieces, media("STOP", first + count)]


# --- media


def _event(event: Json) -> Json:
    return {"event": event}


async def talk_agent(call: Call) -> None:
    """Listens, speaks, is interrupted, and writes down what was said."""
    await call.read()
    work = Work()
    await call.tell(_event(work.task()), _event(work.status("WORKING", "listening")))
    while (await call.read()).get("frame", {}).get("event") != "EVENT_MEDIA_STOP":
        pass
    begun = sound(1, 40)
    await call.tell(*begun[:4])
    await call.read()
    await call.tell(media("STOP", 4))
    await call.tell(
        _event(work.chunk("what you said", last=True)), _event(work.status("COMPLETED", "bye"))
    )


async def talk(client: LiveClient) -> None:
    """The client speaks, then cuts in."""
    stream = client.live("talk", MEDIA)
    offer = {
        "modalities": [
            {"mediaType": SOUND, "direction": "DIRECTIONALITY_SENDRECV", "sampleRates": [16000]}
        ]
    }
    await stream.say({"message": send("let us talk", configuration={"liveSession": offer})})
    await stream.hears(2)
    for piece in sound(1, 5):
        await stream.say(piece)
    assert [event["frame"]["event"] for event in await stream.hears(4)] == [
        "EVENT_MEDIA_START",
        *["EVENT_MEDIA_DELTA"] * 3,
    ]
    await stream.say(media("INTERRUPT"))
    heard = await stream.hear_out()
    assert [next(iter(event)) for event in heard] == ["frame", "event", "event"]
    assert await stream.code() is StatusCode.OK


async def gap_agent(call: Call) -> None:
    """Loses a piece."""
    await call.read()
    work = Work()
    begun = sound(1, 6)
    await call.tell(
        _event(work.task()), *begun[:3], *begun[4:], _event(work.status("COMPLETED", "bye"))
    )


async def gap(client: LiveClient) -> None:
    """The client listens."""
    stream = client.live("gap", MEDIA)
    await stream.say({"message": send("sing")})
    await stream.hear_out()


async def mixed_agent(call: Call) -> None:
    """Speaks the proposal with media to a client that does not."""
    await call.read()
    work = Work()
    call.family = MEDIA
    await call.tell(_event(work.task()), _event(work.status("COMPLETED", "bye")))


async def mixed(client: LiveClient) -> None:
    """A client of the draft: it cannot read what it gets."""
    stream = client.live("mixed")
    await stream.say(send("hello"))
    await stream.bytes_out()


# --- uplinks


async def uplink_agent(call: Call) -> None:
    """Tells everything on the first stream, and takes what short calls beside it bring."""
    agent = call.agent
    if call.number == 0:
        await call.read()
        work = agent.tasks["uplink"] = Work()
        work.generation = 1
        await call.tell(work.task())
        said = say("what shall I read?", **work.ids) | {"role": "ROLE_AGENT"}
        await call.tell(
            work.status("WORKING"), work.counted({"messageUpdate": {**work.ids, "message": said}})
        )
        await agent.signal("uplink: read").wait()
        await call.tell(work.chunk("read", last=True), work.status("COMPLETED", "done"))
        return
    asked = await call.read()
    assert "artifactUpdate" in asked
    await call.told_all()
    await call.tell(agent.tasks["uplink"].task())
    agent.signal("uplink: read").set()


async def uplink(client: LiveClient) -> None:
    """The client gives an artifact by a call of its own."""
    stream = client.live("uplink", UPLINKS)
    await stream.say({"message": say("read this to me")})
    heard = await stream.hears(3)
    task = heard[0]["task"]
    assert "messageUpdate" in heard[2]
    short = client.live("uplink", UPLINKS)
    artifact = {"artifactId": fresh(), "name": "page", "parts": [{"text": "once upon a time"}]}
    named = {"taskId": task["id"], "contextId": task["contextId"]}
    await short.say({"artifactUpdate": {**named, "artifact": artifact, "lastChunk": True}})
    await short.half_close()
    answers, rest = await asyncio.gather(short.hear_out(), stream.hear_out())
    assert [next(iter(each)) for each in answers] == ["task"]
    assert [next(iter(each)) for each in rest] == ["artifactUpdate", "statusUpdate"]


PROPOSALS = [
    Story("talk", talk, talk_agent, MEDIA),
    Story("uplink", uplink, uplink_agent, UPLINKS, version="1.1"),
    Story("gap", gap, gap_agent, MEDIA, finds=[Found("A2A-LIVE-023", 0, "<4")]),
    Story("mixed", mixed, mixed_agent, finds=[Found("A2A-LIVE-022", 0, "<0")]),
]
