"""Invalid values of members: enums, timestamps, bytes, numbers, roles, types."""

from __future__ import annotations

from collections.abc import Iterator

from mutations.objects import (
    OLD_JSON,
    OLD_PROTO,
    V1,
    V1_TEXT,
    alter,
    looked_up,
    parts,
    resay,
    sends,
    streams,
)
from mutations.pick import GRPC, stream
from support_mutations import Talk, Want, mutation

STATUS, NOTES = 6, 7
"""Indices in the stream of nine events: a status in the middle, and the artifact of one chunk."""
TEXTS = (*V1_TEXT, *OLD_JSON)


# --- enums


@mutation(*V1_TEXT, "sdk-0.3-rest")
def a_state_that_nobody_knows(talk: Talk) -> Iterator[Want]:
    """In the middle of a stream."""
    call = stream(talk)
    alter(call.answers[STATUS], lambda body: body["status"].update(state="TASK_STATE_RUNNING"))
    yield Want("A2A-SCH-003", call, call.answers[STATUS])


@mutation(*OLD_JSON)
def a_state_that_nobody_knows_in_old(talk: Talk) -> Iterator[Want]:
    """The same in 0.2 and 0.3."""
    call = stream(talk)
    alter(call.answers[STATUS], lambda body: body["status"].update(state="running"))
    yield Want("A2A-SCH-003", call, call.answers[STATUS])


@mutation(
    "sdk-1.x-grpc", "sdk-0.3-grpc", "js-three-bindings", "js-to-0.3", "concurrent-grpc", "demo"
)
def a_number_that_is_no_state(talk: Talk) -> Iterator[Want]:
    """In the middle of a stream."""
    call = stream(talk, GRPC)
    alter(call.answers[1], lambda body: body["status"].update(state=42))
    yield Want("A2A-SCH-003", call, call.answers[1])


@mutation(*V1_TEXT)
def a_state_that_says_nothing(talk: Talk) -> Iterator[Want]:
    """UNSPECIFIED must never be sent."""
    call = stream(talk)
    alter(call.answers[STATUS], lambda body: body["status"].update(state="TASK_STATE_UNSPECIFIED"))
    yield Want("A2A-SCH-003", call, call.answers[STATUS])


@mutation(*V1_TEXT)
def a_role_that_nobody_knows(talk: Talk) -> Iterator[Want]:
    """In the message of a client."""
    call = sends(talk, "unary")
    resay(call.requests[0], lambda message: message.update(role="ROLE_SYSTEM"))
    yield Want("A2A-SCH-003", call, call.requests[0])


@mutation(*V1, *OLD_JSON, *OLD_PROTO, "js-three-bindings")
def a_client_speaks_as_agent(talk: Talk) -> Iterator[Want]:
    """The role of its message."""
    call = sends(talk, "input")
    resay(
        call.requests[0],
        lambda message: message.update(
            role=message["role"].replace("user", "agent").replace("USER", "AGENT")
        ),
    )
    yield Want("A2A-SCH-009", call, call.requests[0])


@mutation(*V1, *OLD_JSON, *OLD_PROTO)
def an_agent_speaks_as_user(talk: Talk) -> Iterator[Want]:
    """In the message of a status."""
    call = stream(talk)
    user = "user" if "kind" in str(call.answers[1].value) else "ROLE_USER"
    alter(call.answers[STATUS], lambda body: body["status"]["message"].update(role=user))
    yield Want("A2A-SCH-009", call, call.answers[STATUS])


# --- timestamps


@mutation(*V1_TEXT, "sdk-0.3-jsonrpc")
def a_time_that_is_none(talk: Talk) -> Iterator[Want]:
    """Text."""
    call = stream(talk)
    alter(call.answers[STATUS], lambda body: body["status"].update(timestamp="yesterday"))
    yield Want("A2A-SCH-006", call, call.answers[STATUS])


@mutation(*V1_TEXT)
def a_time_with_an_offset(talk: Talk) -> Iterator[Want]:
    """The same time in another zone."""
    call = stream(talk)
    alter(
        call.answers[STATUS],
        lambda body: body["status"].update(timestamp=body["status"]["timestamp"][:-1] + "+00:00"),
    )
    yield Want("A2A-SCH-006", call, call.answers[STATUS])


@mutation(*V1_TEXT)
def a_time_as_a_number(talk: Talk) -> Iterator[Want]:
    """Seconds since 1970."""
    call = stream(talk)
    alter(call.answers[STATUS], lambda body: body["status"].update(timestamp=1774000000))
    yield Want("A2A-SCH-006", call, call.answers[STATUS])


# --- bytes, URLs, media types


@mutation(*V1_TEXT)
def bytes_that_are_no_base64(talk: Talk) -> Iterator[Want]:
    """A file in an artifact."""
    call = streams(talk, "parts")
    alter(call.answers[2], lambda body: body["artifact"]["parts"][0].update(raw="***"))
    yield Want("A2A-SCH-007", call, call.answers[2])


@mutation("sdk-0.3-jsonrpc")
def bytes_of_old_that_are_no_base64(talk: Talk) -> Iterator[Want]:
    """The same in 0.3."""
    call = streams(talk, "parts")
    alter(
        call.answers[2],
        lambda body: body["artifact"]["parts"][0]["file"].update(bytes="not base64!"),
    )
    yield Want("A2A-SCH-007", call, call.answers[2])


