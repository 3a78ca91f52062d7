"""Rules about states: what must be found on every binding; lagging streams and racing answers must
not be."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_proxy.rules.examples.conversation import (
    EventPause,
    grpc,
    rest,
    rest_stream,
    rpc,
    rpc_error,
    rpc_stream,
)
from a2a_proxy.rules.examples.objects import (
    Json,
    agent_reply,
    artifact,
    chunk,
    input_required,
    reply,
    send,
    snapshot,
    state,
    status,
    task,
)
from a2a_proxy.rules.examples.script import MS, Script, run_together
from support_rules import findings

EVERY = pytest.mark.parametrize("binding", ["jsonrpc", "rest", "grpc"])
SECOND = 1000 * MS
GET = {"id": "t1"}
AT_ONCE = {"returnImmediately": True}
BEGUN = rpc("SendMessage", send(configuration=AT_ONCE), snapshot("WORKING"))
DONE = rpc("SendMessage", send(), snapshot("COMPLETED", artifacts=[artifact()]))
FOLLOW_UP = send(id="m2", taskId="t1")


def verdicts(script: Script, number: str) -> list[str]:
    """Severities of what one rule says, with `?` where it is not sure."""
    return [
        each.severity.name + ("?" if each.confidence == "low" else "")
        for each in findings(script)
        if each.rule == f"A2A-STATE-{number}"
    ]


def numbers(script: Script) -> set[str]:
    """The rules about states that have something to say."""
    return {each.rule[-3:] for each in findings(script) if each.rule.startswith("A2A-STATE-")}


def stream(binding: str, *events: Any, params: Json | None = None, **options: Any) -> Script:
    """SendStreamingMessage on any binding."""
    asked = params or send()
    if binding == "grpc":
        return grpc("SendStreamingMessage", asked, *events, **options)
    if binding == "rest":
        return rest_stream("POST", "/message:stream", asked, *events, **options)
    return rpc_stream("SendStreamingMessage", asked, *events, **options)


def follow(*events: Any, **options: Any) -> Script:
    """SubscribeToTask."""
    return rpc_stream("SubscribeToTask", GET, *events, **options)


def call(binding: str, method: str, answer: Json) -> Script:
    """GetTask or CancelTask on any binding."""
    if binding == "grpc":
        return grpc(method, GET, answer)
    if binding == "rest":
        cancels = method == "CancelTask"
        return rest(
            "POST" if cancels else "GET", "/tasks/t1" + (":cancel" if cancels else ""), None, answer
        )
    return rpc(method, GET, answer)


# --- what is over


@EVERY
def test_a_finished_task_that_continues_is_flagged_once(binding: str) -> None:
    """Told at the first state, not at every one after it."""
    back = stream(
        binding,
        snapshot(),
        status("FAILED", second=1),
        status("WORKING", second=2),
        status("WORKING", second=3, message=reply("again", taskId="t1")),
        status("COMPLETED", second=4),
    )
    assert verdicts(back, "001") == ["ERROR"]


def test_two_terminal_states_of_a_task_are_flagged() -> None:
    """Whichever stream is behind, one of them is wrong."""
    one = follow(snapshot("WORKING"), EventPause(1), status("COMPLETED", second=1))
    other = follow(snapshot("WORKING"), EventPause(1), status("FAILED", second=1))
    assert verdicts(BEGUN + run_together(one, other), "001") == ["ERROR"]


def test_a_lagging_stream_is_not_flagged() -> None:
    """What it shows after the other has ended is old, not wrong."""
    first = follow(snapshot("WORKING"), EventPause(1), chunk("x"), status("COMPLETED", second=1))
    slow = follow(
        snapshot("WORKING"),
        EventPause(2),
        chunk("x"),
        status("WORKING"),
        EventPause(1),
        status("COMPLETED", second=1),
    )
    assert not numbers(BEGUN + run_together(first, slow))


def test_a_stream_that_missed_states_is_not_flagged() -> None:
    """It was at another place when the other one jumped ahead: no change goes back by that."""
    ahead = follow(EventPause(0.3), snapshot("COMPLETED", second=3))
    behind = follow(
        snapshot("SUBMITTED"),
        EventPause(1),
        status("WORKING", second=1),
        status("INPUT_REQUIRED", second=2, message=reply("?", taskId="t1")),
        status("COMPLETED", second=3),
    )
    told = numbers(
        rpc("SendMessage", send(configuration=AT_ONCE), snapshot())
        + run_together(behind, ahead, after=SECOND // 2)
    )
    assert not told & {"001", "002", "009", "013"}


@EVERY
def test_an_outdated_response_is_stale_or_a_race(binding: str) -> None:
    """Stale where the end had been told before the request; a race where it came after it."""
    stale = DONE + call(binding, "GetTask", task("WORKING"))
    assert verdicts(stale, "009") == ["WARNING"]
    assert not verdicts(stale, "001")
    ends = follow(snapshot("WORKING"), EventPause(1), status("COMPLETED", second=1))
    slow = rpc("GetTask", GET, task("WORKING"), seconds=3)
    assert not numbers(BEGUN + run_together(ends, slow))


def test_a_snapshot_newer_than_the_end_is_flagged() -> None:
    """By its timestamp it is no old one: the task has gone on."""
    assert numbers(DONE + rpc("GetTask", GET, task("WORKING", second=9))) == {"001"}


def test_a_stale_response_does_not_change_the_state() -> None:
    """The task is over still, and the next answer that says so is right."""
    told = (
        DONE
        + rpc("GetTask", GET, task("WORKING"))
        + rpc("GetTask", GET, task(artifacts=[artifact()]))
    )
    assert numbers(told) == {"009"}
    cancel = rpc("CancelTask", GET, task("WORKING"))
    assert verdicts(DONE + rpc("GetTask", GET, task("WORKING")) + cancel, "010") == ["ERROR"]


def test_outdated_lists_are_flagged() -> None:
    """Each of their tasks is compared."""
    listed = {"tasks": [task("WORKING")], "totalSize": 1, "pageSize": 50, "nextPageToken": ""}
    assert verdicts(DONE + rpc("ListTasks", {}, listed), "009") == ["WARNING"]
    assert not verdicts(BEGUN + rpc("ListTasks", {}, listed), "009")
    done = rpc("GetTask", GET, task("COMPLETED"))
    assert not verdicts(run_together(rpc("ListTasks", {}, listed, seconds=2), done), "009"), (
        "a race"
    )


def test_an_older_status_without_an_end() -> None:
    """By its timestamp, and in another state."""
    waits = rpc("SendMessage", send(), snapshot("INPUT_REQUIRED", status=input_required(second=20)))
    assert verdicts(waits + rpc("GetTask", GET, task("WORKING", second=5)), "009") == ["WARNING"]
    assert not verdicts(waits + rpc("GetTask", GET, task("WORKING", second=25)), "009")
    assert not verdicts(
        waits + rpc("GetTask", GET, task(status=input_required(second=5))), "009"
    ), "the same state"


@EVERY
def test_a_message_to_a_finished_task_is_flagged_once(binding: str) -> None:
    """The agent must refuse; it is reported once, and not again as a finished task that
    continues."""
    accepted = DONE.then(
        stream(binding, snapshot("WORKING", second=2), params=FOLLOW_UP, finish="open"), SECOND
    )
    assert numbers(accepted) == {"004", "005"}
    assert verdicts(accepted, "004") == ["ERROR"]
    assert verdicts(accepted, "005") == ["WARNING"]


def test_a_message_that_crossed_the_end_is_not_flagged() -> None:
    """The client may not have known yet."""
    refused = rpc(
        "SendMessage", FOLLOW_UP, error=rpc_error(-32004, "UNSUPPORTED_OPERATION", "over")
    )
    assert verdicts(DONE + refused, "005") == ["INFO?"]
    assert verdicts(DONE.then(refused, SECOND), "005") == ["WARNING"]
    assert not verdicts(
        run_together(rpc("SendMessage", send(), snapshot("COMPLETED"), seconds=2), refused), "005"
    )


def test_a_message_sent_before_the_end_is_not_flagged() -> None:
    """The task ended while it was under way: the agent may take it, and the client could not
    know."""
    ends = follow(snapshot("WORKING"), EventPause(1), status("COMPLETED", second=1))
    takes = rpc("SendMessage", FOLLOW_UP, snapshot("COMPLETED", second=1), seconds=3)
    assert not numbers(BEGUN + run_together(ends, takes))


@EVERY
def test_content_after_the_end(binding: str) -> None:
    """On the stream that has told it."""
    late = stream(binding, snapshot(), status("COMPLETED"), chunk("x"))
    assert verdicts(late, "013") == ["ERROR"]


def test_differing_snapshots_after_the_end_are_flagged() -> None:
    """Whichever bindings they came on; the same content in other parts is the same."""
    one = rpc("GetTask", GET, task(artifacts=[artifact("ab")]))
    other = grpc(
        "GetTask", GET, task(artifacts=[artifact("ab", parts=[{"text": "a"}, {"text": "b"}])])
    )
    assert not verdicts(DONE + one + other, "013")
    assert verdicts(DONE + one + rpc("GetTask", GET, task(artifacts=[artifact("abc")])), "013") == [
        "WARNING"
    ]


# --- cancellation


@EVERY
def test_cancelling_a_finished_task_is_flagged(binding: str) -> None:
    """An error; canceled twice is information."""
    over = DONE + call(binding, "CancelTask", task("COMPLETED", artifacts=[artifact()]))
    assert verdicts(over, "010") == ["ERROR"]
    canceled = BEGUN + call(binding, "CancelTask", task("CANCELED", second=1))
    assert not verdicts(canceled, "010")
    assert verdicts(canceled + call(binding, "CancelTask", task("CANCELED", second=1)), "010") == [
        "INFO"
    ]


def test_errors_of_cancelling() -> None:
    """Another A2A error tells something else; trouble of a server tells nothing."""
    wrong = rpc("CancelTask", GET, error=rpc_error(-32602, text="cannot"))
    assert verdicts(DONE + wrong, "010") == ["WARNING"]
    assert not verdicts(DONE + rpc("CancelTask", GET, error=rpc_error(-32603, text="oops")), "010")
    assert not verdicts(DONE + grpc("CancelTask", GET, status=14, text="unavailable"), "010")
    assert not verdicts(
        DONE + rest("POST", "/tasks/t1:cancel", None, "slow down", status=429), "010"
    )


def test_a_cancellation_may_take_time_if_it_takes_effect() -> None:
    """It is flagged only if the task does not become canceled in time."""
    asked = BEGUN + rpc("CancelTask", GET, task("WORKING"))
    later = rpc("GetTask", GET, task("CANCELED", second=9))
    assert verdicts(
        asked.then(rpc("GetTask", GET, task("WORKING", second=31)), 31 * SECOND), "011"
    ) == ["INFO"]
    assert not verdicts(
        asked.then(later, 9 * SECOND).then(rpc("GetTask", GET, task("CANCELED")), 60 * SECOND),
        "011",
    )


def test_work_after_a_cancellation() -> None:
    """A stream may be behind by some seconds, with events from before it."""
    canceled = rpc("CancelTask", GET, task("CANCELED", second=2))

    def after(seconds: float, second: int) -> Script:
        work = status("WORKING", second=second, message=reply("still", taskId="t1"))
        return BEGUN + run_together(
            follow(snapshot("WORKING"), EventPause(2 + seconds), work), canceled, after=2 * SECOND
        )

    assert verdicts(after(9, 1), "018") == ["WARNING"], "too late to be behind"
    assert verdicts(after(1, 5), "018") == ["WARNING"], "from after it, by its timestamp"
    assert not verdicts(after(1, 1), "018")


# --- waiting


@EVERY
def test_back_to_the_beginning(binding: str) -> None:
    """On a stream, and after a message."""
    assert verdicts(
        stream(binding, snapshot("WORKING"), status("SUBMITTED", second=1), finish="open"), "002"
    ) == ["WARNING"]
    waits = rpc("SendMessage", send(), snapshot("INPUT_REQUIRED", status=input_required()))
    again = stream(
        binding, status("SUBMITTED", second=1), status("COMPLETED", second=2), params=FOLLOW_UP
    )
    assert verdicts(waits + again, "002") == ["WARNING"]


def _asks(*after: Any, **options: Any) -> Script:
    question = status("INPUT_REQUIRED", second=2, message=reply("which?", taskId="t1"))
    return rpc_stream(
        "SendStreamingMessage",
        send(),
        snapshot(),
        status("WORKING", second=1),
        question,
        *after,
        **options,
    )


def test_leaving_input_required_without_a_message_is_flagged() -> None:
    """Unless a message was sent, on any connection; an end without an answer is not flagged."""
    goes_on = (EventPause(2), status("WORKING", second=5), status("COMPLETED", second=6))
    assert verdicts(_asks(*goes_on), "003") == ["WARNING"]
    answer = grpc("SendMessage", FOLLOW_UP, snapshot("COMPLETED", second=6), seconds=3)
    assert not verdicts(run_together(_asks(*goes_on), answer, after=SECOND), "003")
    assert not verdicts(_asks(EventPause(2), status("CANCELED", second=5)), "003")


def test_an_answer_from_before_the_question() -> None:
    """A message that came while the task worked may have waited for it."""
    early = status("INPUT_REQUIRED", second=2, message=reply("which?", taskId="t1"))
    runs = rpc_stream(
        "SendStreamingMessage",
        send(),
        snapshot(),
        status("WORKING", second=1),
        EventPause(2),
        early,
        EventPause(1),
        status("WORKING", second=5),
        finish="open",
    )
    message = rpc("SendMessage", FOLLOW_UP, snapshot("COMPLETED", second=9), seconds=20)
    assert not verdicts(run_together(runs, message, after=SECOND), "003")


def test_a_poll_may_show_that_the_task_continued() -> None:
    """The poll shows that the task has gone on, by its timestamp."""
    waits = rpc("SendMessage", send(), snapshot("INPUT_REQUIRED", status=input_required(second=1)))
    assert verdicts(waits + rpc("GetTask", GET, task("WORKING", second=9)), "003") == ["WARNING"]
    answered = rpc(
        "SendMessage", send("this", id="m2", taskId="t1", configuration=None), snapshot("COMPLETED")
    )
    assert not verdicts(waits + answered, "003")


@EVERY
def test_waiting_without_a_message_is_flagged_once(binding: str) -> None:
    """Once for each time that it waits, not for each answer that says so."""
    silent = stream(binding, snapshot(), status("INPUT_REQUIRED", second=1))
    assert verdicts(silent + rpc("GetTask", GET, task("INPUT_REQUIRED", second=1)), "007") == [
        "INFO"
    ]
    assert verdicts(stream(binding, snapshot(), status("AUTH_REQUIRED", second=1)), "006") == [
        "WARNING"
    ]
    nameless = reply("a token, please")
    del nameless["messageId"]
    assert not verdicts(
        stream(binding, snapshot(), status("AUTH_REQUIRED", message=nameless)), "006"
    )


def test_waiting_for_credentials_without_a_message_before_1_0() -> None:
    """Also 0.3 says that the message has the details."""
    waits = {"kind": "task", "id": "t1", "contextId": "c1", "status": {"state": "auth-required"}}
    said = {"kind": "message", "messageId": "m1", "parts": [{"kind": "text", "text": "a token"}]}
    asked = {"message": said | {"role": "user"}}
    assert verdicts(rpc("message/send", asked, waits, version=""), "006") == ["WARNING"]
    told = waits | {"status": {"state": "auth-required", "message": said | {"role": "agent"}}}
    assert not verdicts(rpc("message/send", asked, told, version=""), "006")


# --- sends


@EVERY
def test_an_early_return_of_a_blocking_send_is_flagged(binding: str) -> None:
    """Unless it was asked to, or waits for the client."""

    def sends(answer: Json, configuration: Json | None = None) -> Script:
        params = send(configuration=configuration)
        if binding == "grpc":
            return grpc("SendMessage", params, answer)
        return (
            rest("POST", "/message:send", params, answer)
            if binding == "rest"
            else rpc("SendMessage", params, answer)
        )

    assert verdicts(sends(snapshot("WORKING")), "014") == ["ERROR"]
    assert not verdicts(sends(snapshot("WORKING"), AT_ONCE), "014")
    assert not verdicts(sends(snapshot("INPUT_REQUIRED", status=input_required())), "014")


def test_blocking_before_1_0() -> None:
    """Only where it was asked for."""
    text = [{"kind": "text", "text": "hi"}]
    message = {"kind": "message", "messageId": "m1", "role": "user", "parts": text}
    answer = {"kind": "task", "id": "t1", "contextId": "c1", "status": {"state": "working"}}

    def sends(**configuration: bool) -> Script:
        params = {"message": message} | ({"configuration": configuration} if configuration else {})
        return rpc("message/send", params, answer, version="", seconds=9)

    assert verdicts(sends(blocking=True), "014") == ["ERROR"]
    assert not verdicts(sends(), "014")
    assert not verdicts(sends(blocking=False), "014")
    assert verdicts(sends(blocking=False), "015") == ["WARNING"]
    assert not verdicts(sends(), "015")


def test_a_0_3_send_that_is_answered_in_the_form_of_1_0_need_not_block() -> None:
    """As fasta2a answers it: what the agent may do follows from the request, the form of the answer
    is A2A-VER-007."""
    message = {
        "kind": "message",
        "messageId": "m1",
        "role": "user",
        "parts": [{"kind": "text", "text": "hi"}],
    }
    answer = {"task": {"id": "t1", "contextId": "c1", "status": {"state": "submitted"}}}
    assert not verdicts(rpc("message/send", {"message": message}, answer, version=""), "014")
    blocks = {"message": message, "configuration": {"blocking": True}}
    assert not verdicts(rpc("message/send", blocks, answer, version=""), "014")


def test_a_blocking_return_of_a_non_blocking_send_is_flagged() -> None:
    """A Message takes the time that it takes."""
    params = send(configuration=AT_ONCE)
    assert verdicts(rpc("SendMessage", params, snapshot("COMPLETED"), seconds=6), "015") == [
        "WARNING"
    ]
    assert not verdicts(rpc("SendMessage", params, snapshot("COMPLETED"), seconds=4), "015")
    assert not verdicts(rpc("SendMessage", params, agent_reply(), seconds=6), "015")
    assert not verdicts(rpc("SendMessage", send(), snapshot("COMPLETED"), seconds=60), "015")


@EVERY
def test_results_in_messages(binding: str) -> None:
    """A remark is none, and a task that was not seen from its beginning may have had artifacts."""
    report = status("COMPLETED", second=2, message=reply("word " * 100, taskId="t1"))
    remark = status("COMPLETED", second=2, message=reply("that was it", taskId="t1"))
    assert verdicts(stream(binding, snapshot(), report), "017") == ["INFO"]
    assert not verdicts(stream(binding, snapshot(), remark), "017")
    assert not verdicts(stream(binding, snapshot(), chunk("x"), report), "017")
    assert not verdicts(stream(binding, snapshot(artifacts=[artifact()]), report), "017")
    assert not verdicts(follow(snapshot("WORKING"), report), "017")
    for text, found in (("word " * 100, ["INFO"]), ("that was it", [])):
        said = {"kind": "message", "messageId": "m1", "parts": [{"kind": "text", "text": text}]}
        done = {"state": "completed", "message": said | {"role": "agent"}}
        old = {"kind": "task", "id": "t1", "contextId": "c1", "status": done}
        call = rpc("message/send", {"message": said | {"role": "user"}}, old, version="")
        assert verdicts(call, "017") == found, "also in 0.3"


# --- updates


@EVERY
def test_decreasing_timestamps_are_flagged(binding: str) -> None:
    """By more than a second; each against the latest before."""
    back = stream(
        binding,
        snapshot(),
        status("WORKING", second=9),
        status("WORKING", second=2),
        status("COMPLETED", second=3),
    )
    assert verdicts(back, "008") == ["WARNING", "WARNING"]
    assert not verdicts(stream(binding, snapshot(second=3), status("COMPLETED", second=2)), "008")


def test_incomparable_timestamps_are_not_flagged() -> None:
    """One has a zone, the other has none; one is no timestamp."""

    def stamped(one: str, other: str) -> Script:
        events = [status("WORKING"), status("COMPLETED")]
        for event, stamp in zip(events, (one, other), strict=True):
            event["statusUpdate"]["status"]["timestamp"] = stamp
        return rpc_stream(
            "SendStreamingMessage",
            send(),
            snapshot(status={"state": "TASK_STATE_SUBMITTED"}),
            *events,
        )

    assert verdicts(stamped("2026-01-01T10:00:05+01:00", "2026-01-01T08:00:05Z"), "008") == [
        "WARNING"
    ]
    assert not verdicts(stamped("2026-01-01T10:00:05+02:00", "2026-01-01T08:00:05Z"), "008")
    assert not verdicts(stamped("2026-01-01T10:00:05", "2026-01-01T08:00:05Z"), "008")
    assert verdicts(stamped("2026-01-01T10:00:05", "2026-01-01T08:00:05"), "008") == ["WARNING"]
    assert not verdicts(stamped("2026-01-01T10:00:05Z", "yesterday"), "008")


CONFIG = {"url": "https://h:1/hook"}
PUSHING = rpc(
    "SendMessage",
    send(configuration=AT_ONCE | {"taskPushNotificationConfig": CONFIG}),
    snapshot("WORKING"),
)


def push(event: Json) -> Script:
    return rest("POST", "/hook", event, "", headers={"A2A-Version": None}, upstream="http://h:1")


def test_late_webhooks_are_not_flagged() -> None:
    """Pushes may come after the stream has shown the end; they prove nothing about order."""
    ended = rpc("GetTask", GET, task(status=state("COMPLETED", second=2)))
    again = push(status("COMPLETED", second=2))
    assert not numbers(PUSHING + ended + push(status("WORKING", second=1)) + again + again)


def test_webhooks_after_a_cancellation() -> None:
    """Their timestamps show that the work goes on; another end is wrong at any time."""
    canceled = PUSHING + rpc("CancelTask", GET, task("CANCELED", second=2))
    assert numbers(canceled + push(status("WORKING", second=9))) == {"018"}
    assert numbers(canceled + push(status("COMPLETED", second=1))) == {"001"}
    assert not numbers(
        canceled + push(status("WORKING", second=2)) + push(status("CANCELED", second=2))
    )
    assert not numbers(canceled + push(chunk("late")))


def read(generation: str, state: str = "WORKING", second: int = 9, **params: str) -> Script:
    shown = task(state, second=second, generation=generation)
    return rpc("GetTask", {"id": "t1"} | params, shown, version="1.1")


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (read("7") + read("5"), {"A2A-STATE-009"}),
        (read("7", "SUBMITTED", 1) + read("5"), {"A2A-STATE-009"}),
        (read("7", "COMPLETED", 1) + read("5"), {"A2A-STATE-009"}),
        (read("7") + read("5", currentGeneration="7"), {"A2A-GEN-011"}),
        (read("5") + read("7"), set()),
        (read("7", second=1) + read("7", second=1), set()),
    ],
)
def test_a_lower_generation_is_stale_whatever_the_timestamps_say(
    script: Script, expected: set[str]
) -> None:
    assert {each.rule for each in findings(script)} == expected


def list_of(state: str, second: int) -> Script:
    listed = {
        "tasks": [task(state, second=second)],
        "nextPageToken": "",
        "pageSize": 50,
        "totalSize": 1,
    }
    return rpc("ListTasks", {}, listed)


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([list_of("WORKING", 5)], ["A2A-STATE-001 error"]),
        ([list_of("WORKING", 5)] * 2, ["A2A-STATE-001 error"]),
        ([list_of("FAILED", 0)], ["A2A-STATE-001 error"]),
        ([list_of("WORKING", 0)], ["A2A-STATE-009 warning"]),
        ([list_of("COMPLETED", 5)], []),
    ],
)
def test_a_list_shows_an_ended_task_in_another_state(
    answers: list[Script], expected: list[str]
) -> None:
    """As GetTask does."""
    script = rpc("SendMessage", send(), snapshot("COMPLETED", second=1))
    for each in answers:
        script += each
    assert [f"{each.rule} {each.severity.name.lower()}" for each in findings(script)] == expected


def test_a_list_with_one_of_two_ends_is_not_reported_again() -> None:
    """The answer that showed the second end was."""
    script = rpc("SendMessage", send(), snapshot("COMPLETED", second=1)) + rpc(
        "GetTask", GET, task("FAILED", second=2)
    )
    found = [
        (each.rule, each.exchange)
        for each in findings(script + list_of("COMPLETED", 1) + list_of("FAILED", 2))
    ]
    assert found == [("A2A-STATE-001", 2)]


# --- repetition


@EVERY
def test_a_result_in_an_artifact_and_in_a_message(binding: str) -> None:
    """Of one chunk, of two, and in one Task; not if only a part of it is repeated."""
    text = "It rains in Oslo"
    done = status("COMPLETED", second=1, message=reply(text, taskId="t1"))
    chunks = (chunk("It rains "), chunk("in Oslo", append=True, lastChunk=True))
    assert verdicts(stream(binding, snapshot(), chunk(text), done), "019") == ["INFO"]
    assert verdicts(stream(binding, snapshot(), *chunks, done), "019") == ["INFO"]
    assert not verdicts(stream(binding, snapshot(), chunks[0], done), "019")
    assert not verdicts(stream(binding, snapshot(), *chunks, status("COMPLETED", second=1)), "019")
    whole = snapshot(
        artifacts=[artifact(text)], status=state("COMPLETED", message=reply(text, taskId="t1"))
    )
    assert verdicts(rpc("SendMessage", send(), whole), "019") == ["INFO"]
    more = [{"text": text}, {"url": "https://example.com/a.png"}]
    other = status("COMPLETED", second=1, message=reply(taskId="t1", parts=more))
    assert not verdicts(stream(binding, snapshot(), chunk(text), other), "019")


@EVERY
def test_a_result_in_earlier_messages(binding: str) -> None:
    """Of one status or of several, and in an artifact or in the last message; short texts and other
    ones may repeat."""
    text = "It rains in Oslo today"

    def working(*texts: str) -> list[Json]:
        return [
            status("WORKING", message=reply(each, id=f"w{number}", taskId="t1"))
            for number, each in enumerate(texts)
        ]

    whole, done = chunk(text, lastChunk=True), status("COMPLETED", second=1)
    last = status("COMPLETED", second=1, message=reply(text, id="r9", taskId="t1"))
    for said in ((text,), ("It rains in ", "Oslo today"), ("Let me see", text)):
        for events in ((*working(*said), whole, done), (*working(*said), last)):
            found = verdicts(stream(binding, snapshot("WORKING"), *events), "019")
            assert found == ["INFO"], (said, events)
    assert verdicts(stream(binding, snapshot("WORKING"), whole, *working(text), done), "019")
    for said in (("It rains in ", "Oslo"), ("Let me see", "It rains in ", "Oslo today"), ()):
        for events in ((*working(*said), whole, done), (*working(*said), last)):
            assert not verdicts(stream(binding, snapshot("WORKING"), *events), "019")
    short = status("COMPLETED", second=1, message=reply("so far", id="r9", taskId="t1"))
    assert not verdicts(stream(binding, snapshot("WORKING"), *working("so far"), short), "019")
    same = status("COMPLETED", second=1, message=reply(text, id="w0", taskId="t1"))
    assert not verdicts(stream(binding, snapshot("WORKING"), *working(text), same), "019"), "one id"


def test_a_cancelled_task_that_goes_on_to_its_end() -> None:
    """Later than a cancellation that came too late explains; a client may change its mind."""

    def canceled(seconds: float, end: str = "COMPLETED", *more: Script) -> Script:
        script = BEGUN + rpc("CancelTask", GET, task("WORKING"))
        for each in more:
            script = script + each
        ended = rpc("GetTask", GET, task(end, second=int(seconds)))
        return script.then(ended, int(seconds * SECOND)).then(
            rpc("GetTask", GET, task(end)), 40 * SECOND
        )

    assert verdicts(canceled(12), "011") == ["INFO"]
    assert not verdicts(canceled(2), "011")
    assert not verdicts(canceled(12, "CANCELED"), "011")
    script = BEGUN + rpc("CancelTask", GET, task("WORKING"))
    assert verdicts(script.then(rpc("GetTask", GET, task("COMPLETED")), 12 * SECOND), "011") == [
        "INFO"
    ], "at the end"
    assert not verdicts(script.then(rpc("GetTask", GET, task("WORKING")), 12 * SECOND), "011")
    assert not verdicts(
        canceled(12, "COMPLETED", rpc("SendMessage", FOLLOW_UP, snapshot("WORKING"))), "011"
    )
