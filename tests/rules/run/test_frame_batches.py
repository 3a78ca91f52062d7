"""Frames are observed and judged in batches as they are singly."""

from __future__ import annotations

import random

import pytest

from a2a_proxy.model.values import Finding, Frame, Observation
from a2a_proxy.model.wire import Chunk
from a2a_proxy.rules.define.catalogue import all_rules
from support_mutations import SAMPLES, chunks, loaded
from support_observer import fresh

Seen = tuple[list[Finding], list[Frame], dict[tuple[str, object], object]]
"""Findings, frames, and the last state of each exchange, task and segment."""


def observed(session: list[Chunk], batch: int) -> Seen:
    """Return what is observed where so many chunks are decoded before the rules see their frames;
    at once with 0."""
    observer, out, states = fresh(), list[Observation](), dict[tuple[str, object], object]()

    def keep() -> None:
        changes = observer.pop_changes()
        states.update({("exchange", each.id): each for each in changes.exchanges})
        states.update({("task", (each.agent, each.task_id)): each for each in changes.tasks})
        states.update({("segment", each.id): each for each in changes.segments})

    for place, chunk in enumerate(session):
        if batch and place % batch == 0:
            observer.judge_held(out)
            keep()
            observer.hold_rules()
        observer.feed(chunk, out)
    observer.judge_held(out)
    observer.interrupt_session(session[-1].at, out)
    keep()
    findings = sorted(  # findings of decoders come first, because they are not held
        (each for each in out if isinstance(each, Finding)),
        key=lambda each: each.rule.startswith("A2A-"),
    )
    return findings, [each for each in out if isinstance(each, Frame)], states


@pytest.mark.parametrize(
    "sample", sorted(path.name.removesuffix(".a2a.jsonl") for path in SAMPLES.glob("*.jsonl"))
)
def test_samples_are_observed_alike_in_batches(sample: str) -> None:
    session = chunks(loaded(sample))
    expected = observed(session, 0)

    for batch in (1, 7, len(session)):
        assert observed(session, batch) == expected


def test_consecutive_examples_are_observed_alike_in_batches() -> None:
    """Every rule has something to say about its flagged example, whatever is judged together."""
    chance = random.Random(1)
    for rule in all_rules().values():
        session = rule.flagged.make_chunks()
        batch = chance.randint(1, len(session))
        assert observed(session, batch) == observed(session, 0), (rule.id, batch)
