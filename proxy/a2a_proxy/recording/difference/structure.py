"""Differences of two JSON values, as rows by path. Members are matched by name, lists aligned,
identifiers paired."""

from __future__ import annotations

from typing import Any

import msgspec

from a2a_proxy.recording.difference.fields import (
    AMBIGUOUS,
    IDENTIFIERS,
    MAX_DEPTH,
    OPAQUE,
    CanonicalFields,
    CompareResult,
    DifferenceRow,
    Ignored,
    Path,
    ValueChange,
    is_default,
    without_authority,
)
from a2a_proxy.recording.difference.ids import (
    LEFT,
    RIGHT,
    PairedIds,
    iter_identifiers,
    neutralize_labels,
)
from a2a_proxy.recording.difference.reduced import ValueReducer, measure_likeness
from a2a_proxy.recording.difference.sequences import align_sequences


class CompareLimits(msgspec.Struct, frozen=True):
    """Limits of a comparison."""

    rows: int = 2000
    """Maximum number of rows that count, and of rows that do not."""
    values: int = 200_000
    """Maximum number of visited values, of both sides together: about 0.5 s."""


def compare_values(
    left: Any,
    right: Any,
    ids: PairedIds | None = None,
    fields: CanonicalFields | None = None,
    limits: CompareLimits | None = None,
) -> CompareResult:
    """Return the differences of two JSON values.

    Identifiers are paired through `ids`, which is updated. Differences in canonical fields are
    included, with the reason why they do not count. Takes time linear in the size of the values,
    except for lists (see `sequences`).
    """
    walk = _Comparison(ids or PairedIds(), fields or CanonicalFields(), limits or CompareLimits())
    walk.compare_value(left, right, _ValuePlace())
    return CompareResult(tuple(walk.rows), tuple(walk.cut))


class _ValuePlace(msgspec.Struct, frozen=True):
    """A position in both values."""

    left: Path = ()
    right: Path = ()
    name: str = ""
    """The nearest member name above."""
    opaque: bool = False
    holder: dict[str, Any] | None = None
    """The object that contains the value, merged from both sides; only if it determines the kind of
    an identifier."""
    ignored: Ignored = Ignored.NOT
    """Applies to everything in the value."""

    def enter_member(
        self, name: str, left: dict[str, Any], right: dict[str, Any], ignored: Ignored
    ) -> _ValuePlace:
        holder = {**left, **right} if name in AMBIGUOUS else None
        return _ValuePlace(
            (*self.left, name),
            (*self.right, name),
            name,
            self.inside,
            holder,
            self.ignored or ignored,
        )

    def enter_item(self, left: int, right: int) -> _ValuePlace:
        return msgspec.structs.replace(self, left=(*self.left, left), right=(*self.right, right))

    @property
    def inside(self) -> bool:
        """Whether the content belongs to the peers."""
        return self.opaque or self.name in OPAQUE


