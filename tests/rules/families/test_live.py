"""Rules about live streams: what must be found, and what must not."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_proxy.model.values import Finding, Observation
from a2a_proxy.model.wire import ChunkKind
from a2a_proxy.observer import Observer
from a2a_proxy.redaction import Redactor
from a2a_proxy.rules.examples.conversation import (
    ClientMessage,
    EventPause,
    HalfClosed,
    RawBytes,
    fetch_card,
    grpc,
    rest,
    rest_stream,
    rpc,
    rpc_stream,
)
from a2a_proxy.rules.examples.objects import (
    Json,
    agent_reply,
    card,
    chunk,
    error_info,
    input_required,
    message,
    reply,
    send,
    snapshot,
    state,
    status,
    task,
)
from a2a_proxy.rules.examples.script import MS, Script, run_together
from a2a_proxy.rules.families.live.words import RECONNECT_MESSAGE, question_update
from a2a_proxy.rules.state.session_state import SessionState
from support_rules import KEY, findings, told

SEND, BACK = "SendLiveMessage", "ReconnectToTask"
BEGUN = (snapshot(), status("WORKING"))
DONE = status("COMPLETED", second=9)
GO_ON = (status("WORKING", second=5), DONE)
AUTH = status("AUTH_REQUIRED", second=1, message=reply("a token, please", id="q1", taskId="t1"))
LOST = {"finish": "leave"}


def live(*events: Any, method: str = SEND, request: Json | None = None, **options: Any) -> Script:
    """A live stream, the client's side of which stays open."""
    return grpc(
        method, send() if request is None else request, *events, half_close=False, **options
    )


def verdicts(script: Script, number: str) -> list[str]:
    """Severities of what one rule says, with `?` where it is not sure."""
    return [
        each.severity.name + ("?" if each.confidence == "low" else "")
        for each in findings(script)
        if each.rule == f"A2A-LIVE-{number}"
    ]


def answer(text: str = "this one", **members: Any) -> ClientMessage:
    """The client says more."""
    return ClientMessage(send(text, id=members.pop("id", "m2"), **members))


