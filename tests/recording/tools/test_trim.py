"""Calls that a replay of chosen calls needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from a2a_proxy.recording.read.rows import make_key
from a2a_proxy.recording.tools.trim import needed_cards

RECORDINGS = Path(__file__).parents[3] / "recordings"


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({2}, {1}),
        ({12, 13}, {11}),
        ({30}, {21}),
        ({2, 30}, {1}),
        ({1, 12}, set()),
        ({12, 21}, set()),
        (set(), set()),
    ],
)
def test_the_card_that_the_client_fetched_last_is_needed(
    chosen: set[int], expected: set[int]
) -> None:
    """The recording has cards in #1, #11 and #21."""
    with open_recording_or_cassette(RECORDINGS / "js-three-bindings.a2a.jsonl") as recording:
        found = needed_cards(recording, {make_key(1, number) for number in chosen})
    assert found == {make_key(1, number) for number in expected}


def test_a_recording_without_a_card_needs_none() -> None:
    with open_recording_or_cassette(RECORDINGS / "three-agents.a2a.jsonl") as recording:
        assert needed_cards(recording, {make_key(1, 1)}) == set()
