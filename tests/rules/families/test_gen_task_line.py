"""A task's generation line and the rules about generations judge the same numbers apart from each other: they must not
contradict, whatever an agent says."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from a2a_proxy.model.chunk import Chunk
from a2a_proxy.model.finding import Finding, Severity
from a2a_proxy.model.observation import Observation
from a2a_proxy.model.task import MissedGenerations, Task
from a2a_proxy.observer import Observer
from a2a_proxy.redaction import Redactor
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.examples.conversation import EventPause
from a2a_proxy.rules.examples.objects import Json, chunk, reply, snapshot, status
from a2a_proxy.rules.examples.script import STEP, Script, run_together
from a2a_proxy.rules.families.gen import tracker
from a2a_proxy.rules.families.gen.tracker import GenerationFault, Verdict
from support_generations import BINDINGS, Case, cases
from support_numbered import get, over
from support_observer import bytewise, observe
from support_rules import KEY

Gap = tuple[int, int, int]
"""Exchange, first and last number."""


class Judged(msgspec.Struct):
    """One session, as the task's line has it and as the rules have it."""

    task: Task
    by_rules: list[Gap]
    open_by_rules: set[Gap]
    """Those that no snapshot has made good, as the rules know it."""

    @property
    def missed(self) -> list[Gap]:
        return [(each.exchange, each.first, each.last) for each in self.task.missed]


def judged(chunks: list[Chunk]) -> Judged:
    """Feed a session to the observer, and listen to what the rules' tracker finds."""
    found: list[Gap] = []
    logs: dict[int, Any] = {}
    feed = tracker._judge_generation

    def listening(see: RuleContext) -> list[Verdict]:
        told = feed(see)
        gaps = [each for each in told if each.fault is GenerationFault.GAP]
        found.extend((see.record.id, each.first, each.final) for each in gaps)
        if see.task is not None:
            logs[0] = tracker.open_gaps(see.task)
        return told

    observer, out = Observer(Redactor(KEY)), list[Observation]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tracker, "_judge_generation", listening)
        for each in chunks:
            observer.feed(each, out)
    (task,) = observer.changes().tasks
    return Judged(task, found, {(gap[3], gap[0], gap[1]) for gap in logs.get(0, [])})


@st.composite
def told(draw: st.DrawFn, first: int) -> list[Any]:
    """What a stream tells from this number on: mostly the next number, now and then another one, or none."""
    said: list[Any] = []
    number = first
    if draw(st.booleans()):
        said.append(snapshot("WORKING", generation=str(number)))
    for index in range(draw(st.integers(1, 8))):
        number = max(number + draw(st.sampled_from([1, 1, 1, 1, 1, 2, 3, 0, -1, -2])), 0)
        numbered: Json = {"generation": str(number)} if number else {}
        kind = draw(st.sampled_from(["artifact", "artifact", "progress", "interrupted", "snapshot"]))
        if kind == "artifact":
            event = chunk(f"text {index}", id=f"a{draw(st.integers(1, 3))}", **numbered)
        elif kind == "snapshot":
            event = snapshot("WORKING", **numbered)
        else:
            state = "WORKING" if kind == "progress" else "INPUT_REQUIRED"
            event = status(state, message=reply("?", id=f"r{index}"), **numbered)
        if draw(st.booleans()):
            said.append(EventPause(draw(st.integers(1, 20)) * STEP / 1e9))
        said += [event] * draw(st.sampled_from([1, 1, 1, 1, 1, 1, 2]))
    return said


@st.composite
def sessions(draw: st.DrawFn) -> Script:
    """A stream that makes a task, another one beside it, and a client that reads in between."""
    binding = st.sampled_from(BINDINGS)
    made = over(draw(binding), snapshot("SUBMITTED", generation="1"), *draw(told(1)), finish="open")
    if draw(st.booleans()):
        other = over(draw(binding), *draw(told(draw(st.integers(1, 6)))), subscribes=True, finish="open")
        made = run_together(made, other, after=draw(st.integers(1, 60)) * STEP)
    if draw(st.booleans()):
        read = get(draw(st.integers(1, 12)), binding=draw(binding))
        made = run_together(made, read, after=draw(st.integers(1, 60)) * STEP)
    return made


@given(script=sessions())
def test_both_see_the_same_gaps(script: Script) -> None:
    note("\n".join(script.lines()))
    found = judged(script.chunks())
    assert found.missed == found.by_rules


@given(script=sessions())
def test_what_is_open_for_one_is_open_for_the_other(script: Script) -> None:
    """But that events which come late, or on another stream of the client, make a gap good too: rules ask only whether
    the client has read the task."""
    note("\n".join(script.lines()))
    found = judged(script.chunks())
    still = {(each.exchange, each.first, each.last) for each in found.task.missed if not each.healed}
    assert still <= found.open_by_rules
    healed = [each for each in found.task.missed if each.healed]
    by_events = {(each.exchange, each.first, each.last) for each in healed if each.generation <= each.last}
    assert found.open_by_rules <= still | by_events


@given(case=cases())
def test_nothing_is_missed_where_nothing_is_wrong(case: Case) -> None:
    assert judged(case.chunks()).missed == []


@given(case=cases(), seed=st.integers(0, 2**32))
def test_nothing_is_missed_however_the_bytes_are_cut(case: Case, seed: int) -> None:
    """Nor if the recorder is killed and goes on from a snapshot of its decoders."""
    chance = random.Random(seed)
    chunks = [piece for each in case.chunks() for piece in bytewise([each], chance.choice([1, 2, 9, 50, 5000]))]
    restarts = {chance.randrange(len(chunks)) for _ in range(3)}
    seen = observe(chunks, restart_at=restarts, commit_every=chance.choice([1, 40]))
    (task,) = seen.tasks.values()
    assert task.missed == ()
    found = [each for each in seen.out if isinstance(each, Finding) and each.rule.startswith("A2A-GEN-")]
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
    task = judged(msgspec.structs.replace(case, **changed).chunks()).task
    (missed,) = task.missed
    assert (missed.exchange, missed.first, missed.last) == (exchange, number, number)
    other = case.second if exchange == 1 else case.first
    if number in [each.number for each in other.events[1:]]:
        assert missed.healed
        assert missed.by in (0, 3 - exchange)


def test_a_gap_that_the_client_reads() -> None:
    """The example of the manual."""
    events = [snapshot("SUBMITTED", generation="1"), status("WORKING", generation="2"), chunk("a", generation="3")]
    events += [chunk("b", id="a2", generation="5"), EventPause(1), status("COMPLETED", second=1, generation="6")]
    task = judged(run_together(over("grpc", *events), get(5), after=300_000_000).chunks()).task
    assert task.seen == ((1, 3), (5, 6))
    (missed,) = task.missed
    assert missed == MissedGenerations(4, 4, missed.at, 1, missed.healed, 2, 5)
    assert 0 < missed.at < missed.healed
