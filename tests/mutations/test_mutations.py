"""One thing broken at a time in recorded traffic of real peers: exactly that is found, in its place, nothing else."""

from __future__ import annotations

import pytest

from a2a_proxy.rules import ledger
from a2a_proxy.rules.catalogue import rules
from support_mutations import MUTATIONS, Mutation, judge, load_mutations

load_mutations()


@pytest.fixture(autouse=True)
def _every_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is left out for being one of many."""
    monkeypatch.setattr(ledger, "EACH", 10**9)
    monkeypatch.setattr(ledger, "ALL", 10**9)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda each: each.name)
def test_it_is_found(mutation: Mutation) -> None:
    """All that the mutation names, at the frames that it names, and nothing more."""
    outcome = judge(mutation.sample, mutation.change, mutation.prepare)
    assert outcome.found
    assert (outcome.misplaced, outcome.missed, outcome.unexpected) == ([], [], [])


def test_there_are_many() -> None:
    """At least 500, and nine rules of ten are hit by one or more."""
    hit = {place[0] for each in MUTATIONS for place in judge(each.sample, each.change, each.prepare).found}
    assert len(MUTATIONS) >= 500
    assert len(hit & set(rules())) >= 0.9 * len(rules()), sorted(set(rules()) - hit)
