"""The changes of the mutations, made in recorded conversations with frameworks.

A change knows the story of the samples that it is written for. Where a framework's conversation has
the place that it needs, the change must be found there too, or `tests/mutations/frameworks.toml`
says why it is not.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType
from typing import Any

from support_mutations import (
    MUTATIONS,
    Mutation,
    Outcome,
    Place,
    Talk,
    causes_of,
    compare,
    load_mutations,
    places,
    prepared,
    unchanged,
)

LIKE = {
    "adk": "sdk-1.x-jsonrpc",
    "fasta2a": "sdk-1.x-jsonrpc",
    "langgraph": "sdk-1.x-jsonrpc",
    "handler": "sdk-1.x-rest",
    "a2akit": "sdk-0.3-jsonrpc",
    "agno": "sdk-0.3-jsonrpc",
    "js03": "sdk-0.3-jsonrpc",
    "beeai-jsonrpc": "sdk-0.3-jsonrpc",
    "a2akit-rest": "sdk-0.3-rest",
    "beeai": "sdk-0.3-grpc",
}
"""Framework -> the sample of the same version and binding, whose changes are made. 0.1 (python-a2a)
has none."""
_EXPLAINED = Path(__file__).parent / "mutations" / "frameworks.toml"
_MAX_INDEX = 12
"""Constants of the mutations below this number are indices of events in the stream of the SDK's
story."""


@dataclass
class Sum:
    """What became of the changes in one conversation."""

    mutations: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    """`found`, `misplaced`, `missed` and `unexpected` findings."""
    differing: dict[str, Outcome] = field(default_factory=dict)
    """Name of a change -> its outcome, where anything is misplaced, missed or unexpected."""


def explained(framework: str) -> dict[str, str]:
    """Return the changes that are not found as elsewhere in this conversation, each with the
    reason."""
    table = tomllib.loads(_EXPLAINED.read_text())["explained"]
    return {
        change: row["why"]
        for row in table
        for change, known in row["changes"].items()
        if framework in known
    }


def apply_all(framework: str) -> Sum:
    """Make each change for which there is a place in the conversation with this framework."""
    load_mutations()
    total = Sum()
    for each in MUTATIONS:
        if each.sample != LIKE[framework] or _names_an_index(each.change):
            continue
        outcome = _judge(f"frameworks/{framework}", each)
        if outcome is None:
            continue
        total.mutations += 1
        total.counts.update({name: len(found) for name, found in _columns(outcome)})
        if outcome.misplaced or outcome.missed or outcome.unexpected:
            total.differing[each.name.removesuffix(f"-{each.sample}")] = outcome
    return total


def _columns(outcome: Outcome) -> Iterator[tuple[str, list[Place]]]:
    yield "found", outcome.found
    yield "misplaced", outcome.misplaced
    yield "missed", outcome.missed
    yield "unexpected", outcome.unexpected


def _judge(sample: str, each: Mutation) -> Outcome | None:
    """Return the outcome of a change; None if the conversation has no place for it."""
    try:
        talk = prepared(sample, each.prepare)
        wanted = Counter(place for want in each.change(talk) for place in want.places())
    except Exception:  # what a change looks for is not there, or has another form
        return None
    if not wanted:
        return None
    causes = causes_of(wanted)
    now, before = places(talk, causes), unchanged(sample, each.prepare, causes)
    # A finding that was there before in the same place is found too.
    return compare(wanted, wanted & now | now - before)


def _names_an_index(change: Callable[[Talk], Iterable[Any]]) -> bool:
    """Return whether the change names an event of the SDK's story by its number."""
    known = change.__globals__
    return any(
        name.isupper() and type(known.get(name)) is int and 0 <= known[name] < _MAX_INDEX
        for name in _global_names(change.__code__)
    )


def _global_names(code: CodeType) -> set[str]:
    inner = (each for each in code.co_consts if isinstance(each, CodeType))
    return set(code.co_names).union(*map(_global_names, inner))
