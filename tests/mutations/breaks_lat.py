"""Peers that are slow, silent or impatient, different clocks, and events that are lost with an
aborted stream."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise

from mutations.breaks_ext import stream
from support_mutations import MS, Ex, Talk, Want, mutation

SDK = ("sdk-1.x-jsonrpc", "sdk-1.x-rest", "sdk-1.x-grpc")
V0_3 = ("sdk-0.3-jsonrpc", "sdk-0.3-rest", "sdk-0.3-grpc")
STREAMS = (*SDK, *V0_3, "js-three-bindings", "js-to-0.3", "demo", "dialect-0.2", "concurrent-grpc")
SECOND = 1000 * MS
_STAMP = re.compile(rb"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?")


def _waits(talk: Talk) -> None:
    """The session continues for a while after the last call."""
    talk.length += 700 * SECOND


@mutation(*SDK, *V0_3, "dialect-0.2", "concurrent-grpc", prepare=_waits)
def a_task_is_never_finished(talk: Talk) -> Iterator[Want]:
    """The client leaves, and the task does not change for over ten minutes."""
    call = stream(talk)
    del call.answers[3:]
    call.finish, call.ended = "leave", call.answers[-1].at + 2 * SECOND
    yield Want("A2A-END-023", call)


def _follow_up(talk: Talk) -> tuple[Ex, Ex]:
    """Return a send that ends with a request for input, and the send with the input."""
    sends = talk.all("SendMessage")
    for first, second in pairwise(sends):
        if first.facts.task_id and first.facts.task_id == second.facts.task_id:
            return first, second
    raise AssertionError("nobody answers")


@mutation(*SDK, *V0_3, "demo", "dialect-0.2", prepare=_waits)
def a_client_does_not_answer(talk: Talk) -> Iterator[Want]:
    """The task waits for input."""
    asks, answers = _follow_up(talk)
    talk.exchanges.remove(answers)
    yield Want("A2A-LAT-005", asks, asks.answers[0])


def _later(data: bytes, seconds: int) -> bytes:
    def shifted(found: re.Match[bytes]) -> bytes:
        stamp = datetime.fromisoformat(found[0].decode()) + timedelta(seconds=seconds)
        width = len(found[0].partition(b".")[2])
        return stamp.strftime("%Y-%m-%dT%H:%M:%S.%f")[: 20 + width].encode().rstrip(b".")

    return _STAMP.sub(shifted, data)


@mutation("sdk-1.x-jsonrpc", "sdk-1.x-rest", "sdk-0.3-jsonrpc", "js-to-0.3")
def the_clock_of_the_agent_is_ahead(talk: Talk) -> Iterator[Want]:
    """By fifty seconds."""
    for call in talk.exchanges:
        for answer in call.answers:
            answer.data = _later(answer.data, 50)
    yield _third(talk)


@mutation("sdk-1.x-jsonrpc", "sdk-1.x-rest", "sdk-0.3-jsonrpc", "js-to-0.3")
def the_clock_of_the_agent_is_behind(talk: Talk) -> Iterator[Want]:
    """By a minute."""
    for call in talk.exchanges:
        for answer in call.answers:
            answer.data = _later(answer.data, -60)
    yield _third(talk)


def _third(talk: Talk) -> Want:
    """Return the third status update that changes the state of a task."""
    seen = []
    for call in talk.all("SendStreamingMessage"):
        before = ""
        for answer in call.answers:
            value = answer.value
            event = value.get("result", value)
            update = event.get("statusUpdate", event)
            state = update.get("status", {}).get("state", before)
            if (state != before and update is not event) or (
                state != before and event.get("kind") == "status-update"
            ):
                seen.append((call, answer))
            before = state
    return Want("A2A-LAT-007", *seen[2])


@mutation("demo")
def events_are_lost_with_a_stream(talk: Talk) -> Iterator[Want]:
    """The stream is aborted, and the next GetTask shows the missing events."""
    call = next(each for each in talk.all("SendStreamingMessage") if each.grpc)
    del call.answers[4:]
    call.finish = "cut"
    yield Want("A2A-END-018", call)
