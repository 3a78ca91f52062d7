"""The table of state changes, against the classes of states and against what rules report of real
streams."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.transitions import UndefinedTransitionError
from a2a_proxy.rules.examples.conversation import rpc_stream
from a2a_proxy.rules.examples.objects import reply, send, snapshot, status
from a2a_proxy.rules.state.transitions import TRANSITIONS, UNKNOWN, Change, change_of
from support_rules import findings

_STATES = [*TaskState, UNKNOWN]
_SHOWN = [state for state in TaskState if state]
_RULES = {
    Change.BACK: {"A2A-STATE-002"},
    Change.ANSWERED: {"A2A-STATE-003"},
    Change.LEAVES_END: {"A2A-STATE-001"},
}


@pytest.mark.parametrize(("before", "state"), list(itertools.product(_STATES, _STATES)))
def test_every_pair_is_defined_or_raises(before: TaskState, state: TaskState) -> None:
    if not state:
        with pytest.raises(UndefinedTransitionError):
            change_of(before, state)
        return
    change = change_of(before, state)
    assert (change in (Change.LEAVES_END, Change.REPEATS_END)) is before.terminal
    assert (change in (Change.PROGRESS, Change.REPEATS_END)) is (before == state != UNKNOWN)
    assert len(TRANSITIONS) == len(_STATES) * (len(_STATES) - 1)


@pytest.mark.parametrize("number", [10, 4000, -1, -(2**31)])
def test_numbers_that_a2a_does_not_define_are_one_state(number: int) -> None:
    for state in _SHOWN:
        assert change_of(number, state) is change_of(UNKNOWN, state)
        assert change_of(state, number) is change_of(state, UNKNOWN)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(_SHOWN), min_size=2, max_size=4))
def test_rules_report_what_the_table_says(states: list[TaskState]) -> None:
    """One stream: each change is reported by its rule. At most three changes, because a rule
    reports no more for one exchange (`rules.run.repeat_limit`)."""
    events = [snapshot(states[0].name, status=status(states[0].name)["statusUpdate"]["status"])]
    for second, state in enumerate(states[1:], 1):
        said = reply(id=f"r{second}", taskId="t1")
        events.append(status(state.name, second=second, message=said))
    expected: list[str] = []
    for before, state in itertools.pairwise(states):
        expected += sorted(_RULES.get(change_of(before, state), set()))
    known = set().union(*_RULES.values())
    found = [
        each.rule
        for each in findings(rpc_stream("SendStreamingMessage", send(), *events))
        if each.rule in known
    ]
    assert sorted(found) == sorted(expected)
