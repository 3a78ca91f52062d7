"""The changes of the mutations in conversations with frameworks: found there too, or explained."""

from __future__ import annotations

import pytest

from a2a_proxy.rules.run import repeat_limit
from support_framework_mutations import LIKE, apply_all, explained

LEAST = {
    "adk": 130,
    "fasta2a": 170,
    "langgraph": 125,
    "handler": 230,
    "a2akit": 120,
    "agno": 100,
    "js03": 38,
    "beeai-jsonrpc": 60,
    "a2akit-rest": 65,
    "beeai": 21,
}
"""Number of changes for which each conversation has a place, a little below what it was when it was
recorded."""
_QUICK = {"agno", "a2akit-rest", "beeai"}
"""In CI; `tests/run -m "soak or not soak" tests/mutations` makes the changes in all."""


@pytest.mark.parametrize(
    "framework",
    [pytest.param(each, marks=() if each in _QUICK else pytest.mark.soak) for each in LIKE],
)
def test_each_change_is_found_or_explained(framework: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No change is missed, misplaced or followed by another finding without a reason, and no reason
    is out of date."""
    monkeypatch.setattr(repeat_limit, "MAX_PER_EXCHANGE", 10**9)
    monkeypatch.setattr(repeat_limit, "MAX_PER_KIND", 10**9)
    total = apply_all(framework)
    known = explained(framework)
    new = {name: total.differing[name] for name in sorted(total.differing.keys() - known.keys())}
    assert not new, f"mend the rule or the change, or say why in mutations/frameworks.toml: {new}"
    assert not known.keys() - total.differing.keys(), (
        "found now: take them out of mutations/frameworks.toml"
    )
    assert total.mutations >= LEAST[framework]
    assert total.counts["found"] >= total.mutations - len(total.differing)
