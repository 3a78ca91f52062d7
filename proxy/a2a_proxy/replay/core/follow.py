"""Answers that depend on how far a task has been replayed: a subscription, a poll, a long poll."""

from __future__ import annotations

from typing import Any

import msgspec

from a2a_proxy.model.exchange import Dialect
from a2a_proxy.model.frame import EventKind
from a2a_proxy.recording.difference.fields import members
from a2a_proxy.replay.core.asked import Asked
from a2a_proxy.replay.core.ids import IdMap
from a2a_proxy.replay.core.matching import asked_task
from a2a_proxy.replay.core.options import Policy
from a2a_proxy.replay.core.play import Play
from a2a_proxy.replay.core.script import FOLLOWING, Call, Line, Script, Side, What
from a2a_proxy.replay.core.timeline import Happening, Timeline

_WITHOUT_SNAPSHOT = (Dialect.V0_1, Dialect.V0_2, Dialect.V0_3)


class Poll(msgspec.Struct, frozen=True):
    """An answer that is made when it goes out: the task as it is then."""

    task: str
    beyond: int | None = None
    """A long poll: not before the task has a later generation."""


class Follow:
    """Makes of a recorded call the one that fits the point that the replay has come to."""

    def __init__(self, script: Script, timeline: Timeline) -> None:
        self._script = script
        self._timeline = timeline

    def now(self, call: Call, asked: Asked, plays: list[Play]) -> Call:
        """A recorded call as it is to be played; the same one for all but subscriptions."""
        first = next((line for line in call.answers if line.what is What.MESSAGE), None)
        if call.operation not in FOLLOWING or first is None or not first.task:
            return call
        resumed = self._resumed(first.task, asked)
        if resumed is not None:
            return self._tail(call, first.task, resumed, snapshot=False)
        if self._as_recorded(first, plays):
            return call
        rest = self._timeline.rest(first.task)
        return self._tail(call, first.task, rest, snapshot=first.event is EventKind.TASK)

    def unrecorded(self, asked: Asked, ids: IdMap) -> Call | None:
        """A subscription to a task that clients have been told of, though the recording has none that fits."""
        if asked.operation not in FOLLOWING or not isinstance(asked.value, dict):
            return None
        now = asked.value.get("id") or asked.value.get("taskId")
        task = ids.then("task", now) if isinstance(now, str) else None
        if task is None or not self._timeline.updates(task) or not self._timeline.known(task):
            return None
        source = next(call for call in self._script.calls if call.task == task)
        call = Call(
            place=source.place,
            operation=asked.operation,
            binding=source.binding,
            dialect=source.dialect,
            request={"id": task},
            lines=(Line(number=0, side=Side.AGENT, what=What.END, status=0, place=source.place),),
            agent=source.agent,
            began=self._timeline.time(task),
            status=source.status,
            answer_headers=source.answer_headers,
            streaming=True,
        )
        resumed = self._resumed(task, asked)
        rest = self._timeline.rest(task) if resumed is None else resumed
        snapshot = resumed is None and asked.dialect not in _WITHOUT_SNAPSHOT
        return self._tail(call, task, rest, snapshot=snapshot)

    def poll(self, call: Call, asked: Asked, policy: Policy) -> Poll | None:
        """How a GetTask is to be answered; None: as recorded."""
        task = asked_task(call.request)
        if call.operation != "GetTask" or not self._timeline.updates(task) or not self._timeline.known(task):
            return None
        beyond = _number(asked.value.get("currentGeneration")) if isinstance(asked.value, dict) else None
        if beyond is not None and not self._timeline.later(task, beyond):
            beyond = None
        return Poll(task, beyond) if beyond is not None or policy is Policy.BY_PROGRESS else None

    def waits(self, poll: Poll, plays: list[Play]) -> bool:
        """A long poll that has nothing new to tell, and some other call will bring it."""
        if poll.beyond is None or self._timeline.generation(poll.task) > poll.beyond:
            return False
        return any(step.line.task == poll.task for play in plays if play.poll is None for step in play.pending())

    def answer(self, poll: Poll, recorded: Any) -> Any:
        """The task as it is now; as recorded where a long poll has waited in vain."""
        if poll.beyond is not None and self._timeline.generation(poll.task) <= poll.beyond:
            return recorded
        return {"task": self._timeline.snapshot(poll.task)}

    def _as_recorded(self, first: Line, plays: list[Play]) -> bool:
        """Clients have been told what they had been told when this was recorded, or nobody will tell them the rest."""
        now = self._timeline.reached(first.task)
        then = self._timeline.position(first)
        if self._timeline.same(first.task, now, then):
            return True
        will = any(step.line.task == first.task for play in plays for step in play.pending())
        return now < then and not will

    def _resumed(self, task: str, asked: Asked) -> list[Happening] | None:
        """What comes after the event that the client had last; None where it does not say, or nobody knows it."""
        last = members(asked.headers).get("last-event-id", "")
        return self._timeline.after(task, last) if last else None

    def _tail(self, call: Call, task: str, rest: list[Happening], *, snapshot: bool) -> Call:
        """A subscription from here: the task as it is, what has not been told, and the recorded end, which may be that
        the client leaves."""
        since = self._timeline.time(task)
        lines: list[Line] = []
        found = self._timeline.snapshot(task) if snapshot else None
        if found is not None:
            place = call.place
            lines.append(
                Line(
                    number=0,
                    side=Side.AGENT,
                    what=What.MESSAGE,
                    value={"task": found},
                    event=EventKind.TASK,
                    place=place,
                )
            )
        for number, each in enumerate(rest, 1):
            lines.append(msgspec.structs.replace(each.line, number=number, at=max(each.at - since, 0), after=-1))
        end = next(line for line in reversed(call.lines) if line.over)
        at = lines[-1].at if lines else 0
        lines.append(msgspec.structs.replace(end, number=len(rest) + 1, at=at))
        return msgspec.structs.replace(call, lines=tuple(lines), began=since or call.began)


def _number(value: Any) -> int | None:
    """An int64 as ProtoJSON has it: a number, or a text of digits."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
