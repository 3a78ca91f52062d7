"""Titles of the rules that the findings of a recording name, for SQL users."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

_PREFIX = "A2A-"
"""Findings of decoders have other prefixes, and no title."""


def store_titles(db: sqlite3.Connection, words: Iterable[int]) -> None:
    """Store the titles of rules, each named by the row number of its id in `text`. Use inside a write transaction.

    A rule unknown to this version gets no title.
    """
    named = [db.execute("SELECT id, value FROM text WHERE id = ?", (word,)).fetchone() for word in words]
    named = [row for row in named if row and isinstance(row[1], str) and row[1].startswith(_PREFIX)]
    if not named:
        return
    # Loading the catalogue takes 0.4 s, but the recorder has already loaded it.
    from a2a_proxy.rules.define.catalogue import all_rules

    titled = [(number, all_rules()[name].title) for number, name in named if name in all_rules()]
    db.executemany("INSERT OR REPLACE INTO rule VALUES (?, ?)", titled)
