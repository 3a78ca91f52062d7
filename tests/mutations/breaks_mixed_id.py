"""Conversations that get mixed up: events on the wrong stream, half a stream of something else,
beginnings not seen."""

from __future__ import annotations

from collections.abc import Iterator

from mutations.objects import (
    OLD_JSON,
    SDK,
    V1,
    V1_TEXT,
    alter,
    held,
    member,
    other,
    rename,
    restate,
    streams,
)
from mutations.pick import failed, pick, stream
from support_mutations import Ex, Talk, Want, mutation

JS = ("js-three-bindings", "js-to-0.3")
STREAMS = (*SDK, *JS)


@mutation("concurrent-grpc")
def two_streams_swap_an_event(talk: Talk) -> Iterator[Want]:
    """Each gets one of the other's chunks."""
    first, second = talk.all("SendStreamingMessage")[:2]
    one, two = first.answers[4], second.answers[4]
    one.data, two.data = two.data, one.data
    yield Want("A2A-ID-007", first, one)
    yield Want("A2A-ID-007", second, two)


@mutation("concurrent-grpc")
def a_stream_gets_the_end_of_another(talk: Talk) -> Iterator[Want]:
    """Each of two is told that the other's task is over."""
    first, second = talk.all("SendStreamingMessage")[:2]
    one, two = first.answers[-1], second.answers[-1]
    one.data, two.data = two.data, one.data
    yield Want("A2A-ID-007", first, one)
    yield Want("A2A-ID-007", second, two)


@mutation(*STREAMS)
def half_a_stream_is_in_another_context(talk: Talk) -> Iterator[Want]:
    """From the third event on; told of each."""
    call = stream(talk)
    context = member(call.answers[0], "contextId")
    for each in call.answers[2:]:
        rename(each, context, other(context))
        yield Want("A2A-ID-008", call, each)


@mutation(*STREAMS)
def half_a_stream_is_of_another_task(talk: Talk) -> Iterator[Want]:
    """From the third event on."""
    call = stream(talk)
    ident = member(call.answers[0], "id")
    for each in call.answers[2:]:
        rename(each, ident, other(ident))
        yield Want("A2A-ID-007", call, each)


@mutation(*STREAMS)
def the_beginning_was_not_seen(talk: Talk) -> Iterator[Want]:
    """The stream that made the task was before the recording."""
    call = streams(talk, "blue")
    talk.exchanges.remove(streams(talk, "input"))
    yield Want("A2A-ID-001", call, call.answers[0])


@mutation(*V1, "js-three-bindings", "dialect-0.2")
def two_streams_tell_two_ends(talk: Talk) -> Iterator[Want]:
    """COMPLETED for one, FAILED for the other."""
    one = pick(talk, "SubscribeToTask")
    started = [
        each for each in talk.all("SendStreamingMessage") if each.answers and not failed(each)
    ]
    two = next(each for each in started if _of(each) == _of(one))
    call = max(one, two, key=lambda each: each.answers[-1].at)
    restate(call.answers[-1], "FAILED")
    yield Want("A2A-STATE-001", call, call.answers[-1])


def _of(call: Ex) -> str:
    """The task of a stream."""
    first = held(call.answers[0].value)
    return str(first.get("id") or first.get("taskId"))


@mutation(*V1_TEXT, *OLD_JSON, "sdk-0.3-rest")
def the_task_id_is_a_number(talk: Talk) -> Iterator[Want]:
    """Of the wrong type, and another one."""
    call = stream(talk)
    alter(call.answers[6], lambda body: body.update(taskId=7))
    yield Want("A2A-SCH-008", call, call.answers[6])
    yield Want("A2A-ID-007", call, call.answers[6])
