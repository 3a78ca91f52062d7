"""Tasks of agents that count client messages (1.1 draft 3.2.7, 3.2.8).

Nothing is found where nothing is lost, and a lost event is found, on every binding, with and
without a timeline."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from a2a_proxy.model.values import Finding, Severity
from a2a_proxy.rules.examples.conversation import (
    ClientMessage,
    EventPause,
    fetch_card,
    grpc,
    rest,
    rest_error,
    rpc,
)
from a2a_proxy.rules.examples.conversation import rpc_error as error_of_rpc
from a2a_proxy.rules.examples.objects import (
    Json,
    artifact,
    chunk,
    message,
    send,
    snapshot,
    state,
    status,
    task,
)
from a2a_proxy.rules.examples.script import MS, Script, run_together
from support_numbered import BINDINGS, FIRST, SECOND, done, over, step, verdicts, words
from support_rules import findings

SLOT = 200
"""Milliseconds of one step of the agent."""
STEPS = ["artifact", "progress", "message", "race", "refused", "retry", "read"]


def say(
    binding: str, ident: str, number: int, timeline: list[Json] | None = None, **options: Any
) -> Script:
    """A message to the task, answered with the task at this generation."""
    params, shown = (
        send("more", id=ident, taskId="t1"),
        {} if timeline is None else {"timeline": timeline},
    )
    answer = snapshot("WORKING", generation=str(number), **shown)
    options.setdefault("version", "1.1")
    if binding == "grpc":
        return grpc("SendMessage", params, *wait(options), answer, **options)
    if binding == "rest":
        return rest("POST", "/message:send", params, answer, **options)
    return rpc("SendMessage", params, answer, id=7, **options)


def wait(options: dict[str, Any]) -> list[EventPause]:
    """The delay of an answer, as gRPC examples write it."""
    seconds = options.pop("seconds", 0)
    return [EventPause(seconds)] if seconds else []


def refuse(binding: str, ident: str) -> Script:
    """A message to the task that the agent refuses."""
    params = send("more", id=ident, taskId="t1")
    if binding == "grpc":
        return grpc("SendMessage", params, status=3, version="1.1")
    if binding == "rest":
        return rest(
            "POST",
            "/message:send",
            params,
            rest_error(400, "INVALID_ARGUMENT", "BAD"),
            status=400,
            version="1.1",
        )
    return rpc("SendMessage", params, error=error_of_rpc(-32602, "BAD"), id=7, version="1.1")


def read(binding: str, number: int, timeline: list[Json] | None, artifacts: list[Json]) -> Script:
    """GetTask, with the timeline if the agent has one."""
    shown: Json = {} if timeline is None else {"timeline": timeline}
    answer = task("WORKING", generation=str(number), artifacts=artifacts, **shown)
    if binding == "grpc":
        return grpc("GetTask", {"id": "t1"}, answer, version="1.1")
    if binding == "rest":
        return rest("GET", "/tasks/t1", result=answer, version="1.1")
    return rpc("GetTask", {"id": "t1"}, answer, id=8, version="1.1")


def paced(events: list[tuple[int, Json]], before: float) -> list[Any]:
    """Return the events with a pause before each, so that it passes in its slot."""
    found: list[Any] = []
    for at, event in events:
        found += [EventPause(((at - before) * SLOT - 10) / 1000)] if at > before else []
        found.append(event)
        before = at
    return found


class Agent:
    """An agent that numbers events and client messages, and the calls to it."""

    def __init__(
        self, binding: str, calls: str, *, shows_timeline: bool, cut: int, joins: int = 0
    ) -> None:
        self.binding, self.calls = binding, calls
        self.joins = joins
        """Event after which a second client subscribes, if there are as many; 0: none does."""
        self.shows_timeline, self.cut = shows_timeline, cut
        self.number = 2
        self.events: list[tuple[int, Json]] = [(1, FIRST), (2, SECOND)]
        """Generation and event, in order."""
        self.times = [0, 1]
        """The slot of each event."""
        self.entries: list[Json] = [
            {"message": message(id="m1"), "generation": "1"},
            {"status": state("WORKING"), "generation": "2"},
        ]
        self.artifacts: list[Json] = []
        self.others: list[tuple[int, Script]] = []
        """Slot and call."""
        self.slot = 2
        self.messages = 1

    def timeline(self) -> list[Json] | None:
        """The newest entries, if this agent shows them."""
        return self.entries[-self.cut :] if self.shows_timeline else None

    def send_event(self, kind: str) -> None:
        """Change the task and tell subscribers."""
        self.number += 1
        if kind == "artifact":
            place = f"a{self.number}"
            self.events.append((self.number, chunk("x", id=place, generation=str(self.number))))
            number = str(self.number)
            self.artifacts.append(
                artifact("x", id=place, startGeneration=number, endGeneration=number)
            )
        else:
            self.events.append((self.number, step(f"s{self.number}", self.number)))
            self.entries.append({"status": state("WORKING"), "generation": str(self.number)})
        self.times.append(self.slot)

    def take_message(self) -> str:
        """Add a client's message to the task; no event tells it."""
        self.messages += 1
        self.number += 1
        ident = f"m{self.messages}"
        self.entries.append({"message": message(id=ident), "generation": str(self.number)})
        return ident

    def run(self, kind: str) -> None:
        """Do one step."""
        if kind in ("artifact", "progress"):
            self.send_event(kind)
        elif kind == "message":
            ident = self.take_message()
            self.others.append((self.slot, say(self.calls, ident, self.number, self.timeline())))
        elif (
            kind == "race"
        ):  # the message passes the proxy before an event that has the lower number
            self.slot += 1
            self.send_event("artifact")
            ident = self.take_message()
            call = say(self.calls, ident, self.number, self.timeline(), seconds=2 * SLOT / 1000)
            self.others.append((self.slot - 1, call))
            self.slot += 1
        elif kind == "refused":
            self.others.append((self.slot, refuse(self.calls, f"x{self.slot}")))
        elif kind == "retry" and self.messages > 1:
            ident = f"m{self.messages}"
            self.others.append((self.slot, say(self.calls, ident, self.number, self.timeline())))
        elif kind == "read":
            self.others.append(
                (self.slot, read(self.calls, self.number, self.timeline(), list(self.artifacts)))
            )
        self.slot += 1

    def script(self, lost: int = -1) -> Script:
        """The session; the event at index `lost` never reaches the proxy."""
        self.number += 1
        events = [*self.events, (self.number, done(self.number))]
        times = [*self.times, self.slot]
        kept = [
            (at, event)
            for index, ((_, event), at) in enumerate(zip(events, times, strict=True))
            if index != lost
        ]
        made = over(self.binding, *paced(kept, 0))
        if 0 < self.joins < len(self.events):
            at, (number, _) = times[self.joins], events[self.joins]
            rest = [
                (time, event) for time, (_, event) in zip(times, events, strict=True) if time > at
            ]
            first = snapshot("WORKING", generation=str(number))
            other = over(self.calls, first, *paced(rest, at + 0.5), subscribes=True)
            made = run_together(made, other, after=int((at + 0.5) * SLOT) * MS)
        for at, call in self.others:
            made = run_together(made, call, after=(at * SLOT + 30) * MS)
        return made.then(fetch_card(), 20_000 * MS)


