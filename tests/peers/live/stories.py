"""Live conversations as they should be: no rule has anything to say of them.

Every `say` waits until the agent has the message, so a story that comes to its end shows that
nothing was kept back.
"""

from __future__ import annotations

import asyncio

from grpc import StatusCode

from peers.live.agent import Call
from peers.live.client import LiveClient, LiveStream
from peers.live.payloads import Json, Work, fresh, reconnect, send
from peers.live.story import Found, Story

MANY = 10_000


def states(events: list[Json]) -> list[str]:
    """Those that events tell, in order."""
    held = [next(iter(event.values())) for event in events]
    return [
        each["status"]["state"].removeprefix("TASK_STATE_") for each in held if "status" in each
    ]


async def finished(stream: LiveStream) -> list[Json]:
    """The rest of it: the last word is COMPLETED, and then the agent ends with OK."""
    heard = await stream.hear_out()
    assert states(heard)[-1] == "COMPLETED"
    assert await stream.code() is StatusCode.OK
    return heard


async def begin(call: Call) -> Work:
    """Take the first message and begin to work on it."""
    await call.read()
    work = Work()
    call.agent.tasks[work.id] = work
    await call.tell(work.task(), work.status("WORKING", "on it"))
    return work


async def done(call: Call, work: Work, text: str = "done") -> None:
    """The result, and the end."""
    await call.tell(
        work.chunk("half, "), work.chunk("whole", last=True), work.status("COMPLETED", text)
    )


# --- the approval loop


async def _approves(
    client: LiveClient, story: str, *, closes: bool = False, ids: bool = False
) -> None:
    stream = client.live(story)
    await stream.say(send("deploy it"))
    heard = await stream.hears(3)
    assert states(heard) == ["SUBMITTED", "WORKING", "INPUT_REQUIRED"]
    task = heard[0]["task"]
    named = {"taskId": task["id"], "contextId": task["contextId"]} if ids else {}
    await stream.say(send("to Frankfurt", **named))
    assert states(await stream.hears(2)) == ["WORKING", "AUTH_REQUIRED"]
    await stream.say(send("yes, go on", **named))
    if closes:
        await stream.half_close()
    heard = await finished(stream)
    assert states(heard) == ["WORKING", "COMPLETED"]


async def approval_agent(call: Call) -> None:
    """Asks twice on one stream."""
    work = await begin(call)
    await call.tell(work.status("INPUT_REQUIRED", "which region?"))
    await call.read()
    await call.tell(work.status("WORKING"), work.status("AUTH_REQUIRED", "may I deploy there?"))
    await call.read()
    await call.tell(work.status("WORKING"))
    await done(call, work, "deployed")


async def approval(client: LiveClient) -> None:
    """The client's side stays open; its answers name nothing."""
    await _approves(client, "approval")


async def approval_closed(client: LiveClient) -> None:
    """The client half-closes first."""
    await _approves(client, "approval-closed", closes=True)


async def approval_ids(client: LiveClient) -> None:
    """The answers name the stream's task and context."""
    await _approves(client, "approval-ids", ids=True)


async def configured(client: LiveClient) -> None:
    """The second message repeats the configuration of the first, the third leaves it out."""
    stream = client.live("configured")
    options: Json = {"historyLength": 5, "acceptedOutputModes": ["text/plain"]}
    await stream.say(send("deploy it", configuration=options))
    await stream.hears(3)
    await stream.say(send("to Frankfurt", configuration=options))
    await stream.hears(2)
    await stream.say(send("yes"))
    await finished(stream)


# --- reconnecting


async def lost_agent(call: Call) -> None:
    """Works on while its first client has gone, and shows the task to the second one."""
    left = call.agent.signal("lost: left")
    if call.number == 0:
        work = await begin(call)
        call.agent.tasks["lost"] = work
        try:
            await call.told_all()
        finally:
            left.set()
        return
    await left.wait()
    await call.read()
    work = call.agent.tasks["lost"]
    await call.tell(work.task(), work.status("INPUT_REQUIRED", "still there?"))
    await call.read()
    await call.tell(work.status("WORKING"))
    await done(call, work)


async def lost(client: LiveClient) -> None:
    """The client cancels in WORKING, and takes the task up again."""
    stream = client.live("lost")
    await stream.say(send("deploy it"))
    task_id = (await stream.hears(2))[0]["task"]["id"]
    stream.cancel()
    assert await stream.code() is StatusCode.CANCELLED
    again = client.live("lost")
    await again.say(reconnect(task_id))
    heard = await again.hears(2)
    assert states(heard) == ["WORKING", "INPUT_REQUIRED"]
    assert heard[0]["task"]["id"] == task_id
    await again.say(send("yes"))
    await finished(again)


