"""Artifacts whose chunks are lost, duplicated or reordered, and tasks whose artifacts differ from
the streamed ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mutations.objects import SDK, alter, ask_again, looked_up, member, parts
from mutations.pick import GRPC, REST, pick, stream
from support_mutations import Ex, Msg, Talk, Want, mutation

FIRST, SECOND, LAST, NOTES = 2, 3, 5, 7
"""Indices in the stream of nine events: chunks of the report, and the artifact of one chunk."""
JS = ("js-three-bindings", "js-to-0.3")
STREAMS = (*SDK, *JS)


# --- chunks


@mutation(*STREAMS)
def the_first_chunk_is_lost(talk: Talk) -> Iterator[Want]:
    """The next chunk is appended to an unknown artifact; reported once."""
    call = stream(talk)
    del call.answers[FIRST]
    yield Want("A2A-ART-001", call, call.answers[FIRST])


@mutation("js-three-bindings", "js-to-0.3", "concurrent-grpc", "demo")
def the_first_chunk_is_lost_on_grpc(talk: Talk) -> Iterator[Want]:
    """The same on another binding."""
    call = stream(talk, GRPC)
    del call.answers[FIRST]
    yield Want("A2A-ART-001", call, call.answers[FIRST])


@mutation(*STREAMS)
def an_artifact_begins_by_append(talk: Talk) -> Iterator[Want]:
    """The artifact has only this chunk."""
    call = stream(talk)
    alter(call.answers[NOTES], lambda body: body.update(append=True))
    yield Want("A2A-ART-001", call, call.answers[NOTES])


@mutation(*STREAMS)
def the_last_chunk_is_said_too_early(talk: Talk) -> Iterator[Want]:
    """Another chunk follows it."""
    call = stream(talk)
    alter(call.answers[LAST - 1], lambda body: body.update(lastChunk=True))
    yield Want("A2A-ART-002", call, call.answers[LAST])


@mutation(*STREAMS)
def the_last_chunk_is_not_said(talk: Talk) -> Iterator[Want]:
    """No chunk of the artifact has `lastChunk` before the task ends."""
    call = stream(talk)
    alter(call.answers[LAST], lambda body: body.pop("lastChunk"))
    yield Want("A2A-ART-003", call, call.answers[-1])


@mutation(*STREAMS)
def the_last_chunk_is_lost(talk: Talk) -> Iterator[Want]:
    """The flag `lastChunk` is lost with it."""
    call = stream(talk)
    del call.answers[LAST]
    yield Want("A2A-ART-003", call, call.answers[-1])


@mutation(*STREAMS)
def append_is_forgotten(talk: Talk) -> Iterator[Want]:
    """The chunk replaces the earlier ones."""
    call = stream(talk)
    alter(call.answers[SECOND + 1], lambda body: body.pop("append"))
    yield Want("A2A-ART-004", call, call.answers[SECOND + 1])


@mutation(*STREAMS)
def a_chunk_has_another_id(talk: Talk) -> Iterator[Want]:
    """It is appended to an unknown artifact."""
    call = stream(talk)
    alter(call.answers[SECOND], lambda body: body["artifact"].update(artifactId="reporx"))
    yield Want("A2A-ART-001", call, call.answers[SECOND])


@mutation(*STREAMS)
def the_last_chunk_comes_twice(talk: Talk) -> Iterator[Want]:
    """It is appended twice."""
    call = stream(talk)
    more = call.answers[LAST].again(0)
    call.answers.insert(LAST + 1, more)
    yield Want("A2A-ART-002", call, more)


def _text(answers: list[Msg]) -> str:
    """Return the joined text of artifact updates."""
    return "".join(
        each["text"] for message in answers for each in parts(member(message, "artifact"))
    )


@mutation(*STREAMS)
def the_whole_text_is_appended_again(talk: Talk) -> Iterator[Want]:
    """The last chunk has the text of all before it."""
    call = stream(talk)
    text = _text(call.answers[FIRST:LAST])
    alter(call.answers[LAST], lambda body: parts(body["artifact"])[0].update(text=text))
    yield Want("A2A-ART-009", call, call.answers[LAST])


@mutation(*STREAMS)
def the_whole_text_is_another_artifact(talk: Talk) -> Iterator[Want]:
    """Under another id, in one update."""
    call = stream(talk)
    text = _text(call.answers[FIRST : LAST + 1])
    alter(call.answers[NOTES], lambda body: parts(body["artifact"])[0].update(text=text))
    yield Want("A2A-ART-010", call, call.answers[NOTES])


# --- snapshots


@mutation(*SDK)
def a_task_has_an_artifact_twice(talk: Talk) -> Iterator[Want]:
    """In the answer to GetTask."""
    call = looked_up(talk)
    alter(call.answers[0], lambda body: body["artifacts"].append(body["artifacts"][0]))
    yield Want("A2A-ART-005", call, call.answers[0])


@mutation("sdk-1.x-jsonrpc", "sdk-1.x-rest", "sdk-1.x-grpc")
def a_task_in_a_list_has_an_artifact_twice(talk: Talk) -> Iterator[Want]:
    """In the answer to ListTasks."""
    call = pick(talk, "ListTasks")
    twice = member(looked_up(talk).answers[0], "artifacts") * 2
    if call.facts.binding is REST:
        call.target += "&includeArtifacts=true"
    else:
        alter(call.requests[0], lambda params: params.update(includeArtifacts=True))
    alter(call.answers[0], lambda body: body["tasks"][0].update(artifacts=twice))
    yield Want("A2A-ART-005", call, call.answers[0])


def _asked_after(talk: Talk) -> None:
    """The task is read after its long stream."""
    ask_again(talk, stream(talk))


def _after(talk: Talk) -> Ex:
    """Return the added call."""
    return talk.exchanges[-1]


@mutation(*SDK, prepare=_asked_after)
def a_chunk_was_lost(talk: Talk) -> Iterator[Want]:
    """A chunk in the middle: the stream has less content than the task."""
    del stream(talk).answers[SECOND]
    yield Want("A2A-ART-006", _after(talk), _after(talk).answers[0])


@mutation(*SDK, prepare=_asked_after)
def a_chunk_came_twice(talk: Talk) -> Iterator[Want]:
    """The stream has more content than the task."""
    answers = stream(talk).answers
    answers.insert(SECOND + 1, answers[SECOND].again(0))
    yield Want("A2A-ART-006", _after(talk), _after(talk).answers[0])


@mutation(*SDK, prepare=_asked_after)
def two_chunks_came_in_the_wrong_order(talk: Talk) -> Iterator[Want]:
    """The same bytes in another order."""
    answers = stream(talk).answers
    first, second = answers[SECOND], answers[SECOND + 1]
    first.data, second.data = second.data, first.data
    yield Want("A2A-ART-006", _after(talk), _after(talk).answers[0])


@mutation(*SDK, prepare=_asked_after)
def the_task_lacks_an_artifact(talk: Talk) -> Iterator[Want]:
    """The artifact was streamed."""
    call = _after(talk)
    alter(call.answers[0], lambda body: body["artifacts"].pop())
    yield Want("A2A-ART-006", call, call.answers[0])


@mutation(*SDK, prepare=_asked_after)
def the_task_has_an_artifact_of_its_own(talk: Talk) -> Iterator[Want]:
    """No event carried it."""
    call = _after(talk)
    alter(
        call.answers[0],
        lambda body: body["artifacts"].append(body["artifacts"][0] | {"artifactId": "beside"}),
    )
    yield Want("A2A-ART-006", call, call.answers[0])


@mutation(*SDK, prepare=_asked_after)
def the_task_has_the_last_chunk_only(talk: Talk) -> Iterator[Want]:
    """The agent replaces the artifact instead of appending to it."""
    call = _after(talk)

    def keep_last(body: Any) -> None:
        body["artifacts"][0]["parts"] = body["artifacts"][0]["parts"][-1:]

    alter(call.answers[0], keep_last)
    yield Want("A2A-ART-006", call, call.answers[0])


@mutation("demo")
def a_chunk_of_the_demo_was_lost(talk: Talk) -> Iterator[Want]:
    """On gRPC, where the task is read after the stream."""
    del stream(talk, GRPC).answers[SECOND]
    call = pick(talk, "GetTask", GRPC)
    yield Want("A2A-ART-006", call, call.answers[0])


@mutation("js-three-bindings")
def the_last_chunk_is_lost_on_rest(talk: Talk) -> Iterator[Want]:
    """On one of three bindings."""
    call = stream(talk, REST)
    del call.answers[LAST]
    yield Want("A2A-ART-003", call, call.answers[-1])


# --- generations


def _numbered(talk: Talk) -> None:
    """The task that is read has a generation, and its artifact a range of generations."""
    call = looked_up(talk)
    answer = call.answers[0]
    alter(answer, lambda body: body.update(generation="9"))
    alter(answer, lambda body: body["artifacts"][0].update(startGeneration="4", endGeneration="9"))


@mutation("sdk-1.x-jsonrpc", "sdk-1.x-rest", prepare=_numbered)
def an_artifact_ends_before_it_begins(talk: Talk) -> Iterator[Want]:
    """Its range of generations is reversed."""
    call = looked_up(talk)
    alter(call.answers[0], lambda body: body["artifacts"][0].update(endGeneration="3"))
    yield Want("A2A-ART-008", call, call.answers[0])
