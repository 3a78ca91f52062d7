"""The numbers of enumerations, which journals and recordings hold."""

from __future__ import annotations

from enum import IntEnum

import pytest

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import EventKind, FrameKind, MissedReason, Severity, Support
from a2a_proxy.model.wire import ChunkKind, Direction, HeadRole

NUMBERS: dict[type[IntEnum], str] = {
    ChunkKind: "1=OPEN 2=DIALED 3=DATA 4=EOF 5=RESET 6=CLOSED 7=OURS "
    "8=EDIT 9=LOST 10=END 11=LOG 12=SIGNAL 13=EXITED"
    " 14=PASSED",
    Direction: "0=TO_AGENT 1=TO_CLIENT",
    TaskState: "0=UNSPECIFIED 1=SUBMITTED 2=WORKING 3=COMPLETED "
    "4=FAILED 5=CANCELED 6=INPUT_REQUIRED 7=REJECTED"
    " 8=AUTH_REQUIRED",
    Severity: "1=INFO 2=WARNING 3=ERROR",
    EventKind: (
        "0=NONE 1=TASK 2=MESSAGE 3=STATUS 4=ARTIFACT 5=TASKS "
        "6=CARD 7=PUSH_CONFIG 8=PUSH_CONFIGS 9=UNKNOWN"
    ),
    FrameKind: (
        "1=REQUEST 2=RESPONSE 3=EVENT 4=ERROR 5=COMMENT "
        "6=END 7=CUT 8=CONTROL 9=OTHER 10=UNDECODABLE 11=LOG"
    ),
    MissedReason: "0=UNKNOWN 1=MESSAGE 2=SHOWN_MESSAGE 3=EVENT",
    HeadRole: "0=REQUEST 1=RESPONSE 2=INFORMATIONAL 3=TRAILERS",
    Support: "0=UNKNOWN 1=YES 2=NO",
}


@pytest.mark.parametrize("numbers", NUMBERS)
def test_the_numbers_of_stored_enumerations_stay(numbers: type[IntEnum]) -> None:
    found = {str(int(member)): name for name, member in numbers.__members__.items()}
    known = dict(entry.split("=") for entry in NUMBERS[numbers].split())
    assert {number: found.get(number) for number in known} == known
    assert len(found) == len(numbers.__members__), "two names share a number"
