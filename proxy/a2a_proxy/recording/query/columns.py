"""SQL conditions of the fields, on `frame f` and `exchange e`."""

import re
from collections.abc import Callable

from a2a_proxy.model.values import FrameKind
from a2a_proxy.recording.query import conditions as sql
from a2a_proxy.recording.query.conditions import Sql
from a2a_proxy.recording.query.kinds import parse_rule
from a2a_proxy.recording.query.tree import COMPARISONS, Anything, Match, Op, WordValue
from a2a_proxy.recording.query.words import EVENT_OFFSET
from a2a_proxy.recording.read.outcome_sql import OUTCOME
from a2a_proxy.recording.store.schema import SESSION_SHIFT

Condition = Callable[[Match], Sql]

CONNECTION_OF_FRAME = f"(f.session << {SESSION_SHIFT} | f.connection)"
CONNECTION_OF_EXCHANGE = f"(e.id >> {SESSION_SHIFT} << {SESSION_SHIFT} | e.connection)"
EXCHANGE_OF_FRAME = f"(f.session << {SESSION_SHIFT} | f.exchange)"
_PAYLOAD = "f.id, f.shape, f.block, f.offset, f.size"
STARTED = "(SELECT started FROM session WHERE id = {})"


SIZE = (
    "coalesce(CASE WHEN f.extra IS NOT NULL THEN json_extract(f.extra, '$.size') END, "
    "coalesce(f.size, 0) + CASE WHEN f.shape IN (SELECT id FROM shape WHERE flags & 32) THEN "
    "(SELECT coalesce(sum(blob.size), 0) FROM piece JOIN blob ON blob.id = piece.blob WHERE "
    "piece.frame = f.id) ELSE 0 END)"
)
MESSAGE = f"a2a_message(f.message, {_PAYLOAD})"
TRACE = "substr(coalesce(nullif(e.sent_traceparent, ''), e.traceparent), 4, 32)"
ZERO = "CASE WHEN e.flags & 12 THEN e.started ELSE coalesce(e.request_ended, e.started) END"
"""SQL of `protocol.outcome.latency_origin`; bits 2 and 3 of the flags mark a live exchange."""
LAST = "coalesce(e.closed, e.last_event)"
ENDED_BADLY = (
    "(e.error <> '' OR e.flags & 2 OR e.how NOT IN (SELECT id FROM text WHERE value = 'complete') "
    "AND e.how <> 0)"
)
_ERRORS = (FrameKind.ERROR, FrameKind.CUT, FrameKind.UNDECODABLE)
GAP = "A2A-GEN-001"
_FAMILY = re.compile(r"A2A-[A-Z]+")
"""The ids of a family of rules without their number."""


def where_shape(condition: Sql) -> Sql:
    """Apply a condition to the shape of a frame."""
    return condition.insert_into("f.shape IN (SELECT id FROM shape WHERE {})")


def where_keyed(column: str, *, always: bool = False) -> Condition:
    """Return the condition on a number of `shape`, by its words. 0 means no value, except with
    `always`."""

    def condition(match: Match) -> Sql:
        return (
            Sql("1")
            if always and isinstance(match.value, Anything)
            else where_shape(where_ordered(column, match))
        )

    return condition


def where_ordered(column: str, match: Match) -> Sql:
    """Return the condition on a small number, by its words. 0 means no value."""
    if isinstance(match.value, Anything):
        return Sql(f"{column} <> 0")
    assert isinstance(match.value, WordValue)
    if match.op in COMPARISONS:
        return Sql(f"{column} {match.op} ?", match.value.keys)
    return sql.where_one_of(column, match.value.keys)


def where_kind(match: Match) -> Sql:
    """Return the condition on kinds of frames, or of events (whose keys are 100 higher)."""
    if isinstance(match.value, Anything):
        return Sql("1")
    assert isinstance(match.value, WordValue)
    key = match.value.keys[0]
    assert isinstance(key, int)
    return where_shape(
        Sql("kind = ?", (key,)) if key < EVENT_OFFSET else Sql("event = ?", (key - EVENT_OFFSET,))
    )


