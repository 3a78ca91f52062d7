"""The tables of a recording, as SQL. Nothing here executes it.

Conventions, for readers of the file with any SQLite tool:

- Times are ns relative to `session.started` (itself ns since the Unix epoch); NULL if the event has
  not happened.
- Texts that repeat are row numbers in `text`, identifiers are row numbers in `ident`: 0 is the
  empty text, and a negative number `-1-n` is the decimal number n itself. `ident.value` is 16 bytes
  for a UUID, 17 (`"` and 16) for a UUID in JSON quotes, else text. The views show plain values.
- `frame.context` is relative to `frame.task`: 1 if its row in `ident` follows the task's, as it
  mostly does. So it takes no byte.
- `exchange.id` and `connection.id` are `session << 40 | number`, so that one integer names a row
  across the sessions of a file and orders by session, then by first byte.
- `shape` holds the properties that frames share: one small number in `frame` instead of ten
  columns.
- (block, offset, size) addresses bytes in the payload blocks; `payload(block, offset, size)` reads
  them, `payload(id)` a whole frame, if the functions of `recording.store.sql_functions` are
  registered.
- `frame.message` is the message's id; an INTEGER is the byte offset in the payload of those 36
  characters, so no view has it: `message_id(id)` returns the message id of a frame, if the
  functions are registered.
- `segment`, `interruption` and `handoff` have keys `session << 40 | number` too. A turn of one
  unary call, with one request and one response, has no rows: its exchange is the turn. Its two
  segments still have numbers, which no row has; an interruption may name one.
- `note.exchange` is the exchange's number in the session, 0 for a note about the session;
  `note.seq` is the number of the frame, -1 for the whole exchange.
- `rule.id` is the row number of the rule's id in `text`.
- `session.redaction` says which traffic was not recorded, `session.names` has the names of the
  agents, `session.faults` the faults that the proxy made on purpose. `task.seen` has the ranges of
  the generations received, `task.missed` a list for each gap in the generations on a stream.
- ANY columns hold text; a BLOB if a peer's text is not valid Unicode; TEXT if a number exceeds 64
  bits.
"""

from a2a_proxy.model.values import (
    ArtifactState,
    Connection,
    EventKind,
    Exchange,
    Finding,
    FrameKind,
    Handoff,
    Interruption,
    Segment,
    Task,
)
from a2a_proxy.recording.store.columns import (
    STATE_LABELS,
    columns_sql,
    enum_sql,
    ident_sql,
    lower_names,
    text_sql,
    view_sql,
)

APPLICATION_ID = int.from_bytes(b"a2ap")
"""Stored at byte offset 68 of the file: distinguishes a recording from any other SQLite
database."""

SCHEMA_VERSION = 1
"""`PRAGMA user_version`."""

PAGE_SIZE = 4096
"""Bytes. On average half a page is lost at the end of each compressed block."""
SESSION_SHIFT = 40

