"""Sends that wait or do not wait; results in messages; cancellations that are refused, lost or
ignored."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.model.values import Dialect
from mutations.objects import (
    SDK,
    V1,
    alter,
    looked_up,
    member,
    named,
    parts,
    rename,
    restate,
    says,
    sends,
    streams,
)
from mutations.pick import change, failed, pick, stream
from support_mutations import MS, Ex, Talk, Want, mutation

NOTES = 7
"""In the stream of nine events: the artifact of one chunk."""
S = 1000 * MS
"""ns."""


# --- sends


@mutation(*SDK)
def a_send_does_not_wait(talk: Talk) -> Iterator[Want]:
    """The answer is a task in WORKING."""
    call = sends(talk, "unary")
    restate(call.answers[0], "WORKING")
    yield Want("A2A-STATE-014", call, call.answers[0])


def _at_once(talk: Talk) -> None:
    """The client requests an immediate answer."""
    call = sends(talk, "fail")
    old = call.facts.dialect is not Dialect.V1_0
    wanted = {"blocking": False} if old else {"returnImmediately": True}
    change(call.requests[0], lambda body: body.get("params", body)["configuration"].update(wanted))


@mutation(*V1, "sdk-0.3-jsonrpc", "sdk-0.3-rest", prepare=_at_once)
def a_send_that_shall_not_wait_does(talk: Talk) -> Iterator[Want]:
    """It waits six seconds."""
    call = sends(talk, "fail")
    call.shift(0, 6 * S)
    yield Want("A2A-STATE-015", call, call.answers[0])


@mutation(*V1)
def the_result_is_a_long_message(talk: Talk) -> Iterator[Want]:
    """Of a task without artifacts."""
    call = sends(talk, "fail")
    restate(call.answers[0], "COMPLETED")
    alter(
        call.answers[0],
        lambda body: parts(body["status"]["message"])[0].update(text="The report. " * 40),
    )
    yield Want("A2A-STATE-017", call, call.answers[0])


@mutation(*V1, "js-three-bindings")
def the_result_is_data_in_a_message(talk: Talk) -> Iterator[Want]:
    """At the end of a stream without artifacts."""
    call = streams(talk, "blue")
    del call.answers[1]
    alter(
        call.answers[-1],
        lambda body: parts(body["status"]["message"]).append({"data": {"answer": 42}}),
    )
    yield Want("A2A-STATE-017", call, call.answers[-1])


# --- cancellations


def _refused(talk: Talk) -> Ex:
    """Return a call of CancelTask that was refused because its task has ended."""
    return [each for each in talk.all("CancelTask") if failed(each)][-1]


@mutation(*SDK)
def a_task_that_is_over_is_canceled(talk: Talk) -> Iterator[Want]:
    """CancelTask returns the task with success, although nothing has changed."""
    call, source = _refused(talk), looked_up(talk)
    sent = [
        each
        for each in talk.all("SendMessage")
        if says(each, "unary") and b"taskId" not in each.requests[0].data
    ]
    over = sent[-1].answers[0]
    answer = source.answers[0].again(0)
    for name in ("id", "contextId"):
        rename(answer, member(answer, name), member(over, name))
    if b'"jsonrpc"' in answer.data:
        change(answer, lambda body: body.update(id=call.requests[0].value["id"]))
    alter(answer, lambda body: body["status"].pop("timestamp", None))
    answer.at = call.ended
    call.status, call.reply_headers, call.trailers = (
        source.status,
        source.reply_headers,
        source.trailers,
    )
    call.answers = [answer]
    yield Want("A2A-STATE-010", call, answer)


@mutation("sdk-1.x-jsonrpc")
def a_cancellation_is_refused_by_the_wrong_error(talk: Talk) -> Iterator[Want]:
    """The error is UnsupportedOperationError."""
    call = _refused(talk)
    info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "UNSUPPORTED_OPERATION"}
    error = {"code": -32004, "message": "no", "data": [info | {"domain": "a2a-protocol.org"}]}
    change(call.answers[0], lambda body: body.update(error=error))
    yield Want("A2A-STATE-010", call, call.answers[0])


def _left(talk: Talk) -> None:
    """The client leaves the stream of the task that it cancels."""
    call = streams(talk, "long")
    del call.answers[2:]
    call.finish, call.ended = "leave", pick(talk, "CancelTask").started - MS


@mutation(*SDK, prepare=_left)
def a_cancellation_leads_to_nothing(talk: Talk) -> Iterator[Want]:
    """The task is still in WORKING half a minute later."""
    call = pick(talk, "CancelTask")
    restate(call.answers[0], "WORKING")
    talk.length += 40 * S
    yield Want("A2A-STATE-011", call, call.answers[0])


@mutation(*V1, "dialect-0.2")
def work_goes_on_after_a_cancellation(talk: Talk) -> Iterator[Want]:
    """A result is sent seconds later."""
    call = streams(talk, "long")
    more = stream(talk).answers[NOTES].again(0)
    for name in ("id", "contextId"):
        rename(more, member(stream(talk).answers[0], name), member(call.answers[0], name))
    if b'"jsonrpc"' in more.data:
        change(more, lambda body: body.update(id=call.answers[0].value["id"]))
    call.answers.insert(2, more)
    more.at = call.answers[3].at
    call.shift(2, 6 * S)
    yield Want("A2A-STATE-018", call, more)


@mutation(*SDK, prepare=_left)
def a_canceled_task_is_completed(talk: Talk) -> Iterator[Want]:
    """Twelve seconds later, while no stream of the task is open."""
    call, source = pick(talk, "CancelTask"), looked_up(talk)
    restate(call.answers[0], "WORKING")
    made = talk.add(source, after=call, pause=12 * S)
    for name in ("id", "contextId"):
        named(made, member(source.answers[0], name), member(call.answers[0], name))
    alter(made.answers[0], lambda body: body["status"].pop("timestamp", None))
    yield Want("A2A-STATE-011", call, call.answers[0])
