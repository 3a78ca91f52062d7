"""The fields of the filter language: their values and their columns in the recording.

A field of a frame has a condition on `frame f`, a field of an exchange a condition on `exchange e`;
`sql` converts each to the other. The table in the manual is generated from this one.
"""

import msgspec

from a2a_proxy.recording.query import columns, kinds, words
from a2a_proxy.recording.query import conditions as sql
from a2a_proxy.recording.query.columns import Condition
from a2a_proxy.recording.query.conditions import Sql
from a2a_proxy.recording.query.kinds import ValueKind
from a2a_proxy.recording.store.schema import SESSION_SHIFT

COST_READ, COST_PARSE = 1, 2
"""Costs of a frame: its payload is read (2 us), or parsed (40 us or more)."""


class QueryField(msgspec.Struct, frozen=True):
    """One field of the filter language."""

    name: str
    kind: ValueKind
    about: str
    """Description for users."""
    example: str
    frame: Condition | None = None
    exchange: Condition | None = None
    alone: bool = False
    """Whether only the exchange itself counts, and not its frames."""
    cost: int = 0
    """Cost of one row: 0 for columns only, COST_READ or COST_PARSE."""
    sides: bool = False
    """Whether `req.` and `resp.` can precede the field."""
    covers: bool = False
    """Whether a match of an exchange also holds for each of its frames, although frames have a
    condition of their own.
    """


