"""The grammar: parsed expressions and errors."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_proxy.recording.query.errors import QueryError
from a2a_proxy.recording.query.parser import MAX_DEPTH, MAX_MATCHES, parse_expression
from a2a_proxy.recording.query.tree import (
    And,
    Anything,
    Match,
    Node,
    Not,
    Number,
    Op,
    Or,
    Range,
    TimeValue,
    WordValue,
    to_text,
)
from support_query import nodes

A, B, C = (Match("text", Op.HAS, word) for word in "abc")
MS, S = 1_000_000, 1_000_000_000
SENDS = ("SendMessage", "SendStreamingMessage", "SendLiveMessage")


def _at(text: str, op: Op, ns: int, span: int) -> Match:
    return Match("t", op, TimeValue(text, "epoch", ns, span))


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("", And()),
        ("  ", And()),
        ("()", And()),
        ("a", A),
        ("a b", And((A, B))),
        ("a AND b", And((A, B))),
        ("a b OR c", Or((And((A, B)), C))),
        ("a OR b OR c", Or((A, B, C))),
        ("a (b OR c)", And((A, Or((B, C))))),
        ("(a b) c", And((And((A, B)), C))),
        ("-a b", And((Not(A), B))),
        ("NOT a", Not(A)),
        ("-(a OR b)", Not(Or((A, B)))),
        ("NOT -a", Not(Not(A))),
        ("NOTa", Match("text", Op.HAS, "NOTa")),
        ("and", Match("text", Op.HAS, "and")),
        ('"AND"', Match("text", Op.HAS, "AND")),
        ('"a b"', Match("text", Op.HAS, "a b")),
        ("'a \"b'", Match("text", Op.HAS, 'a "b')),
        (r'"\"\\\n\u00e9\U0001F600"', Match("text", Op.HAS, '"\\\né\U0001f600')),
        ("a-b", Match("text", Op.HAS, "a-b")),
        ("12:30", Match("text", Op.HAS, "12:30")),
        ("gap", Match("gap", Op.HAS, WordValue("yes", (1,)))),
        ('"gap"', Match("text", Op.HAS, "gap")),
        ("-err", Not(Match("err", Op.HAS, WordValue("yes", (1,))))),
        ("~~ABCD", Match("trace", Op.HAS, "abcd")),
        ("task:b2a4", Match("task", Op.HAS, "b2a4")),
        ("task=b2a4", Match("task", Op.IS, "b2a4")),
        ("task!=b2a4", Not(Match("task", Op.IS, "b2a4"))),
        ("task:*", Match("task", Op.HAS, Anything())),
        ('task:"*"', Match("task", Op.HAS, "*")),
        ("req.task:b", Match("task", Op.HAS, "b", "req")),
        ("state:TASK_STATE_INPUT_REQUIRED",
         Match("state", Op.HAS, WordValue("input-required", (6,)))),
        ("state:Input_Required", Match("state", Op.HAS, WordValue("input-required", (6,)))),
        ("op:message/stream",
         Match("op", Op.HAS, WordValue("SendStreamingMessage", ("SendStreamingMessage",)))),
        ("op:TaskSubscription",
         Match("op", Op.HAS, WordValue("SubscribeToTask", ("SubscribeToTask",)))),
        ("code:NotFound", Match("code", Op.HAS, WordValue("NOT_FOUND", (5,)))),
        ("code:-32001", Match("code", Op.HAS, Number("-32001", -32001))),
        ("status:>=400", Match("status", Op.AT_LEAST, Number("400", 400))),
        ("status>=400", Match("status", Op.AT_LEAST, Number("400", 400))),
        ("status:400..499", Match("status", Op.HAS, Range(Number("400", 400), Number("499", 499)))),
        ("slow:>2s", Match("dur", Op.MORE, Number("2s", 2 * S))),
        ("slow:2s", Match("dur", Op.AT_LEAST, Number("2s", 2 * S))),
        ("dur<1.5ms", Match("dur", Op.LESS, Number("1.5ms", 1_500_000))),
        ("dur<2m", Match("dur", Op.LESS, Number("2m", 120 * S))),
        ("size>=10kB", Match("size", Op.AT_LEAST, Number("10kB", 10_000))),
        ("size>4MiB", Match("size", Op.MORE, Number("4MiB", 4 << 20))),
        ("size:512", Match("size", Op.HAS, Number("512", 512))),
        ("t:>12:30", Match("t", Op.MORE, TimeValue("12:30", "day", 45_000 * S, 60 * S))),
        ("t:+5s", Match("t", Op.HAS, TimeValue("+5s", "session", 5 * S, S))),
        ("t:2026-11-21T20:28:13.5Z",
         _at("2026-11-21T20:28:13.5Z", Op.HAS, 1795292893500 * MS, 10**8)),
        ("t<2026-11-21T20:28+01:00",
         _at("2026-11-21T20:28+01:00", Op.LESS, 1795289280 * S, 60 * S)),
        ("text~a(b|c)+", Match("text", Op.MATCHES, "a(b|c)+")),
        (r'(text~"\d+ x")', Match("text", Op.MATCHES, r"\d+ x")),
        ("$.a.b[0][*].c:x", Match("$.a.b[0][*].c", Op.HAS, "x")),
        ('$["a b"]>5', Match('$["a b"]', Op.MORE, "5")),
        ("resp.$.result:x", Match("$.result", Op.HAS, "x", "resp")),
        ("method:message/send", Match("op", Op.HAS, WordValue("SendMessage", ("SendMessage",)))),
        ("op:Send*", Match("op", Op.HAS, WordValue("Send*", SENDS))),
        ("op=message/se*", Match("op", Op.IS, WordValue("message/se*", ("SendMessage",)))),
        ("outcome:cut", Match("outcome", Op.HAS, WordValue("cut", ("cut",)))),
        ("rule:gen-001", Match("rule", Op.HAS, "A2A-GEN-001")),
        ("rule:UNDEC", Match("rule", Op.HAS, "UNDEC")),
        ("sev:>=warning", Match("sev", Op.AT_LEAST, WordValue("warning", (2,)))),
    ],
)  # fmt: skip
def test_grammar(text: str, tree: Node) -> None:
    """Each form means this, and its regular spelling means the same."""
    assert parse_expression(text) == tree
    assert parse_expression(to_text(tree)) == tree


@given(nodes())
def test_a_tree_survives_its_text(tree: Node) -> None:
    """Written and read again it is the same."""
    assert parse_expression(to_text(tree)) == tree


@pytest.mark.parametrize(
    ("text", "message", "at", "incomplete"),
    [
        ("severity:error", 'unknown field "severity"; did you mean "sev"?', 0, False),
        ("taks:1", 'unknown field "taks"; did you mean "task"?', 0, False),
        ("a http://x", 'unknown field "http"', 2, False),
        ("(a", "this parenthesis is not closed", 0, True),
        ("a )", "this parenthesis was not opened", 2, False),
        ("a AND", "a condition is missing", 5, True),
        ("a OR OR b", "a condition is missing", 5, False),
        ("-", "a condition is missing", 1, True),
        ("OR a", "a condition is missing", 0, False),
        ("(a AND )", "a condition is missing", 7, False),
        ("task:", "a value is missing", 5, True),
        ("task: b", "a value is missing", 5, False),
        ('a "b', "this quote is not closed", 2, True),
        ('"\\u12', "\\u needs 4 hexadecimal digits", 1, True),
        ('"\\u12x4"', "\\u needs 4 hexadecimal digits", 1, False),
        ("state:wor", 'there is no state "wor"; did you mean "working"?', 6, True),
        ("state:wor a", 'there is no state "wor"; did you mean "working"?', 6, False),
        ("state:zzz", 'there is no state "zzz"', 6, False),
        ("op:SendMesage",
         'there is no operation "SendMesage"; did you mean "SendMessage"?', 3, False),
        ("dur>2", '"2" is not a duration with its unit: 500ms, 2s, 1.5m', 4, True),
        ("dur>2x", '"2x" is not a duration with its unit: 500ms, 2s, 1.5m', 4, False),
        ("size>1.5", '"1.5" is not a size: 512, 10kB, 4MiB', 5, True),
        ("size>999999999999999999GB", '"999999999999999999GB" is too large', 5, False),
        ("status:abc", '"abc" is not a whole number', 7, False),
        ("status:499..400", "the range 499 to 400 is empty", 7, True),
        ("t:25:00 a", '"25:00" is not a time: 12:30, 2026-01-31T09:41:07Z, +5s', 2, False),
        ("t>9999-01-01 a", '"9999-01-01" is too far away', 2, False),
        ("t:+99999d", '"+99999d" is too far away', 2, False),
        ("t>0001-01-01 a", '"0001-01-01" is', 2, False),
        (
            "code:TASK_NOT_FUND",
            '"TASK_NOT_FUND" is not the code or name of an error; did you mean "TASK_NOT_FOUND"?',
            5,
            False,
        ),
        ("code>NOT_FOUND", "only numbers have an order", 5, False),
        ("$.a>x", "only numbers have an order", 4, False),
        ("$.a[x:1 b", "a JSON path needs steps", 0, False),
        ("$.a", "a JSON path needs steps", 0, True),
        ("dir<to-agent", '"dir" does not support `<`', 3, False),
        ("req.op:GetTask", '"op" has no sides: remove `req.`', 0, False),
        ("gap:no a", 'there is no answer "no"', 4, False),
        ('task:"" a', "an empty text matches everything", 5, False),
        ('text~"(" a', "not a regular expression: ", 5, False),
        ("text~" + "a" * 1001, "a regular expression can have at most 1000 characters", 5, False),
        ("task:\udc80", "this is not valid Unicode", 5, False),
        ('"\\ud800"', "this is not valid Unicode", 0, False),
        ("a " * 201, f"more than {MAX_MATCHES} conditions", 400, False),
        ("(" * 51, f"more than {MAX_DEPTH} levels", 50, False),
        ("-" * 51 + "a", f"more than {MAX_DEPTH} levels", 50, False),
        ("a" * 10_001, "the expression is longer than 10000 characters", 10_000, False),
    ],
)  # fmt: skip
def test_errors_have_message_position_and_completeness(
    text: str, message: str, at: int, incomplete: bool
) -> None:
    """Message, place, and whether typing on may mend it."""
    with pytest.raises(QueryError) as caught:
        parse_expression(text)
    wrong = caught.value
    assert (wrong.message.startswith(message), wrong.at, wrong.incomplete) == (
        True,
        at,
        incomplete,
    ), wrong.message


def test_the_caret_points_at_the_error() -> None:
    """Also in a long expression, and where characters could act on a terminal."""
    for text, at in (("a \x1b[2J taks:1", 7), ("word " * 40 + "taks:1 " + "b" * 90, 200)):
        with pytest.raises(QueryError) as caught:
            parse_expression(text)
        line, caret = caught.value.caret
        assert caught.value.at == at
        assert line[caret.index("^") :].startswith("taks:1")
        assert line.isprintable()
        assert len(line) <= 100


_PIECES = [*"ab()\"'\\-~:<>=!.*$[]0 1\n", "AND", "OR", "NOT ", "task:", "req.", "t:", "size"]


@given(st.lists(st.sampled_from(_PIECES)).map("".join))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Nothing but a QueryError, with a place inside the text; what is read is read the same way
    again."""
    tree, place = None, 0
    try:
        tree = parse_expression(text)
    except QueryError as wrong:
        place = wrong.at
    assert 0 <= place <= len(text)
    assert tree is None or parse_expression(to_text(tree)) == tree
