"""Wrong identifiers of tasks, contexts and messages."""

from __future__ import annotations

from collections.abc import Iterator

from mutations.objects import (  # fmt: skip
    OLD_PROTO,
    SDK,
    V1,
    alter,
    held,
    looked_up,
    member,
    named,
    other,
    rename,
    resay,
    said,
    sends,
    streams,
)
from mutations.pick import GRPC, REST, pick, stream
from support_mutations import Ex, Talk, Want, mutation

STATUS = 6
"""The index of a status in the middle of the stream of nine events."""
JS = ("js-three-bindings", "js-to-0.3")
STREAMS = (*SDK, *JS)


# --- what a message asks for


@mutation(*SDK)
def a_client_makes_a_task_id(talk: Talk) -> Iterator[Want]:
    """The agent starts a stream with that id."""
    call = streams(talk, "stream")
    resay(call.requests[0], lambda message: message.update(taskId=member(call.answers[0], "id")))
    yield Want("A2A-ID-001", call, call.answers[0])


@mutation(*SDK)
def a_client_makes_the_id_of_a_task_that_is_over_at_once(talk: Talk) -> Iterator[Want]:
    """The answer is a completed task."""
    call = sends(talk, "unary")
    resay(call.requests[0], lambda message: message.update(taskId=member(call.answers[0], "id")))
    yield Want("A2A-ID-001", call, call.answers[0])


@mutation(*SDK)
def the_answer_is_of_another_task(talk: Talk) -> Iterator[Want]:
    """The client continued a task that waits for input."""
    call = sends(talk, "green")
    ident = member(call.answers[0], "id")
    rename(call.answers[0], ident, other(ident))
    yield Want("A2A-ID-002", call, call.answers[0])


@mutation(*SDK, *JS)
def the_stream_is_of_another_task(talk: Talk) -> Iterator[Want]:
    """The client continued a task that waits for input."""
    call = streams(talk, "blue")
    ident = said(call.requests[0])["taskId"]
    for each in call.answers:
        rename(each, ident, other(ident))
    yield Want("A2A-ID-002", call, call.answers[0])


@mutation(*SDK)
def the_message_is_in_another_context_than_its_task(talk: Talk) -> Iterator[Want]:
    """The agent accepts it."""
    call = sends(talk, "green")
    context = said(call.requests[0])["contextId"]
    rename(call.requests[0], context, other(context))
    yield Want("A2A-ID-003", call, call.answers[0])


@mutation(*SDK, *JS)
def a_stream_goes_on_in_another_context_than_its_task(talk: Talk) -> Iterator[Want]:
    """The same in a stream."""
    call = streams(talk, "blue")
    context = said(call.requests[0])["contextId"]
    rename(call.requests[0], context, other(context))
    yield Want("A2A-ID-003", call, call.answers[0])


@mutation(*SDK)
def the_agent_takes_another_context(talk: Talk) -> Iterator[Want]:
    """The answer has another context than the message."""
    call = sends(talk, "unary")
    resay(call.requests[0], lambda message: message.update(contextId="conversation-1"))
    yield Want("A2A-ID-005", call, call.answers[0])


@mutation(*SDK, *JS)
def a_stream_is_in_another_context(talk: Talk) -> Iterator[Want]:
    """The events have another context than the message."""
    call = streams(talk, "stream")
    resay(call.requests[0], lambda message: message.update(contextId="conversation-1"))
    yield Want("A2A-ID-005", call, call.answers[0])


@mutation(*V1, *OLD_PROTO)
def a_task_without_context(talk: Talk) -> Iterator[Want]:
    """The answer to a first message."""
    call = sends(talk, "fail")
    alter(call.answers[0], lambda body: body.pop("contextId"))
    yield Want("A2A-ID-006", call, call.answers[0])


@mutation("sdk-0.3-jsonrpc")
def a_task_of_old_without_context(talk: Talk) -> Iterator[Want]:
    """The same in 0.3, where the member is required."""
    call = sends(talk, "fail")
    alter(call.answers[0], lambda body: body.pop("contextId"))
    yield Want("A2A-ID-006", call, call.answers[0])
    yield Want("A2A-SCH-001", call, call.answers[0])


@mutation(*V1)
def a_message_without_context(talk: Talk) -> Iterator[Want]:
    """The answer is a Message."""
    call = next(
        each
        for each in talk.all("SendMessage")
        if each.answers and "messageId" in held(each.answers[0].value)
    )
    alter(call.answers[0], lambda body: body.pop("contextId"))
    yield Want("A2A-ID-006", call, call.answers[0])


