"""The generations of a recorded task: what is missed, and what closed the gap."""

from __future__ import annotations

import random

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from a2a_proxy.model.values import Finding, MissedGenerations, Observation, Severity, Task
from a2a_proxy.model.wire import Chunk
from a2a_proxy.observer import Observer
from a2a_proxy.redaction import Redactor
from a2a_proxy.rules.examples.conversation import EventPause
from a2a_proxy.rules.examples.objects import chunk, snapshot, status
from a2a_proxy.rules.examples.script import run_together
from support_generations import Case, cases
from support_numbered import get, over
from support_observer import bytewise, observe
from support_rules import KEY


def task_of(chunks: list[Chunk]) -> Task:
    """Feed a session to the observer and return its task."""
    observer, out = Observer(Redactor(KEY)), list[Observation]()
    for each in chunks:
        observer.feed(each, out)
    (task,) = observer.pop_changes().tasks
    return task


@given(case=cases())
def test_nothing_is_missed_where_nothing_is_wrong(case: Case) -> None:
    assert task_of(case.chunks()).missed == ()


@given(case=cases(), seed=st.integers(0, 2**32))
def test_nothing_is_missed_however_the_bytes_are_cut(case: Case, seed: int) -> None:
    """Nor if the recorder is killed and goes on from a snapshot of its decoders."""
    chance = random.Random(seed)
    chunks = [
        piece
        for each in case.chunks()
        for piece in bytewise([each], chance.choice([1, 2, 9, 50, 5000]))
    ]
    restarts = {chance.randrange(len(chunks)) for _ in range(3)}
    seen = observe(chunks, restart_at=restarts, commit_every=chance.choice([1, 40]))
    (task,) = seen.tasks.values()
    assert task.missed == ()
    found = [
        each for each in seen.out if isinstance(each, Finding) and each.rule.startswith("A2A-GEN-")
    ]
    assert [each for each in found if each.severity is not Severity.INFO] == []


@given(case=cases(), exchange=st.sampled_from([1, 2]), data=st.data())
def test_what_a_stream_loses_is_missed(case: Case, exchange: int, data: st.DataObject) -> None:
    """On its own stream, as one gap; what the other one tells makes it good."""
    stream = case.first if exchange == 1 else case.second
    alone = [*(each.counts for each in stream.events[1:]), True]
    choices = [n for n, each in enumerate(stream.events[:-1]) if n and each.counts and alone[n]]
    if not choices:
        return
    lost = data.draw(st.sampled_from(choices))
    number = stream.events[lost].number
    changed = {"first" if exchange == 1 else "second": stream.without(lost)}
    task = task_of(msgspec.structs.replace(case, **changed).chunks())
    (missed,) = task.missed
    assert (missed.exchange, missed.first, missed.last) == (exchange, number, number)
    other = case.second if exchange == 1 else case.first
    if number in [each.number for each in other.events[1:]]:
        assert missed.healed
        assert missed.by in (0, 3 - exchange)


def test_a_gap_that_the_client_reads() -> None:
    """The example of the manual."""
    events = [
        snapshot("SUBMITTED", generation="1"),
        status("WORKING", generation="2"),
        chunk("a", generation="3"),
    ]
    events += [
        chunk("b", id="a2", generation="5"),
        EventPause(1),
        status("COMPLETED", second=1, generation="6"),
    ]
    task = task_of(run_together(over("grpc", *events), get(5), after=300_000_000).make_chunks())
    assert task.seen == ((1, 3), (5, 6))
    (missed,) = task.missed
    assert missed == MissedGenerations(4, 4, missed.at, 1, missed.healed, 2, 5)
    assert 0 < missed.at < missed.healed
