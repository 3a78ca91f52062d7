"""Live streams with faults at their beginning, in their messages, and at their end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mutations.events import SECOND, insert, message_of, read, swap, wait
from mutations.objects import alter, other, resay
from mutations.pick import change
from support_mutations import MS, Ex, Msg, Talk, Want, mutation

BIDI = "live-bidi"
SUBMITTED, WORKING, ASKED = 0, 1, 2
"""Indices of the answers with which most of these stories begin."""
NOT_FOUND, INVALID_ARGUMENT, ALREADY_EXISTS, FAILED_PRECONDITION, UNIMPLEMENTED, INTERNAL = (
    5,
    3,
    6,
    9,
    12,
    13,
)


def tells(talk: Talk, story: str, number: int = 0) -> Ex:
    """Return the n-th live stream of a story."""
    found = [each for each in talk.exchanges if each.live and each.field("x-story") == story]
    return found[number]


def alone(talk: Talk, story: str) -> Ex:
    """Keep only this stream of a story, and its agent's card."""
    call = tells(talk, story)
    talk.exchanges = [talk.first("GetExtendedAgentCard"), call]
    return call


def refuse(call: Ex, status: int, text: str = "no") -> None:
    """Answer with only an error."""
    call.answers, call.trailers = [], []
    call.set("grpc-status", str(status), reply=True)
    call.set("grpc-message", text, reply=True)


def end_after(call: Ex, number: int) -> None:
    """End the stream after this many answers, and the client's side after its first message."""
    del call.answers[number:]
    del call.requests[1:]
    call.ended = call.answers[-1].at + 1 * MS


def undeclare(talk: Talk) -> None:
    """Remove the live capability from the card."""
    card = talk.first("GetExtendedAgentCard").answers[0]
    change(card, lambda body: body["capabilities"].pop("bidiStreaming"))


def further(call: Ex, text: str, at: int, index: int = 1) -> Msg:
    """Return one more message of the client."""
    made = Msg(call.requests[0].data, at, call.requests[0].schema)

    def write(message: Any) -> None:
        message.update(
            messageId=message["messageId"][:-4] + f"{len(text):04d}", parts=[{"text": text}]
        )
        message.pop("taskId", None)

    resay(made, write)
    call.requests.insert(index, made)
    return made


# --- may it be opened?


@mutation(BIDI)
def it_is_not_declared(talk: Talk) -> Iterator[Want]:
    """The agent accepts it."""
    call = alone(talk, "approval")
    undeclare(talk)
    yield Want("A2A-LIVE-001", call)
    yield Want("A2A-LIVE-002", call, call.answers[0])


@mutation(BIDI)
def it_is_not_declared_and_not_there(talk: Talk) -> Iterator[Want]:
    """The agent refuses it with the right error."""
    call = alone(talk, "answered")
    undeclare(talk)
    refuse(call, UNIMPLEMENTED)
    yield Want("A2A-LIVE-001", call)


@mutation(BIDI)
def it_is_not_declared_and_refused_otherwise(talk: Talk) -> Iterator[Want]:
    """The agent refuses it with an error about the message."""
    call = alone(talk, "answered")
    undeclare(talk)
    refuse(call, INTERNAL)
    yield Want("A2A-LIVE-001", call)
    yield Want("A2A-LIVE-002", call)


@mutation("sdk-1.x-jsonrpc", "js-three-bindings")
def it_is_opened_on_jsonrpc(talk: Talk) -> Iterator[Want]:
    """With its gRPC method name."""
    call = next(
        each
        for each in talk.all("SendStreamingMessage", streams=True)
        if len(each.answers) >= 6 and each.method == "SendStreamingMessage" and not each.grpc
    )
    change(call.requests[0], lambda body: body.update(method="SendLiveMessage"))
    yield Want("A2A-LIVE-003", call, call.requests[0])


# --- the beginning


