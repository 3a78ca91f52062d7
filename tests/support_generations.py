"""Numbered tasks told on two streams at once, in any interleaving, with faults put in: for property tests."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import strategies as st

from a2a_proxy.model.chunk import Chunk
from a2a_proxy.model.finding import Finding
from a2a_proxy.rules.examples.conversation import EventPause, fetch_card, grpc, rest_stream, rpc_stream
from a2a_proxy.rules.examples.objects import Json, artifact, chunk, reply, send, snapshot, status
from a2a_proxy.rules.examples.script import MS, STEP, Script, run_together
from support_rules import findings

BINDINGS = ("jsonrpc", "rest", "grpc")
LEAD = 3
"""Steps of a conversation before its first event: the request, the head."""


class Told(msgspec.Struct, frozen=True):
    """One event of a task."""

    number: int
    event: Json
    counts: bool = True
    """It has a number of its own; a progress update may repeat the one before."""


class Stream(msgspec.Struct, frozen=True):
    """What one stream tells, and the steps (10 ms) to wait before each event."""

    binding: str
    events: tuple[Told, ...]
    waits: tuple[int, ...]

    def script(self, *, subscribes: bool) -> Script:
        """The exchange."""
        said: list[Any] = []
        for told, steps in zip(self.events, self.waits, strict=True):
            said += [EventPause(steps * STEP / 1e9)] if steps else []
            said.append(told.event)
        return _exchange(self.binding, subscribes, said)

    def without(self, lost: int) -> Stream:
        """One event does not come; the others come when they came."""
        waits = list(self.waits)
        gone = waits.pop(lost)
        if lost < len(waits):
            waits[lost] += gone + 1
        return Stream(self.binding, self.events[:lost] + self.events[lost + 1 :], tuple(waits))

    def with_twice(self, twice: int) -> Stream:
        """One event comes twice."""
        events = self.events[: twice + 1] + self.events[twice:]
        return Stream(self.binding, events, (*self.waits[: twice + 1], 0, *self.waits[twice + 1 :]))

    def with_swapped(self, at: int) -> Stream:
        """An event and the next one come the other way round."""
        events = self.events
        swapped = (*events[:at], events[at + 1], events[at], *events[at + 2 :])
        return Stream(self.binding, swapped, self.waits)

    def times(self) -> list[int]:
        """When each event passes, in steps after the request's beginning."""
        found, at = [], LEAD
        for steps in self.waits:
            at += steps
            found.append(at)
            at += 1
        return found


def _exchange(binding: str, subscribes: bool, said: list[Any]) -> Script:
    if binding == "grpc":
        method = "SubscribeToTask" if subscribes else "SendStreamingMessage"
        return grpc(method, {"id": "t1"} if subscribes else send(), *said, version="1.1")
    if binding == "rest":
        target = "/tasks/t1:subscribe" if subscribes else "/message:stream"
        return rest_stream("POST", target, None if subscribes else send(), *said, version="1.1")
    if subscribes:
        return rpc_stream("SubscribeToTask", {"id": "t1"}, *said, id=2, version="1.1")
    return rpc_stream("SendStreamingMessage", send(), *said, version="1.1")


class Case(msgspec.Struct, frozen=True):
    """Two streams of one task: the one that made it, and a subscription that begins later."""

    first: Stream
    second: Stream
    after: int
    """Steps from the one request to the other."""
    repeats: bool
    """Progress updates repeat the number before (else they count on)."""

    def run(self) -> list[Finding]:
        """What the rules say."""
        return findings(self._script())

    def chunks(self) -> list[Chunk]:
        """As the relay writes it."""
        return self._script().chunks()

    def _script(self) -> Script:
        """The session goes on long enough for every deadline."""
        made = run_together(
            self.first.script(subscribes=False), self.second.script(subscribes=True), after=self.after * STEP
        )
        return made.then(fetch_card(), 15_000 * MS)


def _story(draw: st.DrawFn, repeats: bool) -> list[Told]:
    """SUBMITTED, WORKING, some artifacts and progress updates, COMPLETED."""
    found = [Told(1, snapshot("SUBMITTED", generation="1")), Told(2, status("WORKING", generation="2"))]
    number = 2
    for index in range(draw(st.integers(2, 7))):
        if draw(st.booleans()):
            number += 1
            found.append(Told(number, chunk(f"text {index}", id=f"a{index}", generation=str(number))))
        else:
            number += not repeats
            told = status("WORKING", message=reply(f"step {index}", id=f"r{index}"), generation=str(number))
            found.append(Told(number, told, counts=not repeats))
    number += 1
    return [*found, Told(number, status("COMPLETED", generation=str(number)))]


def _snapshot_after(story: list[Told], count: int) -> Told:
    """The task when so many of its events have been told."""
    told = story[:count]
    pieces = [each.event["artifactUpdate"]["artifact"] for each in told if "artifactUpdate" in each.event]
    whole = [artifact(each["parts"][0]["text"], id=each["artifactId"]) for each in pieces]
    members = {"artifacts": whole} if whole else {}
    state = "WORKING" if count > 1 else "SUBMITTED"
    return Told(told[-1].number, snapshot(state, generation=str(told[-1].number), **members))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Faultless ones. The subscription's snapshot is later than all that had passed on the first stream before it, also
    where two events of that are swapped."""
    repeats = draw(st.booleans())
    story = _story(draw, repeats)
    pace = st.integers(0, 20)
    first = Stream(draw(st.sampled_from(BINDINGS)), tuple(story), tuple(draw(pace) for _ in story))
    times = first.times()
    after = draw(st.integers(times[0], times[-2] - 2))
    passed = sum(at <= after + 1 for at in times)
    count = draw(st.integers(min(passed + 1, len(story) - 1), len(story) - 1))
    rest = (_snapshot_after(story, count), *story[count:])
    second = Stream(draw(st.sampled_from(BINDINGS)), rest, tuple(draw(pace) for _ in rest))
    return Case(first, second, after, repeats)
