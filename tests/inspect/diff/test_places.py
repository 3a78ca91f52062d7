"""Places that `diff` cannot compare are refused with a hint."""

from __future__ import annotations

from pathlib import Path

import pytest

from a2a_inspect.commands.diff import DiffOptions
from a2a_inspect.commands.diff import print_diff as print_difference
from a2a_proxy.model.errors import UserError

DEMO = Path(__file__).parents[3] / "recordings" / "demo.a2a.jsonl"


@pytest.mark.parametrize(
    ("words", "where", "message"),
    [
        ((DEMO, "#99"), "", "demo.a2a.jsonl has no exchange #99; it has #1 to #7"),
        ((DEMO, "2.99", "2.1"), "", "demo.a2a.jsonl has no frame 2.99; it has #2.0 to #2.7"),
        ((DEMO, "feedbeef", "#2"), "", "feedbeef is neither an exchange of demo.a2a.jsonl"),
        ((DEMO, "1", "2", "3"), "", "only two places can be compared"),
        ((DEMO, "#1"), "", "there is no GetAgentCard before #1"),
        ((DEMO, "4d1144cc"), "", "nothing to compare 4d1144cc with"),
        ((DEMO, "7:", "1:"), "", "has no session 7; it has 1"),
        ((DEMO,), "", "has one session"),
        ((DEMO, DEMO, DEMO), "", "name two places"),
        ((DEMO, "./none.db"), "", "none.db"),
        ((DEMO, DEMO), "stat:1", "stat"),
    ],
)
def test_invalid_places_are_refused_with_a_hint(
    words: tuple[object, ...], where: str, message: str
) -> None:
    with pytest.raises(UserError) as wrong:
        print_difference(DiffOptions(tuple(map(str, words)), where=where))

    assert message in wrong.value.message
    assert wrong.value.hint
