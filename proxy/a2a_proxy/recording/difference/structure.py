"""Differences of two JSON values, as rows by path. Members are matched by name, lists aligned,
identifiers paired.

JSON values without canonical fields, as a token for alignment and as leaves for similarity.
"""

from __future__ import annotations

import hashlib
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
from a2a_proxy.recording.difference.sequences import align_sequences

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
                change, value = (
                    (ValueChange.LEFT, left[name])
                    if name in left
                    else (ValueChange.RIGHT, right[name])
                )
                opaque = at.inside or name in OPAQUE
                alone = Ignored.NOT if opaque else self._fields.ignored_reason_alone(name, value)
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
