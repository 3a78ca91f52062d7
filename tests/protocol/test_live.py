"""Which payload a live stream carries, decided while its messages arrive; and the option that
overrides it."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_proto import from_dict
from a2a_proxy.model.wire import Direction
from a2a_proxy.protocol.live import LiveReading, live_schema
from support_wire import reload

UP, DOWN = Direction.TO_AGENT, Direction.TO_CLIENT


def made(line: Any, name: str, value: dict[str, Any]) -> bytes:
    """A message in bytes."""
    return from_dict(line, name, value).SerializeToString()


SAID = {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "hello"}]}
PLAIN = made("1.0", "SendMessageRequest", {"message": SAID})
CONFIGURED = made(
    "1.0", "SendMessageRequest", {"message": SAID, "configuration": {"historyLength": 3}}
)
TASK = made(
    "1.0", "StreamResponse", {"task": {"id": "t1", "contextId": "c1", "status": {"state": 2}}}
)
STATUS = made(
    "1.0",
    "StreamResponse",
    {"statusUpdate": {"taskId": "t1", "contextId": "c1", "status": {"state": 2}}},
)
WRAPPED = made("live-1975", "LiveRequest", {"message": {"message": SAID}})
EVENT = made("live-1975", "LiveResponse", {"event": {"task": {"id": "t1", "contextId": "c1"}}})
ARTIFACT = made(
    "live-2153",
    "StreamRequest",
    {"artifactUpdate": {"taskId": "t1", "artifact": {"artifactId": "a1"}}},
)
UPDATE = made("live-2153", "StreamResponse", {"messageUpdate": {"taskId": "t1", "message": SAID}})
ELICITATION = made("live-2153", "StreamResponse", {"task": {"id": "t1", "elicitations": [{}]}})


def read(*messages: tuple[Direction, bytes], mode: Any = "auto") -> tuple[str, str]:
    """What both sides' messages are read as after these, saved and restored between any two."""
    reading = LiveReading(mode)
    for direction, data in messages:
        reading.learn_from(direction, data)
        reading = reload(reading)
    return reading.payload_for(UP), reading.payload_for(DOWN)


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([], ("", "")),
        ([(UP, b"")], ("", "")),
        ([(UP, PLAIN)], ("bidi", "bidi")),
        ([(UP, PLAIN), (DOWN, TASK)], ("bidi", "bidi")),
        ([(UP, WRAPPED)], ("1975", "1975")),
        ([(UP, b""), (DOWN, EVENT)], ("1975", "1975")),
        ([(UP, ARTIFACT), (DOWN, TASK)], ("2153", "2153")),
    ],
)
def test_the_first_messages_identify_the_proposal(
    messages: list[tuple[Direction, bytes]], expected: tuple[str, str]
) -> None:
    assert read(*messages) == expected


@pytest.mark.parametrize("late", [(DOWN, UPDATE), (DOWN, ELICITATION), (UP, ARTIFACT)])
def test_a_later_message_settles_an_ambiguous_stream(late: tuple[Direction, bytes]) -> None:
    """A plain message is one of two proposals: from the proof on both sides are read as that."""
    assert read((UP, PLAIN), (DOWN, TASK), (DOWN, STATUS), late) == ("2153", "2153")


def test_a_settled_proposal_does_not_change() -> None:
    """A configuration is BIDI's alone; each side is then read as what it proved."""
    assert read((UP, CONFIGURED), (DOWN, UPDATE)) == ("bidi", "2153")
    assert read((UP, WRAPPED), (DOWN, TASK)) == ("1975", "bidi")
    assert read((UP, PLAIN), (DOWN, EVENT)) == ("bidi", "1975")
    assert read((UP, ARTIFACT), (UP, WRAPPED)) == ("2153", "2153")


@pytest.mark.parametrize("mode", ["bidi", "1975", "2153"])
def test_the_option_precedes_detection(mode: str) -> None:
    assert read((UP, WRAPPED), (DOWN, UPDATE), mode=mode) == (mode, mode)


def test_learning_reports_changes() -> None:
    reading = LiveReading()
    said = [
        reading.learn_from(*each)
        for each in ((UP, PLAIN), (DOWN, STATUS), (DOWN, STATUS), (DOWN, UPDATE), (UP, PLAIN))
    ]
    assert said == [True, True, False, True, False]


def test_schemas() -> None:
    assert live_schema("bidi", UP) == live_schema("", UP) == "lf.a2a.v1.SendMessageRequest"
    assert live_schema("1975", DOWN) == "lf.a2a.v1.LiveResponse@live-1975"
    assert live_schema("2153", UP) == "lf.a2a.v1.StreamRequest@live-2153"
