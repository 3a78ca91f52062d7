"""Faults on live traffic, as their author writes them."""

from __future__ import annotations

import pytest

from a2a_proxy.faults.live import LIVE_EXAMPLES, EventPattern, LiveFault, parse_live_fault
from a2a_proxy.faults.words import FaultError
from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import EventKind

STREAM = "SendStreamingMessage"
STATUS_2, ARTIFACT = EventPattern(2, EventKind.STATUS), EventPattern(1, EventKind.ARTIFACT)
ASKING, WORKING = (
    EventPattern(state=int(TaskState.INPUT_REQUIRED)),
    EventPattern(state=int(TaskState.WORKING)),
)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("drop status 2 of SendStreamingMessage call 1", ("drop", STREAM, 1, (STATUS_2,))),
        ("dup  artifact of *", ("dup", "*", 0, (ARTIFACT,))),
        ("swap 2 3 of message/stream", ("swap", STREAM, 0, (EventPattern(2), EventPattern(3)))),
        ("swap status 2 artifact of *", ("swap", "*", 0, (STATUS_2, ARTIFACT))),
        ("cut last of SendMessage call 3 @ 50%",
         ("cut", "SendMessage", 3, (EventPattern(last=True),), 50.0)),
        ("cut last of SendMessage @50%",
         ("cut", "SendMessage", 0, (EventPattern(last=True),), 50.0)),
        ("stall 5s before input-required of *", ("stall", "*", 0, (ASKING,), 5e9)),
        ("stall 20ms before TASK_STATE_WORKING of *", ("stall", "*", 0, (WORKING,), 2e7)),
        ("gen-1 at 3 of SubscribeToTask", ("gen", "SubscribeToTask", 0, (EventPattern(3),), -1.0)),
        ("fail 503 at SendMessage call 2", ("fail", "SendMessage", 2, (), 0.0, 503)),
        ("fail -32603 at GetTask", ("fail", "GetTask", 0, (), 0.0, -32603)),
        ("fail UNAVAILABLE at *", ("fail", "*", 0, (), 0.0, 0, 14)),
        ("fail 500 at webhook call 1", ("fail", "webhook", 1, (), 0.0, 500)),
        ("reset at GetTask", ("reset", "GetTask")),
        ("slice 7 of SendStreamingMessage", ("slice", STREAM, 0, (), 7.0)),
        ("slow 200ms every *", ("slow", "*", 0, (), 2e8)),
    ],
)  # fmt: skip
def test_faults_are_read(text: str, fault: tuple[object, ...]) -> None:
    assert parse_live_fault(text) == LiveFault(" ".join(text.split()), *fault)  # type: ignore[arg-type]


def test_each_form_of_the_manual_is_a_fault() -> None:
    assert {verb: parse_live_fault(text).verb for verb, text in LIVE_EXAMPLES.items()} == {
        verb: verb for verb in LIVE_EXAMPLES
    }
    assert list(LIVE_EXAMPLES) == [
        "drop",
        "dup",
        "swap",
        "cut",
        "stall",
        "gen",
        "fail",
        "reset",
        "slice",
        "slow",
    ]


@pytest.mark.parametrize("verb", LIVE_EXAMPLES)
def test_a_missing_word_is_shown_with_the_verb(verb: str) -> None:
    words = LIVE_EXAMPLES[verb].split()
    place = next(place for place, word in enumerate(words) if word in ("of", "at", "every"))
    for shortened in (words[:place], words[: place + 1]):
        with pytest.raises(FaultError) as failed:
            parse_live_fault(" ".join(shortened))
        assert failed.value.hint.endswith(f"for example: {LIVE_EXAMPLES[verb]}")


@pytest.mark.parametrize(
    ("text", "under", "why", "hint"),
    [
        ("dorp 2 of *", "dorp", "this is no fault", "did you mean drop?"),
        ("explode", "explode", "this is no fault",
         "drop, dup, swap, cut, stall, gen+2, fail, reset, slice or slow"),
        ("DROP 2 of *", "DROP", "this is no fault", "did you mean drop?"),
        ("drop #3.4", "#3.4", "live traffic has no recorded places", "describe the event"),
        ("drop 0 of *", "0", "events are counted from 1", "drop status 2 of SendStreamingMessage"),
        ("drop status -2 of *", "-2", "events are counted from 1",
         "drop status 2 of SendStreamingMessage"),
        ("drop it of *", "it", "expected an event", "an event is a number"),
        ("drop workign of *", "workign", "expected an event", "did you mean working?"),
        ("drop 2", "", 'expected "of"', "drop status 2 of SendStreamingMessage"),
        ("drop 2 of SendStreamingMesage", "SendStreamingMesage", "an operation",
         "you mean SendStreamingMessage"),
        ("drop 2 of GetTask", "GetTask", "GetTask has one answer", "cut 1 of GetTask"),
        ("drop 2 of message/send", "message/send", "SendMessage has one answer",
         "cut 1 of SendMessage"),
        ("drop 2 of webhook", "webhook", "can only fail", "fail 503 at webhook"),
        ("drop 2 of * call zero", "zero", "the number of the call",
         "call 1; without it every call"),
        ("drop 2 of * 3", "3", 'expected "call"', "call 3"),
        ("drop 2 of * call 1 now", "now", "should end here", "drop status 2 of"),
        ("swap 2 2 of *", "2 of", "swapped with itself", "swap 2 3"),
        ("swap 2 of *", "of", "expected an event", ""),
        ("cut 2 of * @ half", "half", "a whole percentage from 0% to 100%", "cut last of"),
        ("cut 2 of * @ 150%", "150%", "a whole percentage from 0% to 100%", "cut last of"),
        ("stall 5 before 2 of *", "5", "the duration has no unit", "5ms or 5s"),
        ("stall 5s after 2 of *", "after", 'expected "before"', ""),
        ("fail 200 at GetTask", "200", "an HTTP status from 400 to 599", "fail 503 at SendMessage"),
        ("fail 999 at GetTask", "999", "an HTTP status from 400 to 599", "fail 503 at SendMessage"),
        ("fail 14 at GetTask", "14", "a gRPC status name", "the gRPC status 14: UNAVAILABLE"),
        ("fail -0 at GetTask", "-0", "a JSON-RPC code below 0", ""),
        ("fail OK at GetTask", "OK", "a gRPC status name", "OK is no failure"),
        ("fail unavailable at GetTask", "unavailable", "a gRPC status name",
         "did you mean UNAVAILABLE?"),
        ("fail UNAVAILABLE at webhook", "UNAVAILABLE", "fails with an HTTP status", ""),
        ("slice 0", "0", "a number of bytes, from 1", "slice 7 of SendStreamingMessage"),
        ("slow 0ms every *", "0ms", "a duration must be more than 0", "slow 200ms every"),
    ],
)  # fmt: skip
def test_a_caret_shows_what_is_wrong(text: str, under: str, why: str, hint: str) -> None:
    with pytest.raises(FaultError) as failed:
        parse_live_fault(text)
    message, shown, caret = str(failed.value).split("\n")
    assert why in message
    assert shown == "    " + text
    assert caret.strip() == "^" * max(1, len(under.split(" ")[0]))
    assert shown[caret.index("^") :].startswith(under)
    assert hint in failed.value.hint
