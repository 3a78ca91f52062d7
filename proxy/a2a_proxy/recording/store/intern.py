"""Row numbers of values that repeat and are stored once: texts, identifiers, shapes. Used by
writers.

The caches are bounded, because a recording may have any number of identifiers. There are two
epochs: when the current one is full, the previous one is dropped; values still in use are copied to
the current one.
"""

import sqlite3
from collections.abc import Callable, Iterable, Sequence

from a2a_proxy.recording.store.codec import (
    Column,
    pack_decimal,
    pack_ident,
    pack_int,
    pack_json,
    pack_text,
)

_EPOCH_SIZE = 16_384
_BATCH_VALUES = 500
"""Maximum number of parameters of one statement. SQLite before 3.32 allows 999."""


class Interner:
    """Row numbers of the values of one table `(id, value)`. Use inside a write transaction.

    Call `learn_values` with the values of a batch, then look them up in `ids`. The empty text is 0;
    the number n as an identifier is `-1-n`.
    """

    def __init__(
        self,
        db: sqlite3.Connection,
        table: str,
        pack: Callable[[str], str | bytes],
        *,
        decimals: bool,
    ) -> None:
        self._db = db
        self._table = table
        self._pack = pack
        self._decimals = decimals
        self._previous_ids: dict[str, int] = {}
        self.ids: dict[str, int] = {"": 0}

    @property
    def is_full(self) -> bool:
        """Whether the next new value starts a new epoch."""
        return len(self.ids) > _EPOCH_SIZE

    def row_number(self, value: str) -> int:
        """Return the row number of one value."""
        found = self.ids.get(value)
        if found is None:
            self.learn_values((value,))
            found = self.ids[value]
        return found

    def list_number(self, values: Sequence[str] | Sequence[int]) -> int:
        """Return the row number of a list as JSON text, or 0 for the empty list."""
        return self.row_number(pack_json(values)) if values else 0

    def learn_values(self, values: Iterable[str]) -> None:
        """Add all of these values to `ids`, and to the table if they are new."""
        ids = self.ids
        unknown = [value for value in values if value not in ids]
        if not unknown:
            return
        if self.is_full:
            self._begin_epoch(values)
        missing: dict[str | bytes, str] = {}
        for value in unknown:
            number = self._previous_ids.get(value)
            if number is None and self._decimals:
                number = pack_decimal(value)
            if number is None:
                missing[self._pack(value)] = value
            else:
                self.ids[value] = number
        if missing:
            self._find_rows(missing)
            self._add_rows(missing)

    def clear_caches(self) -> None:
        """Discard the cache, because the transaction was rolled back."""
        self._previous_ids = {}
        self.ids = {"": 0}

    def _begin_epoch(self, wanted: Iterable[str]) -> None:
        """Start a new epoch. Values of this batch that were already cached are kept."""
        self._previous_ids, young = self.ids, {"": 0}
        young.update(
            (value, self._previous_ids[value]) for value in wanted if value in self._previous_ids
        )
        self.ids = young

    def _find_rows(self, missing: dict[str | bytes, str]) -> None:
        packed = list(missing)
        for start in range(0, len(packed), _BATCH_VALUES):
            part = packed[start : start + _BATCH_VALUES]
            marks = ",".join("?" * len(part))
            rows = self._db.execute(
                f"SELECT value, id FROM {self._table} WHERE value IN ({marks})", part
            )
            for value, number in rows:
                self.ids[missing.pop(value)] = number

    def _add_rows(self, missing: dict[str | bytes, str]) -> None:
        if not missing:
            return
        first = self._db.execute(f"SELECT coalesce(max(id), 0) + 1 FROM {self._table}").fetchone()[
            0
        ]
        rows = [(first + index, value) for index, value in enumerate(missing)]
        self._db.executemany(f"INSERT INTO {self._table} (id, value) VALUES (?, ?)", rows)
        self.ids.update((missing[value], number) for number, value in rows)


def text_interner(db: sqlite3.Connection) -> Interner:
    """Return the interner of the table `text`."""
    return Interner(db, "text", pack_text, decimals=False)


def ident_interner(db: sqlite3.Connection) -> Interner:
    """Return the interner of the table `ident`."""
    return Interner(db, "ident", pack_ident, decimals=True)


ShapeKey = tuple[
    int, int, int, int, bool, bool, bool, bool, bool, str, str, str, int, tuple[str, ...], bool
]
"""direction, kind, event, state, append, last_chunk, final, truncated, ours, schema, framing, note,
error_code, redacted, pieces."""

_SELECT_SHAPE = (
    "SELECT id FROM shape WHERE direction = ? AND kind = ? AND event = ? AND state = ? AND flags = "
    "? AND schema = ? AND framing = ? AND note = ? AND error = ? AND redacted = ?"
)
_INSERT_SHAPE = (
    "INSERT INTO shape (direction, kind, event, state, flags, schema, framing, note, error, "
    "redacted) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


class ShapeInterner:
    """Row numbers of shapes: the properties that frames share. Use inside a write transaction."""

    def __init__(self, db: sqlite3.Connection, words: Interner) -> None:
        self._db = db
        self._words = words
        self.ids: dict[ShapeKey, int] = {}

    def row_number(self, key: ShapeKey) -> int:
        """Return the row number of one shape, storing it if it is new."""
        found = self.ids.get(key)
        if found is None:
            if len(self.ids) > _EPOCH_SIZE:
                self.ids = {}
            found = self.ids[key] = self._find_or_add(self._shape_row(key))
        return found

    def clear_caches(self) -> None:
        """Discard the cache, because the transaction was rolled back."""
        self.ids = {}

    def _shape_row(self, key: ShapeKey) -> tuple[Column, ...]:
        (
            direction,
            kind,
            event,
            state,
            append,
            last,
            final,
            cut,
            ours,
            schema,
            framing,
            note,
            error,
            redacted,
            pieces,
        ) = key
        flags = append | last << 1 | final << 2 | cut << 3 | ours << 4 | pieces << 5
        word = self._words.row_number
        words = (word(schema), word(framing), word(note))
        return (
            direction,
            kind,
            event,
            pack_int(state),
            flags,
            *words,
            pack_int(error),
            self._words.list_number(redacted),
        )

    def _find_or_add(self, row: tuple[Column, ...]) -> int:
        found = self._db.execute(_SELECT_SHAPE, row).fetchone()
        if found:
            return int(found[0])
        number = self._db.execute(_INSERT_SHAPE, row).lastrowid
        assert number is not None
        return number
