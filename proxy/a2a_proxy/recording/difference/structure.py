"""The difference of two JSON values, as rows by path. Objects by name, lists aligned, identifiers paired."""

from __future__ import annotations

from typing import Any

import msgspec

from a2a_proxy.recording.difference.fields import AMBIGUOUS, IDENTIFIERS, OPAQUE, Fields, is_default, without_authority
from a2a_proxy.recording.difference.ids import LEFT, RIGHT, PairedIds, unlabelled
from a2a_proxy.recording.difference.reduced import DEPTH, Reduced, likeness
from a2a_proxy.recording.difference.sequences import align
from a2a_proxy.recording.difference.values import Compared, DifferenceRow, Ignored, Path, ValueChange


class CompareLimits(msgspec.Struct, frozen=True):
    """How much is compared, and how much is told."""

    rows: int = 2000
    """Of those that count, and as many of those that do not."""
    values: int = 200_000
    """Visited in both values together: some 0.5 s."""


def compare(
    left: Any,
    right: Any,
    ids: PairedIds | None = None,
    fields: Fields | None = None,
    limits: CompareLimits | None = None,
) -> Compared:
    """What differs between two JSON values.

    `ids` is asked and taught which identifier stands for which. All differences are told, those of canonical fields
    with the reason why they do not count. Cost: linear in the values' size but for lists (see `sequences`).
    """
    walk = _Comparison(ids or PairedIds(), fields or Fields(), limits or CompareLimits())
    walk.value(left, right, _At())
    return Compared(tuple(walk.rows), tuple(walk.cut))


class _At(msgspec.Struct, frozen=True):
    """A place in both values."""

    left: Path = ()
    right: Path = ()
    name: str = ""
    """The nearest name above."""
    opaque: bool = False
    holder: dict[str, Any] | None = None
    """What it is a member of, of both sides; only where that tells what kind of identifier it is."""
    ignored: Ignored = Ignored.NOT
    """Of all that is in it."""

    def member(self, name: str, left: dict[str, Any], right: dict[str, Any], ignored: Ignored) -> _At:
        holder = {**left, **right} if name in AMBIGUOUS else None
        return _At((*self.left, name), (*self.right, name), name, self.inside, holder, self.ignored or ignored)

    def item(self, left: int, right: int) -> _At:
        return msgspec.structs.replace(self, left=(*self.left, left), right=(*self.right, right))

    @property
    def inside(self) -> bool:
        """What is in it is the peers' own."""
        return self.opaque or self.name in OPAQUE