class _Comparison:
    """One comparison of two values."""

    def __init__(self, ids: PairedIds, fields: CanonicalFields, limits: CompareLimits) -> None:
        self._ids = ids
        self._fields = fields
        self._limits = limits
        self._reduced = ValueReducer(ids, fields, LEFT), ValueReducer(ids, fields, RIGHT)
        self._visited = 0
        self._row_counts = [0, 0]
        self.rows: list[DifferenceRow] = []
        self.cut: list[str] = []

    def compare_value(self, left: Any, right: Any, at: _ValuePlace) -> None:
        """Compare two corresponding values."""
        self._visited += 1
        if self._visited > self._limits.values or len(at.left) > MAX_DEPTH:
            self._note_cut("values beyond the limit of size or depth were only tested for equality")
            if not _is_equal(left, right):
                self._add_row(ValueChange.CHANGED, at, left, right)
        elif isinstance(left, dict) and isinstance(right, dict):
            self._compare_objects(left, right, at)
        elif isinstance(left, list) and isinstance(right, list):
            self._compare_lists(left, right, at)
        elif isinstance(left, str) and isinstance(right, str):
            self._compare_texts(left, right, at)
        elif not _is_equal(left, right):
            self._add_row(
                ValueChange.CHANGED, at, left, right, self._default_ignored_reason(left, right, at)
            )

    def _compare_objects(
        self, left: dict[str, Any], right: dict[str, Any], at: _ValuePlace
    ) -> None:
        for name in sorted(left.keys() | right.keys(), key=_identifiers_first):
            ignored = self._fields.ignored_reason(name)
            if at.inside and ignored is not Ignored.TRACE:
                ignored = Ignored.NOT
            inner = at.enter_member(name, left, right, ignored)
            if name in left and name in right:
                self.compare_value(left[name], right[name], inner)
            else:
                change, said = (
                    (ValueChange.LEFT, left[name])
                    if name in left
                    else (ValueChange.RIGHT, right[name])
                )
                opaque = at.inside or name in OPAQUE
                alone = Ignored.NOT if opaque else self._fields.ignored_reason_alone(name, said)
                self._add_row(change, inner, left.get(name), right.get(name), alone)

    def _compare_lists(self, left: list[Any], right: list[Any], at: _ValuePlace) -> None:
        self._visited += len(left) + len(right)
        if _is_identical(left, right):
            if not at.inside:
                for _, kind, identifier in iter_identifiers(left, self._fields, at.name):
                    self._ids.pair_ids(kind, identifier, identifier)
            return
        sides = [
            [reduced.reduce_item(item, at.name, at.inside) for item in items]
            for reduced, items in zip(self._reduced, (left, right), strict=True)
        ]

        def alike(i: int, j: int) -> int:
            return measure_likeness(sides[LEFT][i].leaves, sides[RIGHT][j].leaves)

        found = align_sequences(
            [item.token for item in sides[LEFT]], [item.token for item in sides[RIGHT]], alike
        )
        if found.coarse:
            self._note_cut(f"lists of {len(left)} and {len(right)} items aligned coarsely")
        for i, j in found.pairs:
            self.compare_value(left[i], right[j], at.enter_item(i, j))
        for i, j in found.moved:
            self._add_row(ValueChange.MOVED, at.enter_item(i, j), left[i], right[j])
            self.compare_value(left[i], right[j], at.enter_item(i, j))
        taken = (
            {i for i, _ in (*found.pairs, *found.moved)},
            {j for _, j in (*found.pairs, *found.moved)},
        )
        for i, item in enumerate(left):
            if i not in taken[0]:
                self._add_row(ValueChange.LEFT, at.enter_item(i, 0), item, None)
        for j, item in enumerate(right):
            if j not in taken[1]:
                self._add_row(ValueChange.RIGHT, at.enter_item(0, j), None, item)

    def _compare_texts(self, left: str, right: str, at: _ValuePlace) -> None:
        kind = "" if at.inside else self._fields.id_kind(at.name, at.holder)
        if kind and left and right:
            paired = self._ids.pair_ids(kind, left, right)
            if left != right:
                self._add_row(
                    ValueChange.CHANGED, at, left, right, Ignored.ID if paired else Ignored.NOT
                )
        elif left != right:
            self._add_row(
                ValueChange.CHANGED,
                at,
                left,
                right,
                self._default_ignored_reason(left, right, at)
                or self._text_ignored_reason(left, right, at),
            )

    def _text_ignored_reason(self, left: str, right: str, at: _ValuePlace) -> Ignored:
        one, other = self._ids.neutralize_text(LEFT, left), self._ids.neutralize_text(RIGHT, right)
        if one == other:
            return Ignored.ID
        if neutralize_labels(one) == neutralize_labels(other):
            return Ignored.SECRET
        if (
            not at.inside
            and self._fields.is_address(at.name)
            and without_authority(one) == without_authority(other)
        ):
            return Ignored.ADDRESS
        return Ignored.NOT

    def _default_ignored_reason(self, left: Any, right: Any, at: _ValuePlace) -> Ignored:
        plain = at.inside or self._fields.plain or not at.left or isinstance(at.left[-1], int)
        return (
            Ignored.DEFAULT if not plain and is_default(left) and is_default(right) else Ignored.NOT
        )

    def _add_row(
        self,
        change: ValueChange,
        at: _ValuePlace,
        left: Any,
        right: Any,
        ignored: Ignored = Ignored.NOT,
    ) -> None:
        ignored = at.ignored or ignored
        self._row_counts[bool(ignored)] += 1
        if self._row_counts[bool(ignored)] > self._limits.rows:
            if not ignored:
                self._note_cut(
                    f"more than {self._limits.rows} differences: the others are not shown"
                )
            return
        alone = bool(at.left) and isinstance(at.left[-1], int)
        places = (
            None if alone and change is ValueChange.RIGHT else at.left,
            None if alone and change is ValueChange.LEFT else at.right,
        )
        self.rows.append(DifferenceRow(change, *places, left, right, ignored))

    def _note_cut(self, what: str) -> None:
        if what not in self.cut:
            self.cut.append(what)


def _identifiers_first(name: str) -> tuple[bool, str]:
    """Sort identifiers first, because texts of the same object may contain them."""
    return name not in IDENTIFIERS, name


def _is_identical(left: Any, right: Any) -> bool:
    """Whether the values are the same in every respect. False also if they are nested too deeply to
    compare."""
    try:
        return bool(left == right) and repr(left) == repr(right)
    except RecursionError:
        return False


def _is_equal(left: Any, right: Any) -> bool:
    """Whether the values are equal as JSON: `true` is not 1, but 1.0 is."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    try:
        return bool(left == right)
    except RecursionError:
        return False
