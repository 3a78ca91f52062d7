"""Rules judge batches of frames as they judge single frames."""

from __future__ import annotations

import random

import pytest

from a2a_proxy.model.chunk import Chunk
from a2a_proxy.model.finding import Finding
from a2a_proxy.model.observation import Observation
from a2a_proxy.rules.define.catalogue import all_rules
from support_mutations import SAMPLES, chunks, loaded
from support_observer import fresh


def said(session: list[Chunk], batch: int) -> list[Finding]:
    """What is found where the rules see the frames of so many chunks together; at once with 0."""
    observer, out = fresh(), list[Observation]()
    for place, chunk in enumerate(session):
        if batch and place % batch == 0:
            observer.judge_held(out)
            observer.pop_changes()
            observer.hold_rules()
        observer.feed(chunk, out)
    observer.judge_held(out)
    observer.interrupt_session(session[-1].at, out)
    return [each for each in out if isinstance(each, Finding)]


def judged(found: list[Finding]) -> list[Finding]:
    """What decoders say is not held, so it comes first."""
    return sorted(found, key=lambda each: each.rule.startswith("A2A-"))


@pytest.mark.parametrize("sample", sorted(path.name.removesuffix(".a2a.jsonl") for path in SAMPLES.glob("*.jsonl")))
def test_samples_are_judged_alike_in_batches(sample: str) -> None:
    session = chunks(loaded(sample))
    expected = judged(said(session, 0))

    assert [judged(said(session, batch)) for batch in (1, 7, len(session))] == [expected] * 3


def test_consecutive_examples_are_judged_alike_in_batches() -> None:
    """Every rule has something to say about its flagged example, whatever is judged together."""
    chance = random.Random(1)
    for rule in all_rules().values():
        session = rule.flagged.make_chunks()
        batch = chance.randint(1, len(session))
        assert judged(said(session, batch)) == judged(said(session, 0)), (rule.id, batch)
