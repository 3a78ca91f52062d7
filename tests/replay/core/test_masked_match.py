"""Requests that match after masking: when, in which order, and what is reported."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_proxy.model.event import TaskState
from a2a_proxy.replay.core.miss import MissKind
from a2a_proxy.replay.core.options import MatchPreset, RepeatPolicy
from support_replay import TASK, Stage, call, message, one, said, script, status, task

UUIDS = [f"{number}1111111-aaaa-4aaa-8aaa-111111111111" for number in range(1, 7)]


def answer(text: str) -> dict[str, Any]:
    """Return an answer with a text."""
    return {"message": {"messageId": "a", "parts": [{"text": text}]}}


def talk(number: int, text: str, told: str = "ok") -> Any:
    """Return a recorded call with the text of its message and of its answer."""
    return call(number, "SendMessage", message(text), ("s", 1, answer(told)), ("s", 1, "end"), began=number)


HELLO = talk(1, "hello")
GATHER = talk(2, f"gather {UUIDS[0]} 8 10", f"gathered for {UUIDS[0]}")


def test_a_prompt_with_todays_date_and_a_request_id_matches() -> None:
    recorded = talk(1, "Today is 2026-11-22, request id: abc-123. Book a table for 4.")
    stage = Stage(script(recorded))
    assert stage.ask("SendMessage", message("Today is 2026-11-23, request id: zyx-9. Book a table for 4.")).call
    [match] = stage.player.masked_matches
    assert match.text == (
        'masked match: SendMessage "Today is 2026-11-23, request id: zyx-9. Book a table for 4." '
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
    assert Stage(script(*calls, near)).miss("SendMessage", message("book two tables by the water")).nearest == "#101"


def test_a_played_neighbour_is_named_as_such() -> None:
    stage = Stage(script(HELLO, GATHER))
    stage.ask("SendMessage", message(f"gather {UUIDS[1]} 8 10"))
    lines = stage.miss("SendMessage", message("gather them 8 11")).full_text().splitlines()
    assert lines[1:3] == ["  the nearest call, #2, has been played", "  nearest: #2, which differs in:"]


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
        "only masked values differ from #2, but such calls were recorded 3 times and have been played 3 times",
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
    recorded = talk(1, f"gather {UUIDS[0]}, request id: first-77", f"first-77: gathered for {UUIDS[0]}")
    stage = Stage(script(recorded))
    play = stage.ask("SendMessage", message(f"gather {UUIDS[1]}, request id: other-88"))
    assert one(stage.run(play))["message"]["parts"] == [{"text": f"other-88: gathered for {UUIDS[1]}"}]


def test_identifiers_of_the_conversation_are_never_masked() -> None:
    """A text that names another known task does not match, although both names are UUIDs."""
    other = "33333333-cccc-4ccc-8ccc-333333333333"
    first = call(1, "SendMessage", message("one"), ("s", 1, task()), ("s", 1, "end"))
    second = call(2, "SendMessage", message("two"), ("s", 1, task(identifier=other)), ("s", 1, "end"), began=1)
    look = talk(3, f"look at {TASK}")
    stage = Stage(script(first, second, look))
    stage.run(stage.ask("SendMessage", message("one")))
    stage.run(stage.ask("SendMessage", message("two")))
    assert stage.miss("SendMessage", message(f"look at {other}")).nearest == "#3"
    assert stage.ask("SendMessage", message(f"look at {TASK}")).call is look


def test_data_members_are_masked() -> None:
    def asking(**data: Any) -> dict[str, Any]:
        return {"message": {"messageId": "m", "parts": [{"data": data}]}}

    recorded = call(1, "SendMessage", asking(now=1732368042, requestId="a", day="2026-11-22", n=10), ("s", 1, "end"))
    stage = Stage(script(recorded))
    assert stage.miss("SendMessage", asking(now=1732368042, requestId="a", day="2026-11-22", n=1000))
    assert stage.ask("SendMessage", asking(now=1763900000.5, requestId="b", day="2026-11-23", n=10)).call is recorded
    assert stage.player.masked_matches[0].text.endswith("except for: date, epoch time, request id")


def test_a_message_of_a_live_stream_matches_after_masking() -> None:
    asks = call(
        7,
        "SendLiveMessage",
        message("deploy"),
        ("s", 5, status(TaskState.INPUT_REQUIRED)),
        ("c", 9, message("yes, at 2026-11-22")),
        ("s", 10, status(TaskState.COMPLETED)),
        ("s", 11, "end"),
    )
    stage = Stage(script(asks))
    play = stage.ask("SendLiveMessage", message("deploy"))
    stage.run(play)
    play.on_client_message(message("yes, at 2026-11-23"), stage.now)
    assert said(stage.run(play))[-2:] == ["completed", "end"]
    assert [match.place for match in stage.player.masked_matches] == ["#7.2"]


def test_credentials_of_a_masked_request_are_not_reported() -> None:
    secret = "Authorization: Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"
    stage = Stage(script(talk(1, f"use {secret} on 2026-11-22")))
    stage.ask("SendMessage", message(f"use {secret} on 2026-11-23"))
    [match] = stage.player.masked_matches
    assert "eyJ" not in match.text
    assert "eyJ" not in str(match.detail())


def test_a_label_matches_any_value_in_a_masked_request() -> None:
    stage = Stage(script(talk(1, "my key is redacted-0123456789ab on 2026-11-22", "used redacted-0123456789ab")))
    play = stage.ask("SendMessage", message("my key is hunter2 on 2026-11-23"))
    assert one(stage.run(play))["message"]["parts"] == [{"text": "used hunter2"}]
