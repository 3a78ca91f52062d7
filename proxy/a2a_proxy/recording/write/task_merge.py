"""Merge of a task that was dropped from memory and seen again with its stored state."""

from a2a_proxy.model.values import ArtifactState, Task
from a2a_proxy.protocol.generation import MAX_MISSED
from a2a_proxy.protocol.generation_ranges import union_of_ranges
from a2a_proxy.protocol.task import MAX_EXCHANGES, MAX_STATES


def merge_tasks(old: Task, new: Task) -> Task:
    """Return the union of two views of a task. `new` began after `old` ended.

    Merging the result with `new` again, or with a later view of `new`, adds nothing twice. In
    exchange, messages are not added up, because it is unknown which of them the other view has
    counted.
    """
    # Each gap once, in its new version, because it may have been filled since.
    found = {(each.exchange, each.at, each.first): each for each in (*old.missed, *new.missed)}
    return Task(
        old.agent,
        old.task_id,
        old.context_id or new.context_id,
        old.tenant or new.tenant,
        new.state or old.state,
        _merge_states(old, new),
        old.first,
        max(old.last, new.last),
        max(old.generation, new.generation),
        union_of_ranges(old.seen, new.seen),
        tuple(found.values())[-MAX_MISSED:],
        new.support or old.support,
        _merge_artifacts(old, new),
        max(old.messages, new.messages),
        tuple(dict.fromkeys((*old.exchanges, *new.exchanges)))[-MAX_EXCHANGES:],
    )


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
        found[each.artifact_id] = each if known is None else _merge_artifact(known, each)
    return tuple(found.values())


def _merge_artifact(old: ArtifactState, new: ArtifactState) -> ArtifactState:
    return ArtifactState(
        old.artifact_id,
        old.name or new.name,
        max(old.chunks, new.chunks),
        max(old.parts, new.parts),
        max(old.size, new.size),
        old.complete or new.complete,
        old.first,
        max(old.last, new.last),
    )
