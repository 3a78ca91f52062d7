"""More tasks than are remembered: the one idle for longest is forgotten, and what is said of it later is less sure."""

from __future__ import annotations

from a2a_proxy.model.finding import Finding
from a2a_proxy.model.observation import Observation
from a2a_proxy.observer import Observer
from a2a_proxy.redaction import Redactor
from a2a_proxy.rules.examples.objects import chunk, send, snapshot, status, task
from a2a_proxy.rules.examples.script import Script
from a2a_proxy.rules.examples.talk import rpc, rpc_stream
from a2a_proxy.rules.world import World

LIMIT = 3
_AT_ONCE = {"returnImmediately": True}


def _made(name: str) -> Script:
    asked = send(id=f"m-{name}", configuration=_AT_ONCE)
    return rpc("SendMessage", asked, {"task": task("WORKING", id=name)})


_FOLLOWED = rpc_stream(
    "SubscribeToTask", {"id": "t1"}, snapshot("WORKING"), chunk("a"), chunk("b"), status("COMPLETED", second=1)
)


def _replaced(script: Script) -> list[str]:
    """How sure A2A-ART-004 is, a rule about live state that the last stream breaks."""
    observer = Observer(Redactor(b"k" * 32))
    observer._rules.world = World(LIMIT)
    out: list[Observation] = []
    for each in script.chunks():
        observer.feed(each, out)
    assert len(observer._rules.world.tasks) <= LIMIT
    return [each.confidence for each in out if type(each) is Finding and each.rule == "A2A-ART-004"]


def test_the_task_idle_for_longest_makes_room():
    """As many tasks as are remembered: all is known of the first. One more: its beginning is not."""
    others = [_made(f"t{number}") for number in range(2, LIMIT + 2)]
    remembered = sum(others[:-1], _made("t1"))
    assert _replaced(remembered + _FOLLOWED) == ["high"]
    assert _replaced(remembered + others[-1] + _FOLLOWED) == ["low"]


def test_a_task_that_was_told_of_since_stays():
    """Not the oldest one has to go, but the one of which nothing was heard for longest."""
    told = rpc("GetTask", {"id": "t1"}, task("WORKING"))
    assert _replaced(_made("t1") + _made("t2") + told + _made("t3") + _made("t4") + _FOLLOWED) == ["high"]