@st.composite
def agents(draw: st.DrawFn) -> Agent:
    """Conforming agents after a number of steps."""
    agent = Agent(
        draw(st.sampled_from(BINDINGS)),
        draw(st.sampled_from(BINDINGS)),
        shows_timeline=draw(st.booleans()),
        cut=draw(st.sampled_from([1, 3, 100])),
        joins=draw(st.integers(0, 6)),
    )
    for kind in draw(st.lists(st.sampled_from(STEPS), min_size=1, max_size=10)):
        agent.run(kind)
    return agent


def gaps(script: Script) -> list[Finding]:
    return [each for each in findings(script) if each.rule == "A2A-GEN-001"]


@settings(max_examples=40)
@given(agent=agents())
def test_a_conforming_agent_draws_no_finding(agent: Agent) -> None:
    script = agent.script()
    note("\n".join(script.format_lines()))
    found = [each for each in findings(script) if each.rule.startswith("A2A-GEN-")]
    assert found == []


@settings(max_examples=40)
@given(agent=agents(), data=st.data())
def test_a_lost_event_is_found(agent: Agent, data: st.DataObject) -> None:
    """A message explains one number only, so a lost event leaves one number without an
    explanation."""
    lost = data.draw(st.sampled_from(range(1, len(agent.events))))
    script = agent.script(lost)
    note("\n".join(script.format_lines()))
    found = gaps(script)
    assert len({each.evidence["missing"] for each in found}) == 1, [each.summary for each in found]
    if (
        agent.events[lost][0] != 2
    ):  # this one may be the message that created the task, until a timeline shows more
        assert {each.severity for each in found} == {Severity.ERROR}
        assert len(found) == len({each.exchange for each in found}), "one for each stream"


