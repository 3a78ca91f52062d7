"""The drive itself against small agents: each message at its time, and never a hang."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable

import msgspec
import pytest

from a2a_proxy.drive import run
from a2a_proxy.drive.load import add_waits
from a2a_proxy.drive.plan import ClientAction, ClientTurn, DrivePlan, PlannedCall
from a2a_proxy.drive.request import CallTarget, DriveRequest, OpenCall, ReceivedMessage
from a2a_proxy.drive.run import Drive, DriveOptions
from a2a_proxy.model.values import Binding, Frame, FrameKind
from support_drive import frame, step

TASK = "4d1144cc-dd4c-4633-b33c-c38cb7c9ed5f"
SECONDS = 60.0
_MS = 1_000_000


def event(state: str = "WORKING", task: str = TASK) -> bytes:
    update = {"taskId": task, "contextId": "c", "status": {"state": f"TASK_STATE_{state}"}}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"statusUpdate": update}}).encode()


def ask(text: str = "hi", **ids: str) -> bytes:
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}], **ids}
    return json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
    ).encode()


class Agent:
    """Gives each call what `iter_answers` says: called with the texts it has been sent so far, None
    ends the call."""

    def __init__(self, answers: Callable[[list[str]], AsyncIterator[bytes]]) -> None:
        self.answers = answers
        self.log: list[str] = []

    def open_call(self, step: PlannedCall, _speech: CallTarget, /) -> OpenCall:
        return _Line(self, step)

    async def close(self) -> None:
        pass


class _Line:
    def __init__(self, agent: Agent, step: PlannedCall) -> None:
        self._agent = agent
        self._place = step.place
        self._texts: list[str] = []

    async def send_message(self, request: DriveRequest) -> None:
        message = json.loads(request.payload)["params"]["message"]
        self._texts.append(message["parts"][0]["text"])
        self._agent.log.append(f"{self._place} {message.get('taskId', '')}{self._texts[-1]}")

    async def half_close(self) -> None:
        self._agent.log.append(f"{self._place} end")

    async def cancel(self) -> None:
        self._agent.log.append(f"{self._place} cancel")

    async def iter_answers(self) -> AsyncIterator[ReceivedMessage]:
        async for data in self._agent.answers(self._texts):
            yield ReceivedMessage(data, "json", FrameKind.EVENT)


def live(*turns: tuple[ClientAction, int, bytes], answers: tuple[bytes, ...] = ()) -> PlannedCall:
    """A live stream #1 whose client does these things after having heard so many events."""
    heard = [frame(1, 10 + n, 10 + n, agent=True, payload=data) for n, data in enumerate(answers)]
    made = step(1, 10, 90, *heard, operation="SendLiveMessage")
    texts = [
        ClientTurn(act, n, 10 + n, n_heard, 0, (), _said(act, n, data))
        for n, (act, n_heard, data) in enumerate(turns)
    ]
    return msgspec.structs.replace(made, turns=tuple(texts))


def _said(act: ClientAction, seq: int, data: bytes) -> Frame | None:
    return frame(1, seq, 10 + seq, payload=data) if act is ClientAction.SAY else None


async def drive(
    agent: Agent, *steps: PlannedCall, timeout: float = 20.0, speed: float = 0.0
) -> Drive:
    """All of it, within SECONDS."""
    numbered = [msgspec.structs.replace(each, number=number) for number, each in enumerate(steps)]
    plan = DrivePlan(tuple(add_waits(numbered)))
    made = Drive(
        plan,
        dict.fromkeys((Binding.JSONRPC, Binding.GRPC), agent),
        DriveOptions(speed=speed, timeout=timeout),
    )
    async with asyncio.timeout(SECONDS):
        await made.run()
    return made


