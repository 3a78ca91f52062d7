"""Live conversations in which one side does something wrong; what must be found stands beside each.

`at` says where: which exchange of the story (0 for its first), and which of its frames by direction
and number (`<2`: the agent's third; `-`: the exchange as a whole).
"""

from __future__ import annotations

import asyncio

from grpc import StatusCode

from peers.live.agent import Call
from peers.live.client import LiveClient
from peers.live.payloads import Json, Work, fresh, reconnect, send
from peers.live.stories import begin, done
from peers.live.story import ClientPart, Found, Story

DONE = "COMPLETED"
NOTICED = "A2A-LIVE-005"
"""The finding for which one of the agents waits."""


async def _simple(client: LiveClient, story: str) -> None:
    """One message, and what the agent makes of it."""
    stream = client.live(story)
    await stream.say(send("deploy it"))
    await stream.hear_out()


# --- the agent


async def lingering_agent(call: Call) -> None:
    """Keeps the stream open after the end of the task, until somebody has noticed."""
    work = await begin(call)
    await call.tell(work.status(DONE, "done"))
    await call.agent.signal("lingering: noticed").wait()


async def closing_agent(call: Call) -> None:
    """Asks, and does not wait for the answer."""
    work = await begin(call)
    await call.tell(work.status("INPUT_REQUIRED", "which region?"))


async def two_tasks_agent(call: Call) -> None:
    """Begins a second task on the stream of the first."""
    work = await begin(call)
    await call.tell(work.status("INPUT_REQUIRED", "which region?"))
    await call.read()
    other = Work(context=work.context)
    await call.tell(other.task())
    await call.tell(work.status("WORKING"))
    await done(call, work)


async def two_tasks(client: LiveClient) -> None:
    """The client has nothing to do with it."""
    stream = client.live("two-tasks")
    await stream.say(send("deploy it"))
    await stream.hears(3)
    await stream.say(send("to Frankfurt"))
    await stream.hear_out()


async def early_agent(call: Call) -> None:
    """Ends with OK in the midst of its work."""
    await begin(call)


async def breaking_agent(call: Call) -> None:
    """Breaks down in the midst of its work."""
    await begin(call)
    await call.refuse(StatusCode.INTERNAL, "out of memory")


async def mixing_agent(call: Call) -> None:
    """Says something beside the updates of its task."""
    work = await begin(call)
    await call.tell({"message": work.reply("by the way")})
    await done(call, work)


async def late_agent(call: Call) -> None:
    """Says something more after the end."""
    work = await begin(call)
    await call.tell(work.status(DONE, "done"), work.chunk("late", last=True))


async def updates_agent(call: Call) -> None:
    """Begins with an update: nobody knows of which task."""
    await call.read()
    work = Work()
    await call.tell(work.status("WORKING", "on it"))
    await done(call, work)


async def talkative_agent(call: Call) -> None:
    """Answers with two messages."""
    await call.read()
    work = Work()
    await call.tell(
        *({"message": {**work.reply(text), "taskId": ""}} for text in ("it is four", "or five"))
    )


async def over_refused_agent(call: Call) -> None:
    """Does not show a task that is over."""
    if call.number:
        await call.read()
        await call.refuse(StatusCode.FAILED_PRECONDITION, "the task is over")
    await done(call, await begin(call))


async def over_refused(client: LiveClient) -> None:
    """The client reconnects to it."""
    stream = client.live("over-refused")
    await stream.say(send("deploy it"))
    task_id = (await stream.hear_out())[0]["task"]["id"]
    again = client.live("over-refused")
    await again.say(reconnect(task_id))
    await again.hear_out()


async def bad_argument_agent(call: Call) -> None:
    """Takes a task that it does not know for a mistake in writing."""
    await call.read()
    await call.refuse(StatusCode.INVALID_ARGUMENT, "no such task")


async def bad_argument(client: LiveClient) -> None:
    """Reconnecting to nothing."""
    stream = client.live("bad-argument")
    await stream.say(reconnect(fresh()))
    await stream.hear_out()