NUMBERED = [
    {name: event[name] | {"generation": str(number)} for name in event}
    for number, event in enumerate(
        [*BEGUN, question_update(), status("WORKING", second=2), chunk(lastChunk=True), DONE], 1
    )
]
RIGHT = {
    "turns": live(
        *BEGUN, question_update(), EventPause(1), answer(taskId="t1", contextId="c1"), *GO_ON
    ),
    "ids are implied": live(
        *BEGUN,
        question_update(),
        EventPause(20),
        answer(),
        status("WORKING", second=22),
        question_update("and?", second=23, id="q2"),
        EventPause(2),
        answer(id="m3"),
        status("WORKING", second=26),
        status("COMPLETED", second=27),
    ),
    "numbered": live(*NUMBERED[:3], answer(), *NUMBERED[3:], version="1.1"),
    "a message": live(agent_reply()),
    "a finished task": live(snapshot("COMPLETED")),
    "the task once more": live(*BEGUN, DONE, snapshot("COMPLETED", second=9)),
    "two messages before the task": live(answer("and more"), *BEGUN, DONE),
    "the client has said all": live(*BEGUN, HalfClosed(), *GO_ON),
    "one message only": grpc(SEND, send(), *BEGUN, DONE),
    "given up": live(*BEGUN, question_update(), EventPause(30), status("FAILED", second=31)),
    "left": live(*BEGUN, question_update(), **LOST),
    "credentials by another way": live(*BEGUN, AUTH, EventPause(10), *GO_ON),
    "canceled": run_together(
        live(*BEGUN, EventPause(2), status("CANCELED", second=3)),
        grpc("CancelTask", {"id": "t1"}, task("CANCELED", second=3)),
        after=2000 * MS,
    ),
    "history": live(
        *BEGUN,
        question_update(),
        answer(),
        status("WORKING", second=2),
        snapshot(
            "COMPLETED",
            second=3,
            history=[
                message(taskId="t1", contextId="c1"),
                reply("which one?", id="q1", taskId="t1"),
                message("this one", id="m2", taskId="t1", contextId="c1"),
            ],
        ),
    ),
    "a task goes on": rpc(
        "SendMessage", send(), snapshot("INPUT_REQUIRED", status=input_required())
    )
    + live(snapshot("WORKING", second=1), DONE, request=send(id="m2", taskId="t1", contextId="c1")),
    "reconnected": live(*BEGUN, **LOST)
    + live(snapshot("WORKING"), DONE, request=RECONNECT_MESSAGE),
    "reconnected and answered": live(*BEGUN, question_update(), **LOST)
    + live(
        snapshot("INPUT_REQUIRED", status=input_required(second=1)),
        answer(),
        *GO_ON,
        method=BACK,
        request=RECONNECT_MESSAGE,
    ),
    "reconnected after the end": live(*BEGUN, DONE)
    + live(snapshot("COMPLETED", second=9), method=BACK, request=RECONNECT_MESSAGE),
    "a subscription beside it": run_together(
        live(*BEGUN, EventPause(3), question_update(), EventPause(2), answer(), *GO_ON),
        grpc(
            "SubscribeToTask",
            {"id": "t1"},
            snapshot("WORKING"),
            EventPause(2.2),
            question_update(),
            EventPause(2),
            *GO_ON,
        ),
        after=1000 * MS,
    ),
    "two live streams": run_together(
        live(*BEGUN, EventPause(3), question_update(), EventPause(2), *GO_ON),
        live(
            snapshot("WORKING"),
            EventPause(2.2),
            question_update(),
            EventPause(1),
            answer(),
            EventPause(0.8),
            *GO_ON,
            method=BACK,
            request=RECONNECT_MESSAGE,
        ),
        after=1000 * MS,
    ),
    "answered by a call": run_together(
        live(*BEGUN, question_update(), EventPause(3), *GO_ON),
        grpc(
            "SendMessage",
            send("x", id="m5", taskId="t1"),
            snapshot("COMPLETED", second=9),
            seconds=2,
        ),
        after=2000 * MS,
    ),
}  # fmt: skip


@pytest.mark.parametrize("script", RIGHT.values(), ids=list(RIGHT))
def test_what_is_right_is_not_flagged_by_any_rule(script: Script) -> None:
    """Also by none of those about tasks, ids and other streams."""
    assert not told(script)


def test_rules_about_other_streams_leave_live_streams_alone() -> None:
    """Each violation is reported once, by the family of live streams."""
    assert [each.rule for each in findings(live(*BEGUN))] == ["A2A-LIVE-020"]
    assert [each.rule for each in findings(live(*BEGUN, question_update()))] == ["A2A-LIVE-004"]
    assert [each.rule for each in findings(live(*BEGUN, DONE, EventPause(30)))] == ["A2A-LIVE-005"]


def test_one_task_on_one_stream() -> None:
    """The rule about ids says it of every stream."""
    other = {"statusUpdate": status("WORKING", second=1)["statusUpdate"] | {"taskId": "t2"}}
    assert "A2A-LIVE-007" in {each.rule for each in findings(live(*BEGUN, other, DONE))}


def test_all_live_streams_tell_the_same() -> None:
    """So does the rule about several streams of one task."""
    one = live(*BEGUN, EventPause(3), chunk("a"), chunk("b", id="a2"), EventPause(8), DONE)
    two = live(
        snapshot("WORKING"),
        EventPause(3),
        chunk("b", id="a2"),
        EventPause(8),
        DONE,
        method=BACK,
        request=RECONNECT_MESSAGE,
    )
    found = findings(run_together(one, two, after=1000 * MS))
    assert {(each.rule, each.evidence["actor"]) for each in found} == {("A2A-LIVE-016", "agent")}


