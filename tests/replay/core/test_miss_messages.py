"""Messages of a miss: the request, the nearest call, the differences and what to type next."""

from __future__ import annotations

import json

import pytest

from a2a_proxy.model.event import TaskState
from a2a_proxy.recording.difference.fields import DifferenceRow, ValueChange
from a2a_proxy.replay.core.miss import DETAIL_TYPE
from a2a_proxy.replay.core.miss_messages import redact_rows
from a2a_proxy.replay.core.script import UnservableCall
from support_replay import TASK, Stage, call, message, script, status, task

S = TaskState
SENT = call(
    3, "SendMessage", message("Book a table by the water"), ("s", 5, task()), ("s", 5, "end")
)
POLL = call(4, "GetTask", {"id": TASK}, ("s", 1, task()), ("s", 1, "end"), began=20)


def test_an_operation_missing_from_the_recording() -> None:
    miss = Stage(script(SENT, POLL)).miss("CancelTask", {"id": "t-1"})
    assert miss.full_text() == (
        "replay miss (unknown-operation): CancelTask of task t-1\n"
        "  the recording has no call of CancelTask\n"
        "  recorded: SendMessage x1, GetTask x1\n"
        "  hint: list its calls: a2a-inspect ls talk.a2a.db\n"
        "  hint: record it again if the agent or the client has changed"
    )


def test_an_unrecorded_poll_has_a_hint_to_follow_the_streams() -> None:
    stream = call(5, "SendStreamingMessage", message("plan"), ("s", 5, task()), ("s", 6, "end"))
    hint = "  hint: answer from the task's streams: --policy GetTask=by-progress"
    assert hint in Stage(script(stream)).miss("GetTask", {"id": TASK}).full_text().splitlines()
    assert "by-progress" not in Stage(script(SENT)).miss("GetTask", {"id": TASK}).full_text()


def test_an_unreadable_request() -> None:
    text = Stage(script(SENT)).miss("SendMessage", "{bad").full_text()
    assert "  it cannot be read as a request of SendMessage" in text.splitlines()
    assert 'requested "{bad"' in text


def test_an_unknown_method() -> None:
    miss = Stage(script(SENT)).miss("tasks/frobnicate", {})
    assert (
        "tasks/frobnicate is not an A2A operation, and the recording has no such call either"
        in miss.full_text()
    )


def test_an_unservable_call_names_its_reason() -> None:
    made = script(SENT)
    made = type(made)(
        name=made.name,
        calls=made.calls,
        unservable=(UnservableCall("#9", "its request was not recorded", "CancelTask"),),
    )
    miss = Stage(made).miss("CancelTask", {"id": "t-1"})
    assert (
        "the recording has it in #9, which is not replayed: its request was not recorded"
        in miss.full_text()
    )


def test_different_arguments() -> None:
    asked = message("Book two tables by the water", taskId="t-1", metadata={"a": 1})
    miss = Stage(script(POLL, SENT)).miss("SendMessage", asked)
    assert miss.full_text() == (
        'replay miss (arguments-differ): SendMessage "Book two tables by the water" of task t-1\n'
        "  nearest: #3, which differs in:\n"
        '    $.message.taskId: requested "t-1", not recorded\n'
        '    $.message.parts[0].text: recorded "Book a table by '
        'the water", requested "Book two tables by the water"\n'
        "  hint: show it: a2a-inspect show talk.a2a.db 3\n"
        "  hint: the task is not the recorded call's: use the task id that this replay has sent\n"
        "  hint: leave out a part that differs in every run: --normalize 'REGEX'\n"
        "  hint: answer it nevertheless: --match loose, or --match by-operation\n"
        "  hint: record it again if the agent or the client has changed"
    )


@pytest.mark.parametrize("task_id", [TASK, ""])
def test_a_client_that_uses_its_task_gets_no_hint_about_it(task_id: str) -> None:
    """The hint about another task is only for clients that name a task unknown to this replay."""
    other = call(6, "SendMessage", message("And a taxi", taskId="t-9"), ("s", 5, task()), began=40)
    stage = Stage(script(SENT, other))
    stage.run(stage.ask("SendMessage", SENT.request))
    miss = stage.miss(
        "SendMessage", message("And a taxi", **({"taskId": task_id} if task_id else {}))
    )
    assert "$.message.taskId" in miss.full_text()
    assert "the task is another one" not in miss.full_text()