# --- tasks


@mutation(*SDK)
def a_task_changes_its_context(talk: Talk) -> Iterator[Want]:
    """Between the answer that created it and GetTask."""
    call = looked_up(talk)
    context = member(call.answers[0], "contextId")
    rename(call.answers[0], context, other(context))
    yield Want("A2A-ID-004", call, call.answers[0])


@mutation(*V1, "js-three-bindings", "dialect-0.2")
def a_subscription_shows_another_context(talk: Talk) -> Iterator[Want]:
    """In every event."""
    call = pick(talk, "SubscribeToTask")
    context = member(call.answers[0], "contextId")
    for each in call.answers:
        rename(each, context, other(context))
    yield Want("A2A-ID-004", call, call.answers[0])


@mutation(*STREAMS)
def an_event_of_another_task(talk: Talk) -> Iterator[Want]:
    """In the middle of a stream."""
    call = stream(talk)
    ident = member(call.answers[0], "id")
    rename(call.answers[STATUS], ident, other(ident))
    yield Want("A2A-ID-007", call, call.answers[STATUS])


@mutation("js-three-bindings")
def an_event_of_another_task_on_rest(talk: Talk) -> Iterator[Want]:
    """The same on another binding."""
    call = stream(talk, REST)
    ident = member(call.answers[0], "id")
    rename(call.answers[STATUS], ident, other(ident))
    yield Want("A2A-ID-007", call, call.answers[STATUS])


@mutation("js-three-bindings", "concurrent-grpc", "demo")
def an_event_of_another_task_on_grpc(talk: Talk) -> Iterator[Want]:
    """The id of a stream that runs at the same time, or ran before."""
    call = stream(talk, GRPC)
    second = next(
        each
        for each in talk.all("SendStreamingMessage")
        if each is not call and len(each.answers) > STATUS - 1
    )
    rename(call.answers[1], member(call.answers[0], "id"), member(second.answers[0], "id"))
    yield Want("A2A-ID-007", call, call.answers[1])


@mutation(*STREAMS)
def an_event_in_another_context(talk: Talk) -> Iterator[Want]:
    """In the middle of a stream."""
    call = stream(talk)
    context = member(call.answers[0], "contextId")
    rename(call.answers[STATUS], context, other(context))
    yield Want("A2A-ID-008", call, call.answers[STATUS])


@mutation(*SDK)
def a_message_in_a_status_names_another_task(talk: Talk) -> Iterator[Want]:
    """The update around it names the right task."""
    call = stream(talk)
    alter(
        call.answers[STATUS], lambda body: body["status"]["message"].update(taskId="somewhere-else")
    )
    yield Want("A2A-ID-010", call, call.answers[STATUS])


@mutation(*SDK)
def a_message_in_the_history_names_another_context(talk: Talk) -> Iterator[Want]:
    """The task around it has the right context."""
    call = looked_up(talk)
    alter(call.answers[0], lambda body: body["history"][0].update(contextId="somewhere-else"))
    yield Want("A2A-ID-010", call, call.answers[0])


@mutation(*SDK)
def the_wrong_task_is_shown(talk: Talk) -> Iterator[Want]:
    """By GetTask."""
    call = looked_up(talk)
    ident = member(call.answers[0], "id")
    rename(call.answers[0], ident, other(ident))
    yield Want("A2A-ID-014", call, call.answers[0])


@mutation(*SDK)
def the_wrong_task_is_canceled(talk: Talk) -> Iterator[Want]:
    """By CancelTask."""
    call = pick(talk, "CancelTask")
    ident = member(call.answers[0], "id")
    rename(call.answers[0], ident, other(ident))
    yield Want("A2A-ID-014", call, call.answers[0])


def _reissue(talk: Talk) -> tuple[Ex, Ex]:
    """Return two streams of two tasks."""
    return streams(talk, "fail"), streams(talk, "reject")


@mutation(*SDK)
def a_task_id_is_given_out_twice(talk: Talk) -> Iterator[Want]:
    """The second stream has the id of a finished task, in a context of its own."""
    first, second = _reissue(talk)
    named(second, member(second.answers[0], "id"), member(first.answers[0], "id"))
    yield Want("A2A-ID-011", second, second.answers[0])
