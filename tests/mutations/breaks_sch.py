"""Objects that break their schema: members that are missing, empty, null, unknown or misspelled."""

from __future__ import annotations

from collections.abc import Iterator

from mutations.objects import (
    OLD_JSON,
    V1,
    V1_TEXT,
    alter,
    looked_up,
    parts,
    resay,
    sends,
)
from mutations.pick import change, stream
from support_mutations import Talk, Want, mutation

NOTES, SECOND = 7, 6
"""Indices in the stream of nine events: the artifact of one chunk, and the status before it."""


# --- missing


@mutation(*V1, *OLD_JSON)
def a_status_without_state(talk: Talk) -> Iterator[Want]:
    """An update in the middle of a stream."""
    call = stream(talk)
    alter(call.answers[SECOND], lambda body: body["status"].pop("state"))
    yield Want("A2A-SCH-001", call, call.answers[SECOND])


@mutation(*V1, *OLD_JSON)
def an_artifact_without_its_id(talk: Talk) -> Iterator[Want]:
    """Of one chunk."""
    call = stream(talk)
    alter(call.answers[NOTES], lambda body: body["artifact"].pop("artifactId"))
    yield Want("A2A-SCH-001", call, call.answers[NOTES])


@mutation(*V1, *OLD_JSON)
def a_message_without_its_id(talk: Talk) -> Iterator[Want]:
    """The client sends it, and the agent accepts it."""
    call = sends(talk, "unary")
    resay(call.requests[0], lambda message: message.pop("messageId"))
    yield Want("A2A-SCH-001", call, call.requests[0])


@mutation(*V1_TEXT)
def an_id_is_empty(talk: Talk) -> Iterator[Want]:
    """The member is an empty string."""
    call = stream(talk)
    alter(call.answers[NOTES], lambda body: body["artifact"].update(artifactId=""))
    yield Want("A2A-SCH-001", call, call.answers[NOTES])


@mutation(*OLD_JSON)
def final_is_missing(talk: Talk) -> Iterator[Want]:
    """In a status update in the middle."""
    call = stream(talk)
    alter(call.answers[SECOND], lambda body: body.pop("final"))
    yield Want("A2A-SCH-001", call, call.answers[SECOND])
    yield Want("A2A-STREAM-017", call, call.answers[SECOND])


# --- lists and alternatives


@mutation(*V1)
def an_artifact_without_parts(talk: Talk) -> Iterator[Want]:
    """It has no content."""
    call = stream(talk)
    alter(call.answers[NOTES], lambda body: body["artifact"].update(parts=[]))
    yield Want("A2A-SCH-002", call, call.answers[NOTES])


@mutation(*V1)
def a_message_without_parts(talk: Talk) -> Iterator[Want]:
    """The client sends it, and the agent accepts it."""
    call = sends(talk, "unary")
    resay(call.requests[0], lambda message: message.update(parts=[]))
    yield Want("A2A-SCH-002", call, call.requests[0])


@mutation(*V1)
def a_part_is_empty(talk: Talk) -> Iterator[Want]:
    """Neither text nor anything else."""
    call = stream(talk)
    alter(call.answers[NOTES], lambda body: body["artifact"].update(parts=[{}]))
    yield Want("A2A-SCH-004", call, call.answers[NOTES])


@mutation(*V1_TEXT, "js-three-bindings", "demo")
def a_part_is_two_things(talk: Talk) -> Iterator[Want]:
    """Text and a URL."""
    call = stream(talk)
    alter(
        call.answers[2],
        lambda body: body["artifact"]["parts"][0].update(url="https://example.com/a"),
    )
    yield Want("A2A-SCH-004", call, call.answers[2])


@mutation(*V1_TEXT)
def an_answer_is_two_things(talk: Talk) -> Iterator[Want]:
    """A task and a message."""
    call = sends(talk, "unary")
    told = {
        "messageId": "m-7",
        "contextId": "c-7",
        "role": "ROLE_AGENT",
        "parts": [{"text": "done"}],
    }
    change(call.answers[0], lambda body: body.get("result", body).update(message=told))
    yield Want("A2A-SCH-004", call, call.answers[0])


