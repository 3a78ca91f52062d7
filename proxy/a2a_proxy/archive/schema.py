"""Parquet schemas of the archive's tables. Stable: columns are only added at the end, and never
change their meaning.

`frames` has one row for each frame, in plain types, with the context that a reader needs: its call
and its findings. `facts` has one row for each session, connection, call, task and finding, as of
the time when the segment was written: a later segment may have a newer row of the same object.
Together they hold the whole recording except the notes of people. No column name is a reserved word
of SQL.

Identifiers and words are strings, times are UTC in ns, bytes are binary. Null means absent, in
every column.
"""

from typing import Any, NamedTuple

import pyarrow as pa

VERSION = 1
"""Incremented when a reader of the previous version would misread the data."""
ROW_GROUP_ROWS = 50_000
"""Rows of a full row group."""
COMPRESSION = "zstd"
COMPRESSION_LEVEL = 3

_TIME_TYPE = pa.timestamp("ns")
"""UTC, but without a time zone in the type, because DuckDB does not compare ns times that have
one."""
_WORD_TYPE = pa.dictionary(pa.int32(), pa.string())
_FINDING_TYPE = pa.struct(
    [
        ("rule", pa.string()),
        ("severity", pa.string()),
        ("confidence", pa.string()),
        ("summary", pa.string()),
    ]
)
_TRACE_DIGITS = 32
_INT64 = range(-(1 << 63), 1 << 63)


class ArchiveColumn(NamedTuple):
    """A column of a table."""

    name: str
    type: pa.DataType
    meaning: str


FRAME_COLUMNS = (
    ArchiveColumn("session", _WORD_TYPE, "Uuid of the session: one run of a proxy."),
    ArchiveColumn(
        "frame", pa.int64(), "Number of the frame in its recording, in order of storing."
    ),
    ArchiveColumn("time", _TIME_TYPE, "When its last byte arrived."),
    ArchiveColumn("began", _TIME_TYPE, "When its first byte arrived."),
    ArchiveColumn(
        "agent", _WORD_TYPE, "Upstream of its connection, as the proxy dialed it: the agent."
    ),
    ArchiveColumn(
        "task_id", pa.string(), "Task that the frame names, else the first task of its call."
    ),
    ArchiveColumn(
        "context_id", pa.string(), "Context that the frame names, else the context of its call."
    ),
    ArchiveColumn(
        "trace_id",
        pa.string(),
        "Trace of its call, 32 hexadecimal digits, from the agent's `traceparent`.",
    ),
    ArchiveColumn(
        "exchange",
        pa.int64(),
        "Number of its call in the session; 0 for a frame of the connection itself.",
    ),
    ArchiveColumn("connection", pa.int64(), "Number of its connection in the session."),
    ArchiveColumn(
        "seq", pa.int64(), "Number of the frame in its call, counted over both directions from 0."
    ),
    ArchiveColumn("direction", _WORD_TYPE, "`to_agent` or `to_client`."),
    ArchiveColumn(
        "kind",
        _WORD_TYPE,
        "`request`, `response`, `event`, `error`, `comment`, `end`, `cut`, `control`, `other` ...",
    ),
    ArchiveColumn(
        "event", _WORD_TYPE, "A2A object in it: `task`, `message`, `status`, `artifact`, `card` ..."
    ),
    ArchiveColumn(
        "state",
        _WORD_TYPE,
        "Task state in it: `working`, `input-required` ...; the number of an unknown state.",
    ),
    ArchiveColumn(
        "generation",
        pa.int64(),
        "Generation of the task in it; of a request, the generation that it names.",
    ),
    ArchiveColumn(
        "binding",
        _WORD_TYPE,
        "`grpc`, `jsonrpc`, `rest` ...: binding of its call; the columns up to `status` describe "
        "the call too.",
    ),
    ArchiveColumn("dialect", _WORD_TYPE, "Protocol version: `0.3`, `1.0` ..."),
    ArchiveColumn(
        "operation", _WORD_TYPE, "The 1.0 name of the operation: `SendStreamingMessage`."
    ),
    ArchiveColumn(
        "method", _WORD_TYPE, "Method on the wire: the JSON-RPC method, `GET`, or the gRPC method."
    ),
    ArchiveColumn("target", pa.string(), "Path and query of the request."),
    ArchiveColumn("streaming", pa.bool_(), "The response is a stream of events."),
    ArchiveColumn(
        "status", pa.int64(), "HTTP status, if it was known when the segment was written."
    ),
    ArchiveColumn("message_id", pa.string(), "Message in it."),
    ArchiveColumn("artifact_id", pa.string(), "Artifact in it."),
    ArchiveColumn("rpc_id", pa.string(), "The JSON-RPC id as JSON text."),
    ArchiveColumn("append", pa.bool_(), "An artifact chunk that continues the previous one."),
    ArchiveColumn("last_chunk", pa.bool_(), "The last chunk of its artifact."),
    ArchiveColumn("final", pa.bool_(), "The frame says that it is the last one of the stream."),
    ArchiveColumn(
        "error_code",
        pa.int64(),
        "JSON-RPC error code, HTTP status of a REST error, or gRPC status.",
    ),
    ArchiveColumn("note", pa.string(), "Remark of the decoder, for readers."),
    ArchiveColumn("ours", pa.bool_(), "The proxy wrote these bytes, not the peer."),
    ArchiveColumn(
        "byte_start",
        pa.int64(),
        "Offset of its first byte in its direction of the connection, framing included.",
    ),
    ArchiveColumn("byte_end", pa.int64(), "Offset of the byte after its last one."),
    ArchiveColumn("size", pa.int64(), "Size of the complete payload in bytes, also if it was cut."),
    ArchiveColumn("truncated", pa.bool_(), "The payload was cut at the storage limit."),
    ArchiveColumn("sha256", pa.binary(), "SHA-256 of the complete payload, if it was cut."),
    ArchiveColumn(
        "schema",
        _WORD_TYPE,
        "Format of the payload: `json`, `text`, `trailers`, or a protobuf message's full name.",
    ),
    ArchiveColumn("framing", _WORD_TYPE, "Framing of the payload on the wire."),
    ArchiveColumn("redacted", pa.list_(pa.string()), "Paths of the redacted values."),
    ArchiveColumn(
        "findings",
        pa.list_(_FINDING_TYPE),
        "Findings about this frame when the segment was written.",
    ),
    ArchiveColumn("payload", pa.binary(), "The message itself, without content coding."),
    ArchiveColumn(
        "named",
        pa.string(),
        "`tc`, `t`, `c`: whether the frame itself names the task and the context.",
    ),
    ArchiveColumn(
        "exact",
        pa.string(),
        "Members that no column can hold, as JSON: invalid Unicode, or over 64 bits.",
    ),
)

