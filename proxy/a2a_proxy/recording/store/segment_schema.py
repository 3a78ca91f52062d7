"""SQL of the tables of segments, interruptions and hand-offs (schema version 3); conventions as in `schema`.

Keys are `session << 40 | number`. A turn of one unary call, with one request and one response, has no rows: its
exchange is the turn. Its two segments still have numbers, which no row has; an interruption may name one. Times within
a row are relative to each other, so that they take few bytes: `start` to `began`, `end` to `start`; `ended`,
`last_output` (backwards) and `closed` to `end`; `first_output` to `start`.
"""

from __future__ import annotations

from a2a_proxy.recording.store.schema import SESSION_SHIFT, _ident_sql, _text_sql

TABLES = """
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

_NUMBER = (1 << SESSION_SHIFT) - 1
_SESSION = f"JOIN session ON session.id = x.id >> {SESSION_SHIFT}"


_WHOSE = f"""x.id, x.id >> {SESSION_SHIFT} AS session, x.id & {_NUMBER} AS number, {_text_sql("x.agent")} AS agent,
    {_ident_sql("x.task")} AS task_id, {_ident_sql("x.context")} AS context_id"""


VIEWS = f"""
CREATE VIEW segments AS SELECT {_WHOSE},
    CASE x.speaker WHEN 0 THEN 'client' ELSE 'agent' END AS speaker, x.turn, x.exchange, x.seq,
    x.exchange + x.exchanges AS last_exchange, x.last_seq, session.started + x.began AS began,
    session.started + x.began + x.start AS start, session.started + x.began + x.start + x."end" AS "end",
    session.started + x.began + x.start + x."end" + x.ended AS ended, {_text_sql("x.reason")} AS reason, x.frames,
    x.bytes,
    x.outputs, session.started + x.began + x.start + x.first_output AS first_output,
    session.started + x.began + x.start + x."end" - x.last_output AS last_output, x.gap, x.extra
  FROM segment x {_SESSION};
CREATE VIEW interruptions AS SELECT {_WHOSE}, {_text_sql("x.kind")} AS kind, x.segment, x.exchange, x.seq,
    session.started + x.at AS at, session.started + x.ended AS ended, {_text_sql("x.outcome")} AS outcome,
    x.residual_frames, x.residual_bytes, x.last_residual - x.at AS latency, x.wasted, x.reaction - x.at AS reaction_time
  FROM interruption x {_SESSION};
CREATE VIEW handoffs AS SELECT {_WHOSE}, {_text_sql("x.kind")} AS kind, {_text_sql("x.evidence")} AS evidence,
x.segment,
    {_text_sql("x.to_agent")} AS to_agent, {_ident_sql("x.to_task")} AS to_task, x.to_exchange, x.exchange, x.seq,
    session.started + x.at AS at, session.started + x.ended AS ended, x.first_output - x.at AS latency, x.briefing
  FROM handoff x {_SESSION};
"""