@mutation("sdk-0.3-jsonrpc", "dialect-0.2", "js-to-0.3")
def a_file_with_both_contents(talk: Talk) -> Iterator[Want]:
    """Bytes and a URI."""
    call = stream(talk)
    file = {"bytes": "aGk=", "uri": "https://example.com/a.txt", "mimeType": "text/plain"}
    alter(
        call.answers[NOTES],
        lambda body: body["artifact"].update(parts=[{"kind": "file", "file": file}]),
    )
    yield Want("A2A-SCH-013", call, call.answers[NOTES])


@mutation("sdk-0.3-jsonrpc", "dialect-0.2", "js-to-0.3")
def a_file_without_content(talk: Talk) -> Iterator[Want]:
    """Only its name."""
    call = stream(talk)
    file = {"name": "a.txt"}
    alter(
        call.answers[NOTES],
        lambda body: body["artifact"].update(parts=[{"kind": "file", "file": file}]),
    )
    yield Want("A2A-SCH-013", call, call.answers[NOTES])


# --- names


@mutation(*V1_TEXT)
def an_id_in_snake_case(talk: Talk) -> Iterator[Want]:
    """In the message of a client."""
    call = sends(talk, "unary")
    resay(call.requests[0], lambda message: message.update(message_id=message.pop("messageId")))
    yield Want("A2A-SCH-005", call, call.requests[0])


@mutation(*V1_TEXT, "js-three-bindings", "demo")
def last_chunk_in_snake_case(talk: Talk) -> Iterator[Want]:
    """A client that does not know the name treats the artifact as incomplete."""
    call = stream(talk)
    last = next(each for each in call.answers if b'"lastChunk"' in each.data)
    alter(last, lambda body: body.update(last_chunk=body.pop("lastChunk")))
    yield Want("A2A-SCH-005", call, last)
    yield Want("A2A-ART-003", call, call.answers[-1])


@mutation(*V1_TEXT, *OLD_JSON, "sdk-0.3-rest", "demo")
def a_status_with_a_member_of_its_own(talk: Talk) -> Iterator[Want]:
    """No schema has it."""
    call = stream(talk)
    alter(call.answers[1], lambda body: body["status"].update(progress=40))
    yield Want("A2A-SCH-010", call, call.answers[1])


@mutation(*V1_TEXT, *OLD_JSON, "sdk-0.3-rest")
def a_part_with_a_member_of_its_own(talk: Talk) -> Iterator[Want]:
    """In the message of a client."""
    call = sends(talk, "unary")
    resay(call.requests[0], lambda message: parts(message)[0].update(language="en"))
    yield Want("A2A-SCH-010", call, call.requests[0])


@mutation(*OLD_JSON, "js-to-0.3")
def an_event_does_not_say_what_it_is(talk: Talk) -> Iterator[Want]:
    """The member `kind` is missing."""
    call = stream(talk)
    alter(call.answers[NOTES], lambda body: body.pop("kind"))
    yield Want("A2A-SCH-014", call, call.answers[NOTES])


@mutation(*OLD_JSON, "js-to-0.3")
def a_part_does_not_say_what_it_is(talk: Talk) -> Iterator[Want]:
    """In an artifact."""
    call = stream(talk)
    alter(call.answers[NOTES], lambda body: body["artifact"]["parts"][0].pop("kind"))
    yield Want("A2A-SCH-014", call, call.answers[NOTES])


@mutation(*OLD_JSON)
def a_task_does_not_say_what_it_is(talk: Talk) -> Iterator[Want]:
    """The answer of GetTask."""
    call = looked_up(talk)
    alter(call.answers[0], lambda body: body.pop("kind"))
    yield Want("A2A-SCH-014", call, call.answers[0])


@mutation(*V1_TEXT, *OLD_JSON, "sdk-0.3-rest")
def the_history_is_null(talk: Talk) -> Iterator[Want]:
    """The member should be omitted."""
    call = sends(talk, "input")
    alter(call.answers[0], lambda body: body.update(history=None))
    yield Want("A2A-SCH-015", call, call.answers[0])


@mutation(*V1_TEXT, "js-three-bindings", "demo")
def the_metadata_of_an_event_is_null(talk: Talk) -> Iterator[Want]:
    """The same of an event."""
    call = stream(talk)
    alter(call.answers[1], lambda body: body.update(metadata=None))
    yield Want("A2A-SCH-015", call, call.answers[1])