FACT_COLUMNS = (
    ArchiveColumn("session", _WORD_TYPE, "Uuid of the session."),
    ArchiveColumn(
        "kind",
        _WORD_TYPE,
        "`session`, `connection`, `exchange`, `task` or `finding`: the object of the row.",
    ),
    ArchiveColumn(
        "number",
        pa.int64(),
        "Number of the connection or call in the session, of the finding in its recording.",
    ),
    ArchiveColumn("time", _TIME_TYPE, "When it began; of a finding, when it was reported."),
    ArchiveColumn(
        "ended",
        _TIME_TYPE,
        "When it ended; of a task, which has no recorded end, the time of its last frame.",
    ),
    ArchiveColumn("agent", _WORD_TYPE, "Upstream."),
    ArchiveColumn("exchange", pa.int64(), "The call itself, or the call that it concerns."),
    ArchiveColumn("task_id", pa.string(), "The task itself, or the task that it concerns."),
    ArchiveColumn("context_id", pa.string(), "Its context."),
    ArchiveColumn("trace_id", pa.string(), "Trace of a call."),
    ArchiveColumn("binding", _WORD_TYPE, "Binding of a call."),
    ArchiveColumn("operation", _WORD_TYPE, "Operation of a call."),
    ArchiveColumn("state", _WORD_TYPE, "State of a task."),
    ArchiveColumn("rule", _WORD_TYPE, "Rule of a finding: `A2A-GEN-001`."),
    ArchiveColumn("severity", _WORD_TYPE, "Severity of a finding: `info`, `warning` or `error`."),
    ArchiveColumn("summary", pa.string(), "Summary of a finding, one sentence."),
    ArchiveColumn(
        "missed", pa.int64(), "Of a task: number of gaps in its generations on a stream."
    ),
    ArchiveColumn("line", pa.string(), "The whole object, as the JSON object of a cassette."),
)


def arrow_schema(columns: tuple[ArchiveColumn, ...]) -> pa.Schema:
    """Return the Arrow schema of a table. The metadata of each field describes it."""
    fields = [
        pa.field(name, kind, metadata={"description": meaning}) for name, kind, meaning in columns
    ]
    return pa.schema(fields, metadata={"a2a_proxy.archive": str(VERSION)})


FRAMES_SCHEMA = arrow_schema(FRAME_COLUMNS)
FACTS_SCHEMA = arrow_schema(FACT_COLUMNS)


def is_column_value(value: Any) -> bool:
    """Whether a column can hold the value."""
    if isinstance(value, str):
        if value.isascii():
            return True
        try:
            value.encode()
        except UnicodeEncodeError:
            return False
    elif isinstance(value, tuple):
        return all(map(is_column_value, value))
    elif isinstance(value, int):
        return value in _INT64
    return True


def column_value(value: Any) -> Any:
    """Return the value if it is not empty and a column can hold it, else None."""
    return value if value and is_column_value(value) else None


def trace_id_of(traceparent: str) -> str:
    """Return the trace id of a W3C `traceparent`, or an empty string if it has no valid one."""
    words = traceparent.split("-")
    trace = words[1].lower() if len(words) > 1 else ""
    return trace if len(trace) == _TRACE_DIGITS and set(trace) <= set("0123456789abcdef") else ""