@mutation(BIDI)
def the_first_task_is_lost(talk: Talk) -> Iterator[Want]:
    """The stream begins with an update."""
    call = alone(talk, "approval")
    del call.answers[0]
    yield Want("A2A-LIVE-010", call, call.answers[0])


@mutation(BIDI)
def a_second_message(talk: Talk) -> Iterator[Want]:
    """After the message that was the complete answer."""
    call = tells(talk, "answered")
    more = insert(call, 1, call.answers[0].again())
    alter(more, lambda event: event.update(messageId=other(event["messageId"])))
    yield Want("A2A-LIVE-011", call, more)


@mutation(BIDI)
def a_message_is_not_the_end(talk: Talk) -> Iterator[Want]:
    """The stream stays open for half a minute."""
    call = tells(talk, "answered")
    call.ended += 30 * SECOND
    wait(talk, 1)
    yield Want("A2A-LIVE-011", call, call.answers[0])


@mutation(BIDI)
def a_finished_task_is_refused(talk: Talk) -> Iterator[Want]:
    """To a client that reconnects."""
    call = tells(talk, "over", 1)
    refuse(call, FAILED_PRECONDITION)
    yield Want("A2A-LIVE-012", call)


@mutation(BIDI)
def a_finished_task_is_not_shown(talk: Talk) -> Iterator[Want]:
    """The stream ends with OK and without the task."""
    call = tells(talk, "over", 1)
    call.answers = []
    yield Want("A2A-LIVE-012", call)


@mutation(BIDI)
def an_unknown_task_is_a_bad_argument(talk: Talk) -> Iterator[Want]:
    """To a client that reconnects."""
    call = tells(talk, "unknown")
    refuse(call, INVALID_ARGUMENT)
    yield Want("A2A-LIVE-013", call)


@mutation(BIDI)
def the_task_is_not_shown_again(talk: Talk) -> Iterator[Want]:
    """A client that reconnects receives only the next update."""
    call = tells(talk, "lost", 1)
    del call.answers[0]
    yield Want("A2A-LIVE-014", call, call.answers[0])


@mutation(BIDI)
def a_second_stream_exists_already(talk: Talk) -> Iterator[Want]:
    """The status makes a client retry."""
    call = tells(talk, "refused", 1)
    refuse(call, ALREADY_EXISTS)
    yield Want("A2A-LIVE-015", call)


# --- two streams


@mutation(BIDI)
def a_chunk_comes_on_one_stream_only(talk: Talk) -> Iterator[Want]:
    """One of two live streams that the agent has accepted."""
    call = tells(talk, "shared")
    del call.answers[-3]
    wait(talk, 10)
    yield Want("A2A-LIVE-016", call)


@mutation(BIDI)
def two_chunks_change_places_on_one_stream(talk: Talk) -> Iterator[Want]:
    """Without generations it is unknown which of the two streams is right: the later one is
    reported."""
    call, second = tells(talk, "shared"), tells(talk, "shared", 1)
    swap(call, -3, -2)
    wait(talk, 10)
    yield Want("A2A-STREAM-013", second, second.answers[-2])
    yield Want("A2A-ART-001", call, call.answers[-3])
    yield Want("A2A-ART-004", call, call.answers[-2])


# --- what the client says


@mutation(BIDI)
def an_answer_for_another_task(talk: Talk) -> Iterator[Want]:
    """It names a task of another stream."""
    call = alone(talk, "approval")
    answer = call.requests[1]
    task_id = read(call.answers[0])["id"]
    resay(answer, lambda message: message.update(taskId=other(task_id)))
    yield Want("A2A-LIVE-008", call, answer)


@mutation(BIDI)
def an_answer_in_another_context(talk: Talk) -> Iterator[Want]:
    """The task is correct."""
    call = alone(talk, "approval")
    answer, task = call.requests[1], read(call.answers[0])
    resay(
        answer,
        lambda message: message.update(taskId=task["id"], contextId=other(task["contextId"])),
    )
    yield Want("A2A-LIVE-008", call, answer)


