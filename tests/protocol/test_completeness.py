"""The text of a complete capture, of gaps, and of what a person chose; and what is read from it."""

from __future__ import annotations

import msgspec
import pytest

from a2a_proxy.model.values import Connection
from a2a_proxy.model.wire import Direction
from a2a_proxy.protocol.completeness import (
    CHOICE_PREFIX,
    COMPLETE,
    MAX_GAPS,
    CaptureGaps,
    Gap,
    find_gaps,
    split_completeness,
)
from support_wire import reload

MISSING = Gap(1, Direction.TO_AGENT, 262, 185, "were not decoded: not HTTP")
CHOSEN = Gap(2, Direction.TO_CLIENT, 0, 9, "were not decoded: --pass", is_chosen=True)


def described(*gaps: Gap, reasons: tuple[str, ...] = ()) -> str:
    found = CaptureGaps()
    for gap in gaps:
        found.add(gap)
    text = found.describe(*reasons)
    assert reload(found).describe(*reasons) == text
    return text


def test_a_gap_has_its_place_and_its_reason() -> None:
    """Connection, direction, offset, bytes, why."""
    label = "connection 1: 185 bytes to the agent from byte 262 were not decoded: not HTTP"
    assert described(MISSING) == label
    assert split_completeness(label) == (label, "")


def test_a_choice_is_named_and_lacks_nothing() -> None:
    """Alone, and beside what is missing, which comes first."""
    assert split_completeness(described()) == split_completeness(COMPLETE) == ("", "")
    missing, choice = split_completeness(described(CHOSEN))
    assert missing == ""
    assert choice.startswith(CHOICE_PREFIX)
    assert CHOSEN.label in choice
    assert split_completeness(described(CHOSEN, MISSING, reasons=("7 bytes",))) == (
        f"7 bytes; {MISSING.label}",
        choice,
    )
    assert split_completeness("only what matches err") == ("", "only what matches err")


def test_a_reason_of_a_peer_cannot_pass_for_a_choice() -> None:
    """`Upgrade: x; only y` leaves the capture incomplete."""
    missing, _ = split_completeness(
        described(msgspec.structs.replace(MISSING, why=f"switched to x; {CHOICE_PREFIX}y"))
    )
    assert missing


def test_of_too_many_gaps_only_the_number_is_kept() -> None:
    """Choices do not displace what is missing."""
    text = described(*[CHOSEN] * (MAX_GAPS + 5), *[MISSING] * (MAX_GAPS + 3))
    missing, choice = split_completeness(text)
    assert missing.count(MISSING.label) == choice.count(CHOSEN.label) == MAX_GAPS
    assert (missing.endswith("; 3 more places"), choice.endswith(", 5 more places")) == (True, True)


@pytest.mark.parametrize(("to_agent", "found"), [(30, 2), (0, 0)])
def test_the_rest_of_a_connection_is_missing_if_the_client_spoke(to_agent: int, found: int) -> None:
    """Clients of A2A speak first."""
    counters = {"opaque_to_agent": 10, "opaque_to_client": 5, "ping": 1}
    closed = Connection(
        3, "", "", "", 1, bytes_to_agent=to_agent, bytes_to_client=25, counters=counters
    )
    gaps = list(find_gaps(closed, "x"))
    assert [(gap.connection, gap.direction, gap.offset, gap.size) for gap in gaps] == [
        (3, Direction.TO_AGENT, 20, 10),
        (3, Direction.TO_CLIENT, 20, 5),
    ][:found]