def test_reconnecting_is_no_answer_to_a_question() -> None:
    """What leaves INPUT_REQUIRED then had no input; a further message is one."""
    asked = snapshot("INPUT_REQUIRED", status=input_required(second=1))
    lost = live(*BEGUN, question_update(), **LOST)
    silent = lost + live(asked, *GO_ON, method=BACK, request=RECONNECT_MESSAGE)
    assert [each.rule for each in findings(silent)] == ["A2A-STATE-003"]
    assert not told(lost + live(asked, answer(), *GO_ON, method=BACK, request=RECONNECT_MESSAGE))


# --- the capability

NO_LIVE = fetch_card(card(capabilities={"streaming": True}))
LIVE_CARD = fetch_card(card(capabilities={"streaming": True, "bidiStreaming": True}))


@pytest.mark.parametrize(
    ("code", "details", "expected"),
    [
        (12, None, []),
        (9, [error_info("UNSUPPORTED_OPERATION")], []),
        (9, None, ["ERROR"]),
        (3, None, ["ERROR"]),
        (13, None, ["ERROR"]),
        (16, None, []),
        (14, None, []),
        (8, None, []),
    ],
)
def test_how_an_undeclared_call_is_refused(
    code: int, details: list[Json] | None, expected: list[str]
) -> None:
    """Statuses with which any call may end say nothing."""
    script = NO_LIVE + live(status=code, text="no", details=details)
    assert verdicts(script, "002") == expected
    assert verdicts(script, "001") == ["WARNING"]


def test_nothing_is_undeclared_where_no_card_was_seen() -> None:
    assert not told(live(*BEGUN, DONE))
    assert not told(live(status=12, text="no"))
    assert not verdicts(live(*BEGUN, DONE) + NO_LIVE, "001")


def test_an_extended_card_may_declare_more() -> None:
    """It was not seen: less sure."""
    script = fetch_card() + live(*BEGUN, DONE)
    assert (verdicts(script, "001"), verdicts(script, "002")) == (["WARNING?"], ["ERROR?"])


def test_an_undeclared_call_that_ends_with_ok() -> None:
    assert verdicts(NO_LIVE + live(), "002") == ["ERROR"]
    assert verdicts(LIVE_CARD + live(), "002") == []


def test_live_streams_on_other_bindings() -> None:
    """Where the agent takes it, it may follow another proposal."""
    assert verdicts(rest("POST", "/message:live", send(), status=404), "003") == ["ERROR"]
    assert verdicts(rest("POST", "/tasks/t1:reconnect", send(), status=404), "003") == ["ERROR"]
    assert verdicts(
        rpc(BACK, RECONNECT_MESSAGE, error={"code": -32601, "message": "no"}), "003"
    ) == ["ERROR"]
    assert verdicts(rest_stream("POST", "/live", send(), *BEGUN, DONE), "003") == ["INFO"]
    assert verdicts(rpc_stream(SEND, send(), *BEGUN, DONE), "003") == ["INFO"]
    assert verdicts(rpc_stream("SendStreamingMessage", send(), *BEGUN, DONE), "003") == []


# --- opening and reconnecting


@pytest.mark.parametrize("first", [status("WORKING"), chunk()])
def test_an_update_comes_first(first: Json) -> None:
    assert verdicts(live(first, DONE), "010") == ["ERROR"]
    again = live(*BEGUN, **LOST) + live(first, DONE, request=RECONNECT_MESSAGE)
    assert (verdicts(again, "010"), verdicts(again, "014")) == ([], ["ERROR"])


@pytest.mark.parametrize("method", [SEND, BACK])
def test_reconnecting_to_a_task_that_is_over(method: str) -> None:
    over = live(*BEGUN, DONE)

    def again(*events: Any, **options: Any) -> list[str]:
        return verdicts(
            over + live(*events, method=method, request=RECONNECT_MESSAGE, **options), "012"
        )

    assert again(snapshot("COMPLETED", second=9)) == []
    assert again(status=9, text="over") == ["ERROR"]
    assert again(status=3, text="over") == ["ERROR"]
    assert again(status=5, text="forgotten") == []
    assert again(status=14, text="busy") == []
    assert again() == ["ERROR"]
    assert again(DONE) == ["ERROR"]
    assert again(snapshot("WORKING")) == ["ERROR"]


