"""The tables of the archive as Parquet schemas. Stable: columns are added at the end, and never change their meaning.

`frames` has a row for each frame, in plain types, with what a reader needs to know of its call and of what was found
about it. `facts` has a row for each session, connection, call, task and finding, as it stood when the segment was
written: a later segment may have a newer row for the same thing. Together they hold all that the recording had but for
notes of people. No column has a name that SQL reserves.

Identifiers and words are strings, times UTC in ns, bytes binary; null is what is not there, in every column.
"""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

VERSION = 1
"""Counted up where a reader of the former version would go wrong."""
ROW_GROUP_ROWS = 50_000
"""Rows of a row group."""
COMPRESSION = "zstd"
COMPRESSION_LEVEL = 3

_TIME_TYPE = pa.timestamp("ns")
"""UTC. Without saying so: DuckDB compares no times of ns that have a zone."""
_WORD_TYPE = pa.dictionary(pa.int32(), pa.string())
_FINDING_TYPE = pa.struct(
    [("rule", pa.string()), ("severity", pa.string()), ("confidence", pa.string()), ("summary", pa.string())]
)


class ArchiveColumn(NamedTuple):
    """A column of a table."""

    name: str
    type: pa.DataType
    meaning: str


FRAME_COLUMNS = (
    ArchiveColumn("session", _WORD_TYPE, "Uuid of the session: one run of a proxy."),
    ArchiveColumn("frame", pa.int64(), "Number of the frame in its recording, in order of storing."),
    ArchiveColumn("time", _TIME_TYPE, "When its last byte arrived."),
    ArchiveColumn("began", _TIME_TYPE, "When its first byte arrived."),
    ArchiveColumn("agent", _WORD_TYPE, "Upstream of its connection, as the proxy dialed it: who answered."),
    ArchiveColumn("task_id", pa.string(), "Task that the frame names, else the first one of its call."),
    ArchiveColumn("context_id", pa.string(), "Context that the frame names, else the one of its call."),
    ArchiveColumn("trace_id", pa.string(), "Trace of its call, 32 hexadecimal digits, from the agent's `traceparent`."),
    ArchiveColumn("exchange", pa.int64(), "Number of its call in the session; 0 for a frame of the connection itself."),
    ArchiveColumn("connection", pa.int64(), "Number of its connection in the session."),
    ArchiveColumn("seq", pa.int64(), "Its place in the call, both directions in one count, from 0."),
    ArchiveColumn("direction", _WORD_TYPE, "`to_agent` or `to_client`."),
    ArchiveColumn(
        "kind", _WORD_TYPE, "`request`, `response`, `event`, `error`, `comment`, `end`, `cut`, `control`, `other` ..."
    ),
    ArchiveColumn("event", _WORD_TYPE, "A2A object in it: `task`, `message`, `status`, `artifact`, `card` ..."),
    ArchiveColumn(
        "state", _WORD_TYPE, "Task state that it tells: `working`, `input-required` ...; a number that has no name."
    ),
    ArchiveColumn(
        "generation", pa.int64(), "Generation of the task that it tells; of a request the one it asks about."
    ),
    ArchiveColumn("binding", _WORD_TYPE, "`grpc`, `jsonrpc`, `rest` ...: of its call, as all up to `status`."),
    ArchiveColumn("dialect", _WORD_TYPE, "Protocol line: `0.3`, `1.0` ..."),
    ArchiveColumn("operation", _WORD_TYPE, "The 1.0 name of the operation: `SendStreamingMessage`."),
    ArchiveColumn("method", _WORD_TYPE, "What the wire says: the JSON-RPC method, `GET`, or the gRPC method."),
    ArchiveColumn("target", pa.string(), "Path and query of the request."),
    ArchiveColumn("streaming", pa.bool_(), "The answer is a stream of events."),
    ArchiveColumn("status", pa.int64(), "HTTP status, where there was one when the segment was written."),
    ArchiveColumn("message_id", pa.string(), "Message that it carries."),
    ArchiveColumn("artifact_id", pa.string(), "Artifact that it carries."),
    ArchiveColumn("rpc_id", pa.string(), "The JSON-RPC id as JSON text."),
    ArchiveColumn("append", pa.bool_(), "An artifact chunk that goes on from the one before."),
    ArchiveColumn("last_chunk", pa.bool_(), "The last chunk of its artifact."),
    ArchiveColumn("final", pa.bool_(), "The stream says that it ends here."),
    ArchiveColumn("error_code", pa.int64(), "JSON-RPC error code, HTTP status of a REST error, or gRPC status."),
    ArchiveColumn("note", pa.string(), "Remark of the decoder in words."),
    ArchiveColumn("ours", pa.bool_(), "The proxy made these bytes, not the peer."),
    ArchiveColumn("octet_start", pa.int64(), "First byte of it in its direction of the connection, framing included."),
    ArchiveColumn("octet_end", pa.int64(), "The byte after its last one."),
    ArchiveColumn("size", pa.int64(), "True size of the payload, bytes, also where it was cut."),
    ArchiveColumn("truncated", pa.bool_(), "The payload was cut at the storage limit."),
    ArchiveColumn("sha256", pa.binary(), "Of the whole payload, where it was cut."),
    ArchiveColumn(
        "schema", _WORD_TYPE, "How to read the payload: `json`, `text`, `trailers`, or a protobuf message's full name."
    ),
    ArchiveColumn("framing", _WORD_TYPE, "How the payload sat on the wire."),
    ArchiveColumn("redacted", pa.list_(pa.string()), "Paths of what was replaced by labels."),
    ArchiveColumn("findings", pa.list_(_FINDING_TYPE), "What was found about this frame when the segment was written."),
    ArchiveColumn("payload", pa.binary(), "The message itself, content coding removed."),
    ArchiveColumn(
        "named", pa.string(), "`tc`, `t`, `c`: whether task and context are those that the frame itself names."
    ),
    ArchiveColumn(
        "exact", pa.string(), "As JSON the members that no column can hold: no Unicode, or more than 64 bits."
    ),
)