async def test_a_client_message_waits_for_the_recorded_event() -> None:
    """The second message goes out when the agent asks, which it does late; then the half-close."""

    async def answers(texts: list[str]) -> AsyncIterator[bytes]:
        yield event()
        while not texts:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.05)
        assert texts == ["deploy"]
        yield event("INPUT_REQUIRED")
        while len(texts) < 2:
            await asyncio.sleep(0.001)
        yield event("COMPLETED")

    story = live(
        (ClientAction.SAY, 0, ask("deploy")),
        (ClientAction.SAY, 2, ask("to Frankfurt")),
        (ClientAction.END, 2, b""),
        answers=(event(), event("INPUT_REQUIRED"), event("COMPLETED")),
    )
    agent = Agent(answers)
    made = await drive(agent, story)
    assert agent.log == ["#1 deploy", "#1 to Frankfurt", "#1 end"]
    assert made.remarks == []


async def test_a_later_message_of_a_stream_names_the_live_task() -> None:
    """The recorded agent created the task in the same call, so its id is not one that the client
    made."""

    async def answers(texts: list[str]) -> AsyncIterator[bytes]:
        yield event("INPUT_REQUIRED", "the-task-of-now")
        while len(texts) < 2:
            await asyncio.sleep(0.001)
        yield event("COMPLETED", "the-task-of-now")

    story = live(
        (ClientAction.SAY, 0, ask("deploy")),
        (ClientAction.SAY, 1, ask(" to Frankfurt", taskId=TASK)),
        answers=(event("INPUT_REQUIRED"), event("COMPLETED")),
    )
    agent = Agent(answers)
    await drive(agent, story)
    assert agent.log == ["#1 deploy", "#1 the-task-of-now to Frankfurt"]


async def test_an_early_input_request_is_answered_early() -> None:
    """The agent sends fewer events than the recorded one before its question; waiting for more
    would never end."""

    async def answers(texts: list[str]) -> AsyncIterator[bytes]:
        yield event("INPUT_REQUIRED")
        while len(texts) < 2:
            await asyncio.sleep(0.001)
        yield event("COMPLETED")

    story = live(
        (ClientAction.SAY, 0, ask("deploy")),
        (ClientAction.SAY, 3, ask("yes")),
        answers=(event(), event(), event("INPUT_REQUIRED"), event("COMPLETED")),
    )
    agent = Agent(answers)
    assert (await drive(agent, story)).remarks == []
    assert agent.log == ["#1 deploy", "#1 yes"]


async def test_a_missing_event_ends_the_call_after_the_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An agent that neither asks nor ends gets the message all the same, and it is said."""
    monkeypatch.setattr(run, "_PATIENCE_SECONDS", 0.05)

    async def answers(texts: list[str]) -> AsyncIterator[bytes]:
        yield event()
        while len(texts) < 2:
            await asyncio.sleep(0.001)

    story = live(
        (ClientAction.SAY, 0, ask("a")), (ClientAction.SAY, 2, ask("b")), answers=(event(), event())
    )
    (remark,) = (await drive(Agent(answers), story)).remarks
    assert remark.text == "sent although #1 had brought 1 of 2 messages: the agent was silent"


async def test_a_call_without_answer_times_out() -> None:
    async def answers(_texts: list[str]) -> AsyncIterator[bytes]:
        await asyncio.sleep(SECONDS)
        yield b""

    agent = Agent(answers)
    made = await drive(agent, step(1, 10, 20, payload=ask()), timeout=0.05)
    assert [remark.text for remark in made.remarks] == [
        "the agent sent nothing for 0.05 s: given up (--timeout)"
    ]
    assert agent.log[-1] == "#1 cancel"


async def test_a_call_that_cannot_be_sent_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its window is full, say."""

    async def never(_self: object, _request: DriveRequest) -> None:
        await asyncio.sleep(SECONDS)

    async def answers(_texts: list[str]) -> AsyncIterator[bytes]:
        yield event()

    monkeypatch.setattr(_Line, "send_message", never)
    agent = Agent(answers)
    made = await drive(
        agent, step(1, 10, 20, payload=ask()), step(2, 30, 40, payload=ask()), timeout=0.05
    )
    assert [remark.text for remark in made.remarks] == [
        "the agent accepted nothing for 0.05 s: given up (--timeout)"
    ] * 2
    assert agent.log == ["#1 cancel", "#2 cancel"]