async def over_agent(call: Call) -> None:
    """Shows a finished task once more."""
    if call.number == 0:
        work = await begin(call)
        call.agent.tasks["over"] = work
        await done(call, work)
    else:
        await call.read()
        await call.tell(call.agent.tasks["over"].task())


async def over(client: LiveClient) -> None:
    """The client reconnects to a task that is over."""
    stream = client.live("over")
    await stream.say(send("deploy it"))
    task_id = (await finished(stream))[0]["task"]["id"]
    again = client.live("over")
    await again.say(reconnect(task_id))
    assert states(await finished(again)) == ["COMPLETED"]


# --- several streams


async def refused_agent(call: Call) -> None:
    """Lets one client at a time speak with a task."""
    if call.number:
        await call.read()
        await call.refuse(StatusCode.FAILED_PRECONDITION, "the task has a live stream")
    work = await begin(call)
    await call.tell(work.status("INPUT_REQUIRED", "which region?"))
    await call.read()
    await call.tell(work.status("WORKING"))
    await done(call, work)


async def refused(client: LiveClient) -> None:
    """A second live stream is refused; the first goes on."""
    stream = client.live("refused")
    await stream.say(send("deploy it"))
    heard = await stream.hears(3)
    second = client.live("refused")
    await second.say(reconnect(heard[0]["task"]["id"]))
    assert await second.code() is StatusCode.FAILED_PRECONDITION
    await stream.say(send("to Frankfurt"))
    await finished(stream)


async def shared_agent(call: Call) -> None:
    """Two clients speak with one task, and both are told everything."""
    agent, over_now = call.agent, call.agent.signal("shared: over")
    if call.number == 0:
        agent.tasks["shared"] = await begin(call)
        agent.calls["shared"] = [call]
        await over_now.wait()
        return
    await call.read()
    work = agent.tasks["shared"]
    await call.tell(work.task())
    both = [*agent.calls["shared"], call]
    await _to_all(both, work.status("INPUT_REQUIRED", "which region?"))
    await call.read()
    await _to_all(
        both, work.status("WORKING"), work.chunk("half, "), work.chunk("whole", last=True)
    )
    await _to_all(both, work.status("COMPLETED", "done"))
    over_now.set()


async def _to_all(calls: list[Call], *events: Json) -> None:
    for event in events:
        for call in calls:
            await call.tell(event)


async def shared(client: LiveClient) -> None:
    """The second stream answers what both were asked."""
    stream, second = client.live("shared"), client.live("shared")
    await stream.say(send("deploy it"))
    heard = await stream.hears(2)
    await second.say(reconnect(heard[0]["task"]["id"]))
    assert states(await second.hears(2)) == ["WORKING", "INPUT_REQUIRED"]
    assert states([await stream.hear()]) == ["INPUT_REQUIRED"]
    await second.say(send("to Frankfurt"))
    one, two = await asyncio.gather(finished(stream), finished(second))
    assert one == two


async def watched_agent(call: Call) -> None:
    """Works when somebody looks on."""
    work = await begin(call)
    call.agent.tasks["watched"] = work
    call.agent.calls["watched"] = [call]
    await call.agent.signal("watched: over").wait()


async def watcher_agent(call: Call) -> None:
    """A subscription: from here on both are told."""
    work = call.agent.tasks["watched"]
    await call.tell(work.task())
    both = [*call.agent.calls["watched"], call]
    await _to_all(
        both, work.chunk("half, "), work.chunk("whole", last=True), work.status("COMPLETED", "done")
    )
    call.agent.signal("watched: over").set()


async def watched(client: LiveClient) -> None:
    """SubscribeToTask beside a live stream."""
    stream = client.live("watched")
    await stream.say(send("deploy it"))
    heard = await stream.hears(2)
    other = client.subscribe("watched", heard[0]["task"]["id"])
    assert states([await other.hear()]) == ["WORKING"]
    one, two = await asyncio.gather(finished(stream), finished(other))
    assert one == two


# --- short ones


async def answered_agent(call: Call) -> None:
    """Says one thing: there is no task."""
    await call.read()
    await call.tell({"message": {**Work().reply("it is four"), "taskId": ""}})