def where_word(column: str) -> Condition:
    """Return the condition on an interned column of an exchange, by words of a closed list or by a
    pattern."""

    def condition(match: Match) -> Sql:
        if isinstance(match.value, WordValue):
            return sql.where_interned(column, sql.where_one_of("value", match.value.keys))
        return sql.where_interned(column, sql.where_text("value", match))

    return condition


def where_version(match: Match) -> Sql:
    """Return the condition on the dialect or the version header."""
    test = sql.where_label("value", match)
    return sql.join_conditions(
        "OR", *(sql.where_interned(column, test) for column in ("e.dialect", "e.version_header"))
    )


def where_connection(*columns: str) -> tuple[Condition, Condition]:
    """Return the conditions on addresses of the connection, for frames and for exchanges."""

    def select_connections(match: Match) -> Sql:
        return sql.join_conditions(
            "OR", *(sql.where_text(column, match) for column in columns)
        ).insert_into("(SELECT id FROM connection WHERE {})")

    return (
        lambda match: select_connections(match).insert_into(f"{CONNECTION_OF_FRAME} IN {{}}"),
        lambda match: select_connections(match).insert_into(f"{CONNECTION_OF_EXCHANGE} IN {{}}"),
    )


def where_agent() -> tuple[Condition, Condition]:
    """Return the conditions on the agent of the exchange or an address of its upstream, for frames
    and for exchanges."""
    of_frame, of_exchange = where_connection("upstream", "peer")
    is_named = where_word("e.agent")
    calls = f"{EXCHANGE_OF_FRAME} IN (SELECT e.id FROM exchange e WHERE {{}})"
    return (
        lambda match: sql.join_conditions(
            "OR", of_frame(match), is_named(match).insert_into(calls)
        ),
        lambda match: sql.join_conditions("OR", of_exchange(match), is_named(match)),
    )


def where_finding(test: Condition) -> tuple[Condition, Condition]:
    """Return the conditions on findings, for frames and for exchanges.

    A frame matches by its own findings and by findings about its whole exchange or connection.
    """

    def select_findings(match: Match, columns: str, where: str) -> Sql:
        return test(match).insert_into(f"(SELECT {columns} FROM finding WHERE {where} AND {{}})")

    def of_frame(match: Match) -> Sql:
        rows = (
            (
                "(f.session, f.exchange, f.seq)",
                "session, exchange, seq",
                "exchange <> 0 AND seq >= 0",
            ),
            ("(f.session, f.exchange)", "session, exchange", "exchange <> 0 AND seq < 0"),
            (
                "(f.session, f.connection, f.seq)",
                "session, connection, seq",
                "exchange = 0 AND seq >= 0",
            ),
            ("(f.session, f.connection)", "session, connection", "exchange = 0 AND seq < 0"),
        )
        parts = []
        for left, columns, where in rows:
            inside = select_findings(match, columns, where)
            own = "f.exchange = 0 AND " if "connection" in columns else ""
            parts.append(inside.insert_into(f"({own}{left} IN {{}})"))
        return sql.join_conditions("OR", *parts)

    def of_exchange(match: Match) -> Sql:
        key = f"session << {SESSION_SHIFT} | exchange"
        return select_findings(match, key, "exchange <> 0").insert_into("e.id IN {}")

    return of_frame, of_exchange


def where_note(test: Condition) -> tuple[Condition, Condition]:
    """Return the conditions on notes. A frame matches by its own notes and by notes about its whole
    exchange."""

    def of_frame(match: Match) -> Sql:
        own = (
            "(f.session, f.exchange, f.seq) IN (SELECT session, exchange, seq FROM note WHERE seq "
            ">= 0 AND {})"
        )
        whole = (
            "(f.session, f.exchange) IN (SELECT session, exchange FROM note WHERE exchange <> 0 "
            "AND seq < 0 AND {})"
        )
        return sql.join_conditions(
            "OR", test(match).insert_into(own), test(match).insert_into(whole)
        )

    def of_exchange(match: Match) -> Sql:
        noted = (
            f"e.id IN (SELECT session << {SESSION_SHIFT} | exchange FROM note WHERE exchange <> 0 "
            f"AND {{}})"
        )
        return test(match).insert_into(noted)

    return of_frame, of_exchange


