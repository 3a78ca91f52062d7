"""Who created a task, by the credentials of the call that did."""

from __future__ import annotations

from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.facts.credentials import principal
from a2a_proxy.rules.state.records import TaskRecord

_KEY = "owner"


def note_owner(see: RuleContext) -> None:
    """Remember whose task this answer has created; a call that only tells of it creates nothing."""
    task = see.task
    if task is None or task.born != see.track.id or _KEY in see.cache:
        return
    see.cache[_KEY] = True  # several rules ask for this
    owner = principal(see.exchange)
    if owner:
        task.remember()[_KEY] = owner


def owner_of(task: TaskRecord) -> str:
    """As `principal` names them; empty where the call had no credentials, or was not seen (`task.born` is 0)."""
    owner: str = (task.notes or {}).get(_KEY, "")
    return owner
