"""The fields: what can be asked for, what its values may be, where the recording has it.

A field of a frame has a condition on `frame f`, one of an exchange a condition on `exchange e`; `sql` carries each of
them over to the other. The table of the manual is made of this one.
"""

from __future__ import annotations

import msgspec

from a2a_proxy.recording.query import columns, kinds, words
from a2a_proxy.recording.query import conditions as sql
from a2a_proxy.recording.query.columns import Condition
from a2a_proxy.recording.query.conditions import Sql
from a2a_proxy.recording.query.kinds import ValueKind
from a2a_proxy.recording.store.schema import SESSION_SHIFT

READS, PARSES = 1, 2
"""Costs of a frame: its payload is read (2 us), or parsed (40 us and more)."""


class QueryField(msgspec.Struct, frozen=True):
    """One field."""

    name: str
    kind: ValueKind
    about: str
    """What it asks for, for people."""
    example: str
    frame: Condition | None = None
    exchange: Condition | None = None
    alone: bool = False
    """The exchange itself says it: what its frames say does not count."""
    cost: int = 0
    """What one row takes: a look at columns, READS or PARSES."""
    sides: bool = False
    """`req.` and `resp.` mean something."""
    covers: bool = False
    """What holds for an exchange holds for each of its frames, though frames have it too."""


