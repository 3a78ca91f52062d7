"""SQL of the table of notes and bookmarks (schema version 4); conventions as in `schema`.

`exchange` is its number in the session, 0 for a note about the session; `seq` is the number of the frame, -1 for the
whole exchange. Versions 1 to 3 had a table of this name that was never written to.
"""

from __future__ import annotations

SINCE = 4

TABLE = """
DROP TABLE note;
CREATE TABLE note (
  id INTEGER PRIMARY KEY,
  session INTEGER NOT NULL,
  exchange INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  at INTEGER NOT NULL,
  bookmark INTEGER NOT NULL,
  body TEXT NOT NULL,
  UNIQUE (session, exchange, seq)
) STRICT;
"""

VIEW = """
CREATE VIEW notes AS SELECT n.id, n.session, n.exchange, n.seq, session.started + n.at AS at, n.bookmark, n.body
  FROM note n JOIN session ON session.id = n.session;
"""

STAND_IN_VIEW = """
CREATE TEMP VIEW note AS SELECT 0 AS id, 0 AS session, 0 AS exchange, 0 AS seq, 0 AS at, 0 AS bookmark, '' AS body
  WHERE 0
"""
"""Temporary view that hides the table of an older file from a read-only connection: the same columns, no rows."""
