"""Client messages between two events of a task that has generations: in one proposal they advance its generation.

BIDI-2153 counts every change of a task's timeline, including client messages, but sends clients of 1.0 no event for
them: the generations that they see jump by the number of their own messages (Q-05 in manual/protocol.md).
"""

from __future__ import annotations

from typing import Any

from a2a_proxy.model.exchange import Dialect
from a2a_proxy.protocol.dialect import dialect_of_version
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.families.gen.tracker import Verdict
from a2a_proxy.rules.state.state_sequence import SENDING_OPERATIONS

_MAX_MESSAGES = 32
_PROFILE_SUFFIX = "@live-2153"


def note_client_message(context: RuleContext) -> None:
    """Record when a client sent a message to a task that has generations."""
    record, frame = context.record, context.frame
    if record.operation not in SENDING_OPERATIONS or not (task_id := frame.task_id or record.task_id):
        return
    task = context.session.task_record(record.agent, task_id)
    log = (task.notes or {}).get("gen") if task is not None else None
    if log is None:
        return
    said: list[list[Any]] = log.setdefault("said", [])
    here = [frame.at, record.id, frame.seq]
    if here not in said:
        said.append(here)
        del said[:-_MAX_MESSAGES]


def is_gap_explained(context: RuleContext, gap: Verdict) -> bool:
    """Return whether as many generations are missing as the client sent messages since the last event of this
    stream."""
    task, notes = context.task, context.record.notes or {}
    if task is None or dialect_of_version(context.exchange.version_header) is Dialect.V1_1:
        return False
    after: int = notes["gen"].get("before", 0)
    times: dict[tuple[int, int], int] = {
        (each[1], each[2]): each[0] for each in (task.notes or {})["gen"].get("said", [])
    }
    for record in context.session.exchange_records.values():  # requests that the rules have not seen yet
        request_snapshot = record.request_snapshot
        if (
            request_snapshot is not None
            and request_snapshot.task_id == task.task_id
            and record.operation in SENDING_OPERATIONS
            and record.request
        ):
            times[record.id, record.request.seq] = request_snapshot.at
    count = sum(after < at <= context.at for at in times.values())
    return count == gap.final - gap.first + 1


def is_profile_2153(context: RuleContext) -> bool:
    """Return whether the stream uses the messages of that proposal."""
    request = context.request
    return context.frame.schema.endswith(_PROFILE_SUFFIX) or (
        request is not None and request.schema.endswith(_PROFILE_SUFFIX)
    )
