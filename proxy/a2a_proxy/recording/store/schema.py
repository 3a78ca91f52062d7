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
  segments still have numbers, which no row has; an interruption may name one. Times within a
  segment are relative to each other, so that they take few bytes: `start` to `began`, `end` to
  `start`; `ended`, `last_output` (backwards) and `closed` to `end`; `first_output` to `start`.
- `note.exchange` is the exchange's number in the session, 0 for a note about the session;
  `note.seq` is the number of the frame, -1 for the whole exchange.
- `rule.id` is the row number of the rule's id in `text`.
- `session.redaction` says which traffic was not recorded, `session.names` has the names of the
  agents, `session.faults` the faults that the proxy made on purpose. `task.seen` has the ranges of
  the generations received, `task.missed` a list for each gap in the generations on a stream.
- ANY columns hold text; a BLOB if a peer's text is not valid Unicode; TEXT if a number exceeds 64
  bits.
"""

from __future__ import annotations

from enum import IntEnum

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.finding import Severity
from a2a_proxy.model.frame import EventKind, FrameKind
from a2a_proxy.model.task import Support

APPLICATION_ID = int.from_bytes(b"a2ap")
"""Stored at byte offset 68 of the file: distinguishes a recording from any other SQLite
database."""

SCHEMA_VERSION = 1
"""`PRAGMA user_version`."""

PAGE_SIZE = 4096
"""Bytes. On average half a page is lost at the end of each compressed block."""
SESSION_SHIFT = 40

TABLES = """
CREATE TABLE session (
  id INTEGER PRIMARY KEY,
  uuid TEXT NOT NULL UNIQUE,
  tool TEXT NOT NULL,
  command TEXT NOT NULL,
  listens TEXT NOT NULL,
  upstreams TEXT NOT NULL,
  started INTEGER NOT NULL,
  clock TEXT NOT NULL,
  pid INTEGER NOT NULL,
  ended INTEGER,
  how TEXT NOT NULL DEFAULT '',
  complete TEXT NOT NULL DEFAULT '',
  lost INTEGER NOT NULL DEFAULT 0,
  edits INTEGER NOT NULL DEFAULT 0,
  segment INTEGER,
  position INTEGER,
  snapshot TEXT,
  redaction TEXT NOT NULL,
  names TEXT NOT NULL,
  faults TEXT NOT NULL
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
  id INTEGER PRIMARY KEY,
  client ANY NOT NULL,
  listen ANY NOT NULL,
  upstream ANY NOT NULL,
  peer ANY NOT NULL,
  kind ANY NOT NULL,
  opened INTEGER NOT NULL,
  dialed INTEGER,
  closed INTEGER,
  how ANY NOT NULL,
  bytes_to_agent INTEGER NOT NULL,
  bytes_to_client INTEGER NOT NULL,
  lost INTEGER NOT NULL,
  counters TEXT NOT NULL,
  client_process TEXT,
  tls TEXT
) STRICT;
CREATE TABLE exchange (
  id INTEGER PRIMARY KEY,
  connection INTEGER NOT NULL,
  stream INTEGER NOT NULL,
  binding INTEGER NOT NULL,
  dialect INTEGER NOT NULL,
  operation INTEGER NOT NULL,
  method INTEGER NOT NULL,
  target ANY NOT NULL,
  authority INTEGER NOT NULL,
  http_version INTEGER NOT NULL,
  flags INTEGER NOT NULL,
  rpc INTEGER NOT NULL,
  block INTEGER,
  offset INTEGER,
  size INTEGER,
  informational INTEGER NOT NULL,
  started INTEGER NOT NULL,
  request_ended INTEGER,
  response_started INTEGER,
  first_event INTEGER,
  last_event INTEGER,
  closed INTEGER,
  status ANY NOT NULL,
  grpc_status ANY NOT NULL,
  error_code ANY NOT NULL,
  error ANY NOT NULL,
  how INTEGER NOT NULL,
  half_close INTEGER NOT NULL,
  task INTEGER NOT NULL,
  context INTEGER NOT NULL,
  states INTEGER NOT NULL,
  requests INTEGER NOT NULL,
  events INTEGER NOT NULL,
  bytes_to_agent INTEGER NOT NULL,
  bytes_to_client INTEGER NOT NULL,
  traceparent ANY NOT NULL,
  version_header INTEGER NOT NULL,
  extensions INTEGER NOT NULL,
  redacted INTEGER NOT NULL,
  current_generation ANY,
  generation_match ANY,
  generation ANY NOT NULL,
  sent_traceparent ANY NOT NULL,
  card_signatures TEXT,
  agent INTEGER NOT NULL
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
  agent INTEGER NOT NULL,
  ident INTEGER NOT NULL,
  context INTEGER NOT NULL,
  tenant INTEGER NOT NULL,
  state INTEGER NOT NULL,
  states TEXT NOT NULL,
  first INTEGER NOT NULL,
  last INTEGER NOT NULL,
  generation ANY NOT NULL,
  missed TEXT NOT NULL,
  messages INTEGER NOT NULL,
  exchanges TEXT NOT NULL,
  seen TEXT NOT NULL,
  support INTEGER NOT NULL,
  UNIQUE (session, agent, ident)
) STRICT;
CREATE TABLE artifact (
  task INTEGER NOT NULL,
  position INTEGER NOT NULL,
  ident INTEGER NOT NULL,
  name ANY NOT NULL,
  chunks INTEGER NOT NULL,
  parts INTEGER NOT NULL,
  size INTEGER NOT NULL,
  complete INTEGER NOT NULL,
  first INTEGER NOT NULL,
  last INTEGER NOT NULL,
  PRIMARY KEY (task, position)
) STRICT, WITHOUT ROWID;
CREATE TABLE finding (
  id INTEGER PRIMARY KEY,
  session INTEGER NOT NULL,
  rule INTEGER NOT NULL,
  severity INTEGER NOT NULL,
  at INTEGER NOT NULL,
  summary ANY NOT NULL,
  connection INTEGER NOT NULL,
  exchange INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  task INTEGER NOT NULL,
  confidence INTEGER NOT NULL,
  evidence TEXT NOT NULL
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
  id INTEGER PRIMARY KEY,
  agent INTEGER NOT NULL,
  task INTEGER NOT NULL,
  context INTEGER NOT NULL,
  speaker INTEGER NOT NULL,
  turn INTEGER NOT NULL,
  exchange INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  exchanges INTEGER NOT NULL,
  last_seq INTEGER NOT NULL,
  began INTEGER NOT NULL,
  start INTEGER NOT NULL,
  "end" INTEGER NOT NULL,
  ended INTEGER,
  reason INTEGER NOT NULL,
  frames INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  outputs INTEGER NOT NULL,
  first_output INTEGER,
  last_output INTEGER,
  gap INTEGER NOT NULL,
  extra TEXT
) STRICT;
CREATE TABLE interruption (
  id INTEGER PRIMARY KEY,
  agent INTEGER NOT NULL,
  task INTEGER NOT NULL,
  context INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  segment INTEGER NOT NULL,
  exchange INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  at INTEGER NOT NULL,
  ended INTEGER,
  outcome INTEGER NOT NULL,
  residual_frames INTEGER NOT NULL,
  residual_bytes INTEGER NOT NULL,
  last_residual INTEGER,
  wasted INTEGER NOT NULL,
  reaction INTEGER
) STRICT;
CREATE TABLE handoff (
  id INTEGER PRIMARY KEY,
  kind INTEGER NOT NULL,
  evidence INTEGER NOT NULL,
  agent INTEGER NOT NULL,
  task INTEGER NOT NULL,
  context INTEGER NOT NULL,
  segment INTEGER NOT NULL,
  to_agent INTEGER NOT NULL,
  to_task INTEGER NOT NULL,
  to_exchange INTEGER NOT NULL,
  exchange INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  at INTEGER NOT NULL,
  ended INTEGER,
  first_output INTEGER,
  briefing INTEGER NOT NULL
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


def _text_sql(column: str) -> str:
    return f"(SELECT value FROM text WHERE id = {column})"


def _ident_sql(column: str) -> str:
    return (
        f"CASE WHEN {column} < 0 THEN -1 - {column} ELSE (SELECT value FROM ident_text i WHERE "
        f"i.id = {column}) END"
    )


def _enum_sql(column: str, names: dict[int, str]) -> str:
    """Return the SQL for the name of a stored number: NULL for 0, the number itself if it has no
    name."""
    cases = " ".join(f"WHEN {number} THEN '{name}'" for number, name in names.items() if number)
    return f"CASE {column} WHEN 0 THEN NULL {cases} ELSE {column} END"


def _lower_names(kind: type[IntEnum]) -> dict[int, str]:
    return {each.value: each.name.lower() for each in kind}


_STATES = {state.value: state.label for state in TaskState}

_NUMBER = (1 << SESSION_SHIFT) - 1
_SESSION = f"JOIN session ON session.id = x.id >> {SESSION_SHIFT}"

_WHOSE = f"""x.id, x.id >> {SESSION_SHIFT} AS session, x.id & {_NUMBER} AS number,
    {_text_sql("x.agent")} AS agent,
    {_ident_sql("x.task")} AS task_id, {_ident_sql("x.context")} AS context_id"""

VIEWS = f"""
CREATE VIEW ident_text AS SELECT id, CASE
    WHEN typeof(value) = 'text' THEN value
    WHEN length(h) = 32 THEN {_UUID}
    ELSE (SELECT '"' || {_UUID} || '"' FROM (SELECT substr(h, 3) AS h)) END AS value
  FROM (SELECT id, value, lower(hex(value)) AS h FROM ident);
CREATE VIEW frames AS SELECT f.id, f.session, f.exchange, f.connection, f.seq,
    CASE s.direction WHEN 0 THEN 'to agent' ELSE 'to client' END AS direction,
    {_enum_sql("s.kind", _lower_names(FrameKind))} AS kind,
    {_enum_sql("s.event", _lower_names(EventKind))} AS event,
    {_enum_sql("s.state", _STATES)} AS state,
    session.started + f.at AS at, session.started + f.at - f.took AS began,
    f.start, f.start + f.span AS "end", f.block, f.offset, f.size,
    {_text_sql("s.schema")} AS schema, {_text_sql("s.framing")} AS framing,
    {_ident_sql("f.task")} AS task_id, {_ident_sql("(f.task + f.context)")} AS context_id,
    {_ident_sql("f.artifact")} AS artifact_id, f.generation,
    {_ident_sql("f.rpc")} AS rpc_id, s.error AS error_code,
    {_text_sql("s.note")} AS note, {_text_sql("s.redacted")} AS redacted,
    {", ".join(f"s.flags >> {bit} & 1 AS {name}" for bit, name in enumerate(FLAGS))}
  FROM frame f JOIN session ON session.id = f.session JOIN shape s ON s.id = f.shape;
CREATE VIEW exchanges AS SELECT e.id, e.id >> {SESSION_SHIFT} AS session,
    e.id & {_NUMBER} AS number, e.connection, e.stream,
    {_text_sql("e.binding")} AS binding, {_text_sql("e.dialect")} AS dialect,
    {_text_sql("e.operation")} AS operation, {_text_sql("e.method")} AS method, e.target,
    {_text_sql("e.authority")} AS authority, {_text_sql("e.agent")} AS agent,
    e.status, e.grpc_status, e.error_code, e.error, {_text_sql("e.how")} AS how,
    {_ident_sql("e.task")} AS task_id, {_ident_sql("e.context")} AS context_id,
    {_text_sql("e.states")} AS states, e.requests, e.events, e.bytes_to_agent, e.bytes_to_client,
    e.current_generation, e.generation_match, e.generation,
    session.started + e.started AS started,
    session.started + e.response_started AS response_started,
    session.started + e.first_event AS first_event, session.started + e.last_event AS last_event,
    session.started + e.closed AS closed, e.block, e.offset, e.size
  FROM exchange e JOIN session ON session.id = e.id >> {SESSION_SHIFT};
CREATE VIEW tasks AS SELECT t.id, t.session, {_text_sql("t.agent")} AS agent,
    {_ident_sql("t.ident")} AS task_id, {_ident_sql("t.context")} AS context_id,
    {_enum_sql("t.state", _STATES)} AS state, t.generation,
    {_enum_sql("t.support", _lower_names(Support))} AS support,
    t.seen, t.missed, t.messages, t.exchanges,
    session.started + t.first AS first, session.started + t.last AS last
  FROM task t JOIN session ON session.id = t.session;
CREATE VIEW artifacts AS SELECT t.session, {_text_sql("t.agent")} AS agent,
    {_ident_sql("t.ident")} AS task_id, {_ident_sql("a.ident")} AS artifact_id,
    a.name, a.chunks, a.parts, a.size, a.complete,
    session.started + a.first AS first, session.started + a.last AS last
  FROM artifact a JOIN task t ON t.id = a.task JOIN session ON session.id = t.session;
CREATE VIEW findings AS SELECT f.id, f.session, {_text_sql("f.rule")} AS rule,
    (SELECT title FROM rule WHERE rule.id = f.rule) AS title,
    {_enum_sql("f.severity", _lower_names(Severity))} AS severity,
    {_text_sql("f.confidence")} AS confidence, session.started + f.at AS at,
    CASE WHEN f.exchange THEN f.session || ':' || f.exchange ||
      CASE WHEN f.seq < 0 THEN '' ELSE '.' || f.seq END END AS place,
    f.connection, f.exchange, f.seq, {_ident_sql("f.task")} AS task_id, f.summary, f.evidence
  FROM finding f JOIN session ON session.id = f.session;
CREATE VIEW segments AS SELECT {_WHOSE},
    CASE x.speaker WHEN 0 THEN 'client' ELSE 'agent' END AS speaker, x.turn, x.exchange, x.seq,
    x.exchange + x.exchanges AS last_exchange, x.last_seq, session.started + x.began AS began,
    session.started + x.began + x.start AS start,
    session.started + x.began + x.start + x."end" AS "end",
    session.started + x.began + x.start + x."end" + x.ended AS ended,
    {_text_sql("x.reason")} AS reason, x.frames, x.bytes, x.outputs,
    session.started + x.began + x.start + x.first_output AS first_output,
    session.started + x.began + x.start + x."end" - x.last_output AS last_output, x.gap, x.extra
  FROM segment x {_SESSION};
CREATE VIEW interruptions AS SELECT {_WHOSE},
    {_text_sql("x.kind")} AS kind, x.segment, x.exchange, x.seq,
    session.started + x.at AS at, session.started + x.ended AS ended,
    {_text_sql("x.outcome")} AS outcome, x.residual_frames, x.residual_bytes,
    x.last_residual - x.at AS latency, x.wasted, x.reaction - x.at AS reaction_time
  FROM interruption x {_SESSION};
CREATE VIEW handoffs AS SELECT {_WHOSE},
    {_text_sql("x.kind")} AS kind, {_text_sql("x.evidence")} AS evidence, x.segment,
    {_text_sql("x.to_agent")} AS to_agent, {_ident_sql("x.to_task")} AS to_task,
    x.to_exchange, x.exchange, x.seq,
    session.started + x.at AS at, session.started + x.ended AS ended,
    x.first_output - x.at AS latency, x.briefing
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