def test_reconnecting_to_a_task_that_goes_on_is_not_judged_as_over() -> None:
    script = live(*BEGUN, **LOST) + live(request=RECONNECT_MESSAGE, status=9, text="another stream")
    assert verdicts(script, "012") == []
    assert (
        verdicts(live(*BEGUN, DONE) + live(status=9, request=send(id="m2", taskId="t1")), "012")
        == []
    )


@pytest.mark.parametrize(
    ("code", "expected"), [(5, []), (3, ["WARNING?"]), (13, ["WARNING?"]), (9, []), (12, [])]
)
def test_reconnecting_to_an_unknown_task(code: int, expected: list[str]) -> None:
    assert (
        verdicts(live(method=BACK, request=RECONNECT_MESSAGE, status=code, text="no"), "013")
        == expected
    )
    assert (
        verdicts(
            live(*BEGUN, **LOST) + live(request=RECONNECT_MESSAGE, status=code, text="no"), "013"
        )
        == []
    )
    assert verdicts(live(status=code, text="no"), "013") == []


def test_reconnecting_to_a_task_that_may_have_been_forgotten() -> None:
    """Once tasks had to be forgotten, nothing is unknown for certain."""
    failing = live(request=RECONNECT_MESSAGE, status=3, text="no")
    made = [rpc("GetTask", {"id": name}, task("WORKING", id=name)) for name in ("t7", "t8")]
    for scripts, expected in ((made[:1], ["A2A-LIVE-013"]), (made, [])):
        observer, out = Observer(Redactor(KEY)), list[Observation]()
        observer._rules.session = SessionState(1)
        for each in sum([*scripts[1:], failing], scripts[0]).make_chunks():
            observer.feed(each, out)
        assert [each.rule for each in out if type(each) is Finding] == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [(6, ["WARNING"]), (10, ["WARNING"]), (3, ["WARNING?"]), (9, []), (5, []), (16, [])],
)
def test_a_second_live_stream(code: int, expected: list[str]) -> None:
    second = live(request=RECONNECT_MESSAGE, status=code, text="no")
    assert (
        verdicts(run_together(live(*BEGUN, EventPause(3), DONE), second, after=1000 * MS), "015")
        == expected
    )
    assert verdicts(live(*BEGUN, **LOST) + second, "015") == []
    beside = run_together(
        grpc("SendStreamingMessage", send(), *BEGUN, EventPause(3), DONE), second, after=1000 * MS
    )
    assert verdicts(beside, "015") == []


def test_a_client_with_media_and_an_agent_without() -> None:
    script = live(snapshot(), request={"message": send()}, request_type="LiveRequest", **LOST)
    (found,) = (each for each in findings(script) if each.rule == "A2A-LIVE-022")
    sends = "sends messages of the proposal"
    assert found.summary == f"the client {sends} `1975`, the agent {sends} `bidi`"


# --- what the client says


def test_ids_on_a_live_stream() -> None:
    def said_with(**ids: Any) -> list[str]:
        return verdicts(live(*BEGUN, question_update(), answer(**ids), *GO_ON), "008")

    assert said_with(taskId="t1", contextId="c1") == []
    assert said_with() == []
    assert said_with(taskId="t2") == ["ERROR"]
    assert said_with(taskId="t2", contextId="c2") == ["ERROR", "ERROR"]


def test_ids_before_the_first_answer() -> None:
    """What the agent will tell cannot be known: only what the client said itself counts."""
    assert verdicts(live(answer(contextId="c5"), *BEGUN, DONE), "008") == []
    first = send(contextId="c4")
    assert verdicts(live(answer(contextId="c5"), *BEGUN, DONE, request=first), "008") == ["ERROR"]