@mutation(BIDI)
def another_configuration(talk: Talk) -> Iterator[Want]:
    """Other than in the first message."""
    call = alone(talk, "configured")
    change(call.requests[1], lambda body: body["configuration"].update(historyLength=2))
    yield Want("A2A-LIVE-009", call, call.requests[1])


@mutation(BIDI)
def a_configuration_from_nowhere(talk: Talk) -> Iterator[Want]:
    """The first message had none."""
    call = alone(talk, "approval")
    change(call.requests[1], lambda body: body.update(configuration={"historyLength": 2}))
    yield Want("A2A-LIVE-009", call, call.requests[1])


@mutation(BIDI)
def an_answer_that_says_nothing(talk: Talk) -> Iterator[Want]:
    """It contains only the task id."""
    call = alone(talk, "approval")
    task_id = read(call.answers[0])["id"]

    def empty(message: Any) -> None:
        message["taskId"] = task_id
        del message["parts"]

    resay(call.requests[1], empty)
    yield Want("A2A-LIVE-019", call, call.requests[1])


# --- what the agent says


@mutation(BIDI)
def another_task_on_the_stream(talk: Talk) -> Iterator[Want]:
    """In its middle."""
    call = alone(talk, "approval")
    task = insert(call, ASKED, call.answers[SUBMITTED].again())
    alter(task, lambda body: body.update(id=other(body["id"])))
    yield Want("A2A-LIVE-007", call, task)


@mutation(BIDI)
def a_chunk_of_another_task(talk: Talk) -> Iterator[Want]:
    """The task is unknown."""
    call = alone(talk, "approval")
    chunk = call.answers[-2]
    alter(chunk, lambda body: body.update(taskId=other(body["taskId"])))
    yield Want("A2A-LIVE-007", call, chunk)


@mutation(BIDI)
def a_chunk_after_the_end(talk: Talk) -> Iterator[Want]:
    """The terminal status and the event before it are swapped."""
    call = alone(talk, "approval")
    swap(call, -2, -1)
    yield Want("A2A-LIVE-006", call, call.answers[-1])
    yield Want("A2A-STATE-013", call, call.answers[-1])


@mutation(BIDI)
def a_message_after_the_end(talk: Talk) -> Iterator[Want]:
    """The agent sends another message."""
    call = alone(talk, "approval")
    more = insert(call, len(call.answers), message_of(call.answers[-1]))
    yield Want("A2A-LIVE-006", call, more)
    yield Want("A2A-STREAM-003", call, more)


@mutation(BIDI)
def a_question_to_somebody_who_has_said_all(talk: Talk) -> Iterator[Want]:
    """The client half-closed right after its message."""
    call = alone(talk, "idle")
    call.half_closed = call.requests[0].at + 1
    yield Want("A2A-LIVE-017", call, call.answers[ASKED])


# --- the end


@mutation(BIDI)
def it_ends_with_a_question(talk: Talk) -> Iterator[Want]:
    """The agent asks for input and ends the stream."""
    call = alone(talk, "approval")
    end_after(call, ASKED + 1)
    yield Want("A2A-LIVE-004", call)


@mutation(BIDI)
def it_ends_in_the_midst_of_work(talk: Talk) -> Iterator[Want]:
    """With status OK."""
    call = alone(talk, "approval")
    end_after(call, WORKING + 1)
    yield Want("A2A-LIVE-020", call)


@mutation(BIDI)
def the_end_does_not_come(talk: Talk) -> Iterator[Want]:
    """For half a minute after COMPLETED."""
    call = alone(talk, "approval")
    call.ended += 30 * SECOND
    wait(talk, 1)
    yield Want("A2A-LIVE-005", call, call.answers[-1])


@mutation(BIDI)
def the_end_comes_late(talk: Talk) -> Iterator[Want]:
    """By five seconds."""
    call = alone(talk, "approval")
    call.ended += 5 * SECOND
    wait(talk, 1)
    yield Want("A2A-LIVE-005", call)


