"""Two streams of one task, and subscriptions: events that are missing on one of them, differ, or
follow the task's end."""

from __future__ import annotations

from collections.abc import Iterator

from mutations.events import SECOND, message_of, read, set_state, swap, wait
from mutations.objects import alter
from mutations.pick import change, failed, frame, refuse
from support_mutations import Ex, Talk, Want, mutation

SDK1 = ("sdk-1.x-jsonrpc", "sdk-1.x-rest", "sdk-1.x-grpc")
V1 = (*SDK1, "js-three-bindings")
OLD = ("sdk-0.3-jsonrpc", "sdk-0.3-rest", "sdk-0.3-grpc")
ALL = (*SDK1, *OLD)
"""Samples in which a second client subscribes after two events, and three chunks and the end are
sent on both streams."""
CHUNK = 3
"""The index of the second chunk on the first stream."""


def streams(talk: Talk) -> tuple[Ex, Ex]:
    """Return the stream of a task, and the subscription of another client to it."""
    subscription = next(
        each for each in talk.all("SubscribeToTask", streams=True) if len(each.answers) > 3
    )
    task_id = subscription.facts.task_id
    return next(
        each for each in talk.all("SendStreamingMessage") if each.facts.task_id == task_id
    ), subscription


# --- subscriptions


@mutation(*V1)
def the_snapshot_is_lost(talk: Talk) -> Iterator[Want]:
    """A subscription begins with the next event."""
    _, subscription = streams(talk)
    del subscription.answers[0]
    yield Want("A2A-STREAM-010", subscription, subscription.answers[0])


@mutation(*V1)
def the_snapshot_is_old(talk: Talk) -> Iterator[Want]:
    """SUBMITTED, although WORKING was sent before the request."""
    _, subscription = streams(talk)
    set_state(subscription.answers[0], "SUBMITTED")
    yield Want("A2A-STREAM-019", subscription, subscription.answers[0])


@mutation(*V1)
def a_finished_task_is_subscribed_to(talk: Talk) -> Iterator[Want]:
    """The answer is the final task instead of an error."""
    first, subscription = streams(talk)
    late = talk.add(subscription, after=max(first, subscription, key=lambda each: each.ended))
    del late.answers[1:]
    set_state(late.answers[0], "COMPLETED")
    yield Want("A2A-STREAM-011", late, late.answers[0])


@mutation(*SDK1)
def an_unknown_task_is_an_invalid_parameter(talk: Talk) -> Iterator[Want]:
    """The message of the error says that the task does not exist."""
    call = next(each for each in talk.all("SubscribeToTask") if failed(each))
    refuse(call, "INVALID_PARAMS", code=-32602, http=400, status="INVALID_ARGUMENT", number=3)
    yield Want("A2A-STREAM-012", call, frame(call))


@mutation(*SDK1)
def a_message_answers_a_subscription(talk: Talk) -> Iterator[Want]:
    """The state of the requested task stays unknown."""
    _, subscription = streams(talk)
    stranger = talk.add(subscription, after=max(talk.exchanges, key=lambda each: each.ended))
    said = message_of(subscription.answers[0])
    for name in ("taskId", "contextId"):
        alter(said, lambda event, name=name: event.pop(name))
    said.at = stranger.answers[0].at
    stranger.answers = [said]
    other = "11111111-2222-4333-8444-555555555555"
    known = read(subscription.answers[0])["id"]
    stranger.target = stranger.target.replace(known, other)
    for each in stranger.requests:
        change(each, lambda body: body.get("params", body).update(id=other))
    yield Want("A2A-STREAM-012", stranger, said)
    yield Want("A2A-STREAM-010", stranger, said)


# --- one event, two streams


def spread(talk: Talk) -> None:
    """Delay all chunks except the first by two seconds, more on the subscription: both streams send
    all of them, and the first stream sends them first."""
    first, subscription = streams(talk)
    chunk = len(subscription.answers) - 4
    subscription.shift(chunk, SECOND // 20)
    first.shift(CHUNK, 2 * SECOND)
    subscription.shift(chunk + 1, 2 * SECOND)
    wait(talk, 10)


@mutation(*ALL, prepare=spread)
def a_chunk_is_missing_on_the_subscription(talk: Talk) -> Iterator[Want]:
    """The second of three."""
    _, subscription = streams(talk)
    del subscription.answers[-3]
    yield Want("A2A-STREAM-014", subscription)


@mutation(*ALL, prepare=spread)
def a_chunk_is_missing_on_the_first_stream(talk: Talk) -> Iterator[Want]:
    """The second of three."""
    first, _ = streams(talk)
    del first.answers[CHUNK]
    yield Want("A2A-STREAM-014", first)


@mutation(*ALL, prepare=spread)
def chunks_change_places_on_the_subscription(talk: Talk) -> Iterator[Want]:
    """The second and the third of three."""
    _, subscription = streams(talk)
    swap(subscription, -3, -2)
    yield Want("A2A-STREAM-013", subscription, subscription.answers[-2])


@mutation(*ALL, prepare=spread)
def chunks_change_places_on_the_first_stream(talk: Talk) -> Iterator[Want]:
    """The second and the third of three: it is unknown which stream is right, and the later one is
    reported."""
    first, subscription = streams(talk)
    swap(first, -3, -2)
    yield Want("A2A-STREAM-013", subscription, subscription.answers[-2])
    yield Want("A2A-ART-002", first, first.answers[-2])


@mutation(*ALL)
def leaving_one_stream_ends_the_other(talk: Talk) -> Iterator[Want]:
    """One client leaves, and the agent ends the other stream too."""
    first, subscription = streams(talk)
    del first.answers[CHUNK:], subscription.answers[-3:]
    first.finish = "leave"
    subscription.ended = max(first.ended, subscription.ended) + SECOND // 10
    yield Want("A2A-END-018", subscription)
    if not subscription.facts.dialect.value.startswith(
        "0"
    ):  # the snapshot there already has the state WORKING
        yield Want("A2A-STREAM-007", subscription)


@mutation(*ALL)
def one_stream_is_not_told_of_the_end(talk: Talk) -> Iterator[Want]:
    """The subscription stays open without the terminal status, until its client leaves."""
    _, subscription = streams(talk)
    del subscription.answers[-1]
    subscription.ended += 20 * SECOND
    subscription.finish = "leave"
    yield Want("A2A-END-016", subscription)
