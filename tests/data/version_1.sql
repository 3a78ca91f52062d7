PRAGMA application_id = 1630691696;
PRAGMA user_version = 1;
BEGIN TRANSACTION;
CREATE TABLE "_sqlite_migrations" (
   "id" INTEGER PRIMARY KEY,
   "migration_set" TEXT,
   "name" TEXT,
   "applied_at" TEXT
);
INSERT INTO "_sqlite_migrations" VALUES(1,'a2a-proxy','m001_tables','2026-11-21 22:15:29.951550+00:00');
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
INSERT INTO "artifact" VALUES(1,0,3,'result',1,1,1,0,50000000,50000000);
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
INSERT INTO "block" VALUES(1,1,1514,X'28B52FFD60EA04950F0086574B27108D5807469B4D72B6844F3B0201B7629EA4AEDDE02A13C7EA300AEC6927044C202200000000013C0040004200EFB7290F54B13C9109E5EF6C55FBF6E6825CAF78BF97B4127B3B4FF25E964CB4BA24DB8624CAD0DFA54A355F6FCDBB54BDDD2D9CBF4FCCD27A215E11D91B9C738BE71C6C1CD33886C071D825FBF255F5DB0D1E082192820A64796003421604A8012F2DFB4E5A673FE2CA6EEB72D9665916B357CB62EAEF3DC1FD8A2894251800E3391B8F5ABC738EF1FA56CA92B35AB71E3C8AA24753B6F6029B1F0EE3892848268E01874B52D9533E546D65C0230182409930B484554E6BD5D232E5E92D31462DC63B020623468923E8859A6825D5491FC6F2C3A5D242B6B52F53AD6A19A6A674442DC63B02544F942300B3B2304C62149069EA6816CDDBB5BCC0349CCB744AA8712D5266CE965192140B6B4002428C72490F12404521C508945246608C1118A1122A1333315333A176305290C5705A5AC9339CFDD3AB18E0114B865BEF6BB43006C47C701F42EF9EBE11247128C552168171A5280DF278F1E5FFC2F7B010F982B0B7C92207FB3242834A45186F4E45294AE3826C53ACC756BD0AF36BEDBF66FC58026E611EE8300503706A858EDA7E19B7EE9D1078280C88041AB3A8CB8C7C1B850C0775A5DAE3C5E1F81AF109C33331AA392B45F07F6EB3C3CCBC02E264B30A');
CREATE TABLE block_tail (
  block INTEGER NOT NULL,
  offset INTEGER NOT NULL,
  data BLOB NOT NULL,
  PRIMARY KEY (block, offset)
) STRICT, WITHOUT ROWID;
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
  counters TEXT NOT NULL
) STRICT;
INSERT INTO "connection" VALUES(1099511627777,'127.0.0.1:5001','127.0.0.1:9000','http://localhost:8000','127.0.0.1:8000','http/1.1',0,0,80000000,'closed',281,867,0,'{}');
INSERT INTO "connection" VALUES(1099511627778,'127.0.0.1:5002','127.0.0.1:9000','http://localhost:8000','127.0.0.1:8000','http/1.1',90000000,90000000,120000000,'closed',199,232,0,'{}');
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
  redacted INTEGER NOT NULL
) STRICT;
INSERT INTO "exchange" VALUES(1099511627777,1,1,3,4,5,5,'/',6,4,1,-2,1,1091,246,0,10000000,10000000,20000000,30000000,60000000,70000000,200,-1,0,'',7,8,1,2,9,1,4,281,860,'',4,0,0);
INSERT INTO "exchange" VALUES(1099511627778,2,1,3,4,10,10,'/',6,4,0,-3,1,1337,177,0,100000000,100000000,110000000,110000000,110000000,110000000,200,-1,0,'',7,8,1,2,11,1,1,199,232,'',4,0,0);
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
INSERT INTO "finding" VALUES(1,1,13,2,30000000,'the new task begins at 2, it must begin at 1',1,1,1,1,14,'{"path":"result.task.generation","value":"2"}');
INSERT INTO "finding" VALUES(2,1,15,3,50000000,'5 after 3: 4 did not come',1,1,3,1,14,'{"path":"result.artifactUpdate.generation","value":"5"}');
INSERT INTO "finding" VALUES(3,1,15,3,60000000,'8 after 5: 6 to 7 did not come',1,1,4,1,14,'{"path":"result.statusUpdate.generation","value":"8","count":"2"}');
INSERT INTO "finding" VALUES(4,1,16,2,110000000,'artifact a1 of task t1 was streamed (1 octets of text (CRC 71beeff9)), and is missing in a Task',2,2,1,1,14,'{"path":"result.artifacts","value":"a1"}');
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
INSERT INTO "frame" VALUES(1,1,1,1,0,1,10000000,0,139,142,1,0,142,0,0,'m1',0,0,-2,NULL);
INSERT INTO "frame" VALUES(2,1,1,1,1,2,30000000,0,105,181,1,142,169,1,1,NULL,0,2,-2,NULL);
INSERT INTO "frame" VALUES(3,1,1,1,2,3,40000000,0,286,193,1,311,179,1,1,NULL,0,3,-2,NULL);
INSERT INTO "frame" VALUES(4,1,1,1,3,4,50000000,0,479,186,1,490,172,1,1,NULL,3,5,-2,NULL);
INSERT INTO "frame" VALUES(5,1,1,1,4,5,60000000,0,665,195,1,662,181,1,1,NULL,0,8,-2,NULL);
INSERT INTO "frame" VALUES(6,1,1,1,5,6,70000000,0,867,0,NULL,NULL,NULL,0,0,NULL,0,0,0,NULL);
INSERT INTO "frame" VALUES(7,1,2,2,0,7,100000000,0,111,88,1,843,88,1,-1,NULL,0,8,-3,NULL);
INSERT INTO "frame" VALUES(8,1,2,2,1,8,110000000,0,72,160,1,931,160,1,1,NULL,0,8,-3,NULL);
CREATE TABLE ident (id INTEGER PRIMARY KEY, value ANY NOT NULL UNIQUE) STRICT;
INSERT INTO "ident" VALUES(1,'t1');
INSERT INTO "ident" VALUES(2,'c1');
INSERT INTO "ident" VALUES(3,'a1');
CREATE TABLE note (
  id INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  kind TEXT NOT NULL,
  target TEXT NOT NULL,
  body TEXT NOT NULL
) STRICT;
CREATE TABLE piece (
  frame INTEGER NOT NULL,
  position INTEGER NOT NULL,
  at INTEGER,
  blob INTEGER NOT NULL,
  PRIMARY KEY (frame, position)
) STRICT, WITHOUT ROWID;
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
  snapshot TEXT
) STRICT;
INSERT INTO "session" VALUES(1,'00000000-0000-0000-0000-000000000001','a2a-proxy test','[]','["127.0.0.1:9000"]','["localhost:8000"]',1767225600000000000,'',4711,130000000,'clean','complete',0,0,NULL,NULL,NULL);
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
INSERT INTO "shape" VALUES(1,0,1,2,0,0,1,0,0,0,0);
INSERT INTO "shape" VALUES(2,1,3,1,1,0,1,2,0,0,0);
INSERT INTO "shape" VALUES(3,1,3,3,2,0,1,2,0,0,0);
INSERT INTO "shape" VALUES(4,1,3,4,0,0,1,2,0,0,0);
INSERT INTO "shape" VALUES(5,1,3,3,3,0,1,2,0,0,0);
INSERT INTO "shape" VALUES(6,1,6,0,0,0,0,0,0,0,0);
INSERT INTO "shape" VALUES(7,0,1,0,0,0,1,0,0,0,0);
INSERT INTO "shape" VALUES(8,1,2,1,3,0,1,0,0,0,0);
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
  UNIQUE (session, agent, ident)
) STRICT;
INSERT INTO "task" VALUES(1,1,12,1,2,0,3,'[[30000000,1],[40000000,2],[60000000,3]]',30000000,110000000,8,'[4,6,7]',1,'[1,2]');
CREATE TABLE text (id INTEGER PRIMARY KEY, value ANY NOT NULL UNIQUE) STRICT;
INSERT INTO "text" VALUES(1,'json');
INSERT INTO "text" VALUES(2,'data: ');
INSERT INTO "text" VALUES(3,'jsonrpc');
INSERT INTO "text" VALUES(4,'1.1');
INSERT INTO "text" VALUES(5,'SendStreamingMessage');
INSERT INTO "text" VALUES(6,'localhost:8000');
INSERT INTO "text" VALUES(7,'complete');
INSERT INTO "text" VALUES(8,'client');
INSERT INTO "text" VALUES(9,'["submitted","working","completed"]');
INSERT INTO "text" VALUES(10,'GetTask');
INSERT INTO "text" VALUES(11,'["completed"]');
INSERT INTO "text" VALUES(12,'http://localhost:8000');
INSERT INTO "text" VALUES(13,'A2A-GEN-006');
INSERT INTO "text" VALUES(14,'high');
INSERT INTO "text" VALUES(15,'A2A-GEN-001');
INSERT INTO "text" VALUES(16,'A2A-ART-006');
CREATE UNIQUE INDEX "idx__sqlite_migrations_migration_set_name"
    ON "_sqlite_migrations" ("migration_set", "name");