async def blind_agent(call: Call) -> None:
    """Goes on for a client that has come back, without showing it the task."""
    left = call.agent.signal("blind: left")
    if call.number == 0:
        call.agent.tasks["blind"] = await begin(call)
        try:
            await call.told_all()
        finally:
            left.set()
        return
    await left.wait()
    await call.read()
    await done(call, call.agent.tasks["blind"])


async def blind(client: LiveClient) -> None:
    """The client is lost, and comes back."""
    stream = client.live("blind")
    await stream.say(send("deploy it"))
    task_id = (await stream.hears(2))[0]["task"]["id"]
    stream.cancel()
    again = client.live("blind")
    await again.say(reconnect(task_id))
    await again.hear_out()


async def exists_agent(call: Call) -> None:
    """Refuses a second stream with a status that says something else."""
    if call.number:
        await call.read()
        await call.refuse(StatusCode.ALREADY_EXISTS, "the task has a live stream")
    work = await begin(call)
    await call.tell(work.status("INPUT_REQUIRED", "which region?"))
    await call.read()
    await call.tell(work.status("WORKING"))
    await done(call, work)


async def exists(client: LiveClient) -> None:
    """The client asks for one."""
    stream = client.live("exists")
    await stream.say(send("deploy it"))
    heard = await stream.hears(3)
    second = client.live("exists")
    await second.say(reconnect(heard[0]["task"]["id"]))
    await second.hear_out()
    await stream.say(send("to Frankfurt"))
    await stream.hear_out()


async def forgetful_agent(call: Call) -> None:
    """Accepts a second stream, and leaves out what it should tell the first."""
    over = call.agent.signal("forgetful: over")
    if call.number == 0:
        call.agent.tasks["forgetful"] = await begin(call)
        call.agent.calls["forgetful"] = [call]
        await over.wait()
        return
    await call.read()
    work, (first,) = call.agent.tasks["forgetful"], call.agent.calls["forgetful"]
    await call.tell(work.task())
    shown, kept, last = work.chunk("one, "), work.chunk("two, "), work.chunk("three", last=True)
    await call.tell(shown)
    await first.tell(shown)
    await call.tell(kept, last)
    await first.tell(last)
    await asyncio.sleep(0.01)
    end = work.status(DONE, "done")
    await call.tell(end)
    await first.tell(end)
    over.set()


async def forgetful(client: LiveClient) -> None:
    """Two streams of one task."""
    stream, second = client.live("forgetful"), client.live("forgetful")
    await stream.say(send("deploy it"))
    heard = await stream.hears(2)
    await second.say(reconnect(heard[0]["task"]["id"]))
    await asyncio.gather(stream.hear_out(), second.hear_out())


async def deaf_agent(call: Call) -> None:
    """Asks somebody who has said that nothing more will come; then gives up."""
    work = await begin(call)
    await call.told_all()
    await call.tell(work.status("INPUT_REQUIRED", "which region?"))
    await call.tell(work.status("FAILED", "nobody can answer"))


async def deaf(client: LiveClient) -> None:
    """The client half-closes at once."""
    stream = client.live("deaf")
    await stream.say(send("deploy it"))
    await stream.hears(2)
    await stream.half_close()
    await stream.hear_out()


# --- the client


async def asking_agent(call: Call) -> None:
    """Asks once, and takes whatever comes for an answer."""
    work = await begin(call)
    await call.tell(work.status("INPUT_REQUIRED", "which region?"))
    await call.read()
    await call.tell(work.status("WORKING"))
    await done(call, work)


async def _answers(
    client: LiveClient, story: str, answer: Json, configuration: Json | None = None
) -> None:
    stream = client.live(story)
    await stream.say(send("deploy it", configuration=configuration))
    heard = await stream.hears(3)
    if answer["message"].get("taskId") == "this":
        answer["message"]["taskId"] = heard[0]["task"]["id"]
    await stream.say(answer)
    await stream.hear_out()


async def wrong_ids(client: LiveClient) -> None:
    """The answer names another task and another context."""
    await _answers(client, "wrong-ids", send("to Frankfurt", taskId=fresh(), contextId=fresh()))