class _Comparison:
    """One comparison."""

    def __init__(self, ids: PairedIds, fields: Fields, limits: CompareLimits) -> None:
        self._ids = ids
        self._fields = fields
        self._limits = limits
        self._reduced = Reduced(ids, fields, LEFT), Reduced(ids, fields, RIGHT)
        self._visited = 0
        self._told = [0, 0]
        self.rows: list[DifferenceRow] = []
        self.cut: list[str] = []

    def value(self, left: Any, right: Any, at: _At) -> None:
        """Two values that stand for each other."""
        self._visited += 1
        if self._visited > self._limits.values or len(at.left) > DEPTH:
            self._say("compared by value alone where there was too much, or it was too deep")
            if not _equal(left, right):
                self._tell(ValueChange.CHANGED, at, left, right)
        elif isinstance(left, dict) and isinstance(right, dict):
            self._object(left, right, at)
        elif isinstance(left, list) and isinstance(right, list):
            self._list(left, right, at)
        elif isinstance(left, str) and isinstance(right, str):
            self._text(left, right, at)
        elif not _equal(left, right):
            self._tell(ValueChange.CHANGED, at, left, right, self._default(left, right, at))

    def _object(self, left: dict[str, Any], right: dict[str, Any], at: _At) -> None:
        for name in sorted(left.keys() | right.keys(), key=_identifiers_first):
            ignored = self._fields.ignored(name)
            if at.inside and ignored is not Ignored.TRACE:
                ignored = Ignored.NOT
            inner = at.member(name, left, right, ignored)
            if name in left and name in right:
                self.value(left[name], right[name], inner)
            else:
                change, said = (ValueChange.LEFT, left[name]) if name in left else (ValueChange.RIGHT, right[name])
                opaque = at.inside or name in OPAQUE
                alone = Ignored.NOT if opaque else self._fields.ignored_alone(name, said)
                self._tell(change, inner, left.get(name), right.get(name), alone)

    def _list(self, left: list[Any], right: list[Any], at: _At) -> None:
        self._visited += len(left) + len(right)
        if _identical(left, right):
            self._learn(left, at.name, at.inside)
            return
        sides = [
            [reduced.item(item, at.name, at.inside) for item in items]
            for reduced, items in zip(self._reduced, (left, right), strict=True)
        ]

        def alike(i: int, j: int) -> int:
            return likeness(sides[LEFT][i].leaves, sides[RIGHT][j].leaves)

        found = align([item.token for item in sides[LEFT]], [item.token for item in sides[RIGHT]], alike)
        if found.coarse:
            self._say(f"lists of {len(left)} and {len(right)} items aligned coarsely")
        for i, j in found.pairs:
            self.value(left[i], right[j], at.item(i, j))
        for i, j in found.moved:
            self._tell(ValueChange.MOVED, at.item(i, j), left[i], right[j])
            self.value(left[i], right[j], at.item(i, j))
        taken = {i for i, _ in (*found.pairs, *found.moved)}, {j for _, j in (*found.pairs, *found.moved)}
        for i, item in enumerate(left):
            if i not in taken[0]:
                self._tell(ValueChange.LEFT, at.item(i, 0), item, None)
        for j, item in enumerate(right):
            if j not in taken[1]:
                self._tell(ValueChange.RIGHT, at.item(0, j), None, item)

    def _learn(self, value: Any, name: str, opaque: bool, holder: dict[str, Any] | None = None, depth: int = 0) -> None:
        """Both sides have this very value: the identifiers in it stand for themselves."""
        if opaque or name in OPAQUE or depth > DEPTH:
            return
        if isinstance(value, dict):
            for member, item in value.items():
                self._learn(item, member, opaque, value, depth + 1)
        elif isinstance(value, list):
            for item in value:
                self._learn(item, name, opaque, holder, depth + 1)
        elif isinstance(value, str) and (kind := self._fields.id_kind(name, holder)) and value:
            self._ids.pair(kind, value, value)

    def _text(self, left: str, right: str, at: _At) -> None:
        kind = "" if at.inside else self._fields.id_kind(at.name, at.holder)
        if kind and left and right:
            paired = self._ids.pair(kind, left, right)
            if left != right:
                self._tell(ValueChange.CHANGED, at, left, right, Ignored.ID if paired else Ignored.NOT)
        elif left != right:
            self._tell(
                ValueChange.CHANGED,
                at,
                left,
                right,
                self._default(left, right, at) or self._ignored_text(left, right, at),
            )

    def _ignored_text(self, left: str, right: str, at: _At) -> Ignored:
        one, other = self._ids.neutral(LEFT, left), self._ids.neutral(RIGHT, right)
        if one == other:
            return Ignored.ID
        if unlabelled(one) == unlabelled(other):
            return Ignored.SECRET
        if not at.inside and self._fields.is_address(at.name) and without_authority(one) == without_authority(other):
            return Ignored.ADDRESS
        return Ignored.NOT

    def _default(self, left: Any, right: Any, at: _At) -> Ignored:
        plain = at.inside or self._fields.plain or not at.left or isinstance(at.left[-1], int)
        return Ignored.DEFAULT if not plain and is_default(left) and is_default(right) else Ignored.NOT

    def _tell(self, change: ValueChange, at: _At, left: Any, right: Any, ignored: Ignored = Ignored.NOT) -> None:
        ignored = at.ignored or ignored
        self._told[bool(ignored)] += 1
        if self._told[bool(ignored)] > self._limits.rows:
            if not ignored:
                self._say(f"more than {self._limits.rows} differences: the others are not told")
            return
        alone = bool(at.left) and isinstance(at.left[-1], int)
        places = (
            None if alone and change is ValueChange.RIGHT else at.left,
            None if alone and change is ValueChange.LEFT else at.right,
        )
        self.rows.append(DifferenceRow(change, *places, left, right, ignored))

    def _say(self, what: str) -> None:
        if what not in self.cut:
            self.cut.append(what)


def _identifiers_first(name: str) -> tuple[bool, str]:
    """Texts beside them may name them."""
    return name not in IDENTIFIERS, name


def _identical(left: Any, right: Any) -> bool:
    """The same in every respect; False also where it is nested too deeply to tell at once."""
    try:
        return bool(left == right) and repr(left) == repr(right)
    except RecursionError:
        return False


def _equal(left: Any, right: Any) -> bool:
    """As JSON: `true` is not 1, but 1.0 is."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    try:
        return bool(left == right)
    except RecursionError:
        return False