CREATE INDEX frame_exchange ON frame (session, exchange, seq);
CREATE VIEW ident_text AS SELECT id, CASE
    WHEN typeof(value) = 'text' THEN value
    WHEN length(h) = 32 THEN substr(h,1,8)||'-'||substr(h,9,4)||'-'||substr(h,13,4)||'-'||substr(h,17,4)||'-'||substr(h,21)
    ELSE (SELECT '"' || substr(h,1,8)||'-'||substr(h,9,4)||'-'||substr(h,13,4)||'-'||substr(h,17,4)||'-'||substr(h,21) || '"' FROM (SELECT substr(h, 3) AS h)) END AS value
  FROM (SELECT id, value, lower(hex(value)) AS h FROM ident);
CREATE VIEW frames AS SELECT f.id, f.session, f.exchange, f.connection, f.seq,
    CASE s.direction WHEN 0 THEN 'to agent' ELSE 'to client' END AS direction,
    CASE s.kind WHEN 0 THEN NULL WHEN 1 THEN 'request' WHEN 2 THEN 'response' WHEN 3 THEN 'event' WHEN 4 THEN 'error' WHEN 5 THEN 'comment' WHEN 6 THEN 'end' WHEN 7 THEN 'cut' WHEN 8 THEN 'control' WHEN 9 THEN 'other' WHEN 10 THEN 'undecodable' ELSE s.kind END AS kind, CASE s.event WHEN 0 THEN NULL WHEN 1 THEN 'task' WHEN 2 THEN 'message' WHEN 3 THEN 'status' WHEN 4 THEN 'artifact' WHEN 5 THEN 'tasks' WHEN 6 THEN 'card' WHEN 7 THEN 'push_config' WHEN 8 THEN 'push_configs' WHEN 9 THEN 'unknown' ELSE s.event END AS event,
    CASE s.state WHEN 0 THEN NULL WHEN 1 THEN 'submitted' WHEN 2 THEN 'working' WHEN 3 THEN 'completed' WHEN 4 THEN 'failed' WHEN 5 THEN 'canceled' WHEN 6 THEN 'input-required' WHEN 7 THEN 'rejected' WHEN 8 THEN 'auth-required' ELSE s.state END AS state,
    session.started + f.at AS at, session.started + f.at - f.took AS began, f.start, f.start + f.span AS "end",
    f.block, f.offset, f.size, (SELECT value FROM text WHERE id = s.schema) AS schema, (SELECT value FROM text WHERE id = s.framing) AS framing,
    CASE WHEN f.task < 0 THEN -1 - f.task ELSE (SELECT value FROM ident_text i WHERE i.id = f.task) END AS task_id, CASE WHEN (f.task + f.context) < 0 THEN -1 - (f.task + f.context) ELSE (SELECT value FROM ident_text i WHERE i.id = (f.task + f.context)) END AS context_id,
    CASE WHEN f.artifact < 0 THEN -1 - f.artifact ELSE (SELECT value FROM ident_text i WHERE i.id = f.artifact) END AS artifact_id, f.generation, CASE WHEN f.rpc < 0 THEN -1 - f.rpc ELSE (SELECT value FROM ident_text i WHERE i.id = f.rpc) END AS rpc_id, s.error AS error_code,
    (SELECT value FROM text WHERE id = s.note) AS note, (SELECT value FROM text WHERE id = s.redacted) AS redacted,
    s.flags >> 0 & 1 AS append, s.flags >> 1 & 1 AS last_chunk, s.flags >> 2 & 1 AS final, s.flags >> 3 & 1 AS truncated, s.flags >> 4 & 1 AS ours, s.flags >> 5 & 1 AS pieces
  FROM frame f JOIN session ON session.id = f.session JOIN shape s ON s.id = f.shape;
