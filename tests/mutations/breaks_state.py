"""Tasks whose states change in a wrong order or at a wrong time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from a2a_proxy.model.values import Dialect
from mutations.objects import (
    OLD_JSON,
    SDK,
    V1,
    alter,
    ask_again,
    looked_up,
    member,
    parts,
    rename,
    restamp,
    restate,
    sends,
    streams,
)
from mutations.pick import change, pick, stream
from support_mutations import Ex, Msg, Talk, Want, mutation

STATUS, NOTES, END = 6, 7, 8
"""Indices in the stream of nine events: a status in the middle, the artifact of one chunk, the last
status."""
JS = ("js-three-bindings", "js-to-0.3")
STREAMS = (*SDK, *JS)
STAMPED = (*V1, *OLD_JSON, *JS)
"""Samples with timestamps, which the protobuf of 0.3 lost."""
_NOBODY = b"00000000-0000-4000-8000-000000000000"
"""The id of an unknown task."""


def no_more(call: Ex) -> str:
    """Return the rule that a stream breaks if it continues after its end, which `final` marks in
    0.2 and 0.3."""
    return (
        "A2A-STREAM-018" if call.facts.dialect in (Dialect.V0_2, Dialect.V0_3) else "A2A-STREAM-005"
    )


def append(call: Ex, message: Msg, state: str) -> Msg:
    """Append a status without a message to a stream."""
    more = message.again(0)
    more.at = call.answers[-1].at
    call.answers.append(more)
    restate(more, state)
    alter(more, lambda body: body["status"].pop("message"))
    alter(more, lambda body: body["status"].pop("timestamp", None))
    return more


# --- after the end


@mutation(*STREAMS)
def a_task_works_on_after_its_end(talk: Talk) -> Iterator[Want]:
    """One more status follows the last one."""
    call = stream(talk)
    more = append(call, call.answers[STATUS], "WORKING")
    yield Want("A2A-STATE-001", call, more)
    yield Want(no_more(call), call, more)


@mutation(*SDK, *JS)
def a_task_has_two_ends(talk: Talk) -> Iterator[Want]:
    """COMPLETED, and then FAILED."""
    call = stream(talk)
    more = append(call, call.answers[END], "FAILED")
    yield Want("A2A-STATE-001", call, more)
    yield Want(no_more(call), call, more)


@mutation(*SDK)
def a_task_has_another_end_when_asked_for(talk: Talk) -> Iterator[Want]:
    """COMPLETED before, FAILED in the answer."""
    call = looked_up(talk)
    restate(call.answers[0], "FAILED")
    yield Want("A2A-STATE-001", call, call.answers[0])


@mutation(*SDK)
def a_task_is_shown_as_it_was(talk: Talk) -> Iterator[Want]:
    """COMPLETED before, WORKING in the answer."""
    call = looked_up(talk)
    restate(call.answers[0], "WORKING")
    yield Want("A2A-STATE-009", call, call.answers[0])


@mutation(*V1)
def a_list_shows_an_ended_task_at_work(talk: Talk) -> Iterator[Want]:
    """COMPLETED before, WORKING with a later timestamp in the list."""
    call = pick(talk, "ListTasks")
    alter(
        call.answers[0], lambda page: page["tasks"][0]["status"].update(state="TASK_STATE_WORKING")
    )
    alter(call.answers[0], lambda page: restamp(page["tasks"][0], 60))
    yield Want("A2A-STATE-001", call, call.answers[0])


def _numbered(talk: Talk) -> None:
    """A task is read twice, with a generation."""
    call = looked_up(talk)
    alter(call.answers[0], lambda body: body.update(generation="9"))
    talk.add(call, after=max(talk.exchanges, key=lambda each: each.ended))


@mutation("sdk-1.x-jsonrpc", "sdk-1.x-rest", prepare=_numbered)
def a_generation_goes_back(talk: Talk) -> Iterator[Want]:
    """From 9 to 5, in the same state."""
    call = talk.exchanges[-1]
    alter(call.answers[0], lambda body: body.update(generation="5"))
    yield Want("A2A-STATE-009", call, call.answers[0])


@mutation("sdk-1.x-jsonrpc", "sdk-1.x-rest", "sdk-1.x-grpc")
def a_list_shows_a_task_as_it_was(talk: Talk) -> Iterator[Want]:
    """COMPLETED before, WORKING in the list."""
    call = pick(talk, "ListTasks")
    alter(
        call.answers[0], lambda page: page["tasks"][0]["status"].update(state="TASK_STATE_WORKING")
    )
    yield Want("A2A-STATE-009", call, call.answers[0])


@mutation(*STREAMS)
def an_artifact_comes_after_the_end(talk: Talk) -> Iterator[Want]:
    """As the last event."""
    call = stream(talk)
    first, second = call.answers[NOTES], call.answers[END]
    call.answers[NOTES:] = [second, first]
    second.at, first.at = first.at, second.at
    yield Want("A2A-STATE-013", call, first)
    yield Want(no_more(call), call, first)


def _asked_twice(talk: Talk) -> None:
    """The task of the long stream is read twice after its end."""
    ask_again(talk, stream(talk))
    talk.add(talk.exchanges[-1], after=talk.exchanges[-1])


@mutation(*SDK, prepare=_asked_twice)
def the_artifacts_change_after_the_end(talk: Talk) -> Iterator[Want]:
    """Between two calls of GetTask, so that they differ from the streamed ones."""
    call = talk.exchanges[-1]
    alter(call.answers[0], lambda body: body["artifacts"][0]["parts"][-1].update(text="and more"))
    yield Want("A2A-STATE-013", call, call.answers[0])
    yield Want("A2A-ART-006", call, call.answers[0])


# --- messages to tasks


@mutation(*SDK)
def a_task_is_over_and_takes_a_message(talk: Talk) -> Iterator[Want]:
    """The agent answers with the finished task and does not ask for input."""
    first, second = sends(talk, "input"), sends(talk, "green")
    restate(first.answers[0], "COMPLETED")
    yield Want("A2A-STATE-005", second, second.requests[0])
    yield Want("A2A-STATE-004", second, second.answers[0])


@mutation(*STREAMS)
def a_stream_goes_on_with_a_task_that_is_over(talk: Talk) -> Iterator[Want]:
    """The same with two streams."""
    first, second = streams(talk, "input"), streams(talk, "blue")
    restate(first.answers[-1], "COMPLETED")
    yield Want("A2A-STATE-005", second, second.requests[0])
    yield Want("A2A-STATE-004", second, second.answers[0])


@mutation(*SDK)
def a_task_is_answered_by_a_message(talk: Talk) -> Iterator[Want]:
    """The final state of the task stays unknown."""
    call = sends(talk, "green")
    change(call.answers[0], _only_words)
    yield Want("A2A-STATE-016", call, call.answers[0])


def _only_words(payload: Any) -> None:
    """Answer with the message of the status instead of the task."""
    result = payload["result"] if "jsonrpc" in payload else payload
    task = result.pop("task", result)
    words = task["status"]["message"]
    if task is not result:
        result["message"] = words
    else:
        result.clear()
        result.update(words)


@mutation(*(each for each in SDK if each != "dialect-0.2"))
def a_client_writes_to_a_task_that_is_over(talk: Talk) -> Iterator[Want]:
    """The error is TaskNotFoundError."""
    call = next(
        each for each in talk.all("SendStreamingMessage") if _NOBODY in each.requests[0].data
    )
    rename(call.requests[0], _NOBODY.decode(), member(sends(talk, "fail").answers[0], "id"))
    yield Want("A2A-STATE-005", call, call.requests[0])


# --- states on the way


@mutation(*STREAMS)
def a_task_goes_back_to_submitted(talk: Talk) -> Iterator[Want]:
    """In the middle of its work."""
    call = stream(talk)
    restate(call.answers[STATUS], "SUBMITTED")
    yield Want("A2A-STATE-002", call, call.answers[STATUS])


@mutation(*STREAMS)
def a_question_is_answered_by_nobody(talk: Talk) -> Iterator[Want]:
    """INPUT_REQUIRED, and then COMPLETED."""
    call = stream(talk)
    restate(call.answers[STATUS], "INPUT_REQUIRED")
    yield Want("A2A-STATE-003", call, call.answers[END])


@mutation(*V1)
def credentials_are_wanted_and_nobody_says_which(talk: Talk) -> Iterator[Want]:
    """AUTH_REQUIRED without a message."""
    call = sends(talk, "input")
    restate(call.answers[0], "AUTH_REQUIRED")
    alter(call.answers[0], lambda body: body["status"].pop("message"))
    yield Want("A2A-STATE-006", call, call.answers[0])


@mutation(*SDK)
def a_question_without_words(talk: Talk) -> Iterator[Want]:
    """INPUT_REQUIRED without a message."""
    call = sends(talk, "input")
    alter(call.answers[0], lambda body: body["status"].pop("message"))
    yield Want("A2A-STATE-007", call, call.answers[0])


@mutation(*STREAMS)
def a_stream_asks_without_words(talk: Talk) -> Iterator[Want]:
    """The same at the end of a stream."""
    call = streams(talk, "input")
    alter(call.answers[-1], lambda body: body["status"].pop("message"))
    yield Want("A2A-STATE-007", call, call.answers[-1])


@mutation(*STAMPED)
def a_timestamp_goes_back(talk: Talk) -> Iterator[Want]:
    """By ten seconds, in the middle of a stream."""
    call = stream(talk)
    alter(call.answers[STATUS], lambda body: restamp(body, -10))
    yield Want("A2A-STATE-008", call, call.answers[STATUS])


def _silent(talk: Talk) -> None:
    """Remove everything but the state from a status in the middle."""
    alter(stream(talk).answers[STATUS], lambda body: body["status"].pop("message"))


@mutation(*(each for each in STREAMS if each != "dialect-0.2"), prepare=_silent)
def a_status_says_nothing_new(talk: Talk) -> Iterator[Want]:
    """The same status is sent again."""
    call = stream(talk)
    more = call.answers[STATUS].again(0)
    call.answers.insert(STATUS + 1, more)
    yield Want("A2A-STREAM-020", call, more)


# --- content that is sent twice


def _says_something_else(talk: Talk) -> None:
    """Without it, a status in the middle has the text of the artifact anyway."""
    alter(
        stream(talk).answers[STATUS],
        lambda body: parts(body["status"]["message"])[0].update(text="at work"),
    )


@mutation(*STREAMS, prepare=_says_something_else)
def the_result_is_also_a_message(talk: Talk) -> Iterator[Want]:
    """The last status has the text of an artifact."""
    call = stream(talk)
    text = parts(member(call.answers[NOTES], "artifact"))[0]["text"]
    alter(call.answers[END], lambda body: parts(body["status"]["message"])[0].update(text=text))
    yield Want("A2A-STATE-019", call, call.answers[END])
