"""Tasks with generations on two streams at once, in any interleaving and with faults, for property
tests."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import strategies as st

from a2a_proxy.model.values import Finding
from a2a_proxy.model.wire import Chunk
from a2a_proxy.rules.examples.conversation import (
    EventPause,
    fetch_card,
    grpc,
    rest_stream,
    rpc_stream,
)
from a2a_proxy.rules.examples.objects import Json, artifact, chunk, reply, send, snapshot, status
from a2a_proxy.rules.examples.script import MS, STEP, Script, run_together
from support_rules import findings

BINDINGS = ("jsonrpc", "rest", "grpc")
LEAD = 3
"""Steps of a conversation before its first event: the request and the response head."""


class Told(msgspec.Struct, frozen=True):
    """One event of a task."""

    number: int
    event: Json
    counts: bool = True
    """Whether it has a generation of its own; a progress update may repeat the previous one."""


class Stream(msgspec.Struct, frozen=True):
    """The events of one stream, and the number of steps (10 ms) before each event."""

    binding: str
    events: tuple[Told, ...]
    waits: tuple[int, ...]

    def script(self, *, subscribes: bool) -> Script:
        """Return the exchange."""
        said: list[Any] = []
        for told, steps in zip(self.events, self.waits, strict=True):
            said += [EventPause(steps * STEP / 1e9)] if steps else []
            said.append(told.event)
        return _exchange(self.binding, subscribes, said)

    def without(self, lost: int) -> Stream:
        """Return the stream without one event; the times of the others do not change."""
        waits = list(self.waits)
        gone = waits.pop(lost)
        if lost < len(waits):
            waits[lost] += gone + 1
        return Stream(self.binding, self.events[:lost] + self.events[lost + 1 :], tuple(waits))

    def with_twice(self, twice: int) -> Stream:
        """Return the stream with one event sent twice."""
        events = self.events[: twice + 1] + self.events[twice:]
        return Stream(self.binding, events, (*self.waits[: twice + 1], 0, *self.waits[twice + 1 :]))

    def with_swapped(self, at: int) -> Stream:
        """Return the stream with an event and the next one swapped."""
        events = self.events
        swapped = (*events[:at], events[at + 1], events[at], *events[at + 2 :])
        return Stream(self.binding, swapped, self.waits)

    def times(self) -> list[int]:
        """Return the time of each event, in steps after the request's beginning."""
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
    """Two streams of one task: the one that created it, and a later subscription."""

    first: Stream
    second: Stream
    after: int
    """Steps between the two requests."""
    repeats: bool
    """Whether progress updates repeat the previous generation instead of increasing it."""

    def run(self) -> list[Finding]:
        """Return the findings of the rules."""
        return findings(self._script())

    def chunks(self) -> list[Chunk]:
        """Return the chunks as the relay writes them."""
        return self._script().make_chunks()

    def _script(self) -> Script:
        """Return the script. The session lasts long enough for every deadline."""
        made = run_together(
            self.first.script(subscribes=False),
            self.second.script(subscribes=True),
            after=self.after * STEP,
        )
        return made.then(fetch_card(), 15_000 * MS)


def _story(draw: st.DrawFn, repeats: bool) -> list[Told]:
    """Return the events: SUBMITTED, WORKING, some artifacts and progress updates, COMPLETED."""
    found = [
        Told(1, snapshot("SUBMITTED", generation="1")),
        Told(2, status("WORKING", generation="2")),
    ]
    number = 2
    for index in range(draw(st.integers(2, 7))):
        if draw(st.booleans()):
            number += 1
            found.append(
                Told(number, chunk(f"text {index}", id=f"a{index}", generation=str(number)))
            )
        else:
            number += not repeats
            told = status(
                "WORKING", message=reply(f"step {index}", id=f"r{index}"), generation=str(number)
            )
            found.append(Told(number, told, counts=not repeats))
    number += 1
    return [*found, Told(number, status("COMPLETED", generation=str(number)))]


def _snapshot_after(story: list[Told], count: int) -> Told:
    """Return the task after that many of its events."""
    told = story[:count]
    pieces = [
        each.event["artifactUpdate"]["artifact"] for each in told if "artifactUpdate" in each.event
    ]
    whole = [artifact(each["parts"][0]["text"], id=each["artifactId"]) for each in pieces]
    members = {"artifacts": whole} if whole else {}
    state = "WORKING" if count > 1 else "SUBMITTED"
    return Told(told[-1].number, snapshot(state, generation=str(told[-1].number), **members))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Return cases without faults. The subscription's snapshot is newer than every event that the
    first stream sent before it, also if two of these events are swapped."""
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
