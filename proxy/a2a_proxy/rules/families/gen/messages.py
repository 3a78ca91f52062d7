"""Client messages that come between two events of a numbered task: in one proposal they advance its generation.

BIDI-2153 counts every change of a task's timeline, what the client says as well, and tells clients of 1.0 nothing of
it: their numbers jump by the messages that they have sent themselves (Q-05 in manual/protocol.md).
"""

from __future__ import annotations

from typing import Any

from a2a_proxy.model.exchange import Dialect
from a2a_proxy.protocol.dialect import dialect_of_version
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.families.gen.tracker import Verdict
from a2a_proxy.rules.state.state_sequence import SENDING_OPERATIONS

_MAX_SAID = 32
_PROFILE = "@live-2153"


def note_message(see: RuleContext) -> None:
    """Remember when a client said something to a task that is numbered."""
    track, frame = see.track, see.frame
    if track.operation not in SENDING_OPERATIONS or not (task_id := frame.task_id or track.task_id):
        return
    task = see.world.task(track.agent, task_id)
    log = (task.notes or {}).get("gen") if task is not None else None
    if log is None:
        return
    said: list[list[Any]] = log.setdefault("said", [])
    here = [frame.at, track.id, frame.seq]
    if here not in said:
        said.append(here)
        del said[:-_MAX_SAID]


def explains(see: RuleContext, gap: Verdict) -> bool:
    """As many messages came since the last number of this stream as numbers are left out."""
    task, notes = see.task, see.track.notes or {}
    if task is None or dialect_of_version(see.exchange.version_header) is Dialect.V1_1:
        return False
    after: int = notes["gen"].get("before", 0)
    times: dict[tuple[int, int], int] = {
        (each[1], each[2]): each[0] for each in (task.notes or {})["gen"].get("said", [])
    }
    for track in see.world.tracks.values():  # those whose requests are not judged yet
        asked = track.asked
        if asked is not None and asked.task_id == task.task_id and track.operation in SENDING_OPERATIONS and track.request:
            times[track.id, track.request.seq] = asked.at
    count = sum(after < at <= see.at for at in times.values())
    return count == gap.final - gap.first + 1


def profile_2153(see: RuleContext) -> bool:
    """The stream is one of that proposal."""
    request = see.request
    return see.frame.schema.endswith(_PROFILE) or (request is not None and request.schema.endswith(_PROFILE))
