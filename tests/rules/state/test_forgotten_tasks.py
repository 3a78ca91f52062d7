"""More tasks than the limit: the longest idle one is forgotten, and later findings about it are
less certain."""

from __future__ import annotations

from a2a_proxy.model.values import Finding, Observation
from a2a_proxy.observer import Observer
from a2a_proxy.redaction import Redactor
from a2a_proxy.rules.examples.conversation import rpc, rpc_error, rpc_stream
from a2a_proxy.rules.examples.objects import chunk, send, snapshot, status, task
from a2a_proxy.rules.examples.script import Script
from a2a_proxy.rules.state.session_state import SessionState

LIMIT = 3
_AT_ONCE = {"returnImmediately": True}


def _made(name: str) -> Script:
    asked = send(id=f"m-{name}", configuration=_AT_ONCE)
    return rpc("SendMessage", asked, {"task": task("WORKING", id=name)})


_FOLLOWED = rpc_stream(
    "SubscribeToTask",
    {"id": "t1"},
    snapshot("WORKING"),
    chunk("a"),
    chunk("b"),
    status("COMPLETED", second=1),
)


def _replaced(script: Script) -> list[str]:
    """How sure A2A-ART-004 is, a rule about live state that the last stream breaks."""
    observer = Observer(Redactor(b"k" * 32))
    observer._rules.session = SessionState(LIMIT)
    out: list[Observation] = []
    for each in script.make_chunks():
        observer.feed(each, out)
    assert len(observer._rules.session.tasks) <= LIMIT
    return [each.confidence for each in out if type(each) is Finding and each.rule == "A2A-ART-004"]


def test_the_longest_idle_task_is_forgotten():
    """As many tasks as are remembered: all is known of the first. One more: its beginning is
    not."""
    others = [_made(f"t{number}") for number in range(2, LIMIT + 2)]
    remembered = sum(others[:-1], _made("t1"))
    assert _replaced(remembered + _FOLLOWED) == ["high"]
    assert _replaced(remembered + others[-1] + _FOLLOWED) == ["low"]


def test_a_recently_mentioned_task_is_kept():
    """Not the oldest one has to go, but the one of which nothing was heard for longest."""
    told = rpc("GetTask", {"id": "t1"}, task("WORKING"))
    assert _replaced(_made("t1") + _made("t2") + told + _made("t3") + _made("t4") + _FOLLOWED) == [
        "high"
    ]


_DONE = 2


def _ended(name: str) -> Script:
    return rpc("SendMessage", send(id=f"m-{name}"), {"task": task("COMPLETED", id=name)})


def _after_many(script: Script) -> tuple[SessionState, list[str]]:
    """What is known when `script` has passed, and the rules it broke."""
    observer = Observer(Redactor(b"k" * 32))
    observer._rules.session = SessionState(max_finished=_DONE)
    out: list[Observation] = []
    for each in script.make_chunks():
        observer.feed(each, out)
    observer.interrupt_session(each.at + 1, out)
    return observer._rules.session, [each.rule for each in out if type(each) is Finding]


def test_only_the_latest_finished_tasks_are_kept():
    """One that is still at work is, however old it is, and one that was asked for since."""
    read = rpc("GetTask", {"id": "t1"}, task("COMPLETED", id="t1"))
    world, _ = _after_many(_made("t0") + _ended("t1") + _ended("t2") + read + _ended("t3"))
    assert sorted(task_id for _, task_id in world.tasks) == ["t0", "t1", "t3"]
    assert sorted(world.owners) == ["t0", "t1", "t3"]


def test_a_forgotten_task_is_not_unknown():
    """Nobody says of a call about it that the task was never seen."""
    ended = sum((_ended(f"t{number}") for number in range(2, 5)), _ended("t1"))
    for name, flagged in (("t1", False), ("t9", True)):
        lost = rpc("GetTask", {"id": name}, error=rpc_error(-32603, "INTERNAL_ERROR"))
        world, rules = _after_many(ended + lost)
        assert [task_id for _, task_id in world.tasks][:_DONE] == ["t3", "t4"]
        assert ("A2A-ERR-007" in rules) is flagged
