"""Members on which later checks depend: missing, null, of another type. The later frames are not
reported for them."""

from __future__ import annotations

from collections.abc import Iterator

from mutations.objects import OLD_JSON, V1, V1_TEXT, alter
from mutations.pick import pick, replace, stream
from support_mutations import Talk, Want, mutation

CHUNK, MIDDLE = 2, 6
"""Indices in the stream of nine events: the first chunk, and a status in the middle."""


@mutation(*V1_TEXT, *OLD_JSON)
def the_status_is_null(talk: Talk) -> Iterator[Want]:
    """Of an update."""
    call = stream(talk)
    alter(call.answers[MIDDLE], lambda body: body.update(status=None))
    yield Want("A2A-SCH-001", call, call.answers[MIDDLE])


@mutation(*V1_TEXT, *OLD_JSON)
def the_status_is_a_word(talk: Talk) -> Iterator[Want]:
    """The state instead of an object."""
    call = stream(talk)
    alter(call.answers[MIDDLE], lambda body: body.update(status="working"))
    yield Want("A2A-SCH-008", call, call.answers[MIDDLE])


@mutation("sdk-1.x-rest", "sdk-0.3-rest")
def a_task_in_a_list(talk: Talk) -> Iterator[Want]:
    """The body of the answer to GetTask is an array of one."""
    call = pick(talk, "GetTask")
    replace(call.answers[0], [call.answers[0].value])
    yield Want("A2A-SCH-008", call, call.answers[0])


@mutation(*V1_TEXT, *OLD_JSON)
def the_status_of_a_task_is_a_list(talk: Talk) -> Iterator[Want]:
    """Of one."""
    call = pick(talk, "GetTask")
    alter(call.answers[0], lambda body: body.update(status=[body["status"]]))
    yield Want("A2A-SCH-008", call, call.answers[0])


@mutation(*V1, *OLD_JSON)
def a_task_without_status(talk: Talk) -> Iterator[Want]:
    """Of the answer to GetTask."""
    call = pick(talk, "GetTask")
    alter(call.answers[0], lambda body: body.pop("status"))
    yield Want("A2A-SCH-001", call, call.answers[0])


@mutation(*V1, *OLD_JSON)
def a_first_task_without_status(talk: Talk) -> Iterator[Want]:
    """The first event of a stream."""
    call = stream(talk)
    alter(call.answers[0], lambda body: body.pop("status"))
    yield Want("A2A-SCH-001", call, call.answers[0])


@mutation(*V1, *OLD_JSON)
def a_first_task_without_id(talk: Talk) -> Iterator[Want]:
    """The first event of a stream: the later events are checked by their own ids."""
    call = stream(talk)
    alter(call.answers[0], lambda body: body.pop("id"))
    yield Want("A2A-SCH-001", call, call.answers[0])


@mutation(*V1, *OLD_JSON)
def an_update_without_task_id(talk: Talk) -> Iterator[Want]:
    """In the middle of a stream."""
    call = stream(talk)
    alter(call.answers[MIDDLE], lambda body: body.pop("taskId"))
    yield Want("A2A-SCH-001", call, call.answers[MIDDLE])


@mutation(*V1, *OLD_JSON)
def the_end_without_task_id(talk: Talk) -> Iterator[Want]:
    """The event may be the end of the task, so a missing end is not reported too."""
    call = stream(talk)
    alter(call.answers[-1], lambda body: body.pop("taskId"))
    yield Want("A2A-SCH-001", call, call.answers[-1])


@mutation(*V1, *OLD_JSON)
def a_last_status_without_state(talk: Talk) -> Iterator[Want]:
    """The same if the event does not say that it is the end."""
    call = stream(talk)
    alter(call.answers[-1], lambda body: body["status"].pop("state"))
    yield Want("A2A-SCH-001", call, call.answers[-1])


@mutation(*V1, *OLD_JSON)
def an_update_without_context(talk: Talk) -> Iterator[Want]:
    """In the middle of a stream."""
    call = stream(talk)
    alter(call.answers[MIDDLE], lambda body: body.pop("contextId"))
    yield Want("A2A-SCH-001", call, call.answers[MIDDLE])


@mutation(*V1, *OLD_JSON)
def a_first_chunk_without_artifact_id(talk: Talk) -> Iterator[Want]:
    """The chunk that is appended to it is not reported."""
    call = stream(talk)
    alter(call.answers[CHUNK], lambda body: body["artifact"].pop("artifactId"))
    yield Want("A2A-SCH-001", call, call.answers[CHUNK])
