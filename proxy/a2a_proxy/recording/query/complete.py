"""Completion of filter expressions: fields, and values with their frequency in a recording."""

import sqlite3
from collections.abc import Callable
from typing import Any

import msgspec

from a2a_proxy.recording.query import conditions, kinds
from a2a_proxy.recording.query.fields import ALIASES, FIELDS
from a2a_proxy.recording.query.lexer import last_piece, split_field
from a2a_proxy.recording.query.parser import BARE_WORDS
from a2a_proxy.recording.query.tree import Match, Op, WordValue, quote_text
from a2a_proxy.recording.store.codec import unpack_ident, unpack_text
from a2a_proxy.recording.store.schema import SESSION_SHIFT

MAX_SUGGESTIONS = 50
"""Maximum number of suggestions."""
SAMPLED_ROWS = 100_000
"""Number of rows that are counted: the newest ones of each table. Takes 30 ms."""


class Suggestion(msgspec.Struct, frozen=True):
    """A replacement for the text that is being typed."""

    text: str
    about: str = ""
    count: int = -1
    """Number of occurrences among the newest rows; -1 if they were not counted."""


class Completion(msgspec.Struct, frozen=True):
    """Suggestions for `text[start:end]`, best first."""

    start: int
    end: int
    items: tuple[Suggestion, ...]


def suggest_completions(text: str, cursor: int, db: sqlite3.Connection | None = None) -> Completion:
    """Return suggestions for the text before the cursor.

    With a recording's connection (`Recording.db`) they include its values.

    Raises:
        sqlite3.Error: the recording is damaged or locked.
    """
    start = last_piece(text[:cursor])
    piece = text[start:cursor]
    name, value_at = split_field(piece)
    if name:
        return Completion(
            start + value_at,
            cursor,
            tuple(_suggest_values(name, piece[value_at:], db)[:MAX_SUGGESTIONS]),
        )
    side, _, word = piece.rpartition(".")
    if side not in ("", "req", "resp"):
        return Completion(start, cursor, ())
    skip = len(side) + 1 if side else 0
    return Completion(start + skip, cursor, tuple(_suggest_fields(word.lower(), sided=bool(side))))


def _suggest_fields(word: str, *, sided: bool) -> list[Suggestion]:
    fields = [
        each for each in FIELDS.values() if each.name.startswith(word) and (each.sides or not sided)
    ]
    return [
        Suggestion(each.name if each.name in BARE_WORDS else f"{each.name}:", each.about)
        for each in fields
    ]


def _suggest_values(name: str, typed: str, db: sqlite3.Connection | None) -> list[Suggestion]:
    name = ALIASES.get(name, name)
    field = FIELDS.get(name)
    if field is None:
        return []
    prefix = typed.strip("\"'")
    if name == "rule" and prefix:
        prefix = kinds.parse_rule(prefix)
    counted = _count_values(name, prefix, db) if db is not None and name in _COUNT_QUERIES else {}
    every = (
        counted | {word: 0 for word in field.kind.words if word not in counted}
        if field.kind.words
        else counted
    )
    begun = [
        (word, count)
        for word, count in every.items()
        if word and _normalize_word(word).startswith(_normalize_word(prefix))
    ]
    begun.sort(key=lambda each: -each[1])
    return [
        Suggestion(quote_text(word), count=count if db is not None else -1) for word, count in begun
    ]


def _normalize_word(word: str) -> str:
    return word.lower().replace("_", "-")


_NEWEST = (
    "(SELECT coalesce(min(id), 1) - 1 FROM (SELECT id FROM exchange ORDER BY id DESC LIMIT {}))"
)
_EXCHANGES = f"FROM exchange e WHERE e.id > {_NEWEST}"
_SHAPES = (
    "FROM (SELECT shape, count(*) AS n FROM frame WHERE id > (SELECT max(id) - {} FROM frame) "
    "GROUP BY shape) JOIN shape s ON s.id = shape"
)


def _exchange_counts_sql(column: str) -> str:
    return f"SELECT {column}, count(*) {_EXCHANGES} GROUP BY 1"


