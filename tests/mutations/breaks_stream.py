"""Streams with a wrong beginning, repeated or reordered events, or events that do not belong to
them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mutations.events import earlier, insert, message_of, read, set_state, swap
from mutations.objects import alter
from mutations.pick import stream
from support_mutations import Talk, Want, mutation

V1 = (
    "sdk-1.x-jsonrpc",
    "sdk-1.x-rest",
    "sdk-1.x-grpc",
    "js-three-bindings",
    "demo",
    "concurrent-grpc",
)
OLD = ("sdk-0.3-jsonrpc", "sdk-0.3-rest", "sdk-0.3-grpc", "js-to-0.3")
ALL = (*V1, *OLD)
"""The timestamps of `dialect-0.2` have no zone, which is reported for every event: the sample is
omitted if events are copied."""
TOLD_ONCE = (*V1, "sdk-0.3-jsonrpc", "sdk-0.3-grpc", "js-to-0.3", "dialect-0.2")
"""The first event of `sdk-0.3-rest` is reported for its many lines: the sample is omitted if that
event is lost."""
SDK1 = ("sdk-1.x-jsonrpc", "sdk-1.x-rest", "sdk-1.x-grpc", "js-three-bindings", "concurrent-grpc")
"""Samples whose statuses have messages and timestamps, and whose last chunks have `lastChunk`."""
WORKING, FIRST_CHUNK, CHUNK = 1, 2, 3
"""Indices in the streams that `stream` finds: SUBMITTED, WORKING, the pieces of an artifact, ...,
COMPLETED."""


# --- the beginning


@mutation(*TOLD_ONCE)
def the_first_task_is_lost(talk: Talk) -> Iterator[Want]:
    """The stream begins with a status update."""
    call = stream(talk)
    del call.answers[0]
    yield Want("A2A-STREAM-001", call, call.answers[0])


@mutation(*TOLD_ONCE)
def it_begins_with_a_chunk(talk: Talk) -> Iterator[Want]:
    """Task and first status are both lost."""
    call = stream(talk)
    del call.answers[:FIRST_CHUNK]
    yield Want("A2A-STREAM-001", call, call.answers[0])


def one_message(talk: Talk) -> None:
    """A stream consists of one message, which belongs to no task."""
    call = stream(talk)
    said = message_of(call.answers[WORKING], "nothing to do")
    alter(said, lambda event: event.pop("taskId", None))
    call.answers = [said]


@mutation(*ALL, prepare=one_message)
def a_second_message(talk: Talk) -> Iterator[Want]:
    """After the message that is the complete answer."""
    call = talk.first("SendStreamingMessage")
    more = insert(call, 1, call.answers[0].again())
    alter(more, lambda event: event.update(messageId="said-again"))
    yield Want("A2A-STREAM-002", call, more)


# --- the middle


@mutation(*ALL)
def a_message_among_updates(talk: Talk) -> Iterator[Want]:
    """The agent sends a message without an update around it."""
    call = stream(talk)
    said = insert(call, CHUNK, message_of(call.answers[WORKING]))
    yield Want("A2A-STREAM-003", call, said)


@mutation(*ALL)
def the_task_once_more_in_the_middle(talk: Talk) -> Iterator[Want]:
    """Its state between two chunks."""
    call = stream(talk)
    task = insert(call, CHUNK, call.answers[0].again())
    alter(task, lambda event: event.update(status=read(call.answers[WORKING])["status"]))
    yield Want("A2A-STREAM-004", call, task)


@mutation(*ALL)
def an_update_comes_twice(talk: Talk) -> Iterator[Want]:
    """The same bytes."""
    call = stream(talk)
    again = insert(call, WORKING + 1, call.answers[WORKING].again())
    yield Want("A2A-STREAM-020", call, again)


@mutation(*ALL, "dialect-0.2")
def a_first_chunk_comes_twice(talk: Talk) -> Iterator[Want]:
    """The same bytes: the chunk replaces itself."""
    call = stream(talk)
    again = insert(call, CHUNK, call.answers[FIRST_CHUNK].again())
    yield Want("A2A-STREAM-020", call, again)


# --- the end comes before the rest


def _stale(event: Any) -> None:
    """Set the timestamp back by two seconds, and remove the message."""
    event["status"].pop("message")
    event["status"]["timestamp"] = earlier(event["status"]["timestamp"], 2)


@mutation(*V1)
def a_chunk_after_the_end(talk: Talk) -> Iterator[Want]:
    """The terminal status and the event before it have changed places."""
    call = stream(talk)
    swap(call, -2, -1)
    yield Want("A2A-STREAM-005", call, call.answers[-1])
    yield Want("A2A-STATE-013", call, call.answers[-1])
    if read(call.answers[-1]).get("append"):  # of an incomplete artifact
        yield Want("A2A-ART-003", call, call.answers[-2])


@mutation(*SDK1)
def work_goes_on_after_the_end(talk: Talk) -> Iterator[Want]:
    """The last update has the state WORKING."""
    call = stream(talk)
    more = insert(call, len(call.answers), call.answers[-1].again())
    set_state(more, "WORKING")
    alter(more, lambda event: event["status"].pop("message"))
    yield Want("A2A-STREAM-005", call, more)
    yield Want("A2A-STATE-001", call, more)


@mutation(*SDK1)
def the_end_comes_twice(talk: Talk) -> Iterator[Want]:
    """The same bytes."""
    call = stream(talk)
    more = insert(call, len(call.answers), call.answers[-1].again())
    yield Want("A2A-STREAM-005", call, more)
    yield Want("A2A-STREAM-020", call, more)


@mutation(*SDK1)
def another_end_after_the_end(talk: Talk) -> Iterator[Want]:
    """COMPLETED first, then FAILED."""
    call = stream(talk)
    more = insert(call, len(call.answers), call.answers[-1].again())
    set_state(more, "FAILED")
    alter(more, lambda event: event["status"].pop("message"))
    yield Want("A2A-STREAM-005", call, more)
    yield Want("A2A-STATE-001", call, more)


@mutation(*SDK1)
def an_old_status_after_the_end(talk: Talk) -> Iterator[Want]:
    """Its timestamp is two seconds before that of the last one."""
    call = stream(talk)
    more = insert(call, len(call.answers), call.answers[-1].again())
    set_state(more, "WORKING")
    alter(more, _stale)
    yield Want("A2A-STREAM-005", call, more)
    yield Want("A2A-STREAM-016", call, more)
    yield Want("A2A-STATE-001", call, more)
    yield Want("A2A-STATE-008", call, more)


@mutation(*SDK1)
def submitted_comes_late(talk: Talk) -> Iterator[Want]:
    """The timestamp of the update is long before that of the last one."""
    call = stream(talk)
    more = insert(call, FIRST_CHUNK, call.answers[WORKING].again())
    set_state(more, "SUBMITTED")
    alter(more, _stale)
    yield Want("A2A-STREAM-016", call, more)
    yield Want("A2A-STATE-002", call, more)
    yield Want("A2A-STATE-008", call, more)


# --- `final` of 0.2 and 0.3

FINAL = (*OLD, "dialect-0.2")


@mutation(*FINAL)
def an_event_after_final(talk: Talk) -> Iterator[Want]:
    """The last two events have changed places."""
    call = stream(talk)
    swap(call, -2, -1)
    yield Want("A2A-STREAM-018", call, call.answers[-1])
    yield Want("A2A-STATE-013", call, call.answers[-1])


@mutation(*FINAL)
def final_is_false_at_the_end(talk: Talk) -> Iterator[Want]:
    """Clients wait for the end."""
    call = stream(talk)
    alter(call.answers[-1], lambda event: event.update(final=False))
    yield Want("A2A-STREAM-017", call)


@mutation(*FINAL)
def final_is_true_too_early(talk: Talk) -> Iterator[Want]:
    """In WORKING: clients leave the stream."""
    call = stream(talk)
    alter(call.answers[-3], lambda event: event.update(final=True))
    yield Want("A2A-STREAM-017", call, call.answers[-3])
    yield Want("A2A-STREAM-018", call, call.answers[-2])
    yield Want("A2A-STREAM-018", call, call.answers[-1])


@mutation("sdk-0.3-jsonrpc", "js-to-0.3", "dialect-0.2")
def final_is_left_out(talk: Talk) -> Iterator[Want]:
    """In an update in the middle, where it is required."""
    call = stream(talk)
    alter(call.answers[WORKING], lambda event: event.pop("final"))
    yield Want("A2A-STREAM-017", call, call.answers[WORKING])
    yield Want("A2A-SCH-001", call, call.answers[WORKING])