@mutation("sdk-0.3-rest")
def bytes_of_protobuf_that_are_no_base64(talk: Talk) -> Iterator[Want]:
    """The same in the JSON form of the protobuf of 0.3."""
    call = streams(talk, "parts")
    alter(
        call.answers[2],
        lambda body: body["artifact"]["parts"][0]["file"].update(fileWithBytes="not base64!"),
    )
    yield Want("A2A-SCH-007", call, call.answers[2])


@mutation(*V1)
def a_url_without_scheme(talk: Talk) -> Iterator[Want]:
    """The URL cannot be resolved."""
    call = streams(talk, "parts")
    alter(
        call.answers[3], lambda body: body["artifact"]["parts"][0].update(url="/files/picture.png")
    )
    yield Want("A2A-SCH-012", call, call.answers[3])


@mutation(*V1)
def half_a_media_type(talk: Talk) -> Iterator[Want]:
    """Without its subtype."""
    call = streams(talk, "parts")
    alter(call.answers[3], lambda body: body["artifact"]["parts"][0].update(mediaType="png"))
    yield Want("A2A-SCH-012", call, call.answers[3])


@mutation("sdk-0.3-jsonrpc", *OLD_PROTO)
def half_a_media_type_of_old(talk: Talk) -> Iterator[Want]:
    """The same in 0.3."""
    call = streams(talk, "parts")
    alter(call.answers[3], lambda body: body["artifact"]["parts"][0]["file"].update(mimeType="png"))
    yield Want("A2A-SCH-012", call, call.answers[3])


# --- numbers and types


@mutation("sdk-1.x-jsonrpc", "sdk-1.x-grpc", *OLD_JSON)
def a_history_of_less_than_nothing(talk: Talk) -> Iterator[Want]:
    """`historyLength` of GetTask."""
    call = looked_up(talk)
    alter(call.requests[0], lambda params: params.update(historyLength=-5))
    yield Want("A2A-SCH-008", call, call.requests[0])


@mutation("sdk-1.x-rest")
def a_history_of_less_than_nothing_in_the_query(talk: Talk) -> Iterator[Want]:
    """The same where it is part of the target."""
    call = looked_up(talk)
    call.target = call.target.replace("historyLength=10", "historyLength=-5")
    yield Want("A2A-SCH-008", call, call.requests[0] if call.requests else None)


@mutation("sdk-1.x-jsonrpc", "sdk-1.x-grpc")
def a_page_of_a_thousand(talk: Talk) -> Iterator[Want]:
    """A page of tasks, which the agent accepts."""
    call = talk.first("ListTasks")
    alter(call.requests[0], lambda params: params.update(pageSize=1000))
    alter(call.answers[0], lambda page: page.update(pageSize=1000))
    yield Want("A2A-SCH-008", call, call.requests[0])
    yield Want("A2A-TASK-006", call, call.answers[0])


@mutation(*TEXTS, "sdk-0.3-rest")
def the_name_of_an_artifact_is_a_number(talk: Talk) -> Iterator[Want]:
    """Another type."""
    call = stream(talk)
    alter(call.answers[NOTES], lambda body: body["artifact"].update(name=7))
    yield Want("A2A-SCH-008", call, call.answers[NOTES])


@mutation(*TEXTS)
def last_chunk_is_a_text(talk: Talk) -> Iterator[Want]:
    """Some decoders read it as true, others fail."""
    call = stream(talk)
    alter(call.answers[NOTES], lambda body: body.update(lastChunk="yes"))
    yield Want("A2A-SCH-008", call, call.answers[NOTES])


@mutation(*TEXTS, "sdk-0.3-rest")
def parts_are_an_object(talk: Talk) -> Iterator[Want]:
    """One part instead of a list."""
    call = stream(talk)
    alter(
        call.answers[NOTES],
        lambda body: body["artifact"].update(parts=body["artifact"]["parts"][0]),
    )
    yield Want("A2A-SCH-008", call, call.answers[NOTES])


@mutation(*TEXTS, "sdk-0.3-rest")
def metadata_is_a_list(talk: Talk) -> Iterator[Want]:
    """In the message of a client."""
    call = sends(talk, "unary")
    resay(call.requests[0], lambda message: message.update(metadata=["a"]))
    yield Want("A2A-SCH-011", call, call.requests[0])


@mutation(*TEXTS, "js-three-bindings", "demo")
def metadata_of_an_event_is_a_text(talk: Talk) -> Iterator[Want]:
    """An object is expected."""
    call = stream(talk)
    alter(call.answers[1], lambda body: body.update(metadata="none"))
    yield Want("A2A-SCH-011", call, call.answers[1])


@mutation("sdk-0.3-jsonrpc", "dialect-0.2")
def data_is_a_text(talk: Talk) -> Iterator[Want]:
    """Before 1.0 it is an object."""
    call = sends(talk, "unary")
    resay(
        call.requests[0], lambda message: parts(message).append({"kind": "data", "data": "seven"})
    )
    yield Want("A2A-SCH-011", call, call.requests[0])