FACT_COLUMNS = (
    ArchiveColumn("session", _WORD_TYPE, "Uuid of the session."),
    ArchiveColumn(
        "kind", _WORD_TYPE, "`session`, `connection`, `exchange`, `task` or `finding`: what the row is about."
    ),
    ArchiveColumn("number", pa.int64(), "Of the connection or call in the session, of the finding in its recording."),
    ArchiveColumn("time", _TIME_TYPE, "When it began; of a finding when it was made."),
    ArchiveColumn(
        "ended", _TIME_TYPE, "When it was over; of a task, of which nothing says so, when it was last heard of."
    ),
    ArchiveColumn("agent", _WORD_TYPE, "Upstream."),
    ArchiveColumn("exchange", pa.int64(), "Call that it is, or is about."),
    ArchiveColumn("task_id", pa.string(), "Task that it is, or is about."),
    ArchiveColumn("context_id", pa.string(), "Context of it."),
    ArchiveColumn("trace_id", pa.string(), "Trace of the call."),
    ArchiveColumn("binding", _WORD_TYPE, "Of a call."),
    ArchiveColumn("operation", _WORD_TYPE, "Of a call."),
    ArchiveColumn("state", _WORD_TYPE, "Of a task."),
    ArchiveColumn("rule", _WORD_TYPE, "Of a finding: `A2A-GEN-001`."),
    ArchiveColumn("severity", _WORD_TYPE, "Of a finding: `info`, `warning` or `error`."),
    ArchiveColumn("summary", pa.string(), "Of a finding, in a sentence."),
    ArchiveColumn("missed", pa.int64(), "Of a task: how many runs of generations a stream left out."),
    ArchiveColumn("line", pa.string(), "All of it, as the JSON object that a cassette has."),
)


def arrow_schema(columns: tuple[ArchiveColumn, ...]) -> pa.Schema:
    """The Arrow schema of a table; each field says what it means."""
    fields = [pa.field(name, kind, metadata={"description": meaning}) for name, kind, meaning in columns]
    return pa.schema(fields, metadata={"a2a_proxy.archive": str(VERSION)})


FRAMES_SCHEMA = arrow_schema(FRAME_COLUMNS)
FACTS_SCHEMA = arrow_schema(FACT_COLUMNS)