def test_configuration() -> None:
    short, long = {"historyLength": 2}, {"historyLength": 5}

    def then(first: Json | None, later: Json | None) -> list[str]:
        stream = live(
            *BEGUN,
            question_update(),
            answer(configuration=later),
            *GO_ON,
            request=send(configuration=first),
        )
        return verdicts(stream, "009")

    assert then(long, short) == ["WARNING?"]
    assert then(None, short) == ["WARNING?"]
    assert then(long, long) == then(long, None) == then(None, None) == then(long, {}) == []


def test_empty_messages() -> None:
    nothing = ClientMessage({"message": {"messageId": "m3", "role": "ROLE_USER"}})
    assert verdicts(
        live(*BEGUN, question_update(), ClientMessage(RECONNECT_MESSAGE), *GO_ON), "019"
    ) == ["ERROR"]
    assert verdicts(live(snapshot("WORKING"), DONE, request=RECONNECT_MESSAGE), "019") == []
    nameless = live(*BEGUN, question_update(), nothing, *GO_ON)
    assert [each.rule for each in findings(nameless)] == ["A2A-SCH-002"]


# --- going on and ending


@pytest.mark.parametrize(
    ("event", "number"), [(question_update(), "004"), (AUTH, "004"), (status("WORKING"), "020")]
)
def test_an_agent_that_ends_too_early(event: Json, number: str) -> None:
    """With OK, and while the client could still speak; an error says itself what is wrong."""
    assert len(verdicts(live(snapshot(), event), number)) == 1
    assert verdicts(live(snapshot(), event, HalfClosed()), number) == []
    assert verdicts(live(snapshot(), event, status=14, text="restart"), number) == []
    assert verdicts(live(snapshot(), event, **LOST), number) == []
    assert verdicts(live(snapshot(), event, finish="open"), number) == []
    assert verdicts(live(snapshot(), event, RawBytes(b"\0\0\0\0\2\xff\xff")), number) == []


@pytest.mark.parametrize(("seconds", "expected"), [(1, []), (5, ["WARNING"]), (30, ["ERROR"])])
def test_an_agent_that_ends_too_late(seconds: float, expected: list[str]) -> None:
    assert verdicts(live(*BEGUN, DONE, EventPause(seconds)), "005") == expected
    assert verdicts(live(agent_reply(), EventPause(seconds)), "011") == expected


def test_the_clients_side_may_stay_open_after_the_trailers() -> None:
    """They end the call, whatever the client does."""
    script = live(*BEGUN, DONE).then(fetch_card(), 60_000 * MS)
    observer, out = Observer(Redactor(KEY)), list[Observation]()
    for each in script.make_chunks():
        if each.connection != 1 or each.kind is not ChunkKind.CLOSED:
            observer.feed(each, out)
    assert not [each for each in out if type(each) is Finding]


def test_events_after_the_end() -> None:
    twice = live(*BEGUN, DONE, *[snapshot("COMPLETED", second=9)] * 2)
    assert verdicts(twice, "006") == ["ERROR"]
    over = live(*BEGUN, DONE)
    again = live(snapshot("COMPLETED", second=9), chunk("late"), request=RECONNECT_MESSAGE)
    assert verdicts(over + again, "006") == ["ERROR"]


def test_a_message_and_then_a_task() -> None:
    assert verdicts(live(agent_reply(), snapshot("COMPLETED")), "011") == ["ERROR"]
    assert verdicts(live(snapshot("COMPLETED")), "011") == []


def test_a_question_that_nobody_can_answer() -> None:
    assert verdicts(grpc(SEND, send(), *BEGUN, question_update(), **LOST), "017") == ["WARNING"]
    assert verdicts(grpc(SEND, send(), *BEGUN, AUTH, **LOST), "017") == ["INFO"]
    assert verdicts(live(*BEGUN, question_update(), HalfClosed(), **LOST), "017") == []