async def changed_options(client: LiveClient) -> None:
    """The answer comes with another configuration."""
    answer = send("to Frankfurt", configuration={"historyLength": 2})
    await _answers(client, "changed-options", answer, configuration={"historyLength": 5})


async def says_nothing(client: LiveClient) -> None:
    """The answer names the task and has no parts."""
    await _answers(client, "says-nothing", reconnect("this"))


async def malformed_agent(call: Call) -> None:
    """Refuses what it cannot use."""
    await call.read()
    await call.refuse(StatusCode.INVALID_ARGUMENT, "message.parts is empty")


async def malformed(client: LiveClient) -> None:
    """A first message without parts, and about no task."""
    stream = client.live("malformed")
    await stream.say({"message": {"messageId": fresh(), "role": "ROLE_USER"}})
    assert await stream.code() is StatusCode.INVALID_ARGUMENT


async def lingering(client: LiveClient) -> None:
    """The client waits for the end."""
    await _simple(client, "lingering")


def _with(name: str) -> ClientPart:
    async def part(client: LiveClient) -> None:
        await _simple(client, name)

    return part


FAULTS = [
    Story("lingering", lingering, lingering_agent, finds=[Found("A2A-LIVE-005", 0, "<2")]),
    Story("closing", _with("closing"), closing_agent, finds=[Found("A2A-LIVE-004", 0, "-")]),
    Story("two-tasks", two_tasks, two_tasks_agent, finds=[Found("A2A-LIVE-007", 0, "<3")]),
    Story("early", _with("early"), early_agent, finds=[Found("A2A-LIVE-020", 0, "-")]),
    Story("breaking", _with("breaking"), breaking_agent, finds=[Found("A2A-END-013", 0, "-")]),
    Story("mixing", _with("mixing"), mixing_agent, finds=[Found("A2A-STREAM-003", 0, "<2")]),
    Story(
        "late",
        _with("late"),
        late_agent,
        finds=[Found("A2A-LIVE-006", 0, "<3"), Found("A2A-STATE-013", 0, "<3")],
    ),
    Story("updates", _with("updates"), updates_agent, finds=[Found("A2A-LIVE-010", 0, "<0")]),
    Story("talkative", _with("talkative"), talkative_agent, finds=[Found("A2A-LIVE-011", 0, "<1")]),
    Story("over-refused", over_refused, over_refused_agent, finds=[Found("A2A-LIVE-012", 1, "<0")]),
    Story("bad-argument", bad_argument, bad_argument_agent, finds=[Found("A2A-LIVE-013", 0, "<0")]),
    Story("blind", blind, blind_agent, finds=[Found("A2A-LIVE-014", 1, "<0")]),
    Story("exists", exists, exists_agent, finds=[Found("A2A-LIVE-015", 1, "<0")]),
    Story("forgetful", forgetful, forgetful_agent, finds=[Found("A2A-LIVE-016", 0, "-")]),
    Story("deaf", deaf, deaf_agent, finds=[Found("A2A-LIVE-017", 0, "<2")]),
    Story("wrong-ids", wrong_ids, asking_agent, finds=[Found("A2A-LIVE-008", 0, ">1", times=2)]),
    Story("changed-options", changed_options, asking_agent, finds=[Found("A2A-LIVE-009", 0, ">1")]),
    Story("says-nothing", says_nothing, asking_agent, finds=[Found("A2A-LIVE-019", 0, ">1")]),
    Story("malformed", malformed, malformed_agent, finds=[Found("A2A-SCH-002", 0, ">0")]),
]


async def undeclared_agent(call: Call) -> None:
    """Takes a live stream that its card does not declare."""
    await done(call, await begin(call))


UNDECLARED_FAULT = Story(
    "undeclared",
    _with("undeclared"),
    undeclared_agent,
    undeclared=True,
    finds=[Found("A2A-LIVE-001", 0, "-"), Found("A2A-LIVE-002", 0, "<0")],
)
