"""The creator of a task, identified by the credentials of the call that created it."""

from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.facts.credentials import principal_digest
from a2a_proxy.rules.state.records import TaskRecord

_OWNER_NOTE = "owner"


def note_owner(context: RuleContext) -> None:
    """Remember the owner of the task if this exchange created it."""
    task = context.task
    if task is None or task.created_by != context.record.id or _OWNER_NOTE in context.cache:
        return
    context.cache[_OWNER_NOTE] = True  # several rules call this
    owner = principal_digest(context.exchange)
    if owner:
        task.writable_notes()[_OWNER_NOTE] = owner


def owner_of(task: TaskRecord) -> str:
    """Return the owner as a `principal_digest`; empty if the call had no credentials or was not
    recorded (`created_by` is 0).
    """
    owner: str = (task.notes or {}).get(_OWNER_NOTE, "")
    return owner