def test_a_question_that_another_live_stream_can_answer() -> None:
    watching = grpc(
        SEND,
        RECONNECT_MESSAGE,
        snapshot("WORKING"),
        EventPause(2.2),
        question_update(),
        EventPause(1),
        *GO_ON,
    )
    speaking = live(*BEGUN, EventPause(3), question_update(), EventPause(1), answer(), *GO_ON)
    assert verdicts(run_together(speaking, watching, after=1000 * MS), "017") == []


def test_a_client_that_only_looks() -> None:
    """The first Task tells it how things are, it is not asked."""
    lost = live(*BEGUN, question_update(), **LOST)
    seen = snapshot("INPUT_REQUIRED", status=state("INPUT_REQUIRED", second=1))
    assert verdicts(lost + grpc(SEND, RECONNECT_MESSAGE, seen, **LOST), "017") == []


def test_a_question_answered_by_another_call() -> None:
    stream = live(*BEGUN, question_update(), EventPause(90), *GO_ON)
    call = grpc(
        "SendMessage",
        send("x", id="m5", taskId="t1", contextId="c1"),
        snapshot("COMPLETED", second=9),
    )
    assert verdicts(run_together(stream, call, after=2000 * MS), "021") == []


# --- media


def media(event: str, number: int = 0, modality: int = 0) -> Json:
    """A piece of sound, or what stands around it."""
    sound = {"raw": "AAAA", "mediaType": "audio/pcm"}
    return {
        "frame": {
            "part": sound,
            "seqNum": number,
            "modalityIndex": modality,
            "event": f"EVENT_MEDIA_{event}",
        }
    }


def played(*frames: Any) -> Script:
    """A stream of the proposal with media."""
    types = {"request_type": "LiveRequest", "answer_type": "LiveResponse"}
    begun, end = {"event": snapshot()}, {"event": DONE}
    return live(begun, *frames, end, request={"message": send()}, **types)


@pytest.mark.parametrize(
    ("frames", "expected"),
    [
        ([media("START", 1), media("DELTA", 2), media("DELTA", 3), media("STOP", 4)], []),
        ([media("START"), media("DELTA", 7), media("PAUSE", 8), media("DELTA", 9)], []),
        ([media("START"), media("DELTA", 7), media("STOP"), media("START"), media("DELTA", 1)], []),
        ([media("START"), media("DELTA", 7), media("DELTA", 7)], ["WARNING"]),
        ([media("START"), media("DELTA", 7), media("DELTA", 6)], ["WARNING"]),
        ([media("START"), media("DELTA", 7), media("DELTA", 9)], ["WARNING"]),
        ([media("DELTA", 1), media("DELTA", 2)], ["WARNING?"]),
        (
            [
                media("START"),
                media("START", 0, 1),
                media("DELTA", 5),
                media("DELTA", 1, 1),
                media("DELTA", 6),
            ],
            [],
        ),
    ],
)
def test_media_in_sequence(frames: list[Json], expected: list[str]) -> None:
    assert verdicts(played(*frames), "023") == expected
    assert verdicts(played(*map(ClientMessage, frames)), "023") == expected


def test_both_sides_have_numbers_of_their_own() -> None:
    frames = [
        media("START"),
        ClientMessage(media("START")),
        media("DELTA", 5),
        ClientMessage(media("DELTA", 50)),
        media("DELTA", 6),
    ]
    assert verdicts(played(*frames, ClientMessage(media("DELTA", 51))), "023") == []


def test_what_rules_were_not_shown_is_no_gap() -> None:
    """Of requests before the first answer not all are kept."""
    early = [
        ClientMessage(media("START")),
        *(ClientMessage(media("DELTA", number)) for number in range(1, 40)),
    ]
    late = [ClientMessage(media("DELTA", number)) for number in range(40, 43)]
    script = live(
        *early,
        {"event": snapshot()},
        *late,
        {"event": DONE},
        request={"message": send()},
        request_type="LiveRequest",
        answer_type="LiveResponse",
    )
    assert verdicts(script, "023") == []