def _table() -> dict[str, QueryField]:
    agent, peer = columns.connection("upstream", "peer"), columns.connection("client", "peer")
    gap = columns.finding(lambda _: Sql("rule IN (SELECT id FROM text WHERE value = ?)", (columns.GAP,)))
    finding = columns.finding(lambda match: sql.text("summary", match))
    severity = columns.finding(lambda match: columns.ordered("severity", match))
    rule = columns.finding(columns.rule)
    note = columns.written(lambda match: sql.text("body", match))
    bookmark = columns.written(lambda _: Sql("bookmark"))
    source = columns.source("f.shape IN (SELECT id FROM shape WHERE flags & 16)"), columns.source("e.flags & 2")
    rows = (
        QueryField(
            "op",
            words.OPERATION,
            "the operation, by its 1.0, JSON-RPC or gRPC name",
            "op:message/stream",
            exchange=columns.word("e.operation"),
        ),
        QueryField(
            "binding", words.BINDING, "how messages are carried", "binding:grpc", exchange=columns.word("e.binding")
        ),
        QueryField(
            "dir",
            words.DIRECTION,
            "which way a frame went",
            "dir:to-agent",
            frame=columns.keyed("direction", always=True),
        ),
        QueryField(
            "kind", words.KIND, "what a frame is, or which A2A object it carries", "kind:artifact", frame=columns.kind
        ),
        QueryField(
            "task",
            kinds.IDENT,
            "the task's id",
            "task:b2a4",
            frame=lambda m: sql.ident("f.task", m),
            exchange=lambda m: sql.ident("e.task", m),
            sides=True,
        ),
        QueryField(
            "ctx",
            kinds.IDENT,
            "the context's id",
            "ctx:0e5a",
            frame=lambda m: sql.ident("(f.task + f.context)", m),
            exchange=lambda m: sql.ident("e.context", m),
            sides=True,
        ),
        QueryField(
            "msg",
            kinds.IDENT,
            "the message's id",
            "msg:b2eadfe1",
            frame=lambda m: sql.begun(columns.MESSAGE, m),
            cost=READS,
            sides=True,
        ),
        QueryField(
            "state",
            words.STATE,
            "the state that a frame tells, in any spelling",
            "state:input-required",
            frame=columns.keyed("state"),
        ),
        QueryField(
            "part",
            words.PART,
            "a part of a message or artifact of this kind",
            "part:file",
            frame=columns.read("a2a_part"),
            cost=PARSES,
            sides=True,
        ),
        QueryField(
            "mime",
            kinds.IDENT,
            "the media type of a part",
            "mime:image/",
            frame=columns.read("a2a_facet", "mime"),
            cost=PARSES,
            sides=True,
        ),
        QueryField(
            "ext",
            kinds.TEXT,
            "the URI of an extension, in a header or a payload",
            "ext:traceability",
            frame=columns.read("a2a_facet", "ext"),
            exchange=lambda m: sql.interned("e.extensions", sql.text("value", m)),
            cost=PARSES,
            covers=True,
            sides=True,
        ),
        QueryField(
            "ver",
            kinds.LABEL,
            "the protocol line, or the version that the client asked for",
            "ver:0.3",
            exchange=columns.version,
        ),
        QueryField(
            "code",
            words.CODE,
            "the error's code (JSON-RPC, REST, gRPC), or its name",
            "code:TASK_NOT_FOUND",
            frame=lambda m: columns.shape(sql.number(sql.big("error"), m, "error <> 0")),
            exchange=lambda m: sql.number(sql.big("e.error_code"), m, "e.error_code <> 0"),
        ),
        QueryField(
            "status",
            kinds.NUMBER,
            "the HTTP status",
            "status:>=400",
            exchange=lambda m: sql.number(sql.big("e.status"), m, "e.status <> 0"),
        ),
        QueryField(
            "gen",
            kinds.NUMBER,
            "the generation that a frame tells",
            "gen:>3",
            frame=lambda m: sql.number(sql.big("f.generation"), m, "f.generation <> 0"),
            sides=True,
        ),
        QueryField(
            "gap",
            words.FLAG,
            "a generation was missed here; `gap` alone will do",
            "gap",
            frame=gap[0],
            exchange=gap[1],
            alone=True,
        ),
        QueryField(
            "err",
            words.FLAG,
            "it failed, was cut or cannot be read; `err` alone will do",
            "err",
            frame=columns.error_frame,
            exchange=lambda _: Sql(columns.ENDED_BADLY),
        ),
        QueryField(
            "finding",
            kinds.TEXT,
            "what a finding says",
            "finding:zone",
            frame=finding[0],
            exchange=finding[1],
            alone=True,
        ),
        QueryField(
            "sev",
            words.SEVERITY,
            "how bad a finding is",
            "sev:>=warning",
            frame=severity[0],
            exchange=severity[1],
            alone=True,
        ),
        QueryField(
            "rule", kinds.RULE, "the rule of a finding", "rule:GEN-001", frame=rule[0], exchange=rule[1], alone=True
        ),
        QueryField(
            "agent", kinds.TEXT, "the agent's address", "agent:8000", frame=agent[0], exchange=agent[1], alone=True
        ),
        QueryField(
            "peer",
            kinds.TEXT,
            "the client's address, or the one that was dialled",
            "peer:127.0.0.1",
            frame=peer[0],
            exchange=peer[1],
            alone=True,
        ),
        QueryField(
            "header",
            kinds.TEXT,
            "a header or trailer, as `name: value`; `=` asks for the name alone",
            'header:"content-type: text"',
            exchange=columns.header,
            cost=PARSES,
            sides=True,
        ),
        QueryField(
            "meta",
            kinds.TEXT,
            "a member of some metadata in the payload, as `key: value`",
            "meta:tenant",
            frame=columns.read("a2a_facet", "meta"),
            cost=PARSES,
            sides=True,
        ),
        QueryField(
            "size",
            kinds.SIZE,
            "octets of a frame's payload",
            "size>=10kB",
            frame=lambda m: sql.number(columns.SIZE, m),
            sides=True,
        ),
        QueryField(
            "dur",
            kinds.DURATION,
            "how long the exchange took, from the end of the request; `slow:2s` is `dur>=2s`",
            "dur<500ms",
            exchange=lambda m: sql.number(f"max({columns.LAST} - {columns.ZERO}, 0)", m),
        ),
        QueryField(
            "ttfe",
            kinds.DURATION,
            "time from the end of the request to the first event",
            "ttfe:>1s",
            exchange=lambda m: sql.number(f"max(e.first_event - {columns.ZERO}, 0)", m),
        ),
        QueryField(
            "t",
            kinds.TIME,
            "when: of a frame its last octet, of an exchange its first",
            "t:>12:30",
            frame=lambda m: sql.moment("f.at", columns.STARTED.format("f.session"), m),
            exchange=lambda m: sql.moment("e.started", columns.STARTED.format(f"e.id >> {SESSION_SHIFT}"), m),
            alone=True,
        ),
        QueryField(
            "rec",
            kinds.IDENT,
            "the session: its number, or its uuid",
            "rec:1",
            frame=columns.session("f.session"),
            exchange=columns.session(f"e.id >> {SESSION_SHIFT}"),
            alone=True,
        ),
        QueryField(
            "src", words.SOURCE, "who made the octets", "src:proxy", frame=source[0], exchange=source[1], sides=True
        ),
        QueryField(
            "trace",
            kinds.TRACE,
            "the trace id that the agent got; `~~4bf9` is short for it",
            "~~4bf92f35",
            exchange=lambda m: sql.begun(columns.TRACE, m),
        ),
        QueryField(
            "note",
            kinds.TEXT,
            "what you noted there, or the decoder remarked about a frame",
            "note:retry",
            frame=lambda m: sql.joined("OR", note[0](m), columns.remark(m)),
            exchange=note[1],
        ),
        QueryField(
            "bookmark",
            words.FLAG,
            "you bookmarked it: `bookmark:yes`",
            "bookmark:yes",
            frame=bookmark[0],
            exchange=bookmark[1],
            alone=True,
        ),
        QueryField(
            "text",
            kinds.TEXT,
            "the payload's text; a word alone will do",
            'text~"order [0-9]+"',
            frame=columns.read("a2a_text"),
            cost=READS,
            sides=True,
        ),
    )
    return {row.name: row for row in rows}


FIELDS = _table()
"""By name, in the order of the manual."""