def test_the_nearest_of_several_calls_is_shown() -> None:
    other = call(5, "SendMessage", message("Cancel everything"), ("s", 5, task()), began=30)
    far = call(
        6, "SendMessage", message("Book a table inside", taskId=TASK), ("s", 5, task()), began=40
    )
    assert (
        Stage(script(far, other, SENT))
        .miss("SendMessage", message("Cancel everything now"))
        .nearest
        == "#5"
    )
    miss = Stage(script(SENT, far, other)).miss(
        "SendMessage", message("Book a table inside", taskId="t-9")
    )
    assert miss.nearest == "#6"


def test_an_exhausted_call_has_an_explanation() -> None:
    stage = Stage(script(SENT))
    stage.ask("SendMessage", SENT.request)
    miss = stage.miss("SendMessage", message("Book a table by the water", "m-2"))
    assert miss.full_text() == (
        'replay miss (exhausted): SendMessage "Book a table by the water"\n'
        "  nothing differs from #3, but it was recorded once and has been played once\n"
        "  nearest: #3\n"
        "  hint: let the last answer repeat: --policy SendMessage=last-sticky\n"
        "  hint: record it again if the agent or the client has changed"
    )


def test_a_divergence_names_the_line() -> None:
    asks = call(
        7,
        "SendLiveMessage",
        message("deploy"),
        ("s", 5, status(S.INPUT_REQUIRED)),
        ("c", 9, message("yes")),
        ("s", 10, "end"),
    )
    stage = Stage(script(asks))
    play = stage.ask("SendLiveMessage", message("deploy"))
    play.on_client_message(message("no"), stage.now)
    assert stage.player.misses[0].full_text() == (
        'replay miss (diverged): SendLiveMessage "no"\n'
        "  the client sends a different message than the recorded client\n"
        "  nearest: #7.2, which differs in:\n"
        '    $.message.parts[0].text: recorded "yes", requested "no"\n'
        "  hint: show it: a2a-inspect show talk.a2a.db 7\n"
        "  hint: continue nevertheless: --lenient"
    )
    silent = Stage(script(asks))
    waiting = silent.ask("SendLiveMessage", message("deploy"))
    waiting.on_half_close(silent.now)
    silent.run(waiting)
    assert "half-closed" in silent.player.misses[0].full_text()
    assert "--lenient" not in silent.player.misses[0].full_text(), (
        "no option lets that stream go on"
    )


def test_the_error_detail_has_the_same_facts() -> None:
    miss = Stage(script(SENT)).miss("SendMessage", message("Book two"))
    detail = json.loads(json.dumps(miss.error_detail()))
    assert detail["@type"] == DETAIL_TYPE
    assert detail["kind"] == "arguments-differ"
    assert detail["nearest"] == "#3"
    assert detail["differences"] == [
        {
            "path": "$.message.parts[0].text",
            "recorded": "Book a table by the water",
            "asked": "Book two",
        }
    ]
    assert miss.first_line == 'replay miss (arguments-differ): SendMessage "Book two"'


def test_credentials_and_control_codes_are_not_repeated() -> None:
    secret = "Authorization: Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"
    asked = message(f"use {secret} \x1b[2J now") | {
        "configuration": {"apiKey": "sk-live-0123456789abcdef"}
    }
    miss = Stage(script(SENT)).miss("SendMessage", asked)
    for text in (miss.full_text(), json.dumps(miss.error_detail())):
        assert "eyJ" not in text
        assert "sk-live" not in text
        assert "\x1b" not in text
    assert "redacted" in miss.full_text()


def test_a_too_deeply_nested_request_is_a_miss() -> None:
    deep: list[object] = []
    for _ in range(5000):
        deep = [deep]
    asked = {"message": {"messageId": "m", "parts": [{"data": deep}]}}
    assert Stage(script(SENT)).miss("SendMessage", asked).kind == "arguments-differ"


def test_long_values_are_cut() -> None:
    miss = Stage(script(SENT)).miss("SendMessage", message("x" * 5000))
    assert len(max(miss.full_text().splitlines(), key=len)) < 420
    assert "(5002 characters)" in miss.full_text()


def test_the_value_of_a_secret_member_is_hidden_on_the_side_that_has_it() -> None:
    rows = (
        DifferenceRow(ValueChange.LEFT, ("password",), None, before="kept quiet"),
        DifferenceRow(ValueChange.RIGHT, None, ("password",), after="kept quiet"),
    )
    assert "kept quiet" not in str(redact_rows(rows))
