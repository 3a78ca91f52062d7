"""Calls that are found but not served: each is refused alone, with its reason."""

from __future__ import annotations

from msgspec.structs import replace

from a2a_proxy.model.event import TaskState
from a2a_proxy.replay.core.miss import MissKind
from a2a_proxy.replay.core.options import MatchPreset
from a2a_proxy.replay.load import NOT_CAPTURED
from support_replay import TASK, Stage, call, message, one, script, status, task

SENT = call(1, "SendMessage", message("book a table"), ("s", 5, task()), ("s", 5, "end"))
CUT = replace(
    call(2, "SendMessage", message("book a taxi"), ("s", 5, task()), ("s", 6, "cut"), began=10),
    is_broken=True,
    refusal=NOT_CAPTURED,
)


def test_only_the_refused_call_is_a_miss() -> None:
    stage = Stage(script(SENT, CUT))
    miss = stage.miss("SendMessage", message("book a taxi"))
    assert miss.full_text() == (
        'replay miss (not-served): SendMessage "book a taxi"\n'
        "  #2 matches, but is not served: it was not captured to its end\n"
        "  nearest: #2\n"
        "  hint: show it: a2a-inspect show talk.a2a.db 2\n"
        "  hint: serve it nevertheless: --allow-incomplete\n"
        "  hint: record it again if the agent or the client has changed"
    )
    assert one(stage.run(stage.ask("SendMessage", message("book a table"))))["task"]["id"] == TASK
    assert stage.player.unused_calls() == []


def test_a_refused_call_is_not_counted_as_unused() -> None:
    assert [each.place for each in Stage(script(SENT, CUT)).player.unused_calls()] == ["#1"]


def test_likeness_never_selects_a_refused_call() -> None:
    stage = Stage(script(SENT, CUT), match=MatchPreset.LOOSE)
    assert stage.ask("SendMessage", message("book a taxi now")).call is SENT


def test_a_credential_sent_in_a_refused_call_is_known_afterwards() -> None:
    label = "redacted-0123456789ab"
    first = replace(CUT, request=message(f"my key is {label}"))
    answer = {"message": {"messageId": "a", "parts": [{"text": f"used {label}"}]}}
    second = call(
        3, "SendMessage", message("use my key"), ("s", 1, answer), ("s", 1, "end"), began=20
    )
    stage = Stage(script(first, second))
    assert stage.miss("SendMessage", message("my key is hunter2")).kind is MissKind.REFUSED
    assert one(stage.run(stage.ask("SendMessage", message("use my key"))))["message"]["parts"] == [
        {"text": "used hunter2"}
    ]


def test_a_subscription_takes_no_event_of_a_refused_stream() -> None:
    """The events of the refused stream are not part of the task's timeline."""
    stream = replace(
        call(
            3,
            "SendStreamingMessage",
            message("plan"),
            ("s", 1, task()),
            ("s", 2, status(TaskState.FAILED)),
            ("s", 3, "cut"),
            began=20,
        ),
        is_broken=True,
        refusal=NOT_CAPTURED,
    )
    stage = Stage(script(SENT, stream))
    stage.run(stage.ask("SendMessage", message("book a table")))
    assert stage.player.timeline.unsent_events(TASK) == []
