"""Merge of a task that was dropped from memory and seen again with its stored state."""

from typing import Any, TypeVar

from a2a_proxy.model.values import ArtifactState, Task
from a2a_proxy.protocol.generation import MAX_MISSED
from a2a_proxy.protocol.generation_ranges import union_of_ranges
from a2a_proxy.protocol.task import MAX_EXCHANGES, MAX_STATES

_Value = TypeVar("_Value", Task, ArtifactState)


def merge_tasks(old: Task, new: Task) -> Task:
    """Return the union of two views of a task. `new` began after `old` ended.

    Merging the result with `new` again, or with a later view of `new`, adds nothing twice. In
    exchange, messages are not added up, because it is unknown which of them the other view has
    counted.
    """
    # Each gap once, in its new version, because it may have been filled since.
    found = {(each.exchange, each.at, each.first): each for each in (*old.missed, *new.missed)}
    return _merge_values(
        old,
        new,
        state=new.state or old.state,
        states=_merge_states(old, new),
        seen=union_of_ranges(old.seen, new.seen),
        missed=tuple(found.values())[-MAX_MISSED:],
        support=new.support or old.support,
        artifacts=_merge_artifacts(old, new),
        exchanges=tuple(dict.fromkeys((*old.exchanges, *new.exchanges)))[-MAX_EXCHANGES:],
    )


def _merge_values(old: _Value, new: _Value, **merged: Any) -> _Value:
    """Return the union of two views: the value of each field in `merged`, the beginning and the
    texts of the old view as far as it has them, and the higher of each two other numbers."""
    for name in set(old.__struct_fields__) - merged.keys():
        before, after = getattr(old, name), getattr(new, name)
        is_kept = isinstance(before, str) or name == "first"
        merged[name] = before or after if is_kept else max(before, after)
    return type(old)(**merged)


def _merge_states(old: Task, new: Task) -> tuple[tuple[int, int], ...]:
    """Return the states in order of time.

    If the new view starts with the state in which the old one ended, it is no change.
    """
    states: list[tuple[int, int]] = []
    for at, state in sorted({*old.states, *new.states}):
        if not states or states[-1][1] != state:
            states.append((at, state))
    return tuple(states[-MAX_STATES:])


def _merge_artifacts(old: Task, new: Task) -> tuple[ArtifactState, ...]:
    found = {each.artifact_id: each for each in old.artifacts}
    for each in new.artifacts:
        known = found.get(each.artifact_id)
        found[each.artifact_id] = each if known is None else _merge_values(known, each)
    return tuple(found.values())
