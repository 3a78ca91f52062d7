"""Secrets in free text, by their look and by the words around them. Octets in, positions out; knows no format.

A sieve comes first, since nearly every payload is clean: only what is `suspicious` is worth the price of `find`.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Collection
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from a2a_proxy.redaction.labels import is_label
from a2a_proxy.redaction.names import (
    NUMBER,
    TEXT,
    fold,
    hides_text,
    is_learned,
    is_secret_variable,
    member_kind,
    parameter_kind,
    secret_header,
    secret_member,
    unescape_name,
)


class Edit(NamedTuple):
    """One secret in some octets."""

    start: int
    end: int
    secret: bytes
    """What it is, its encoding removed: the same secret gets the same label in every encoding."""
    known: bool
    """It stood in a place that holds secrets, so it is worth remembering."""


# What may stand between a name and its value: the end of a longer name, a quote, escaped or not, and a colon or equals
# sign, or what stands between the two values of a pair; in protobuf the tag of the value. Every repeat is bounded where
# two could share octets: hostile text must not cost a square.
_THEN = (
    rb"(?:s|[\s_.\-]?value)?(?:-bin)?[\s_.\-]{0,8}"
    rb"(?:\\{0,8}[\"']\s{0,99}[:=,}\]\x12]|\s{0,99}[:=\x12]|(?<=\n)[\s\S]{1,3}?\x1a)"
)

_SESSIONS = rb"ss(?:ion(?:[\s_.\-]?id)?|ertion)" + _THEN
_SSIONS = re.compile(_SESSIONS).finditer
# Each pattern starts with a letter that its words have and few others, for the regex engine's literal fast path.
_SIEVE: tuple[Callable[[bytes], re.Match[bytes] | None], ...] = tuple(
    re.compile(group).search
    for group in (
        rb"k(?:(?:en|ies?|(?<=[a-z_.\- ]k)ey)" + _THEN + rb"|(?<=[spr]k)(?<![a-z0-9][spr]k)[\-_][\w\-]{8}|ey-----)",
        rb"c(?:re(?:t|dentials?)|onnection[\s_.\-]?string)" + _THEN,
        rb"b(?:earer|asic)(?:[\s+%,\x12]|\\{0,8}[\"']\s{0,99}[:,}\]])",
        rb"p(?:ass(?:[\s_.\-]?(?:w(?:or)?d|phrase|code))?|wd?|in|op(?<=dpop)|(?<=otp)(?:[\s_.\-]?code)?)" + _THEN,
        rb"h(?:(?:orization|(?<=auth))" + _THEN + rb"|orization[\s_.\-]code" + rb"|(?<=gh)[opsur]_\w{8})",
        rb"=(?:(?<=sig=)|(?<=signature=)|(?<=key=)|(?<=code=)|(?<=auth=)|(?<=pass=)|(?<=bearer=)|(?<=sid=)|(?<=name=))",
        rb"j(?:(?<=eyj)[\w\-]{4}|wt(?:" + _THEN + rb"|-bearer))",
        rb"\\u00[2-7]",
        _SESSIONS,
        rb"v(?:erifier" + _THEN + rb"|alue\x12)",
    )
)
_KEN, _CRET, _BEARER, _PASS, _HORIZATION, _SIGNED, _JWT, _ESCAPE, _SSION, _VALUE = _SIEVE


def suspicious(data: bytes) -> bool:
    """Whether `find`, or a look at the names in it, could meet a secret. A false alarm is possible, a miss is not.

    One name is not looked for: a field `X-Sid:` in free text is found only beside something else that is suspicious.
    """
    low = data.lower()
    return bool(
        _KEN(low)
        or _CRET(low)
        or _BEARER(low)
        or _PASS(low)
        or _HORIZATION(low)
        or (b"=" in low and _SIGNED(low))
        or _JWT(low)
        or (b"\\" in low and _ESCAPE(low))
        or (_SSION(low) and _has_session(low))
        or _VALUE(low)
        or (b"@" in low and _USER_INFO.search(low))
    )


_OWN_SESSION = re.compile(
    rb"\{(?<![^\n]\{)(?<![^}]\n\{)[^{}\[\]]*\"(?:params|result)\"\s*:\s*\{[^{}\[\]]*\"session_?id\"\s*:"
)
"""Where tasks of A2A 0.1 have their `sessionId`, which stays (`scope.judged_name`)."""


def _has_session(low: bytes) -> bool:
    """Whether a session or assertion is named elsewhere than at that place: all traffic of 0.1 has it there."""
    return sum(1 for _ in _SSIONS(low)) > sum(1 for _ in _OWN_SESSION.finditer(low))


_NAME = rb"(?:[\w.\- ]|\\{1,4}u[0-9a-fA-F]{4}){2,96}"
_MEMBER = re.compile(rb"(\\{0,8})([\"'])(" + _NAME + rb")\1\2\s*:\s*\1\2((?:(?!\1\2)(?:\\.|.))*)", re.S)
_NUMBER = re.compile(rb"(?<=[\"'])([\w.\-]{2,96})\\{0,8}[\"']\s*:\s*(-?\d[\d.]*)")
_PARAMETER = re.compile(rb"(?:(?<=[?&;])|(?<![\w%.\-]))(\[?[\w.\-%]{1,96}\]?)=([^\s&;,\"'<>\\#{}()]+)")
_FIELD = re.compile(rb"(?<![\w\-])([A-Za-z][\w\-]{2,64})[ \t]*:[ \t]*([^\r\n\"\\]+)")
_QUOTED = rb"'([^'\r\n]+)'|\"([^\"\r\n]+)\""
_FLAG = re.compile(rb"(?<![\w\-])--([\w\-]{2,64})[ \t]+(?:" + _QUOTED + rb"|([^\s\"']+))")
_ASSIGNED = re.compile(rb"(?<![\w%.\-])([\w.\-]{1,96})=(?:" + _QUOTED + rb")")
_SCHEME = re.compile(rb"(?i)\b(bearer|basic)(?:\s|%20|\+)+([A-Za-z0-9\-._~+/=%]+)")
_SHAPES = re.compile(
    rb"""(?<![A-Za-z0-9_\-])(
        eyJ[A-Za-z0-9_\-]{5,}\.[A-Za-z0-9_\-]*(?:\.[A-Za-z0-9_\-]*){0,3}
      | [spr]k(?:-|_live_|_test_)[A-Za-z0-9_\-]{16,} | gh[opsur]_[A-Za-z0-9]{16,}
    )""",
    re.X,
)
_USER_INFO = re.compile(rb"://([^/\s\"'<>@?#\\]+(?:@[^/\s\"'<>@?#\\]+)*)@")
_PEM = re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----(.+?)(?:-----END|\Z)", re.S)
_PART = re.compile(rb"(?i:form-data);[^\r\n]{0,200}?\bname=\"?([\w.\-\[\]]{1,96})(?![\w.\-\[\]])")
_BLANK = re.compile(rb"\n\r?\n")
_PART_HEAD = 1024
"""Bytes between the name of a part of a form and its body, at most."""
_CUT = re.compile(rb"(?i:(?:bearer|basic)\s+)(\S+)\Z|((?<![A-Za-z0-9_\-])(?:eyJ|[spr]k-)[A-Za-z0-9_\-.]*)\Z")
_BARE = frozenset(
    {"token", "key", "secret", "password", "passwd", "pwd", "cookie", "credential", "credentials", "bearer"}
)


def find(data: bytes, learned: Collection[str] = (), *, cut: bool = False) -> list[Edit]:
    """The secrets in some text, in no order, possibly overlapping.

    `learned` are folded names that count as secret too; `cut` says that the end of the text is missing.
    """
    found: list[Edit] = []
    for member in _MEMBER.finditer(data):
        _named_member(member, learned, found)
    for number in _NUMBER.finditer(data):
        _named_number(number, found)
    for parameter in _PARAMETER.finditer(data):
        _named_parameter(parameter, learned, found)
    for field in _FIELD.finditer(data):
        _named_field(field, learned, found)
    found += [Edit(*hit.span(2), hit[2], True) for hit in _SCHEME.finditer(data) if _credential(hit[1], hit[2])]
    for pattern, secret in ((_FLAG, secret_member), (_ASSIGNED, is_secret_variable)):
        for hit in pattern.finditer(data):
            name, last = hit[1].decode("ascii", "replace"), hit.lastindex or 0
            if (secret(name) and hides_text(member_kind(name) or TEXT, hit[last])) or fold(name) in learned:
                found.append(Edit(*hit.span(last), hit[last], is_learned(fold(name))))
    for pattern in (_SHAPES, _USER_INFO, _PEM):
        found += [Edit(*hit.span(1), hit[1], True) for hit in pattern.finditer(data)]
    _form_parts(data, learned, found)
    if cut and (end := _CUT.search(data)):
        group = 1 if end[1] is not None else 2
        found.append(Edit(*end.span(group), end[group], False))
    return [edit for edit in found if not is_label(edit.secret)]


def _named_member(member: re.Match[bytes], learned: Collection[str], found: list[Edit]) -> None:
    name = unescape_name(member[3].decode("utf-8", "replace").replace("\\\\", "\\"))
    if member[4] and (hides_text(member_kind(name), member[4]) or fold(name) in learned):
        _add_value(fold(name), member, 4, found)


def _named_number(number: re.Match[bytes], found: list[Edit]) -> None:
    name = number[1].decode("ascii", "replace")
    if member_kind(name) & NUMBER:
        found.append(Edit(*number.span(2), number[2], is_learned(fold(name))))


def _named_parameter(parameter: re.Match[bytes], learned: Collection[str], found: list[Edit]) -> None:
    name = unquote_to_bytes(parameter[1].strip(b"[]")).decode("utf-8", "replace")
    start = parameter.start(1)
    in_query = start == 0 or parameter.string[start - 1 : start] in (b"?", b"&", b";")
    kind = parameter_kind(name) if in_query else member_kind(name)
    if not kind and (is_secret_variable(name) or fold(name) in learned):
        kind = TEXT
    value = unquote_to_bytes(parameter[2].replace(b"+", b" "))
    if hides_text(kind, value):
        found.append(Edit(*parameter.span(2), value, is_learned(fold(name))))


def _named_field(field: re.Match[bytes], learned: Collection[str], found: list[Edit]) -> None:
    """`name: value` as in a header block or a log line. A plain word after `password:` is prose and stays."""
    name = field[1].decode("ascii", "replace")
    if not (secret_header(name) or fold(name) in learned):
        return
    folded = fold(name)
    if folded in ("authorization", "proxyauthorization", "cookie", "setcookie", "secwebsocketprotocol"):
        _add_value(folded, field, 2, found)
        return
    word = field[2].split(None, 1)[0] if field[2].strip() else b""
    word = word.rstrip(b".,;)]}'")
    if word and (folded not in _BARE or looks_random(word)) and not word[:1].isspace():
        start = field.start(2) + field[2].index(word)
        found.append(Edit(start, start + len(word), word, is_learned(folded)))


def _form_parts(data: bytes, learned: Collection[str], found: list[Edit]) -> None:
    """The bodies of parts of a multipart form: after the blank line that follows `name="password"`."""
    at = 0
    while part := _PART.search(data, at):
        at = part.end()
        name = part[1].decode("utf-8", "replace")
        blank = _BLANK.search(data, at, at + _PART_HEAD)
        kind = parameter_kind(name) or (TEXT if fold(name) in learned else 0)
        if blank is None or not kind:
            continue
        start = blank.end()
        at = data.find(b"\n--", start)
        at = len(data) if at < 0 else at
        value = data[start:at].rstrip(b"\r\n")
        if value and hides_text(kind, value):
            found.append(Edit(start, start + len(value), value, is_learned(fold(name))))


def _add_value(folded: str, match: re.Match[bytes], group: int, found: list[Edit]) -> None:
    start = match.start(group)
    for begin, end in value_spans(folded, match[group]):
        found.append(Edit(start + begin, start + end, match[group][begin:end], is_learned(folded)))


def value_spans(folded: str, value: bytes) -> list[tuple[int, int]]:
    """Which stretches of the value of a secret name are secret: not the scheme word, not the names of cookies."""
    if folded.endswith("authorization"):
        return _after_scheme(value)
    if folded.endswith("setcookie"):
        return _cookies(value.split(b";", 1)[0])
    if folded.endswith("cookie"):
        return _cookies(value)
    if folded == "secwebsocketprotocol":
        return [token.span(1) for token in _SUBPROTOCOL.finditer(value)]
    return [(0, len(value))] if value else []


_SUBPROTOCOL = re.compile(
    rb"(?i)(?:\b(?:bearer|token|authorization|access_token|jwt)\s*,\s*|\bbearer\.[\w.]*\.)([^\s,]+)"
)


def _after_scheme(value: bytes) -> list[tuple[int, int]]:
    words = value.split(None, 1)
    if not words:
        return []
    end = len(value.rstrip())
    return [(end - len(words[-1].rstrip()), end)]


def _cookies(value: bytes) -> list[tuple[int, int]]:
    """The values of `name=value; name=value`; a piece without a name is a value."""
    spans, start = [], 0
    for piece in value.split(b";"):
        end = start + len(piece)
        begin = start + piece.find(b"=") + 1
        if value[begin:end].strip():
            begin += len(value[begin:end]) - len(value[begin:end].lstrip())
            spans.append((begin, end))
        start = end + 1
    return spans


def _credential(scheme: bytes, value: bytes) -> bool:
    """Whether the word after `Bearer` or `Basic` is a credential and not the next word of a sentence."""
    if scheme.lower() == b"basic":
        return looks_random(value) or basic_secret(value) is not None
    return looks_random(value)


def basic_secret(value: bytes) -> bytes | None:
    """The password inside Basic credentials, None where they are none."""
    try:
        pair = b64decode(value.rstrip(b"=") + b"=" * (-len(value.rstrip(b"=")) % 4), validate=True)
    except ValueError:
        return None
    user, colon, password = pair.partition(b":")
    return password if colon and password and user.isascii() else None


def looks_random(value: bytes) -> bool:
    """Whether a word looks made by a machine: long, or with digits or capitals in its middle."""
    word = value.strip(b".,=-_")
    if len(word) < 6:
        return False
    letters = word[1:]
    mixed = letters.lower() != letters and letters.upper() != letters
    return len(word) >= 20 or mixed or any(48 <= octet <= 57 for octet in word)
