"""Permitted behaviour of agents and clients with streams and generations. No rule flags it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from a2a_proxy.rules.run import repeat_limit
from mutations.breaks_polls_gen import looks, together
from mutations.breaks_together_stream import streams
from mutations.events import SECOND, insert, read, set_state, wait
from mutations.numbered import (
    asked,
    condition,
    conditional,
    give,
    look,
    number_of,
    numbered,
    waiting,
)
from mutations.objects import alter
from mutations.pick import stream
from support_mutations import MS, Prepare, Talk, Want, judge

SDK = ("sdk-1.x-jsonrpc", "sdk-1.x-rest", "sdk-1.x-grpc")
ALL = (*SDK, "js-three-bindings", "demo", "concurrent-grpc")

HARMLESS: list[tuple[str, Callable[[Talk], None], Prepare]] = []


def harmless(
    *samples: str, prepare: Prepare = numbered
) -> Callable[[Callable[[Talk], None]], Callable[[Talk], None]]:
    """Register a change for each of these samples."""

    def add(change: Callable[[Talk], None]) -> Callable[[Talk], None]:
        HARMLESS.extend((sample, change, prepare) for sample in samples)
        return change

    return add


# --- streams


@harmless(*ALL)
def the_end_takes_a_moment(talk: Talk) -> None:
    stream(talk).ended += SECOND // 4


@harmless(*SDK, prepare=together)
def a_slow_client_is_four_seconds_behind(talk: Talk) -> None:
    _, subscription = streams(talk)
    subscription.shift(1, 4 * SECOND)


@harmless(*SDK, prepare=together)
def a_slow_first_client_is_four_seconds_behind(talk: Talk) -> None:
    first, _ = streams(talk)
    first.shift(3, 4 * SECOND)


@harmless(*SDK, prepare=together)
def the_second_client_leaves(talk: Talk) -> None:
    _, subscription = streams(talk)
    del subscription.answers[-2:]
    subscription.finish = "leave"


@harmless(*SDK, prepare=together)
def the_first_client_leaves(talk: Talk) -> None:
    first, _ = streams(talk)
    del first.answers[-2:]
    first.finish = "leave"


@harmless(*SDK, prepare=together)
def the_second_client_joins_late(talk: Talk) -> None:
    """Its snapshot has the first chunk already."""
    _, subscription = streams(talk)
    chunk = read(subscription.answers[1])
    del subscription.answers[1]

    def later(task: dict[str, object]) -> None:
        task.update(artifacts=[chunk["artifact"]], generation=chunk["generation"])

    alter(subscription.answers[0], later)


@harmless(*SDK, "js-three-bindings", "concurrent-grpc")
def the_whole_task_is_told_last(talk: Talk) -> None:
    """Once more, as it is at its end."""
    call = stream(talk)
    task = insert(call, len(call.answers), call.answers[0].again())
    events = [read(each) for each in call.answers[:-1]]
    artifacts: dict[str, dict[str, list[object]]] = {}
    for event in events:
        if "artifact" in event:
            whole = artifacts.setdefault(
                event["artifact"]["artifactId"], event["artifact"] | {"parts": []}
            )
            whole["parts"] = [*whole["parts"], *event["artifact"]["parts"]]
    told = {
        "status": events[-1]["status"],
        "artifacts": list(artifacts.values()),
        "generation": events[-1]["generation"],
    }
    alter(task, lambda event: event.update(told))


# --- generations


@harmless(*SDK)
def a_snapshot_in_an_answer_lags_behind_a_stream(talk: Talk) -> None:
    """A client reads the task while an event passes that the agent had not counted yet."""
    first, _ = streams(talk)
    task = read(first.answers[0])
    call = look(talk, task | {"generation": "2", "status": read(first.answers[1])["status"]})
    shift = call.started - first.answers[1].at - MS
    call.started -= shift
    call.answered -= shift
    call.ended = first.answers[3].at
    for each in (*call.requests, *call.answers):
        each.at = max(each.at - shift, call.started)
    call.answers[0].at = call.ended


@harmless(*SDK, prepare=asked)
def a_poll_waits_for_a_minute_and_has_news(talk: Talk) -> None:
    _, _, held = looks(talk)
    held.ended += 57 * SECOND
    held.answered, held.answers[0].at = held.ended, held.ended
    set_state(held.answers[0], "CANCELED")
    give(held.answers[0], 4)


@harmless(*SDK, prepare=asked)
def a_poll_knows_more_than_was_seen(talk: Talk) -> None:
    """Another client told it 4, and 5 comes at once."""
    _, _, held = looks(talk)
    give(held.answers[0], 5)
    set_state(held.answers[0], "CANCELED")


@harmless(*SDK, prepare=conditional)
def a_condition_is_refused_since_the_task_has_just_changed(talk: Talk) -> None:
    """A second later it is at 4 for all."""
    call = max(talk.exchanges, key=lambda each: each.started)
    condition(call, number_of(waiting(talk).answers[0]))
    task = read(waiting(talk).answers[0]) | {"generation": "4"}
    task["status"] = dict(task["status"], state="TASK_STATE_CANCELED")
    look(talk, task)
    wait(talk, 5)


@harmless(*SDK)
def a_client_leaves_and_reads_the_task(talk: Talk) -> None:
    """It is at work still."""
    call = stream(talk)
    last = read(call.answers[1])
    task = read(call.answers[0]) | {"status": last["status"], "generation": last["generation"]}
    del call.answers[2:]
    call.finish = "leave"
    look(talk, task)
    wait(talk, 60)


@pytest.mark.parametrize(
    ("sample", "change", "prepare"),
    HARMLESS,
    ids=lambda each: each if isinstance(each, str) else each.__name__,
)
def test_a_harmless_change_is_not_flagged(
    sample: str, change: Callable[[Talk], None], prepare: Prepare, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same findings as without the change."""
    monkeypatch.setattr(repeat_limit, "MAX_PER_EXCHANGE", 10**9)
    monkeypatch.setattr(repeat_limit, "MAX_PER_KIND", 10**9)

    def changed(talk: Talk) -> Iterator[Want]:
        change(talk)
        yield from ()

    assert judge(sample, changed, prepare).unexpected == []
