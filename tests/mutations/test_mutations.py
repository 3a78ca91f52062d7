"""One thing broken at a time in recorded traffic of real peers: enough of it. The other files break
it."""

from __future__ import annotations

from a2a_proxy.rules.define.catalogue import all_rules
from a2a_proxy.rules.define.conditions import HookPoint
from support_mutations import MUTATIONS, load_mutations, wanted

load_mutations()


def test_there_are_at_least_500_mutations() -> None:
    """At least 500, and nine rules of ten are hit by one or more."""
    hit = {rule for each in MUTATIONS for rule in wanted(each.sample, each.change, each.prepare)}
    assert len(MUTATIONS) >= 500
    live = {each.id for each in all_rules().values() if HookPoint.ENDING not in each.hook_points}
    assert len(hit & live) >= 0.9 * len(live), sorted(live - hit)


def test_mutation_names_are_unique() -> None:
    """So that each can be run by its name."""
    names = [each.name for each in MUTATIONS]
    assert len(names) == len(set(names))
