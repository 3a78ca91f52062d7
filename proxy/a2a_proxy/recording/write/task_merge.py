"""A task that was forgotten and came again: what the file knows of it and what is known now, as one."""

from __future__ import annotations

from a2a_proxy.model.task import ArtifactState, MissedGenerations, Task
from a2a_proxy.protocol.generation import MAX_MISSED, union_of_ranges
from a2a_proxy.protocol.task import MAX_EXCHANGES, MAX_STATES


def merge_tasks(old: Task, new: Task) -> Task:
    """Both views of a task, of which the `new` one began when the `old` one had ended.

    Joining the outcome with `new` again, or with what `new` has become, adds nothing twice. The price: messages are
    not added up, since nobody knows which of them the other view has counted.
    """
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
        _merge_missed(old, new),
        new.support or old.support,
        _merge_artifacts(old, new),
        max(old.messages, new.messages),
        tuple(dict.fromkeys((*old.exchanges, *new.exchanges)))[-MAX_EXCHANGES:],
    )


def _merge_states(old: Task, new: Task) -> tuple[tuple[int, int], ...]:
    """In order of time. The state that the new view found is no change where the old one ended in it."""
    states: list[tuple[int, int]] = []
    for at, state in sorted({*old.states, *new.states}):
        if not states or states[-1][1] != state:
            states.append((at, state))
    return tuple(states[-MAX_STATES:])


def _merge_missed(old: Task, new: Task) -> tuple[MissedGenerations, ...]:
    """Each run once, as the new view has it: since then it may have been made good."""
    found = {(each.exchange, each.at, each.first): each for each in (*old.missed, *new.missed)}
    return tuple(found.values())[-MAX_MISSED:]


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
