"""The cost of a frame does not depend on the number of other streams, artifacts or calls.

Python instructions are counted, not time, so a busy machine changes nothing. Both the small and the
large number are above the number of streams of a task that are compared one by one (8).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from a2a_proxy.model.values import Observation
from a2a_proxy.model.wire import Chunk
from a2a_proxy.observer import Observer
from a2a_proxy.redaction import Redactor
from support_conversation import Grpc
from support_observer import KEY, START, scripted
from support_streams import MS, TASK, Streams, in_state, opcodes_run, piece, told_by_each, working

FEW, MANY = 24, 96
_TELLS = 30
Events = Callable[[int], list[dict[str, Any]]]


def _states(one: str, two: str) -> Events:
    return lambda count: [in_state(two if step % 2 else one) for step in range(count)]


def _working(count: int) -> list[dict[str, Any]]:
    return [working(f"{step}") for step in range(count)]


def _gaps(count: int) -> list[dict[str, Any]]:
    return [working(f"{step}", generation=str(3 + 2 * step)) for step in range(count)]


def _apart(session: list[Chunk], at: int) -> tuple[list[Chunk], list[Chunk]]:
    return [each for each in session if each.at < at], [each for each in session if each.at >= at]


def _cost(session: list[Chunk], begin: float) -> float:
    """Instructions for each record from `begin` (ms) on, with the deadlines that pass and the end
    of the session."""
    observer, out = Observer(Redactor(KEY)), list[Observation]()
    before, after = _apart(session, START + int(begin * MS))
    for chunk in before:
        observer.feed(chunk, out)
    observer.pop_changes()

    def work() -> None:
        for chunk in after:
            observer.feed(chunk, out)
        observer.pop_changes()

    return opcodes_run(work) / len(after)


def _streams(count: int, events: Events, *, all_tell: bool, version: str = "1.0") -> float:
    streams = Streams()
    snapshot = {**TASK, "generation": "1"} if version == "1.1" else TASK
    for number in range(1, count + 1):
        streams.open(number, 0, version, snapshot)
    tellers = range(1, count + 1) if all_tell else (count,)
    told_by_each(streams, tellers, 100, events(8 if all_tell else _TELLS * 4))
    streams.tell(count, 30_000, working("late"))  # what was to be looked at later has been
    return _cost(streams.chunks(), 100)


@pytest.mark.parametrize(
    ("events", "version"),
    [
        (_working, "1.0"),
        (_states("WORKING", "INPUT_REQUIRED"), "1.0"),
        (_states("COMPLETED", "FAILED"), "1.0"),
        (_gaps, "1.1"),
    ],
    ids=["goes on", "changes", "ends", "gaps"],
)
@pytest.mark.parametrize("all_tell", [True, False], ids=["all tell", "one tells"])
def test_a_frame_costs_the_same_with_many_streams_of_its_task(
    events: Events, version: str, all_tell: bool
) -> None:
    """Work for a frame is bounded whatever the number of streams of its task."""
    few, many = (
        _streams(count, events, all_tell=all_tell, version=version) for count in (FEW, MANY)
    )
    assert many < 1.4 * few + 400


def _closing(count: int) -> float:
    streams = Streams()
    for number in range(1, count + 1):
        streams.open(number, 0)
        streams.end(number, 100 + number / 100)
    return _cost(streams.chunks(), 100)


def test_ending_many_streams_takes_linear_time() -> None:
    """Each stream of a task takes the same to end, however many there are."""
    assert _closing(MANY) < 1.3 * _closing(FEW)


def _kept_open(count: int) -> float:
    """The session ends while they are open."""
    streams = Streams()
    for number in range(1, count + 1):
        streams.open(number, 0)
    observer, out = Observer(Redactor(KEY)), list[Observation]()
    for chunk in streams.chunks():
        observer.feed(chunk, out)
    return opcodes_run(lambda: observer.interrupt_session(START + 1000 * MS, out)) / count


def test_ending_a_session_with_open_streams_takes_linear_time() -> None:
    """To stop takes as long as there are streams, not longer."""
    assert _kept_open(MANY) < 1.3 * _kept_open(FEW)


def _calls_beside(count: int) -> float:
    """Calls of a connection that has so many streams open."""
    grpc = Grpc()
    for number in range(1, 2 * count, 2):
        grpc.open("/lf.a2a.v1.A2AService/SubscribeToTask", number, a2a_version="1.0").send(
            b"\n\x02t1", number
        )
    opened = len(grpc.steps)
    for number in range(2 * count + 1, 2 * (count + _TELLS), 2):
        grpc.open("/lf.a2a.v1.A2AService/GetTask", number, a2a_version="1.0").send(
            b"\n\x02t1", number
        )
        grpc.trailers_only(5, number)
    return _cost(
        scripted(grpc)[:-1], (opened + 0.5) * 1000 / MS
    )  # without the end of the connection


def test_a_call_costs_the_same_beside_many_open_streams() -> None:
    """A call takes the same however many streams its connection has."""
    assert _calls_beside(4 * MANY) < 1.2 * _calls_beside(MANY)


def _artifacts(count: int) -> float:
    """A task with so many artifacts, one of which grows; what changed is taken after each
    update."""
    streams = Streams()
    streams.open(1, 0)
    for number in range(count):
        streams.tell(1, 1 + number / 1000, piece(f"a{number}", "piece"))
    told_by_each(
        streams,
        (1,),
        100,
        [piece(f"a{step}", f"more {step}", append=True) for step in range(_TELLS)],
    )
    observer, out = Observer(Redactor(KEY)), list[Observation]()
    before, after = _apart(streams.chunks(), START + 100 * MS)
    for chunk in before:
        observer.feed(chunk, out)
    observer.pop_changes()

    def work() -> None:
        for chunk in after:
            observer.feed(chunk, out)
            observer.pop_changes()

    return opcodes_run(work) / len(after)


def test_a_commit_costs_the_same_with_many_artifacts() -> None:
    """A commit looks at the artifacts that changed; of the others it copies a reference each, in a
    few lines."""
    few, many = _artifacts(200), _artifacts(800)
    assert many - few < 600 * 40