@mutation(BIDI)
def it_breaks_down_in_the_midst_of_work(talk: Talk) -> Iterator[Want]:
    """The final state of the task stays unknown."""
    call = alone(talk, "approval")
    end_after(call, WORKING + 1)
    call.set("grpc-status", str(INTERNAL), trailer=True)
    yield Want("A2A-END-013", call)


@mutation(BIDI)
def a_message_among_updates(talk: Talk) -> Iterator[Want]:
    """The agent sends a message without an update around it."""
    call = alone(talk, "approval")
    said = insert(call, ASKED, message_of(call.answers[WORKING]))
    yield Want("A2A-STREAM-003", call, said)


# --- the other proposals


@mutation("live-1975")
def the_client_knows_no_media(talk: Talk) -> Iterator[Want]:
    """It uses the draft, and the agent does not."""
    call = talk.first("SendLiveMessage")
    first = call.requests[0]
    inner = {"message": first.value["message"]["message"]}
    made = Msg(b"", first.at, "lf.a2a.v1.SendMessageRequest")
    made.put(inner)
    call.requests = [made]
    yield Want("A2A-LIVE-022", call, call.answers[0])


def deltas(messages: list[Msg]) -> list[Msg]:
    """Return the messages of a flow."""
    return [
        each for each in messages if each.value.get("frame", {}).get("event") == "EVENT_MEDIA_DELTA"
    ]


@mutation("live-1975")
def a_piece_of_the_clients_is_lost(talk: Talk) -> Iterator[Want]:
    """The second of five."""
    call = talk.first("SendLiveMessage")
    pieces = deltas(call.requests)
    call.requests.remove(pieces[1])
    yield Want("A2A-LIVE-023", call, pieces[2])


@mutation("live-1975")
def a_piece_of_the_agents_is_lost(talk: Talk) -> Iterator[Want]:
    """The second of three."""
    call = talk.first("SendLiveMessage")
    pieces = deltas(call.answers)
    call.answers.remove(pieces[1])
    yield Want("A2A-LIVE-023", call, pieces[2])


@mutation("live-1975")
def two_pieces_have_one_number(talk: Talk) -> Iterator[Want]:
    """The counter does not increase."""
    call = talk.first("SendLiveMessage")
    pieces = deltas(call.answers)
    change(pieces[1], lambda body: body["frame"].update(seqNum=pieces[0].value["frame"]["seqNum"]))
    change(
        pieces[2],
        lambda body: body["frame"].update(seqNum=str(int(pieces[0].value["frame"]["seqNum"]) + 1)),
    )
    yield Want("A2A-LIVE-023", call, pieces[1])


@mutation("live-1975")
def a_flow_without_a_beginning(talk: Talk) -> Iterator[Want]:
    """Its START is lost."""
    call = talk.first("SendLiveMessage")
    pieces = deltas(call.requests)
    call.requests.remove(call.requests[call.requests.index(pieces[0]) - 1])
    yield Want("A2A-LIVE-023", call, pieces[0])


@mutation("live-1975")
def a_piece_without_content(talk: Talk) -> Iterator[Want]:
    """Only marks may have no content."""
    call = talk.first("SendLiveMessage")
    piece = deltas(call.answers)[0]
    change(piece, lambda body: body["frame"].pop("part"))
    yield Want("A2A-SCH-001", call, piece)


@mutation("live-1975")
def an_event_without_a_task(talk: Talk) -> Iterator[Want]:
    """Inside the frame of the proposal."""
    call = talk.first("SendLiveMessage")
    end = call.answers[-1]
    change(end, lambda body: body["event"]["statusUpdate"].pop("contextId"))
    yield Want("A2A-SCH-001", call, end)


@mutation("live-2153")
def an_uplink_is_told_what_the_stream_tells(talk: Talk) -> Iterator[Want]:
    """Beside the Task."""
    stream, short = talk.all("SendLiveMessage")
    more = Msg(stream.answers[3].data, short.answers[0].at, short.answers[0].schema)
    short.answers.append(more)
    yield Want("A2A-LIVE-024", short, more)
