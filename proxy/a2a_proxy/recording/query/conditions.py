"""Conditions as SQL: text with `?`, and the values for it in order.

Each evaluates to 0 or 1, never NULL, because NOT requires that.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from a2a_proxy.recording.query.tree import (
    COMPARISONS,
    Anything,
    Match,
    Number,
    Op,
    Range,
    TimeValue,
    Value,
    WordValue,
)
from a2a_proxy.recording.store.codec import pack_decimal, pack_ident


class Sql(msgspec.Struct, frozen=True):
    """A piece of SQL. `text` is built only from constants of this package."""

    text: str
    params: tuple[Any, ...] = ()

    def insert_into(self, form: str) -> Sql:
        """Return `form` with this SQL in place of `{}`."""
        return Sql(form.replace("{}", self.text), self.params)


def join_conditions(word: str, *parts: Sql) -> Sql:
    """Return `(a AND b)`; a single condition stays unchanged."""
    if len(parts) == 1:
        return parts[0]
    text = f" {word} ".join(part.text for part in parts)
    return Sql(f"({text})", tuple(value for part in parts for value in part.params))


def where_text(expression: str, match: Match) -> Sql:
    """Return the condition on a text column. NULL and the empty text count as absent."""
    if isinstance(match.value, Anything):
        return Sql(f"coalesce({expression} <> '', 0)")
    if match.op is Op.IS:
        return Sql(f"coalesce({expression} = ?, 0)", (match.value,))
    function = {Op.MATCHES: "a2a_matches", Op.HAS: "a2a_contains"}[match.op]
    return Sql(f"{function}({expression}, ?)", (match.value,))


def where_label(expression: str, match: Match) -> Sql:
    """Return the condition on a column of single words: `:` matches the whole value."""
    if match.op is Op.HAS and not isinstance(match.value, Anything):
        return Sql(f"a2a_equals({expression}, ?)", (match.value,))
    return where_text(expression, match)


def where_prefix(expression: str, match: Match) -> Sql:
    """Return the condition on a text column whose prefix `:` matches."""
    if match.op is Op.HAS and not isinstance(match.value, Anything):
        return Sql(f"a2a_begins({expression}, ?)", (match.value,))
    return where_text(expression, match)


def where_interned(column: str, test: Sql) -> Sql:
    """Return the condition on a column of row numbers of `text`, from a condition on `value`."""
    if test.text == "coalesce(value <> '', 0)":
        return Sql(f"{column} <> 0")
    return test.insert_into(f"{column} IN (SELECT id FROM text WHERE {{}})")


def where_one_of(column: str, values: tuple[Any, ...]) -> Sql:
    """Return the condition that a column has one of these values."""
    return Sql(f"{column} IN ({', '.join('?' * len(values))})", values)


def where_number(expression: str, match: Match, present: str = "") -> Sql:
    """Return the condition on a number. NULL counts as absent; `present` is SQL that is true for a
    value."""
    value = match.value
    if isinstance(value, Anything):
        return Sql(f"coalesce({present or f'{expression} IS NOT NULL'}, 0)")
    if isinstance(value, WordValue):
        found = where_one_of(expression, value.keys)
    elif isinstance(value, Range):
        found = Sql(f"{expression} BETWEEN ? AND ?", (_int_of(value.low), _int_of(value.high)))
    else:
        sign = match.op if match.op in COMPARISONS else "="
        found = Sql(f"{expression} {sign} ?", (_int_of(value),))
    return found.insert_into(f"coalesce({f'{present} AND ' if present else ''}{{}}, 0)")


def _int_of(value: Value) -> int:
    assert isinstance(value, Number)
    return value.value


def exact_number(column: str) -> str:
    """Return the SQL of a number that is TEXT beyond 64 bits; such numbers compare as beyond any
    typed number."""
    beyond = f"CASE substr({column}, 1, 1) WHEN '-' THEN -9.3e18 ELSE 9.3e18 END"
    return f"CASE typeof({column}) WHEN 'text' THEN {beyond} ELSE {column} END"


def where_time(at: str, started: str, match: Match) -> Sql:
    """Return the condition on a time, in ns since the session started.

    A typed time is a range as long as its precision.
    """
    value = match.value
    if isinstance(value, Anything):
        return Sql("1")
    if isinstance(value, Range):
        assert isinstance(value.low, TimeValue)
        assert isinstance(value.high, TimeValue)
        return join_conditions(
            "AND",
            _time_bound(at, started, ">=", value.low),
            _time_bound(at, started, "<", value.high, end=True),
        )
    assert isinstance(value, TimeValue)
    if match.op in COMPARISONS:
        return _time_bound(at, started, match.op, value)
    return join_conditions(
        "AND", _time_bound(at, started, ">=", value), _time_bound(at, started, "<", value, end=True)
    )


def _time_bound(at: str, started: str, sign: str, value: TimeValue, *, end: bool = False) -> Sql:
    zero = {"session": "0", "epoch": f"-{started}", "day": f"a2a_midnight({started}) - {started}"}[
        value.base
    ]
    return Sql(f"{at} {sign} {zero} + ?", (value.ns + (value.span if end else 0),))


_UUID = re.compile(
    r"[0-9a-f]{0,8}|[0-9a-f]{8}-(?:[0-9a-f]{0,4}|(?:[0-9a-f]{4}-){1,3}[0-9a-f]{0,4}|[0-9a-f]{4}-"
    r"[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{0,12})"
)


def where_ident(column: str, match: Match) -> Sql:
    """Return the condition on a column of row numbers of `ident` or of decimal numbers themselves
    (see `schema`)."""
    value = match.value
    if isinstance(value, Anything):
        return Sql(f"{column} <> 0")
    assert isinstance(value, str)
    decimal = f"CAST(-1 - {column} AS TEXT)"
    if match.op is Op.IS:
        known = pack_decimal(value)
        if known is not None:
            return Sql(f"{column} = ?", (known,))
        return Sql(f"{column} IN (SELECT id FROM ident WHERE value = ?)", (pack_ident(value),))
    if match.op is Op.MATCHES:
        listed = Sql(
            f"{column} IN (SELECT id FROM ident WHERE a2a_matches(a2a_ident(value), ?))", (value,)
        )
        return join_conditions(
            "OR", listed, Sql(f"({column} < 0 AND a2a_matches({decimal}, ?))", (value,))
        )
    tests = [Sql("(value >= ? AND value <= ?)", (value, value + "\U0010ffff"))]
    if _UUID.fullmatch(value):
        digits = value.replace("-", "")
        low, high = (bytes.fromhex(digits.ljust(32, end)) for end in "0f")
        tests.append(Sql("(value >= ? AND value <= ? AND length(value) = 16)", (low, high)))
    found = [
        join_conditions("OR", *tests).insert_into(f"{column} IN (SELECT id FROM ident WHERE {{}})")
    ]
    if value.isdecimal() and value.isascii():
        found.append(Sql(f"({column} < 0 AND substr({decimal}, 1, ?) = ?)", (len(value), value)))
    return join_conditions("OR", *found)
