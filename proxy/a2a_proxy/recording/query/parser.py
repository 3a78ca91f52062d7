"""Parser of filter expressions. The grammar, from the loosest binding to the tightest:

expression = all ("OR" all)*
all        = one (["AND"] one)*
one        = ("NOT" | "-") one | "(" [expression] ")" | match | word
match      = ["req." | "resp."] (field | "$" path) operator value | "~~" trace id
operator   = ":" "~" "=" "!=" "<" "<=" ">" ">=", all but the first also after ":"
"""

from a2a_proxy.recording.query import kinds
from a2a_proxy.recording.query.errors import QueryError, suggest_word
from a2a_proxy.recording.query.fields import ALIASES, COST_PARSE, FIELDS, QueryField
from a2a_proxy.recording.query.lexer import Token, split_tokens
from a2a_proxy.recording.query.payload_tests import DECIMAL
from a2a_proxy.recording.query.tree import (
    COMPARISONS,
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
    Value,
    WordValue,
)
from a2a_proxy.recording.query.words import FLAG

MAX_MATCHES = 200
MAX_DEPTH = 50
BARE_WORDS = {
    "gap": Match("gap", Op.HAS, WordValue("yes", (1,))),
    "err": Match("err", Op.HAS, WordValue("yes", (1,))),
}
"""Words that are conditions by themselves; in quotes they are text."""


def parse_expression(text: str) -> Node:
    """Parse an expression. The empty expression matches everything.

    Raises:
        QueryError: the expression is wrong, or not complete yet.
    """
    return _Parser(text).parse_whole()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = split_tokens(text)
        self._next = 0
        self._depth = 0
        matches = [token for token in self._tokens if token.kind in ("match", "word")]
        if len(matches) > MAX_MATCHES:
            raise QueryError(f"more than {MAX_MATCHES} conditions", text, matches[MAX_MATCHES].at)

    def parse_whole(self) -> Node:
        if not self._tokens:
            return And()
        node = self._parse_or()
        if self._peek_token() is not None:
            raise self._make_error("this parenthesis was not opened", self._tokens[self._next])
        return node

    def _peek_token(self) -> str | None:
        return self._tokens[self._next].kind if self._next < len(self._tokens) else None

    def _take_token(self) -> Token:
        self._next += 1
        return self._tokens[self._next - 1]

    def _parse_or(self) -> Node:
        items = [self._parse_and()]
        while self._peek_token() == "OR":
            self._take_token()
            items.append(self._parse_and())
        return Or(tuple(items)) if len(items) > 1 else items[0]

    def _parse_and(self) -> Node:
        items = [self._parse_term()]
        while (kind := self._peek_token()) not in (None, "OR", ")"):
            if kind == "AND":
                self._take_token()
            items.append(self._parse_term())
        return And(tuple(items)) if len(items) > 1 else items[0]

    def _parse_term(self) -> Node:
        kind = self._peek_token()
        if kind is None or kind in ("AND", "OR", ")"):
            at = self._tokens[self._next].at if kind else len(self._text)
            raise QueryError("a condition is missing", self._text, at, incomplete=kind is None)
        token = self._take_token()
        if kind in ("NOT", "("):
            return self._parse_nested(token)
        if kind == "match":
            return self._make_match(token)
        if not token.quoted and token.text in BARE_WORDS:
            return BARE_WORDS[token.text]
        return Match(
            "text",
            Op.HAS,
            self._make_value(token, FIELDS["text"], Op.HAS, token.text, token.value_at),
        )

    def _parse_nested(self, opened: Token) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._make_error(
                f"more than {MAX_DEPTH} levels of parentheses and negations", opened
            )
        if opened.kind == "NOT":
            node: Node = Not(self._parse_term())
        elif self._peek_token() == ")":
            self._take_token()
            node = And()
        else:
            node = self._parse_or()
            if self._peek_token() != ")":
                raise QueryError(
                    "this parenthesis is not closed", self._text, opened.at, incomplete=True
                )
            self._take_token()
        self._depth -= 1
        return node

    def _make_match(self, token: Token) -> Node:
        name, field = token.field, self._find_field(token)
        op = Op(token.op) if token.op != "!=" else Op.IS
        if token.side and not field.sides:
            message = f'"{name}" has no sides: remove `{token.side}.`'
            raise self._make_error(message, token)
        if op not in field.kind.ops:
            ways = " ".join(field.kind.ops)
            raise QueryError(
                f'"{name}" does not support `{token.op}`',
                self._text,
                token.at + len(name),
                hint=f"use one of: {ways}",
            )
        value = self._make_value(token, field, op, token.text, token.value_at)
        if name == "slow" and op not in COMPARISONS:
            op = Op.AT_LEAST
        match = Match(ALIASES.get(name, name), op, value, token.side)
        return Not(match) if token.op == "!=" else match

    def _find_field(self, token: Token) -> QueryField:
        name = ALIASES.get(token.field, token.field)
        if name.startswith("$"):
            return PATH
        found = FIELDS.get(name)
        if found is None:
            near = suggest_word(name.lower(), (*FIELDS, *ALIASES))
            hint = (
                f"fields: {' '.join(FIELDS)}; to search for the text, quote it: "
                f'"{self._text[token.at : token.end]}"'
            )
            raise QueryError(f'unknown field "{name}"{near}', self._text, token.at, hint=hint)
        return found

    def _make_value(self, token: Token, field: QueryField, op: Op, text: str, at: int) -> Value:
        ends = token.end == len(self._text)
        try:
            text.encode()
            if op is Op.MATCHES:
                return kinds.parse_pattern(text)
            if (
                not token.quoted
                and text == "*"
                and op in (Op.HAS, Op.IS)
                and field.kind is not FLAG
            ):
                return Anything()
            if field.kind.ranges and ".." in text and op in (Op.HAS, Op.IS):
                low, _, high = text.partition("..")
                return _make_range(field, low, high)
            value = field.kind.read(text)
        except UnicodeEncodeError:
            raise QueryError("this is not valid Unicode", self._text, at) from None
        except kinds.InvalidValue as wrong:
            raise QueryError(
                str(wrong), self._text, at, incomplete=ends and wrong.incomplete
            ) from None
        if op in COMPARISONS and _is_unordered(field, value):
            raise QueryError("only numbers have an order", self._text, at)
        return value

    def _make_error(self, message: str, token: Token) -> QueryError:
        return QueryError(message, self._text, token.at)


def _is_unordered(field: QueryField, value: Value) -> bool:
    """Whether the value has no order."""
    if field.kind is kinds.JSON:
        return not (isinstance(value, str) and DECIMAL.fullmatch(value))
    return isinstance(value, WordValue) and field.kind.name == "code"


def _make_range(field: QueryField, low: str, high: str) -> Range:
    ends = [field.kind.read(each) for each in (low, high)]
    for each in ends:
        if not isinstance(each, Number | TimeValue):
            raise kinds.InvalidValue("a range needs a number at both ends")
    if (
        isinstance(ends[0], Number)
        and isinstance(ends[1], Number)
        and ends[0].value > ends[1].value
    ):
        raise kinds.InvalidValue(
            f"the range {low} to {high} is empty: put the lower end first", incomplete=True
        )
    return Range(*ends)  # type: ignore[arg-type]


PATH = QueryField("$", kinds.JSON, "", "", cost=COST_PARSE, sides=True)