@pytest.mark.parametrize("binding", BINDINGS)
class TestExamples:
    """Single conversations."""

    def test_a_message_explains_the_missing_number(self, binding: str) -> None:
        script = run_together(
            over(binding, FIRST, SECOND, EventPause(1), chunk("a", generation="4"), done(5)),
            say(binding, "m2", 3),
            after=500 * MS,
        )
        assert verdicts(script, "001") == []

    def test_one_message_does_not_explain_two_numbers(self, binding: str) -> None:
        script = run_together(
            over(binding, FIRST, SECOND, EventPause(1), chunk("a", generation="5"), done(6)),
            say(binding, "m2", 3),
            after=500 * MS,
        )
        assert verdicts(script, "001") == ["ERROR"]
        assert "3 is probably the client's message in #2" in words(script, "001")

    def test_a_refused_message_explains_nothing(self, binding: str) -> None:
        script = run_together(
            over(binding, FIRST, SECOND, EventPause(1), chunk("a", generation="4"), done(5)),
            refuse(binding, "m2"),
            after=500 * MS,
        )
        assert verdicts(script, "001") == ["ERROR"]

    def test_a_late_refusal_reopens_the_question(self, binding: str) -> None:
        script = run_together(
            over(
                binding,
                FIRST,
                SECOND,
                EventPause(0.4),
                chunk("a", generation="4"),
                EventPause(3),
                done(5),
            ),
            late_refusal(binding),
            after=200 * MS,
        )
        assert verdicts(script, "001") == ["ERROR"]
        assert words(script, "001") == (
            "generation 3 is missing on #1: the message that could explain it was refused"
        )

    def test_a_timeline_proves_the_loss(self, binding: str) -> None:
        """The message is 5; the timeline shows a status at 3."""
        entries = [{"status": state("WORKING"), "generation": str(number)} for number in (2, 3)]
        entries.append({"message": message(id="m2"), "generation": "5"})
        script = run_together(
            over(
                binding,
                FIRST,
                SECOND,
                EventPause(1),
                chunk("a", generation="4"),
                EventPause(1),
                done(6),
            ),
            say(binding, "m2", 5, entries, seconds=1),
            after=200 * MS,
        )
        assert verdicts(script, "001") == ["ERROR"]
        assert (
            words(script, "001")
            == "generation 3 is missing on #1: it was an event, not a client's message"
        )

    def test_an_entry_of_an_unknown_kind_explains_its_number(self, binding: str) -> None:
        unknown = (
            {"generation": "3"}
            if binding == "grpc"
            else {"generation": "3", "elicitation": {"id": "e1"}}
        )
        entries = [{"status": state("WORKING"), "generation": "2"}, unknown]
        script = run_together(
            over(binding, FIRST, SECOND, EventPause(1), chunk("a", generation="4"), done(5)),
            read(binding, 3, entries, []),
            after=500 * MS,
        )
        assert verdicts(script, "001") == []

    def test_a_message_of_an_unknown_client_makes_it_uncertain(self, binding: str) -> None:
        entries = [{"message": message(id="m9"), "generation": "2"}]
        script = run_together(
            over(binding, FIRST, SECOND, EventPause(1), chunk("a", generation="4"), done(5)),
            read(binding, 2, entries, []),
            after=500 * MS,
        )
        assert verdicts(script, "001") == ["WARNING?"]
        assert "either the agent did not send an event, or it counts" in words(script, "001")

    def test_an_agent_with_a_timeline_may_not_repeat_a_number(self, binding: str) -> None:
        entries = [{"status": state("WORKING"), "generation": "2"}]
        script = run_together(
            over(binding, FIRST, SECOND, EventPause(1), step("one", 2), step("two", 2), done(9)),
            read(binding, 2, entries, []),
            after=500 * MS,
        )
        assert verdicts(script, "002") == ["ERROR"]
        assert verdicts(script, "001") == []

    def test_the_stream_of_a_message_begins_after_its_number(self, binding: str) -> None:
        """The task is at 3, the message is 4: the stream may begin with 5; the 5 before a 6 passed
        unseen."""
        turn = {"params": send("more", id="m2", taskId="t1")}
        first = over(binding, FIRST, SECOND, status("INPUT_REQUIRED", generation="3"))
        usual = over(binding, status("WORKING", generation="5"), done(6), **turn)
        assert verdicts(first + usual, "001") == []
        late = over(binding, status("WORKING", generation="6"), done(7), **turn)
        assert verdicts(first + late, "001") == ["INFO"]
        assert words(first + late, "001") == (
            "generations 4 to 5 passed before the first event of "
            "this stream; 4 is probably the client's message in #2"
        )


def late_refusal(binding: str) -> Script:
    """A message whose refusal takes a second."""
    params = send("more", id="m2", taskId="t1")
    if binding == "grpc":
        return grpc("SendMessage", params, EventPause(1), status=3, version="1.1")
    if binding == "rest":
        answer = rest_error(400, "INVALID_ARGUMENT", "BAD")
        return rest("POST", "/message:send", params, answer, status=400, seconds=1, version="1.1")
    return rpc(
        "SendMessage", params, error=error_of_rpc(-32602, "BAD"), id=7, seconds=1, version="1.1"
    )


def test_messages_on_a_live_stream_are_counted() -> None:
    """The second message of the client is 3."""
    again = ClientMessage(send("more", id="m2", taskId="t1"))
    events: tuple[Any, ...] = (FIRST, SECOND, again, chunk("a", generation="4"), done(5))
    assert (
        verdicts(grpc("SendLiveMessage", send(), *events, version="1.1", half_close=False), "001")
        == []
    )
    without = (FIRST, SECOND, chunk("a", generation="4"), done(5))
    assert verdicts(
        grpc("SendLiveMessage", send(), *without, version="1.1", half_close=False), "001"
    ) == ["ERROR"]


def test_a_message_has_the_number_that_both_streams_lack() -> None:
    """The second stream begins with the number that the first one has lost."""
    agent = Agent("jsonrpc", "jsonrpc", shows_timeline=False, cut=1, joins=4)
    for kind in ("artifact", "artifact", "race"):
        agent.run(kind)
    (found,) = gaps(agent.script(lost=4))
    assert found.summary.startswith("generations 5 to 6 are missing: 4 is followed by 7; 6 is")
