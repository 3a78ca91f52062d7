"""How an exchange ended, as SQL: the words that the console has for each of them (`cli.text.outcome`)."""

from __future__ import annotations

OUTCOME = """CASE
    WHEN e.closed IS NULL THEN 'live'
    WHEN e.flags & 2 THEN 'refused'
    WHEN length(e.error) THEN 'error'
    WHEN coalesce((SELECT value FROM text WHERE id = e.how), '') IN ('complete', '') THEN 'ok'
    ELSE 'cut' END"""
"""Of a row `e` of `exchange`."""
