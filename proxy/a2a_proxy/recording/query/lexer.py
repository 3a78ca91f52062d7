"""Tokens of a filter expression, with their positions."""

import re
import sys
from string import hexdigits

import msgspec

from a2a_proxy.recording.query.errors import QueryError

MAX_LENGTH = 10_000
"""Maximum characters of an expression."""

_SPACE = re.compile(r"\s+")
_KEYWORD = re.compile(r"(AND|OR|NOT)(?=[\s()]|$)")
_HEAD = re.compile(
    r"(?:(?P<side>req|resp)\.)?"
    r"(?P<field>[A-Za-z_][A-Za-z0-9_-]*|\$(?:\.[A-Za-z0-9_*-]+|\[(?:\d+|\*|\"(?:[^\"\\]|"
    r"\\.)*\")\])*)"
    r"(?P<op>:(?:<=|>=|!=|<|>|=|~)?|<=|>=|!=|<|>|=|~)"
)
_PATH = re.compile(r"(?:(?:req|resp)\.)?\$[.\[]\S*")
_TRACE = re.compile(r"~~")
_ESCAPE = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"', "'": "'"}


class Token(msgspec.Struct, frozen=True):
    """A token of an expression."""

    kind: str
    """`(`, `)`, `AND`, `OR`, `NOT`, `match` (a field with operator and value) or `word`."""
    at: int
    end: int
    text: str = ""
    """The value, without quotes and escapes."""
    quoted: bool = False
    side: str = ""
    field: str = ""
    op: str = ""
    value_at: int = 0


def split_tokens(text: str) -> list[Token]:
    """Return all tokens in order.

    Raises:
        QueryError: a quote is not closed, an operator has no value, or the expression is too long.
    """
    if len(text) > MAX_LENGTH:
        raise QueryError(
            f"the expression is longer than {MAX_LENGTH} characters", text[:MAX_LENGTH], MAX_LENGTH
        )
    found: list[Token] = []
    at = 0
    while at < len(text):
        if space := _SPACE.match(text, at):
            at = space.end()
            continue
        token = _read_token(text, at)
        found.append(token)
        at = token.end
    return found


def last_piece(text: str) -> int:
    """Return the offset of the token that is being typed at the end of a text, or the length of the
    text."""
    at = 0
    while at < len(text):
        if space := _SPACE.match(text, at):
            at = space.end()
            continue
        try:
            token = _read_token(text, at)
        except QueryError:
            return at
        if (
            token.end == len(text)
            and token.kind in ("match", "word", "AND", "OR", "NOT")
            and text[at] != "-"
        ):
            return at
        at = token.end
    return at


def split_field(piece: str) -> tuple[str, int]:
    """Return the field of a token and the offset of its value, or an empty field if it has none
    yet."""
    if piece.startswith("~~"):
        return "trace", 2
    match = _HEAD.match(piece)
    return (match["field"], match.end()) if match else ("", 0)


def _read_token(text: str, at: int) -> Token:
    if text[at] in "()":
        return Token(text[at], at, at + 1)
    if keyword := _KEYWORD.match(text, at):
        return Token(keyword[1], at, keyword.end())
    if text[at] == "-":
        return Token("NOT", at, at + 1)
    if trace := _TRACE.match(text, at):
        return _read_match(text, at, trace.end(), "", "trace", ":")
    if head := _HEAD.match(text, at):
        return _read_match(text, at, head.end(), head["side"] or "", head["field"], head["op"])
    if path := _PATH.match(text, at):
        wanted = (
            "a JSON path needs steps, an operator and a value: $.params.message.parts[0].text:hello"
        )
        raise QueryError(wanted, text, at, incomplete=path.end() == len(text))
    value, end, in_quotes = _read_value(text, at)
    return Token("word", at, end, value, in_quotes, value_at=at)


def _read_match(text: str, at: int, value_at: int, side: str, field: str, op: str) -> Token:
    if value_at == len(text) or text[value_at].isspace() or text[value_at] == ")":
        raise QueryError("a value is missing", text, value_at, incomplete=value_at == len(text))
    value, end, in_quotes = _read_value(text, value_at)
    return Token(
        "match", at, end, value, in_quotes, side, field, op.removeprefix(":") or ":", value_at
    )


def _read_value(text: str, at: int) -> tuple[str, int, bool]:
    """Read the value that begins at `at`. Return it, the offset after it, and whether it was
    quoted."""
    if text[at] in "\"'":
        value, end = _read_quoted(text, at)
        return value, end, True
    depth, end = 0, at
    while end < len(text) and not text[end].isspace():
        depth += (text[end] == "(") - (text[end] == ")")
        if depth < 0:
            break
        end += 1
    return text[at:end], end, False


def _read_quoted(text: str, at: int) -> tuple[str, int]:
    quote, end, parts = text[at], at + 1, []
    while end < len(text) and text[end] != quote:
        if text[end] == "\\":
            character, end = _read_escape(text, end)
            parts.append(character)
        else:
            parts.append(text[end])
            end += 1
    if end >= len(text):
        raise QueryError("this quote is not closed", text, at, incomplete=True)
    return "".join(parts), end + 1


def _read_escape(text: str, at: int) -> tuple[str, int]:
    """Return the character of an escape and the offset after it. Unknown escapes are kept: `"\\d+"`
    is a regular expression.
    """
    letter = text[at + 1 : at + 2]
    size = {"u": 4, "U": 8}.get(letter)
    if size is None:
        return _ESCAPE.get(letter, f"\\{letter}"), at + 2
    digits = text[at + 2 : at + 2 + size]
    if len(digits) == size and set(digits) <= set(hexdigits) and int(digits, 16) <= sys.maxunicode:
        return chr(int(digits, 16)), at + 2 + size
    raise QueryError(
        f"\\{letter} needs {size} hexadecimal digits",
        text,
        at,
        incomplete=at + 2 + len(digits) == len(text),
    )
