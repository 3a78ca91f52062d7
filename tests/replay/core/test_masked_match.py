"""Requests that match after masking: when, in which order, and what is reported."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_proxy.model.event import TaskState
from a2a_proxy.replay.core.miss import MissKind
from a2a_proxy.replay.core.options import MatchPreset, RepeatPolicy
from support_replay import MS, TASK, Stage, artifact, call, message, one, said, script, status, task

UUIDS = [f"{number}1111111-aaaa-4aaa-8aaa-111111111111" for number in range(1, 7)]


def answer(text: str) -> dict[str, Any]:
    """Return an answer with a text."""
    return {"message": {"messageId": "a", "parts": [{"text": text}]}}


def talk(number: int, text: str, answer_text: str = "ok") -> Any:
    """Return a recorded call with the text of its message and of its answer."""
    return call(
        number,
        "SendMessage",
        message(text),
        ("s", 1, answer(answer_text)),
        ("s", 1, "end"),
        began=number,
    )


HELLO = talk(1, "hello")
GATHER = talk(2, f"gather {UUIDS[0]} 8 10", f"gathered for {UUIDS[0]}")


def test_a_prompt_with_todays_date_and_a_request_id_matches() -> None:
    recorded = talk(1, "Today is 2023-11-14, request id: abc-123. Book a table for 4.")
    stage = Stage(script(recorded))
    assert stage.ask(
        "SendMessage", message("Today is 2023-11-15, request id: zyx-9. Book a table for 4.")
    ).call
    [match] = stage.player.masked_matches
    assert match.text == (
        'masked match: SendMessage "Today is 2023-11-15, request id: zyx-9. Book a table for 4." '
        "equals #1 except for: date, request id"
    )
    assert not stage.player.allowed_misses


@pytest.mark.parametrize("preset", [MatchPreset.DEFAULT, MatchPreset.LOOSE])
def test_a_masked_match_precedes_likeness(preset: MatchPreset) -> None:
    stage = Stage(script(HELLO, GATHER), match=preset)
    assert stage.ask("SendMessage", message(f"gather {UUIDS[1]} 8 10")).call is GATHER
    assert not stage.player.allowed_misses


def test_likeness_answers_only_if_loose_and_takes_the_likest_text() -> None:
    asked = message(f"gather {UUIDS[1]} 8 11")
    miss = Stage(script(HELLO, GATHER)).miss("SendMessage", asked)
    assert (miss.kind, miss.nearest) == (MissKind.DIFFERS, "#2")
    loose = Stage(script(HELLO, GATHER), match=MatchPreset.LOOSE)
    assert loose.ask("SendMessage", asked).call is GATHER
    assert [each.nearest for each in loose.player.allowed_misses] == ["#2"]


def test_the_neighbour_is_found_among_many_calls() -> None:
    calls = [talk(number, f"hello {'world ' * number}") for number in range(1, 101)]
    near = talk(101, "book a table by the water")
    assert (
        Stage(script(*calls, near))
        .miss("SendMessage", message("book two tables by the water"))
        .nearest
        == "#101"
    )


def test_a_played_neighbour_is_named_as_such() -> None:
    stage = Stage(script(HELLO, GATHER))
    stage.ask("SendMessage", message(f"gather {UUIDS[1]} 8 10"))
    lines = stage.miss("SendMessage", message("gather them 8 11")).full_text().splitlines()
    assert lines[1:3] == [
        "  the nearest call, #2, has been played",
        "  nearest: #2, which differs in:",
    ]


def test_an_exact_match_precedes_masked_ones() -> None:
    calls = [talk(number, f"gather {UUIDS[number]} 8 10") for number in range(4)]
    stage = Stage(script(*calls))
    assert stage.ask("SendMessage", message(f"gather {UUIDS[2]} 8 10")).call is calls[2]
    assert not stage.player.masked_matches


def test_of_several_masked_matches_the_recorded_order_decides() -> None:
    calls = [talk(number, f"gather {UUIDS[number]} 8 10") for number in range(3)]
    stage = Stage(script(*calls))
    asked = message(f"gather {UUIDS[5]} 8 10")
    assert [stage.ask("SendMessage", asked).call for _ in calls] == calls
    assert [match.others for match in stage.player.masked_matches] == [("#1", "#2"), ("#2",), ()]
    assert stage.player.masked_matches[0].text.endswith(
        "except for: UUID; #1, #2 would match too, #0 is the first in recorded order"
    )
    miss = stage.miss("SendMessage", asked)
    assert (miss.kind, miss.reason) == (
        MissKind.EXHAUSTED,
        (
            "only masked values differ from #2, but such calls "
            "were recorded 3 times and have been played 3 times"
        ),
    )


def test_a_repeated_exact_match_takes_the_next_masked_one() -> None:
    again = talk(3, f"gather {UUIDS[1]} 8 10")
    stage = Stage(script(GATHER, again))
    asked = message(f"gather {UUIDS[0]} 8 10")
    assert [stage.ask("SendMessage", asked).call for _ in range(2)] == [GATHER, again]


def test_a_masked_match_repeats_if_its_policy_says_so() -> None:
    stage = Stage(script(GATHER), policies={"SendMessage": RepeatPolicy.LAST_STICKY})
    asked = message(f"gather {UUIDS[1]} 8 10")
    assert [stage.ask("SendMessage", asked).call for _ in range(3)] == [GATHER] * 3


def test_strict_masks_nothing() -> None:
    stage = Stage(script(GATHER), match=MatchPreset.STRICT)
    assert stage.miss("SendMessage", message(f"gather {UUIDS[1]} 8 10")).nearest == "#2"


def test_answers_repeat_the_live_uuid_and_request_id() -> None:
    recorded = talk(
        1, f"gather {UUIDS[0]}, request id: first-77", f"first-77: gathered for {UUIDS[0]}"
    )
    stage = Stage(script(recorded))
    play = stage.ask("SendMessage", message(f"gather {UUIDS[1]}, request id: other-88"))
    assert one(stage.run(play))["message"]["parts"] == [
        {"text": f"other-88: gathered for {UUIDS[1]}"}
    ]


def test_identifiers_of_the_conversation_are_never_masked() -> None:
    """A text that names another known task does not match, although both names are UUIDs."""
    other = "33333333-cccc-4ccc-8ccc-333333333333"
    first = call(1, "SendMessage", message("one"), ("s", 1, task()), ("s", 1, "end"))
    second = call(
        2, "SendMessage", message("two"), ("s", 1, task(identifier=other)), ("s", 1, "end"), began=1
    )
    look = talk(3, f"look at {TASK}")
    stage = Stage(script(first, second, look))
    stage.run(stage.ask("SendMessage", message("one")))
    stage.run(stage.ask("SendMessage", message("two")))
    assert stage.miss("SendMessage", message(f"look at {other}")).nearest == "#3"
    assert stage.ask("SendMessage", message(f"look at {TASK}")).call is look


def test_data_members_are_masked() -> None:
    def asking(**data: Any) -> dict[str, Any]:
        return {"message": {"messageId": "m", "parts": [{"data": data}]}}

    recorded = call(
        1,
        "SendMessage",
        asking(now=1700000001, requestId="a", day="2023-11-14", n=10),
        ("s", 1, "end"),
    )
    stage = Stage(script(recorded))
    assert stage.miss(
        "SendMessage", asking(now=1700000001, requestId="a", day="2023-11-14", n=1000)
    )
    assert (
        stage.ask(
            "SendMessage", asking(now=1700040000.5, requestId="b", day="2023-11-15", n=10)
        ).call
        is recorded
    )
    assert stage.player.masked_matches[0].text.endswith("except for: date, epoch time, request id")


def test_a_message_of_a_live_stream_matches_after_masking() -> None:
    asks = call(
        7,
        "SendLiveMessage",
        message("deploy"),
        ("s", 5, status(TaskState.INPUT_REQUIRED)),
        ("c", 9, message("yes, at 2023-11-14")),
        ("s", 10, status(TaskState.COMPLETED)),
        ("s", 11, "end"),
    )
    stage = Stage(script(asks))
    play = stage.ask("SendLiveMessage", message("deploy"))
    stage.run(play)
    play.on_client_message(message("yes, at 2023-11-15"), stage.now)
    assert said(stage.run(play))[-2:] == ["completed", "end"]
    assert [match.place for match in stage.player.masked_matches] == ["#7.2"]


def test_credentials_of_a_masked_request_are_not_reported() -> None:
    secret = "Authorization: Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"
    stage = Stage(script(talk(1, f"use {secret} on 2023-11-14")))
    stage.ask("SendMessage", message(f"use {secret} on 2023-11-15"))
    [match] = stage.player.masked_matches
    assert "eyJ" not in match.text
    assert "eyJ" not in str(match.detail())


def test_a_label_matches_any_value_in_a_masked_request() -> None:
    stage = Stage(
        script(
            talk(1, "my key is redacted-0123456789ab on 2023-11-14", "used redacted-0123456789ab")
        )
    )
    play = stage.ask("SendMessage", message("my key is hunter2 on 2023-11-15"))
    assert one(stage.run(play))["message"]["parts"] == [{"text": "used hunter2"}]


def test_a_date_that_is_not_of_the_run_counts() -> None:
    """A booking. The recording and the stage are on 2023-11-14."""
    stage = Stage(
        script(
            talk(1, "Book a table on 2023-12-24, request id: a1"),
            talk(2, "It is 2023-11-14. Leave now."),
        )
    )
    assert (
        stage.miss("SendMessage", message("Book a table on 2024-02-14, request id: b2")).nearest
        == "#1"
    )
    assert (
        stage.miss("SendMessage", message("Book a table on 2023-11-14, request id: b2")).nearest
        == "#1"
    )
    assert stage.miss("SendMessage", message("It is 2023-12-24. Leave now.")).nearest == "#2"
    assert (
        stage.ask("SendMessage", message("Book a table on 2023-12-24, request id: b2")).call.place
        == "#1"
    )
    assert (
        stage.ask(
            "SendMessage", message("It is Wednesday, 15 November 2023. Leave now.")
        ).call.place
        == "#2"
    )


def test_an_equal_date_never_stops_to_match() -> None:
    """A fixed date that is near the day of the recording, in a request with an id: replayed a year
    later."""
    stage = Stage(script(talk(1, "Book a table on 2023-11-15, request id: a1")))
    stage.now += 365 * 86_400_000 * MS
    assert stage.ask("SendMessage", message("Book a table on 2023-11-15, request id: b2"))


def test_a_time_without_a_date_counts() -> None:
    stage = Stage(script(talk(1, "Book a table at 19:30, request id: a1")))
    assert (
        stage.miss("SendMessage", message("Book a table at 22:15, request id: a1")).nearest == "#1"
    )


OTHER = "33333333-cccc-4ccc-8ccc-333333333333"
RUNS = [f"{number}4444444-dddd-4ddd-8ddd-444444444444" for number in range(6)]


def conversation(
    first: int, prompt: str, identifier: str, *, echo: str, then: Any = None
) -> list[Any]:
    """Return the calls of a conversation: the prompt, and what the client does `then`."""
    opened = [
        ("s", 1, task(identifier=identifier)),
        ("s", 2, artifact(f"for {echo}", identifier=identifier)),
    ]
    calls = [
        call(first, "SendStreamingMessage", message(prompt), *opened, ("s", 3, "end"), began=first)
    ]
    if then is not None:
        calls.append(call(first + 1, *then, ("s", 1, "end"), began=first + 1))
    return calls


@pytest.mark.parametrize("normalize", [(), (r"[0-9a-f-]{36}",)])
def test_the_client_selects_among_conversations_that_differ_in_masked_values(
    normalize: tuple[str, ...],
) -> None:
    """Two runs of one client, recorded one after the other; only the second one looks at its task
    afterwards."""
    look = (
        "GetTask",
        {"id": OTHER},
        ("s", 1, task(TaskState.COMPLETED, OTHER, metadata={"for": RUNS[1]})),
    )
    stage = Stage(
        script(
            *conversation(1, f"report {RUNS[0]}", TASK, echo=RUNS[0]),
            *conversation(3, f"report {RUNS[1]}", OTHER, echo=RUNS[1], then=look),
        ),
        normalize=normalize,
    )
    stage.run(stage.ask("SendStreamingMessage", message(f"report {RUNS[5]}")))
    answered = one(stage.run(stage.ask("GetTask", {"id": TASK})))["task"]
    assert (answered["id"], answered["status"]["state"]) == (TASK, "TASK_STATE_COMPLETED")
    assert answered["metadata"] == {"for": RUNS[0] if normalize else RUNS[5]}, "as in the stream"
    assert not stage.player.misses


def test_a_conversation_with_another_amount_is_not_selected() -> None:
    look = ("GetTask", {"id": OTHER}, ("s", 1, task(TaskState.COMPLETED, OTHER)))
    first = conversation(1, f"pay 10 EUR {RUNS[0]}", TASK, echo="x")
    stage = Stage(
        script(*first, *conversation(3, f"pay 1000 EUR {RUNS[1]}", OTHER, echo="x", then=look))
    )
    stage.run(stage.ask("SendStreamingMessage", message(f"pay 10 EUR {RUNS[5]}")))
    miss = stage.miss("GetTask", {"id": TASK})
    assert miss.nearest == "#4"
    assert miss.hints[1] == (
        "#4 belongs to another conversation; to replay only that one: "
        "a2a-inspect export talk.a2a.db -f task:33333333 "
        "-o FILE"
    )


def test_the_message_that_selects_a_conversation_may_be_masked() -> None:
    no = (
        "SendMessage",
        message(f"no, {RUNS[3]}", taskId=OTHER),
        ("s", 1, task(TaskState.REJECTED, OTHER)),
    )
    first = conversation(1, f"report {RUNS[0]}", TASK, echo=RUNS[0])
    stage = Stage(
        script(*first, *conversation(3, f"report {RUNS[1]}", OTHER, echo=RUNS[1], then=no))
    )
    stage.run(stage.ask("SendStreamingMessage", message(f"report {RUNS[4]}")))
    answered = one(stage.run(stage.ask("SendMessage", message(f"no, {RUNS[5]}", taskId=TASK))))[
        "task"
    ]
    assert (answered["id"], answered["status"]["state"]) == (TASK, "TASK_STATE_REJECTED")
    assert [each.place for each in stage.player.masked_matches] == ["#1", "#4"]


@pytest.mark.parametrize("last", ["no", f"no, {RUNS[2]}"])
def test_the_message_of_a_live_stream_selects_among_streams_that_differ_in_masked_values(
    last: str,
) -> None:
    """`last` is sent as recorded, or with another UUID."""

    def asks(number: int, words: str, reply: str, state: TaskState, identifier: str) -> Any:
        question = ("s", 5, status(TaskState.INPUT_REQUIRED, identifier))
        end = (("s", 10, status(state, identifier)), ("s", 11, "end"))
        return call(
            number,
            "SendLiveMessage",
            message(words),
            question,
            ("c", 9, message(reply)),
            *end,
            began=number,
        )

    first = asks(1, f"deploy {RUNS[0]}", f"yes, {RUNS[0]}", TaskState.COMPLETED, TASK)
    stage = Stage(script(first, asks(2, f"deploy {RUNS[1]}", last, TaskState.REJECTED, OTHER)))
    play = stage.ask("SendLiveMessage", message(f"deploy {RUNS[5]}"))
    stage.run(play)
    play.on_client_message(message(last.replace(RUNS[2], RUNS[4])), stage.now)
    assert said(stage.run(play))[-2:] == ["rejected", "end"]
    assert not stage.player.misses
