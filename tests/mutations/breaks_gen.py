"""Generations of events and snapshots that are skipped, repeated, decreasing, missing or
contradictory."""

from __future__ import annotations

from collections.abc import Iterator

from mutations.events import insert, read, swap
from mutations.numbered import give, number_of, numbered
from mutations.objects import alter
from mutations.pick import stream
from support_mutations import Ex, Msg, Talk, Want, mutation

SDK = ("sdk-1.x-jsonrpc", "sdk-1.x-rest", "sdk-1.x-grpc")
ALL = (*SDK, "js-three-bindings", "demo", "concurrent-grpc")
CHUNK = 3
"""The index of the second chunk, whose generation is 4; that of the task is 1, that of WORKING
2."""


# --- numbers left out


@mutation(*ALL, prepare=numbered)
def an_event_is_lost(talk: Talk) -> Iterator[Want]:
    """A chunk in the middle."""
    call = stream(talk)
    del call.answers[CHUNK]
    yield Want("A2A-GEN-001", call, call.answers[CHUNK])


@mutation(*SDK, "js-three-bindings", "concurrent-grpc", prepare=numbered)
def two_events_are_lost(talk: Talk) -> Iterator[Want]:
    """Reported as one gap."""
    call = stream(talk)
    del call.answers[CHUNK : CHUNK + 2]
    yield Want("A2A-GEN-001", call, call.answers[CHUNK])


@mutation(*ALL, prepare=numbered)
def the_first_chunk_is_lost(talk: Talk) -> Iterator[Want]:
    """The next chunk is appended to an unknown artifact."""
    call = stream(talk)
    del call.answers[CHUNK - 1]
    yield Want("A2A-GEN-001", call, call.answers[CHUNK - 1])
    yield Want("A2A-ART-001", call, call.answers[CHUNK - 1])


@mutation(*ALL, prepare=numbered)
def the_agent_leaves_a_number_out(talk: Talk) -> Iterator[Want]:
    """All events are sent; the later generations are one too high."""
    call = stream(talk)
    for each in call.answers[CHUNK:]:
        give(each, number_of(each) + 1)
    yield Want("A2A-GEN-001", call, call.answers[CHUNK])


@mutation(*ALL, prepare=numbered)
def the_first_task_is_lost(talk: Talk) -> Iterator[Want]:
    """The stream begins with 2."""
    call = stream(talk)
    del call.answers[0]
    yield Want("A2A-STREAM-001", call, call.answers[0])
    yield Want("A2A-GEN-001", call, call.answers[0])


# --- numbers that repeat or go back


@mutation(*ALL, prepare=numbered)
def an_event_comes_twice(talk: Talk) -> Iterator[Want]:
    """The same bytes."""
    call = stream(talk)
    again = insert(call, CHUNK + 1, call.answers[CHUNK].again())
    yield Want("A2A-GEN-002", call, again)


@mutation(*ALL, prepare=numbered)
def two_events_have_one_number(talk: Talk) -> Iterator[Want]:
    """Two chunks."""
    call = stream(talk)
    give(call.answers[CHUNK], number_of(call.answers[CHUNK - 1]))
    yield Want("A2A-GEN-002", call, call.answers[CHUNK])


@mutation(*ALL, prepare=numbered)
def two_events_change_places(talk: Talk) -> Iterator[Want]:
    """A generation is skipped, and sent late."""
    call = stream(talk)
    swap(call, CHUNK - 2, CHUNK - 1)
    yield Want("A2A-GEN-001", call, call.answers[CHUNK - 2])
    yield Want("A2A-GEN-003", call, call.answers[CHUNK - 1])


@mutation(*ALL, prepare=numbered)
def the_agent_counts_anew(talk: Talk) -> Iterator[Want]:
    """From 1 again, in the middle."""
    call = stream(talk)
    for number, each in enumerate(call.answers[CHUNK:], 1):
        give(each, number)
    yield Want("A2A-GEN-003", call, call.answers[CHUNK])


# --- numbers that are missing


@mutation(*ALL, prepare=numbered)
def an_event_has_no_number(talk: Talk) -> Iterator[Want]:
    """Those before and after it have one."""
    call = stream(talk)
    give(call.answers[CHUNK], None)
    yield Want("A2A-GEN-004", call, call.answers[CHUNK])


@mutation(*ALL, prepare=numbered)
def numbers_stop(talk: Talk) -> Iterator[Want]:
    """In the middle."""
    call = stream(talk)
    for each in call.answers[CHUNK:]:
        give(each, None)
    yield Want("A2A-GEN-004", call, call.answers[CHUNK])


@mutation(*ALL, prepare=numbered)
def an_event_has_0(talk: Talk) -> Iterator[Want]:
    """As an explicit 0, if the binding allows it."""
    call = stream(talk)
    give(call.answers[CHUNK], 0)
    yield Want("A2A-GEN-004", call, call.answers[CHUNK])


@mutation(*SDK, "js-three-bindings", prepare=numbered)
def a_progress_update_has_no_number(talk: Talk) -> Iterator[Want]:
    """It changes no state, and the next generations are correct."""
    call = stream(talk)
    give(call.answers[-3], None)
    yield Want("A2A-GEN-004", call, call.answers[-3])


@mutation(*ALL, prepare=numbered)
def a_new_task_has_no_number(talk: Talk) -> Iterator[Want]:
    """The agent sends generations for all other tasks."""
    call = talk.all("SendStreamingMessage", streams=True)[1]
    give(call.answers[0], None)
    yield Want("A2A-GEN-006", call, call.answers[0])


@mutation(*ALL, prepare=numbered)
def a_new_task_begins_at_5(talk: Talk) -> Iterator[Want]:
    """The next generations follow 5."""
    call = stream(talk)
    for each in call.answers:
        give(each, number_of(each) + 4)
    yield Want("A2A-GEN-006", call, call.answers[0])


# --- snapshots


def snapshot(call: Ex, number: int) -> Msg:
    """Insert the task again before the second chunk, in its state at that point, with another
    generation."""
    task = insert(call, CHUNK, call.answers[0].again())
    alter(task, lambda event: event.update(status=read(call.answers[1])["status"]))
    give(task, number)
    return task


@mutation(*ALL, prepare=numbered)
def a_snapshot_is_behind(talk: Talk) -> Iterator[Want]:
    """It has the generation of the status, although a chunk was sent since."""
    call = stream(talk)
    task = snapshot(call, 2)
    yield Want("A2A-GEN-007", call, task)
    yield Want("A2A-STREAM-004", call, task)


@mutation(*ALL, prepare=numbered)
def a_snapshot_is_far_behind(talk: Talk) -> Iterator[Want]:
    """It has the generation of the task at its creation."""
    call = stream(talk)
    task = snapshot(call, 1)
    yield Want("A2A-GEN-007", call, task)
    yield Want("A2A-STREAM-004", call, task)


@mutation(*ALL, prepare=numbered)
def a_snapshot_is_ahead(talk: Talk) -> Iterator[Want]:
    """It has the generation of a later event: the previous event is then late."""
    call = stream(talk)
    task = snapshot(call, 5)
    yield Want("A2A-GEN-001", call, task)
    yield Want("A2A-GEN-003", call, call.answers[CHUNK + 1])
    yield Want("A2A-STREAM-004", call, task)