def _interned_counts_sql(column: str) -> str:
    return (
        f"SELECT (SELECT value FROM text WHERE id = k), n FROM "
        f"({_exchange_counts_sql(f'{column} AS k')})"
    ).replace("count(*) ", "count(*) AS n ")


def _shape_counts_sql(column: str) -> str:
    return f"SELECT {column}, sum(n) {_SHAPES} GROUP BY 1"


_RULES = (
    "SELECT (SELECT value FROM text WHERE id = rule), count(*) FROM finding GROUP BY 1 LIMIT {}"
)
_SEVERITIES = "SELECT severity, count(*) FROM finding GROUP BY 1 LIMIT {}"
_NOTES = f"SELECT (SELECT value FROM text WHERE id = note), sum(n) {_SHAPES} GROUP BY 1"
_SESSIONS = f"SELECT e.id >> {SESSION_SHIFT}, count(*) {_EXCHANGES} GROUP BY 1"

_COUNT_QUERIES: dict[str, str] = {
    "op": _interned_counts_sql("e.operation"),
    "binding": _interned_counts_sql("e.binding"),
    "ver": _interned_counts_sql("e.dialect"),
    "status": _exchange_counts_sql("e.status"),
    "code": _shape_counts_sql("s.error"),
    "state": _shape_counts_sql("s.state"),
    "dir": _shape_counts_sql("s.direction"),
    "kind": (
        f"SELECT s.kind, sum(n) {_SHAPES} GROUP BY 1 UNION ALL SELECT s.event + 100, sum(n) "
        f"{_SHAPES} GROUP BY 1"
    ),
    "note": _NOTES,
    "task": _exchange_counts_sql("e.task"),
    "ctx": _exchange_counts_sql("e.context"),
    "agent": _interned_counts_sql("e.agent"),
    "peer": "SELECT client, count(*) FROM connection GROUP BY 1 ORDER BY 2 DESC LIMIT {}",
    "rule": _RULES,
    "sev": _SEVERITIES,
    "rec": _SESSIONS,
}
"""Queries of stored values with their frequency; `{}` is the number of rows to count."""


def _count_values(name: str, prefix: str, db: sqlite3.Connection) -> dict[str, int]:
    """Return values as words, with their frequency."""
    query = _COUNT_QUERIES[name].replace("{}", str(SAMPLED_ROWS))
    if name in ("task", "ctx"):
        return _count_idents(query, "e.task" if name == "task" else "e.context", prefix, db)
    words_of_value = _value_words(name)
    counts: dict[str, int] = {}
    for value, count in db.execute(query):
        word = words_of_value(value)
        if word:
            counts[word] = counts.get(word, 0) + count
    return counts


def _count_idents(query: str, column: str, prefix: str, db: sqlite3.Connection) -> dict[str, int]:
    """Return the most frequent ids that begin with `prefix`."""
    begun = (
        conditions.where_ident(column, Match("task", Op.HAS, prefix))
        if prefix
        else conditions.Sql(f"{column} <> 0")
    )
    query = (
        query.replace(" GROUP BY", f" AND {begun.text} GROUP BY")
        + f" ORDER BY 2 DESC LIMIT {MAX_SUGGESTIONS}"
    )
    found = {}
    for number, count in db.execute(query, begun.params).fetchall():
        row = db.execute("SELECT value FROM ident WHERE id = ?", (number,)).fetchone()
        found[str(-1 - number) if number < 0 else unpack_ident(row[0])] = count
    return found


def _value_words(name: str) -> Callable[[Any], str]:
    """Return a function from stored values to their typed form, or to an empty string for values
    without one."""
    kind = FIELDS[name].kind
    if kind.words and name not in ("op", "binding", "code"):
        keys = {}
        for word in reversed(kind.words):
            choice = kind.read(word)
            assert isinstance(choice, WordValue)
            keys.update(dict.fromkeys(choice.keys, choice.text))
        return lambda value: str(keys.get(value, ""))
    if name in ("status", "code", "rec"):
        return lambda value: str(value) if value else ""
    return lambda value: unpack_text(value).encode("utf-8", "replace").decode()