def _field_table() -> dict[str, QueryField]:
    agent, peer = columns.where_agent(), columns.where_connection("client", "peer")
    gap = columns.where_finding(
        lambda _: Sql("rule IN (SELECT id FROM text WHERE value = ?)", (columns.GAP,))
    )
    finding = columns.where_finding(columns.where_finding_words)
    severity = columns.where_finding(lambda match: columns.where_ordered("severity", match))
    rule = columns.where_finding(columns.where_rule)
    note = columns.where_note(lambda match: sql.where_text("body", match))
    bookmark = columns.where_note(lambda _: Sql("bookmark"))
    source = (
        columns.where_source("f.shape IN (SELECT id FROM shape WHERE flags & 16)"),
        columns.where_source("e.flags & 2"),
    )
    rows = (
        QueryField(
            "op",
            words.OPERATION,
            "the operation, by its 1.0, JSON-RPC or gRPC name; `op:Send*`: by its beginning; "
            "`method` is the same",
            "op:message/stream",
            exchange=columns.where_word("e.operation"),
        ),
        QueryField(
            "binding",
            words.BINDING,
            "how messages are carried",
            "binding:grpc",
            exchange=columns.where_word("e.binding"),
        ),
        QueryField(
            "dir",
            words.DIRECTION,
            "which way a frame went",
            "dir:to-agent",
            frame=columns.where_keyed("direction", always=True),
        ),
        QueryField(
            "kind",
            words.KIND,
            "what a frame is, or which A2A object it carries",
            "kind:artifact",
            frame=columns.where_kind,
        ),
        QueryField(
            "task",
            kinds.IDENT,
            "the task's id",
            "task:b2a4",
            frame=lambda m: sql.where_ident("f.task", m),
            exchange=lambda m: sql.where_ident("e.task", m),
            sides=True,
        ),
        QueryField(
            "ctx",
            kinds.IDENT,
            "the context's id",
            "ctx:0e5a",
            frame=lambda m: sql.where_ident("(f.task + f.context)", m),
            exchange=lambda m: sql.where_ident("e.context", m),
            sides=True,
        ),
        QueryField(
            "msg",
            kinds.IDENT,
            "the message's id",
            "msg:b2eadfe1",
            frame=lambda m: sql.where_prefix(columns.MESSAGE, m),
            cost=COST_READ,
            sides=True,
        ),
        QueryField(
            "state",
            words.STATE,
            "the task state in a frame, in any spelling",
            "state:input-required",
            frame=columns.where_keyed("state"),
        ),
        QueryField(
            "part",
            words.PART,
            "a part of a message or artifact of this kind",
            "part:file",
            frame=columns.where_payload("a2a_part"),
            cost=COST_PARSE,
            sides=True,
        ),
        QueryField(
            "mime",
            kinds.IDENT,
            "the media type of a part",
            "mime:image/",
            frame=columns.where_payload("a2a_facet", "mime"),
            cost=COST_PARSE,
            sides=True,
        ),
        QueryField(
            "ext",
            kinds.TEXT,
            "the URI of an extension, in a header or a payload",
            "ext:traceability",
            frame=columns.where_payload("a2a_facet", "ext"),
            exchange=lambda m: sql.where_interned("e.extensions", sql.where_text("value", m)),
            cost=COST_PARSE,
            covers=True,
            sides=True,
        ),
        QueryField(
            "ver",
            kinds.LABEL,
            "the protocol version in use, or the version that the client requested",
            "ver:0.3",
            exchange=columns.where_version,
        ),
        QueryField(
            "code",
            words.CODE,
            "the error's code (JSON-RPC, REST, gRPC), or its name",
            "code:TASK_NOT_FOUND",
            frame=lambda m: columns.where_shape(
                sql.where_number(sql.exact_number("error"), m, "error <> 0")
            ),
            exchange=lambda m: sql.where_number(
                sql.exact_number("e.error_code"), m, "e.error_code <> 0"
            ),
        ),
        QueryField(
            "status",
            kinds.NUMBER,
            "the HTTP status",
            "status:>=400",
            exchange=lambda m: sql.where_number(sql.exact_number("e.status"), m, "e.status <> 0"),
        ),
        QueryField(
            "gen",
            kinds.NUMBER,
            "the task's generation in a frame",
            "gen:>3",
            frame=lambda m: sql.where_number(
                sql.exact_number("f.generation"), m, "f.generation <> 0"
            ),
            sides=True,
        ),
        QueryField(
            "gap",
            words.FLAG,
            "a generation was missed here; `gap` alone is enough",
            "gap",
            frame=gap[0],
            exchange=gap[1],
            alone=True,
        ),
        QueryField(
            "err",
            words.FLAG,
            "it failed, was cut or cannot be decoded; `err` alone is enough",
            "err",
            frame=columns.where_error_frame,
            exchange=lambda _: Sql(columns.ENDED_BADLY),
        ),
        QueryField(
            "outcome",
            words.OUTCOME,
            "how the exchange ended, as `ls` prints it",
            "outcome:cut",
            exchange=columns.where_outcome,
        ),
        QueryField(
            "ending",
            kinds.LABEL,
            "why a call did not end well, by the name of the cause, as `why` prints it",
            "ending:client-timeout",
            exchange=lambda m: sql.where_label("a2a_ending(e.id)", m),
            cost=COST_PARSE,
        ),
        QueryField(
            "finding",
            kinds.TEXT,
            "the text of a finding, or the id of its rule",
            "finding:GEN-001",
            frame=finding[0],
            exchange=finding[1],
            alone=True,
        ),
        QueryField(
            "sev",
            words.SEVERITY,
            "the severity of a finding",
            "sev:>=warning",
            frame=severity[0],
            exchange=severity[1],
            alone=True,
        ),
        QueryField(
            "rule",
            kinds.RULE,
            "the rule of a finding",
            "rule:GEN-001",
            frame=rule[0],
            exchange=rule[1],
            alone=True,
        ),
        QueryField(
            "agent",
            kinds.TEXT,
            "the agent's address and base path",
            "agent:8000",
            frame=agent[0],
            exchange=agent[1],
            alone=True,
        ),
        QueryField(
            "peer",
            kinds.TEXT,
            "the client's address, or the dialled address",
            "peer:127.0.0.1",
            frame=peer[0],
            exchange=peer[1],
            alone=True,
        ),
        QueryField(
            "header",
            kinds.TEXT,
            "a header or trailer, as `name: value`; `=` compares the name alone",
            'header:"content-type: text"',
            exchange=columns.where_header,
            cost=COST_PARSE,
            sides=True,
        ),
        QueryField(
            "meta",
            kinds.TEXT,
            "a member of some metadata in the payload, as `key: value`",
            "meta:tenant",
            frame=columns.where_payload("a2a_facet", "meta"),
            cost=COST_PARSE,
            sides=True,
        ),
        QueryField(
            "size",
            kinds.SIZE,
            "bytes of a frame's payload",
            "size>=10kB",
            frame=lambda m: sql.where_number(columns.SIZE, m),
            sides=True,
        ),
        QueryField(
            "dur",
            kinds.DURATION,
            "how long the exchange took, from the end of the request; `slow:2s` is `dur>=2s`",
            "dur<500ms",
            exchange=lambda m: sql.where_number(f"max({columns.LAST} - {columns.ZERO}, 0)", m),
        ),
        QueryField(
            "ttfe",
            kinds.DURATION,
            "time from the end of the request to the first event",
            "ttfe:>1s",
            exchange=lambda m: sql.where_number(f"max(e.first_event - {columns.ZERO}, 0)", m),
        ),
        QueryField(
            "t",
            kinds.TIME,
            "the time of a frame's last byte, of an exchange's first",
            "t:>12:30",
            frame=lambda m: sql.where_time("f.at", columns.STARTED.format("f.session"), m),
            exchange=lambda m: sql.where_time(
                "e.started", columns.STARTED.format(f"e.id >> {SESSION_SHIFT}"), m
            ),
            alone=True,
        ),
        QueryField(
            "rec",
            kinds.IDENT,
            "the session: its number, or its uuid",
            "rec:1",
            frame=columns.where_session("f.session"),
            exchange=columns.where_session(f"e.id >> {SESSION_SHIFT}"),
            alone=True,
        ),
        QueryField(
            "src",
            words.SOURCE,
            "the origin of the bytes",
            "src:proxy",
            frame=source[0],
            exchange=source[1],
            sides=True,
        ),
        QueryField(
            "trace",
            kinds.TRACE,
            "the trace id that the agent received; `~~4bf9` is short for it",
            "~~4bf92f35",
            exchange=lambda m: sql.where_prefix(columns.TRACE, m),
        ),
        QueryField(
            "note",
            kinds.TEXT,
            "your note, or the decoder's remark about a frame",
            "note:retry",
            frame=lambda m: sql.join_conditions("OR", note[0](m), columns.where_remark(m)),
            exchange=note[1],
        ),
        QueryField(
            "bookmark",
            words.FLAG,
            "your bookmarks: `bookmark:yes`",
            "bookmark:yes",
            frame=bookmark[0],
            exchange=bookmark[1],
            alone=True,
        ),
        QueryField(
            "text",
            kinds.TEXT,
            "the payload's text; a word alone is enough",
            'text~"order [0-9]+"',
            frame=columns.where_payload("a2a_text"),
            cost=COST_READ,
            sides=True,
        ),
    )
    return {row.name: row for row in rows}


FIELDS = _field_table()
ALIASES = {"slow": "dur", "method": "op"}
"""Other names of fields. `slow` has another meaning of `:` too."""
"""Fields by name, in the order of the manual."""