TABLES = f"""
CREATE TABLE session (
  id INTEGER PRIMARY KEY,
  uuid TEXT NOT NULL UNIQUE,
  tool TEXT NOT NULL,
  started INTEGER NOT NULL,
  command TEXT NOT NULL,
  listens TEXT NOT NULL,
  upstreams TEXT NOT NULL,
  names TEXT NOT NULL,
  clock TEXT NOT NULL,
  pid INTEGER NOT NULL,
  redaction TEXT NOT NULL,
  faults TEXT NOT NULL,
  ended INTEGER,
  how TEXT NOT NULL DEFAULT '',
  complete TEXT NOT NULL DEFAULT '',
  lost INTEGER NOT NULL DEFAULT 0,
  edits INTEGER NOT NULL DEFAULT 0,
  segment INTEGER,
  position INTEGER,
  snapshot TEXT
) STRICT;
CREATE TABLE text (id INTEGER PRIMARY KEY, value ANY NOT NULL UNIQUE) STRICT;
CREATE TABLE ident (id INTEGER PRIMARY KEY, value ANY NOT NULL UNIQUE) STRICT;
CREATE TABLE shape (
  id INTEGER PRIMARY KEY,
  direction INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  event INTEGER NOT NULL,
  state ANY NOT NULL,
  flags INTEGER NOT NULL,
  schema INTEGER NOT NULL,
  framing INTEGER NOT NULL,
  note INTEGER NOT NULL,
  error ANY NOT NULL,
  redacted INTEGER NOT NULL,
  UNIQUE (direction, kind, event, state, flags, schema, framing, note, error, redacted)
) STRICT;
CREATE TABLE connection (
  {columns_sql(Connection)}
) STRICT;
CREATE TABLE exchange (
  {columns_sql(Exchange)},
  flags INTEGER NOT NULL,
  block INTEGER,
  offset INTEGER,
  size INTEGER
) STRICT;
CREATE TABLE frame (
  id INTEGER PRIMARY KEY,
  session INTEGER NOT NULL,
  exchange INTEGER NOT NULL,
  connection INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  shape INTEGER NOT NULL,
  at INTEGER NOT NULL,
  took INTEGER NOT NULL,
  start INTEGER NOT NULL,
  span INTEGER NOT NULL,
  block INTEGER,
  offset INTEGER,
  size INTEGER,
  task INTEGER NOT NULL,
  context INTEGER NOT NULL,
  message ANY,
  artifact INTEGER NOT NULL,
  generation ANY NOT NULL,
  rpc INTEGER NOT NULL,
  extra TEXT
) STRICT;
CREATE INDEX frame_exchange ON frame (session, exchange, seq);
CREATE TABLE piece (
  frame INTEGER NOT NULL,
  position INTEGER NOT NULL,
  at INTEGER,
  blob INTEGER NOT NULL,
  PRIMARY KEY (frame, position)
) STRICT, WITHOUT ROWID;
CREATE TABLE blob (
  id INTEGER PRIMARY KEY,
  sha256 BLOB NOT NULL UNIQUE,
  size INTEGER NOT NULL,
  codec TEXT NOT NULL,
  data BLOB NOT NULL
) STRICT;
CREATE TABLE block (
  id INTEGER PRIMARY KEY,
  session INTEGER NOT NULL,
  size INTEGER NOT NULL,
  data BLOB
) STRICT;
CREATE TABLE block_tail (
  block INTEGER NOT NULL,
  offset INTEGER NOT NULL,
  data BLOB NOT NULL,
  PRIMARY KEY (block, offset)
) STRICT, WITHOUT ROWID;
CREATE TABLE task (
  id INTEGER PRIMARY KEY,
  session INTEGER NOT NULL,
  {columns_sql(Task)},
  UNIQUE (session, agent, ident)
) STRICT;
CREATE TABLE artifact (
  task INTEGER NOT NULL,
  position INTEGER NOT NULL,
  {columns_sql(ArtifactState)},
  PRIMARY KEY (task, position)
) STRICT, WITHOUT ROWID;
CREATE TABLE finding (
  id INTEGER PRIMARY KEY,
  session INTEGER NOT NULL,
  {columns_sql(Finding)}
) STRICT;
CREATE INDEX finding_place ON finding (session, exchange, seq);
CREATE TABLE rule (id INTEGER PRIMARY KEY, title TEXT NOT NULL) STRICT;
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
CREATE TABLE segment (
  {columns_sql(Segment)}
) STRICT;
CREATE TABLE interruption (
  {columns_sql(Interruption)}
) STRICT;
CREATE TABLE handoff (
  {columns_sql(Handoff)}
) STRICT;
"""

LIVE_PAYLOADS = ("", "bidi", "1975", "2153")
"""Payload types of live proposals. `exchange.flags`: bit 0 streaming, bit 1 answered by the proxy,
bits 2 and 3 an index into this tuple.
"""

FLAGS = ("append", "last_chunk", "final", "truncated", "ours", "pieces")
"""Bits of `shape.flags`, lowest first. `pieces`: parts of the payload are blobs, see `piece`."""

_UUID = (
    "substr(h,1,8)||'-'||substr(h,9,4)||'-'||substr(h,13,4)||'-'||substr(h,17,4)||'-'||substr(h,21)"
)


_NUMBER = (1 << SESSION_SHIFT) - 1
_SESSION = f"JOIN session ON session.id = x.id >> {SESSION_SHIFT}"

