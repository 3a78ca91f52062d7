"""Abbreviated states stay distinguishable, and the last one is kept longest."""

from __future__ import annotations

import pytest

from a2a_inspect.widgets.states import SHORT_STATES, abbreviate_states
from a2a_proxy.model.event import TaskState

PASSED = "submitted > working > completed"
ASKED = "submitted > working > input-required > working > completed"


@pytest.mark.parametrize(
    ("text", "width", "fitted"),
    [
        (PASSED, 31, PASSED),
        (PASSED, 30, "subm > work > completed"),
        (PASSED, 22, "subm>work>compl"),
        (PASSED, 14, "subm>…>compl"),
        (PASSED, 5, "subm>…>compl"),
        ("input-required", 13, "input"),
        (ASKED, 40, "subm > work > input > work > completed"),
        (ASKED, 37, "subm>work>input>work>compl"),
        (ASKED, 20, "subm>…>compl"),
        (f"{PASSED}  no such task", 40, "subm > work > completed  no such task"),
        (f"{PASSED}, if the generation is 4", 24, "subm>…>compl, if the generation is 4"),
        ("working > paused", 12, "work>paused"),
        ("TASK_NOT_FOUND 404: there is none", 12, "TASK_NOT_FOUND 404: there is none"),
        ("", 0, ""),
    ],
)
def test_states_are_abbreviated_to_fit(text: str, width: int, fitted: str) -> None:
    """Earlier states first; the words after the states are kept; the list cuts what is still too
    long at its end."""
    assert abbreviate_states(text, width) == fitted


def test_each_state_has_an_abbreviation_of_its_own() -> None:
    """No two are alike, and none begins another."""
    names = {state.label for state in TaskState if state}
    assert names == set(SHORT_STATES)
    short = set(SHORT_STATES.values())
    assert len(short) == len(names)
    assert not [
        (one, other) for one in short for other in short if one != other and other.startswith(one)
    ]
