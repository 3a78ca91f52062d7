"""Injected faults change the lines before gates are computed."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from a2a_proxy.faults.words import FaultError
from a2a_proxy.model.event import TaskState
from a2a_proxy.replay.core.faults import InjectedFault, inject_faults, parse_fault
from a2a_proxy.replay.core.script import LineKind
from support_replay import MS, Stage, artifact, call, message, said, script, status, task

S = TaskState
STREAM = call(
    3,
    "SendStreamingMessage",
    message("plan"),
    ("s", 10, task(S.SUBMITTED, generation="1")),
    ("s", 20, status(S.WORKING, generation="2")),
    ("s", 30, artifact("text")),
    ("s", 40, status(S.COMPLETED, generation="4")),
    ("s", 41, "end"),
)


def played(*faults: str, ms: int = 0) -> list[Any]:
    stage = Stage(inject_faults(script(STREAM), [parse_fault(each) for each in faults]))
    return stage.run(stage.ask("SendStreamingMessage", message("plan")), ms)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("drop #3.3", ["task submitted", "working", "completed", "end"]),
        ("dup #3.2", ["task submitted", "working", "working", "text", "completed", "end"]),
        ("swap #3.3 #3.4", ["task submitted", "working", "completed", "text", "end"]),
        ("cut #3.4 @ 50%", ["task submitted", "working", "text", "cut"]),
        ("cut #3.3", ["task submitted", "working", "cut"]),
        ("drop  #3.5", ["task submitted", "working", "text", "completed"]),
    ],
)
def test_faults_change_the_lines_sent(text: str, lines: list[str]) -> None:
    assert said(played(text)) == lines


def test_half_a_message_goes_out_before_a_cut() -> None:
    cut = played("cut #3.4 @ 50%")[-1]
    assert cut.what is LineKind.CUT
    assert cut.after == 50
    assert "statusUpdate" in cut.value
    assert played("cut #3.4")[-1].after == 0


def test_a_stall_lasts_at_any_speed() -> None:
    assert said(played("stall 2s before #3.3", ms=1999)) == ["task submitted", "working"]
    assert said(played("stall 2s before #3.3", ms=2000))[2:] == ["text", "completed", "end"]
    assert said(played("stall 150ms before #3.1", ms=149)) == []


def test_generations_change_only_at_the_fault() -> None:
    sends = played("gen+2 at #3.2")
    assert [next(iter(send.value.values())).get("generation") for send in sends[:4]] == [
        "1",
        "4",
        None,
        "4",
    ]


def test_several_faults() -> None:
    assert said(played("drop #3.3", "dup #3.4")) == [
        "task submitted",
        "working",
        "completed",
        "completed",
        "end",
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("explode #3.1", "this is no fault\n    explode #3.1\n    \\^{7}$"),
        ("drop #4.1", "has no call #4"),
        ("drop #3.9", "the agent did not send #3.9; it sent the frames 1, 2, 3, 4"),
        ("gen+1 at #3.3", "#3.3 has no generation"),
        ("swap #3.1 #4.1", "only frames of one call"),
    ],
)
def test_impossible_faults_are_refused(text: str, why: str) -> None:
    with pytest.raises(FaultError, match=why.replace("+", r"\+")):
        inject_faults(script(STREAM), [parse_fault(text)])


def test_faults_name_places_of_several_sessions() -> None:
    assert parse_fault("drop #2:3.1") == InjectedFault("drop #2:3.1", "drop", "#2:3", 1)
    made = replace(STREAM, place="#2:3")
    assert len(inject_faults(script(made), [parse_fault("drop #2:3.1")]).calls[0].lines) == 4


def test_a_stall_is_parsed_to_ns() -> None:
    assert parse_fault("stall 1.5s before #3.1").amount == 1500 * MS