CREATE VIEW exchanges AS SELECT e.id, e.id >> 40 AS session, e.id & 1099511627775 AS number,
    e.connection, e.stream, (SELECT value FROM text WHERE id = e.binding) AS binding, (SELECT value FROM text WHERE id = e.dialect) AS dialect,
    (SELECT value FROM text WHERE id = e.operation) AS operation, (SELECT value FROM text WHERE id = e.method) AS method, e.target,
    (SELECT value FROM text WHERE id = e.authority) AS authority,
    e.status, e.grpc_status, e.error_code, e.error, (SELECT value FROM text WHERE id = e.how) AS how, CASE WHEN e.task < 0 THEN -1 - e.task ELSE (SELECT value FROM ident_text i WHERE i.id = e.task) END AS task_id,
    CASE WHEN e.context < 0 THEN -1 - e.context ELSE (SELECT value FROM ident_text i WHERE i.id = e.context) END AS context_id, (SELECT value FROM text WHERE id = e.states) AS states, e.requests, e.events, e.bytes_to_agent,
    e.bytes_to_client, session.started + e.started AS started, session.started + e.response_started AS response_started,
    session.started + e.first_event AS first_event, session.started + e.last_event AS last_event,
    session.started + e.closed AS closed, e.block, e.offset, e.size
  FROM exchange e JOIN session ON session.id = e.id >> 40;
CREATE VIEW tasks AS SELECT t.id, t.session, (SELECT value FROM text WHERE id = t.agent) AS agent, CASE WHEN t.ident < 0 THEN -1 - t.ident ELSE (SELECT value FROM ident_text i WHERE i.id = t.ident) END AS task_id,
    CASE WHEN t.context < 0 THEN -1 - t.context ELSE (SELECT value FROM ident_text i WHERE i.id = t.context) END AS context_id, CASE t.state WHEN 0 THEN NULL WHEN 1 THEN 'submitted' WHEN 2 THEN 'working' WHEN 3 THEN 'completed' WHEN 4 THEN 'failed' WHEN 5 THEN 'canceled' WHEN 6 THEN 'input-required' WHEN 7 THEN 'rejected' WHEN 8 THEN 'auth-required' ELSE t.state END AS state, t.generation, t.messages, t.exchanges,
    session.started + t.first AS first, session.started + t.last AS last
  FROM task t JOIN session ON session.id = t.session;
COMMIT;