_KEY = f"x.id, x.id >> {SESSION_SHIFT} AS session, x.id & {_NUMBER} AS number"

VIEWS = f"""
CREATE VIEW ident_text AS SELECT id, CASE
    WHEN typeof(value) = 'text' THEN value
    WHEN length(h) = 32 THEN {_UUID}
    ELSE (SELECT '"' || {_UUID} || '"' FROM (SELECT substr(h, 3) AS h)) END AS value
  FROM (SELECT id, value, lower(hex(value)) AS h FROM ident);
CREATE VIEW frames AS SELECT f.id, f.session, f.exchange, f.connection, f.seq,
    CASE s.direction WHEN 0 THEN 'to agent' ELSE 'to client' END AS direction,
    {enum_sql("s.kind", lower_names(FrameKind))} AS kind,
    {enum_sql("s.event", lower_names(EventKind))} AS event,
    {enum_sql("s.state", STATE_LABELS)} AS state,
    session.started + f.at AS at, session.started + f.at - f.took AS began,
    f.start, f.start + f.span AS "end", f.block, f.offset, f.size,
    {text_sql("s.schema")} AS schema, {text_sql("s.framing")} AS framing,
    {ident_sql("f.task")} AS task_id, {ident_sql("(f.task + f.context)")} AS context_id,
    {ident_sql("f.artifact")} AS artifact_id, f.generation,
    {ident_sql("f.rpc")} AS rpc_id, s.error AS error_code,
    {text_sql("s.note")} AS note, {text_sql("s.redacted")} AS redacted,
    {", ".join(f"s.flags >> {bit} & 1 AS {name}" for bit, name in enumerate(FLAGS))}
  FROM frame f JOIN session ON session.id = f.session JOIN shape s ON s.id = f.shape;
CREATE VIEW exchanges AS SELECT {_KEY}, {view_sql(Exchange, "x")}, x.block, x.offset, x.size
  FROM exchange x {_SESSION};
CREATE VIEW tasks AS SELECT x.id, x.session, {view_sql(Task, "x")}
  FROM task x JOIN session ON session.id = x.session;
CREATE VIEW artifacts AS SELECT t.session, {text_sql("t.agent")} AS agent,
    {ident_sql("t.ident")} AS task_id, {view_sql(ArtifactState, "x")}
  FROM artifact x JOIN task t ON t.id = x.task JOIN session ON session.id = t.session;
CREATE VIEW findings AS SELECT x.id, x.session,
    (SELECT title FROM rule WHERE rule.id = x.rule) AS title, {view_sql(Finding, "x")},
    CASE WHEN x.exchange THEN x.session || ':' || x.exchange ||
      CASE WHEN x.seq < 0 THEN '' ELSE '.' || x.seq END END AS place
  FROM finding x JOIN session ON session.id = x.session;
CREATE VIEW segments AS SELECT {_KEY}, {view_sql(Segment, "x")} FROM segment x {_SESSION};
CREATE VIEW interruptions AS SELECT {_KEY}, {view_sql(Interruption, "x")},
    x.last_residual - x.at AS latency, x.reaction - x.at AS reaction_time
  FROM interruption x {_SESSION};
CREATE VIEW handoffs AS SELECT {_KEY}, {view_sql(Handoff, "x")}, x.first_output - x.at AS latency
  FROM handoff x {_SESSION};
CREATE VIEW notes AS SELECT n.id, n.session, n.exchange, n.seq,
    session.started + n.at AS at, n.bookmark, n.body
  FROM note n JOIN session ON session.id = n.session;
"""


def create_script(*, strict: bool) -> str:
    """Return the script that creates all tables, indexes and views, as this SQLite accepts it.

    SQLite before 3.37 has no STRICT; then ANY becomes BLOB, the affinity that converts nothing.
    """
    tables = TABLES
    if not strict:
        tables = (
            tables.replace(" STRICT, WITHOUT", " WITHOUT")
            .replace(" STRICT;", ";")
            .replace(" ANY", " BLOB")
        )
    return f"BEGIN; {tables} {VIEWS} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;"