async def test_nothing_is_sent_after_the_agent_has_ended_the_stream() -> None:
    async def answers(_texts: list[str]) -> AsyncIterator[bytes]:
        yield event("COMPLETED")

    story = live(
        (ClientAction.SAY, 0, ask("a")),
        (ClientAction.SAY, 1, ask("b")),
        (ClientAction.SAY, 1, ask("c")),
        answers=(event(),),
    )
    # A gate that is long in opening, so that the end of the call is seen first.
    slow = msgspec.structs.replace(story.turns[1], pause=50 * _MS)
    story = msgspec.structs.replace(story, turns=(story.turns[0], slow, story.turns[2]))
    agent = Agent(answers)
    numbered = DrivePlan((story,))
    made = Drive(numbered, {Binding.JSONRPC: agent}, DriveOptions(speed=1.0))
    async with asyncio.timeout(SECONDS):
        await made.run()
    assert [remark.text for remark in made.remarks] == [
        "the agent ended the call before 2 of the client's messages could be sent"
    ]
    assert agent.log == ["#1 a"]


async def test_ids_of_the_live_agent_are_used_in_later_calls() -> None:
    now = "99999999-dd4c-4633-b33c-c38cb7c9ed5f"

    async def answers(_texts: list[str]) -> AsyncIterator[bytes]:
        yield event("INPUT_REQUIRED", now)

    first = step(
        1,
        10,
        20,
        frame(1, 1, 15, agent=True, payload=event("INPUT_REQUIRED"), task_id=TASK),
        payload=ask(),
    )
    agent = Agent(answers)
    made = await drive(agent, first, step(2, 30, 40, payload=ask("four", taskId=TASK)))
    assert agent.log == ["#1 hi", f"#2 {now}four"]
    assert made.remarks == []


async def test_a_call_about_a_task_that_was_not_created_is_skipped() -> None:
    async def answers(_texts: list[str]) -> AsyncIterator[bytes]:
        yield json.dumps(
            {"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "broken"}}
        ).encode()

    first = step(
        1, 10, 20, frame(1, 1, 15, agent=True, payload=event(), task_id=TASK), payload=ask()
    )
    agent = Agent(answers)
    made = await drive(agent, first, step(2, 30, 40, payload=ask("four", taskId=TASK)))
    assert agent.log == ["#1 hi"]
    assert made.skipped == {1}
    assert made.remarks[0].text == f"not sent: the agent returned no id in place of {TASK}"


async def test_a_cancel_keeps_its_recorded_pause() -> None:
    """Nothing else says when a client lost interest; at any other speed it is scaled."""
    waited: list[float] = []

    async def answers(_texts: list[str]) -> AsyncIterator[bytes]:
        yield event()
        began = asyncio.get_running_loop().time()
        try:
            await asyncio.sleep(SECONDS)
        finally:
            waited.append(asyncio.get_running_loop().time() - began)

    story = live((ClientAction.SAY, 0, ask("a")), answers=(event(),))
    cut = ClientTurn(ClientAction.CUT, 2, 11 + 50 * _MS, 1, 0)
    story = msgspec.structs.replace(story, turns=(*story.turns, cut))
    agent = Agent(answers)
    await drive(agent, story)
    assert agent.log == ["#1 a", "#1 cancel"]
    assert waited[0] >= 0.045


async def test_recorded_pauses_are_kept_on_request() -> None:
    """Two calls, the second 80 ms after the first."""

    async def answers(_texts: list[str]) -> AsyncIterator[bytes]:
        yield event("COMPLETED")

    for speed, least in ((1.0, 0.079), (8.0, 0.0099)):
        began = asyncio.get_running_loop().time()
        calls = step(1, 10, 20, payload=ask()), step(2, 80 * _MS, 81 * _MS, payload=ask())
        await drive(Agent(answers), *calls, speed=speed)
        assert asyncio.get_running_loop().time() - began >= least
