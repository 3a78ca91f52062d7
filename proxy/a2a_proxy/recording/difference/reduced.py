"""JSON values without canonical fields, as a token for alignment and as leaves for similarity."""

from __future__ import annotations

import hashlib
from typing import Any

from a2a_proxy.recording.difference.fields import (
    MAX_DEPTH,
    OPAQUE,
    CanonicalFields,
    Ignored,
    is_default,
    without_authority,
)
from a2a_proxy.recording.difference.ids import PairedIds, neutralize_labels

_MAX_LEAVES = 64
_TOO_DEEP = "nested too deeply"

_PART_KINDS = ("text", "raw", "url", "data")


Leaves = tuple[str, frozenset[Any]]
"""The kind of a value, and its first leaves, each with its name."""


class ReducedItem:
    """A value without its canonical fields."""

    __slots__ = ("_kind", "_leaves", "_reduced", "token")

    def __init__(self, kind: str, reduced: Any) -> None:
        self._kind = kind
        self._reduced = reduced
        self._leaves: Leaves | None = None
        encoded = repr(reduced).encode("utf-8", "surrogatepass")
        self.token = hashlib.blake2b(encoded, digest_size=12).digest()
        """Equal for values that have no difference that counts."""

    @property
    def leaves(self) -> Leaves:
        """Leaves for `measure_likeness`, computed on first use."""
        if self._leaves is None:
            found: list[Any] = []
            _collect_leaves(self._reduced, "", found)
            self._leaves = self._kind, frozenset(found)
        return self._leaves


class ValueReducer:
    """Reduces values of one side. Both identifiers of a pair become the same, those without partner
    are all equal."""

    def __init__(self, ids: PairedIds, fields: CanonicalFields, side: int) -> None:
        self._ids = ids
        self._fields = fields
        self._side = side
        self._reasons: dict[str, Ignored] = {}

    def reduce_item(self, value: Any, name: str = "", opaque: bool = False) -> ReducedItem:
        """Return a value reduced for alignment with others."""
        return ReducedItem(kind_label(value), self._reduce_value(value, name, None, opaque, 0))

    def _reduce_value(
        self, value: Any, name: str, holder: dict[str, Any] | None, opaque: bool, depth: int
    ) -> Any:
        if depth > MAX_DEPTH:
            return _TOO_DEEP
        if isinstance(value, dict):
            inner = opaque or name in OPAQUE
            members = sorted(value.items())
            return {
                key: self._reduce_value(item, key, value, inner, depth + 1)
                for key, item in members
                if not self._is_dropped(key, item, inner)
            }
        if isinstance(value, list):
            return [self._reduce_value(item, name, holder, opaque, depth + 1) for item in value]
        return self._reduce_scalar(value, name, holder, opaque)

    def _is_dropped(self, name: str, value: Any, opaque: bool) -> bool:
        why = self._reasons.get(name)
        if why is None:
            why = self._reasons[name] = self._fields.ignored_reason(name)
        if opaque:
            return why is Ignored.TRACE
        return bool(why) or (not self._fields.plain and name not in OPAQUE and is_default(value))

    def _reduce_scalar(
        self, value: Any, name: str, holder: dict[str, Any] | None, opaque: bool
    ) -> Any:
        if isinstance(value, float) and value.is_integer():
            return int(value)
        if not isinstance(value, str):
            return value
        kind = "" if opaque else self._fields.id_kind(name, holder)
        if kind and value:
            return (kind, self._ids.neutralize_id(self._side, kind, value))
        text = neutralize_labels(self._ids.neutralize_text(self._side, value))
        return without_authority(text) if not opaque and self._fields.is_address(name) else text


def bound_depth(value: Any, depth: int = 2 * MAX_DEPTH) -> Any:
    """Return a value in which content nested too deeply for recursion is replaced. It would not be
    compared anyway."""
    if not depth:
        return _TOO_DEEP if isinstance(value, dict | list) else value
    if isinstance(value, dict):
        return {key: bound_depth(item, depth - 1) for key, item in value.items()}
    return [bound_depth(item, depth - 1) for item in value] if isinstance(value, list) else value


def kind_label(value: Any) -> str:
    """Return the kind of a value: `{statusUpdate}` of an event, `{text}` of a part, otherwise its
    JSON type."""
    if isinstance(value, dict):
        if len(value) == 1:
            return f"{{{next(iter(value))}}}"
        return next((f"{{{kind}}}" for kind in _PART_KINDS if kind in value), "{}")
    if isinstance(value, list):
        return "[]"
    return "scalar"


def _collect_leaves(value: Any, name: str, leaves: list[Any]) -> None:
    if len(leaves) >= _MAX_LEAVES:
        return
    if isinstance(value, dict):
        for key, item in value.items():
            _collect_leaves(item, key, leaves)
    elif isinstance(value, list):
        for item in value:
            _collect_leaves(item, name, leaves)
    else:
        leaves.append((name, value))


def measure_likeness(one: Leaves, other: Leaves) -> int:
    """Return 0 for values of different kinds, otherwise a number that grows with the share of
    common leaves."""
    if one[0] != other[0]:
        return 0
    every = len(one[1] | other[1])
    return 1000 + (1000 * len(one[1] & other[1]) // every if every else 0)