async def answered(client: LiveClient) -> None:
    """A stream of one message."""
    stream = client.live("answered")
    await stream.say(send("two and two?"))
    heard = await stream.hear_out()
    assert [event["message"]["parts"] for event in heard] == [[{"text": "it is four"}]]
    assert await stream.code() is StatusCode.OK


async def unimplemented_agent(call: Call) -> None:
    """Knows no live streams."""
    await call.read()
    await call.refuse(StatusCode.UNIMPLEMENTED, "there are no live streams")


async def unknown_agent(call: Call) -> None:
    """Has no such task."""
    await call.read()
    await call.refuse(StatusCode.NOT_FOUND, "there is no such task")


async def unknown(client: LiveClient) -> None:
    """Reconnecting to nothing."""
    stream = client.live("unknown")
    await stream.say(reconnect(fresh()))
    assert await stream.code() is StatusCode.NOT_FOUND


async def idle_agent(call: Call) -> None:
    """Waits for an answer for a while, then gives up."""
    work = await begin(call)
    await call.tell(work.status("INPUT_REQUIRED", "which region?"))
    await asyncio.sleep(0.3)
    await call.tell(work.status("FAILED", "nobody has answered"))


async def idle(client: LiveClient) -> None:
    """The client says nothing."""
    stream = client.live("idle")
    await stream.say(send("deploy it"))
    assert states(await stream.hear_out())[2:] == ["INPUT_REQUIRED", "FAILED"]
    assert await stream.code() is StatusCode.OK


async def cancelled_agent(call: Call) -> None:
    """Works until its client has gone."""
    await begin(call)
    try:
        await call.told_all()
    finally:
        call.agent.signal("cancelled").set()


async def cancelled(client: LiveClient) -> None:
    """The client gives up, and the agent learns it."""
    stream = client.live("cancelled")
    await stream.say(send("deploy it"))
    await stream.hears(2)
    stream.cancel()
    async with asyncio.timeout(60):
        await client.agent.signal("cancelled").wait()


async def packed_agent(call: Call) -> None:
    """Sends everything in gzip."""
    call.compress()
    work = await begin(call)
    await call.tell(work.status("INPUT_REQUIRED", "which region? " * 20))
    await call.read()
    await call.tell(work.status("WORKING"))
    await done(call, work, "done " * 50)


async def packed(client: LiveClient) -> None:
    """So does the client."""
    stream = client.live("packed", gzip=True)
    await stream.say(send("deploy it " * 30))
    assert states(await stream.hears(3)) == ["SUBMITTED", "WORKING", "INPUT_REQUIRED"]
    await stream.say(send("to Frankfurt " * 30))
    await finished(stream)


async def many_agent(call: Call) -> None:
    """As much as it can say."""
    work = await begin(call)
    for number in range(MANY - 3):
        await call.tell(work.chunk(f"{number} ", last=number == MANY - 4))
    await call.tell(work.status("COMPLETED", "done"))


async def many(client: LiveClient) -> None:
    """10,000 events on one stream, and one more message in their midst."""
    stream = client.live("many")
    await stream.say(send("count"))
    heard = await stream.hear_out()
    assert len(heard) == MANY
    assert [each["artifactUpdate"]["artifact"]["parts"][0]["text"] for each in heard[2:-1]] == [
        f"{number} " for number in range(MANY - 3)
    ]
    assert await stream.code() is StatusCode.OK


async def unimplemented(client: LiveClient) -> None:
    """The card promises nothing, and the agent has nothing."""
    stream = client.live("unimplemented")
    await stream.say(send("deploy it"))
    assert await stream.code() is StatusCode.UNIMPLEMENTED


STORIES = [
    Story("approval", approval, approval_agent),
    Story("approval-closed", approval_closed, approval_agent),
    Story("approval-ids", approval_ids, approval_agent),
    Story("configured", configured, approval_agent),
    Story("lost", lost, lost_agent),
    Story("over", over, over_agent),
    Story("refused", refused, refused_agent),
    Story("shared", shared, shared_agent),
    Story("watched", watched, watched_agent, others={"+subscribe": watcher_agent}),
    Story("answered", answered, answered_agent),
    Story("unknown", unknown, unknown_agent),
    Story("idle", idle, idle_agent),
    Story("cancelled", cancelled, cancelled_agent),
    Story("packed", packed, packed_agent),
]
LONG = Story("many", many, many_agent)
UNDECLARED = Story(
    "unimplemented",
    unimplemented,
    unimplemented_agent,
    undeclared=True,
    finds=[Found("A2A-LIVE-001", 0, "-")],
)