def where_remark(match: Match) -> Sql:
    """Return the condition on the decoder's remark about a frame."""
    return where_shape(sql.where_interned("note", sql.where_text("value", match)))


def where_outcome(match: Match) -> Sql:
    """Return the condition on the outcome of an exchange."""
    if isinstance(match.value, Anything):
        return Sql("1")
    assert isinstance(match.value, WordValue)
    return sql.where_one_of(f"({OUTCOME})", match.value.keys)


def where_finding_words(match: Match) -> Sql:
    """Return the condition on the summary of a finding or the id of its rule.

    An id is found by its beginning, but a family only by its whole name, because a word of the
    summary is no id.
    """
    summary = sql.where_text("summary", match)
    if not isinstance(match.value, str) or match.op is Op.MATCHES:
        return summary
    ident = parse_rule(match.value)
    if match.op is Op.HAS and _FAMILY.fullmatch(ident):
        ident += "-"
    rule = sql.where_interned("rule", sql.where_prefix("value", Match("rule", match.op, ident)))
    return sql.join_conditions("OR", summary, rule)


def where_rule(match: Match) -> Sql:
    """Return the condition on the rule of a finding, by prefix."""
    return sql.where_interned("rule", sql.where_prefix("value", match))


def where_payload(function: str, *words: str) -> Condition:
    """Return the condition on the payload that a function of `functions` evaluates."""

    def condition(match: Match) -> Sql:
        value = "" if isinstance(match.value, Anything) else _plain_text(match)
        op = "*" if isinstance(match.value, Anything) else str(match.op)
        marks = ", ".join("?" * (len(words) + 2))
        return Sql(f"{function}({marks}, {_PAYLOAD})", (*words, op, value))

    return condition


def _plain_text(match: Match) -> str:
    return match.value if isinstance(match.value, str) else match.value.text  # type: ignore[union-attr]


def where_path(match: Match) -> Sql:
    """Return the condition on a JSON path in the decoded payload."""
    return where_payload("a2a_json", match.field)(match)


def where_header(match: Match) -> Sql:
    """Return the condition on a header line, of the request, of the response or of both."""
    any_value = isinstance(match.value, Anything)
    value = "" if any_value else _plain_text(match)
    op = "*" if any_value else str(match.op)
    return Sql("a2a_header(?, ?, ?, e.block, e.offset, e.size)", (match.side, op, value))


def where_error_frame(_match: Match) -> Sql:
    """Return the condition that the frame is an error, or the end of an exchange that broke off."""
    kinds_of = sql.where_one_of("kind", tuple(int(kind) for kind in _ERRORS))
    return where_shape(sql.join_conditions("OR", kinds_of, Sql("error <> 0")))


def where_source(proxy: str) -> Condition:
    """Return the condition on the origin of the bytes; `proxy` is the SQL that is true for the
    proxy's own."""

    def condition(match: Match) -> Sql:
        if isinstance(match.value, Anything):
            return Sql("1")
        assert isinstance(match.value, WordValue)
        return Sql(f"({proxy}) = 0" if match.value.keys == (0,) else f"({proxy}) <> 0")

    return condition


def where_session(column: str) -> Condition:
    """Return the condition on the session, by its number or a prefix of its UUID."""

    def condition(match: Match) -> Sql:
        if (
            isinstance(match.value, str)
            and match.op is not Op.MATCHES
            and match.value.isdecimal()
            and len(match.value) < 8
        ):
            return Sql(f"{column} = ?", (int(match.value),))
        return sql.where_prefix("uuid", match).insert_into(
            f"{column} IN (SELECT id FROM session WHERE {{}})"
        )

    return condition
