"""Search for secrets in free text of any format, by their form and by the words around them.

Each search has a trigger, an expression that matches wherever the search finds something, also in
text that is encoded further. One pass with RE2 tests all triggers, and only the searches whose
trigger matches are run.
"""

from __future__ import annotations

import re
from array import array
from base64 import b64decode
from collections.abc import Callable, Collection, Sequence
from typing import Final, NamedTuple
from urllib.parse import unquote_to_bytes

import re2

from a2a_proxy.redaction.key_formats import compile_beginnings, compile_formats, make_key_trigger
from a2a_proxy.redaction.labels import is_label
from a2a_proxy.redaction.secret_names import (
    AUTH_SCHEMES,
    NUMBER,
    TEXT,
    fold_name,
    hides_text,
    is_learned,
    is_secret_variable,
    make_name_triggers,
    member_kind,
    pair_name,
    parameter_kind,
    secret_field,
    unescape_name,
)


class Edit(NamedTuple):
    """One secret and its byte range."""

    start: int
    end: int
    secret: bytes
    """The decoded secret: the same secret gets the same label in every encoding."""
    known: bool
    """Whether its place holds secrets, so that it is remembered."""


_NAME = rb"(?:[\w.\- ]|\\{1,4}u[0-9a-fA-F]{4}){2,96}"
_MEMBER = re.compile(
    rb"(\\{0,8})([\"'])(" + _NAME + rb")\1\2\s*:\s*\1\2((?:(?!\1\2)(?:\\.|.))*)", re.S
)
_NUMBER = re.compile(rb"(?<=[\"'])([\w.\-]{2,96})\\{0,8}[\"']\s*:\s*(-?\d[\d.]*)")
_PARAMETER = re.compile(rb"(?:(?<=[?&;])|(?<![\w%.\-]))(\[?[\w.\-%]{1,96}\]?)=")
_PARAMETER_VALUE = re.compile(rb"[^\s&;,\"'<>\\#{}()]+")
_FIELD = re.compile(rb"(?<![\w\-])([A-Za-z][\w\-]{2,64})[ \t]*:[ \t]*")
_FIELD_VALUE = re.compile(rb"[^\r\n\"\\]+")
_TYPE = re.compile(
    rb"(?:str|bytes|int|float|bool|Any|None|string|number|boolean)(?![\w\-])|[A-Za-z_][\w.]*[\[(]|"
    rb"(?:\w+\.)*(?=\w*[A-Z][a-z]{4})(?:[A-Z][a-z]+\d*){2,}(?![\w\-])"
)
"""The type of a parameter in code: `auth_token: str`, `api_key: Optional[str]`, `key: PrivateKey`;
or a call."""
_ESCAPE = re.compile(rb"%[0-9a-fA-F]{2}")
_QUOTED = rb"'([^'\r\n]+)'|\"([^\"\r\n]+)\""
# A word of a command line: up to a space, a quote, a backquote, or an escape such as `\n`.
_WORD = rb"((?:[^\s\"'`\\]|\\(?![nrt\"']))+)"
_FLAG = re.compile(
    rb"(?<![\w\-])--([\w\-]{2,64})(?:(?:[ \t]+|=)(?!-)(?:"
    + _QUOTED
    + rb"|(?:\\{1,4}[\"'])?"
    + _WORD
    + rb")|"
    rb"\\{0,8}[\"']\s*,\s*\\{0,8}(?:" + _QUOTED + rb"))"
)
_HOST_FLAG = b"to leave it unread: --pass"
"""In the proxy's own lines the word after this is a host."""
_USER = re.compile(
    rb"(?<= )(?:-[A-Za-z]{0,4}[uU]|--(?:proxy-)?user)(?:[ \t]*|=)[\"']?[^\s:\"'`]{0,256}:" + _WORD
)
_PASSWORD_FLAG = re.compile(rb"(?<= )-p(?:" + _QUOTED + rb"|" + _WORD + rb")")
_SSHPASS = re.compile(rb"(?<=sshpass -p)[ \t]?(?:" + _QUOTED + rb"|" + _WORD + rb")")
_CURL = re.compile(rb"(?<![\w\-])curl[ \t]")
_MYSQL = re.compile(rb"(?<![\w\-])(?:mysql\w{0,9}|mariadb(?:-\w{1,9})?)[ \t]")
_PUNCTUATION = b",;)]}>"
_COMMAND_END = re.compile(rb"[\n;|]|&&")
_COMMAND = 400
"""Bytes of a command line, from the name of the program to the flag, at most."""
_TEXT_TYPE = (
    rb"(?:[\w.]{1,64}\[[\w.]{1,64}\]|str|bytes|string|String|Final|SecretStr)(?:[ \t]*\|[ "
    rb"\t]*None)?"
)
_ASSIGNED = re.compile(
    rb"(?<![\w%.\-])([\w.\-]{1,96})([ \t]*(?:(?::[ \t]*" + _TEXT_TYPE + rb"[ \t]*)?=>?|:=?)[ \t]*)"
    rb"(\\{0,8})([\"'])((?:(?!\3\4)[^\r\n])+)\3\4"
)
_PAIR = re.compile(
    rb"(?i:name|key)[\"']?[ \t]*[:=][ \t]*[\"']?([\w.\-]{2,96})[\"']?[\s,]+[\"']?(?i:value)[\"']?[ "
    rb"\t]*[:=][ \t]*"
    rb"(?:" + _QUOTED + rb"|" + _WORD + rb")"
)
"""`name` and `value` of YAML, XML and code."""
_ELEMENT = re.compile(
    rb"<(?:[\w.\-]{1,64}:)?([\w.\-]{2,96})(?:\s[^<>]{0,256})?>\s*([^<>\s][^<>]{0,4096}?)\s*</"
)
# Placeholders for a value: a variable, a blank to fill in, a call, a word of a help text or of a
# sentence; and ports.
_STAND_IN = re.compile(
    rb"\$.*|[<\[{(%|&;,.*#-].*|\d{1,5}:\d{1,5}(?:/\w+)?|x{3,}|X{3,}|\.{3}.*|\xe2\x80\xa6.*|"
    rb"[A-Z][A-Z_]*|[\"'`]?|"
    rb"(?:self|this|os|process|config|settings|args|env|secrets|var)\..*|[\w.]+[(\[].*|"
    rb"(?:a|an|and|are|argument|arguments|as|at|auto|basic|be|bearer|but|by|can|cannot|digest|does|"
    rb"environment|file|flag|"
    rb"flags|for|from|has|have|if|in|int|into|is|it|may|must|no|none|not|null|oauth|oauth2|of|off|"
    rb"on|option|options|or|"
    rb"parameter|parameters|path|required|set|should|str|string|switch|text|that|the|then|this|to|"
    rb"true|false|True|False|"
    rb"None|undefined|type|value|via|was|when|which|will|with|yes|you|your)[,.;:)]*",
    re.S,
)
_CONSTANT = re.compile(rb"[Nn]one|null|nil|undefined|[Tt]rue|[Ff]alse|\.{3}|\*+")
_CODE = re.compile(
    rb"\$.*|%\w+%|<[^<>]*>|\{[^{}]*\}|" + _CONSTANT.pattern + rb"|"
    rb"(?:self|this|os|process|config|settings|args|env|secrets|var)\.[\w.\[]+",
    re.S,
)
_SCHEME = re.compile(rb"(?i)\b(bearer|basic)(?:\s|%20|\+)+([A-Za-z0-9\-._~+/=%]+)")
_TEMPLATE = re.compile(rb".*(?:%[\w(]|\{\w*\}).*|[xX]{3,}|[)\],].*|.{1,3}", re.S)
_SCHEMED_NAMES = (
    "authorization",
    "proxyauthorization",
    "cookie",
    "setcookie",
    "secwebsocketprotocol",
)
_JWT = re.compile(
    rb"(?<![A-Za-z0-9_\-])(eyJ[A-Za-z0-9_\-]{5,}\.[A-Za-z0-9_\-]*(?:\.[A-Za-z0-9_\-]*){0,3})"
)
_SHAPES = compile_formats()
_USER_INFO = re.compile(rb"://([^/\s\"'<>@?#\\]+(?:@[^/\s\"'<>@?#\\]+)*)@")
_PEM = re.compile(rb"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(.+?)(?:-----END|\Z)", re.S)
_PART = re.compile(rb"(?i:form-data);[^\r\n]{0,200}?\bname=\"?([\w.\-\[\]]{1,96})(?![\w.\-\[\]])")
_BLANK = re.compile(rb"\n\r?\n")
_PART_HEAD = 1024
"""Bytes between the name of a part of a form and its body, at most."""
_CUT_SCHEME = re.compile(rb"(?i:(?:bearer|basic)\s+)(\S+)\Z")
_CUT_SHAPE = compile_beginnings()
_CUT_LONGEST = 512
"""Bytes of a key that is cut before it is long enough, at most."""
_BARE = frozenset(
    {
        *("token", "key", "secret", "password", "passwd", "pwd", "cookie"),
        *("credential", "credentials", "bearer", "authentication"),
    }
)


def find_secrets(data: bytes, learned: Collection[str] = (), *, cut: bool = False) -> list[Edit]:
    """Return the secrets in a text, in no order, possibly overlapping.

    `learned` are additional folded names of secrets; `cut` means that the end of the text is
    missing.
    """
    found = _find_plain_secrets(data, learned)
    if b"%" in data and _ESCAPE.search(data):
        found += _percent_encoded(data, learned, found)
    if cut:
        found += find_beginnings(data)
    return [edit for edit in found if not is_label(edit.secret)]


def find_beginnings(data: bytes) -> list[Edit]:
    """Return the secrets that the end of the text may cut off."""
    word = max(len(data) - _CUT_LONGEST, data.rfind(b" ") + 1, 0)  # no key has a space
    ends = _CUT_SCHEME.search(data), _CUT_SHAPE.search(data, word)
    return [_make_last_group_edit(end)._replace(known=False) for end in ends if end]


def _find_plain_secrets(data: bytes, learned: Collection[str]) -> list[Edit]:
    found: list[Edit] = []
    for find in dict.fromkeys(
        ([_find_named] if learned else []) + [each.find for each in choose_searches(data)]
    ):
        find(data, learned, found)
    return found


def choose_searches(data: bytes) -> Sequence[Search]:
    """Return the searches that could find a secret in the text or in a text that it encodes; false
    positives are few.

    If it returns none, a walk through JSON or protobuf by names finds no secret either.
    """
    if _PERCENT_BYTE not in data and _BACKSLASH_BYTE not in data:  # most texts
        numbers = _TRIGGERS.Match(data) or ()
    else:
        layers = _decode_layers(data)
        for layer in layers[:]:
            if _PERCENT_BYTE in layer and (plain := unquote_to_bytes(layer)) != layer:
                layers += _decode_layers(plain)
        numbers = {number for layer in layers for number in _TRIGGERS.Match(layer) or ()}
    return [SEARCHES[number] for number in sorted(numbers)] if numbers else ()


def _decode_layers(data: bytes) -> list[bytes]:
    """Return the text, and the text after each layer of JSON escapes."""
    layers = [data]
    while _BACKSLASH_BYTE in data and len(layers) < _LAYERS:
        data = _ESCAPED.sub(_decode_character, data)
        if data == layers[-1]:
            break
        layers.append(data)
    return layers


def _decode_character(escaped: re.Match[bytes]) -> bytes:
    code, plain = escaped.groups()
    return plain or bytes.fromhex(code.decode())


def _find_named(data: bytes, learned: Collection[str], found: list[Edit]) -> None:
    """Append the secrets with a name before them."""
    # Searching for the one character that a form must contain is far cheaper than searching for the
    # form.
    if b":" in data:
        for member in _MEMBER.finditer(data):
            _named_member(member, learned, found)
        for number in _NUMBER.finditer(data):
            _named_number(number, found)
        _find_fields(data, learned, found)
    if b"=" in data:
        _find_parameters(data, learned, found)
        _form_parts(data, learned, found)
    _find_assignments(data, learned, found)
    if b"--" in data:
        _find_flags(data, learned, found)
    if b"</" in data:
        for element in _ELEMENT.finditer(data):
            name = element[1].decode()
            if hides_text(member_kind(name), element[2]) or fold_name(name) in learned:
                found.append(
                    _make_last_group_edit(element)._replace(known=is_learned(fold_name(name)))
                )
    for pair in _PAIR.finditer(data):
        edit, judged = _make_last_group_edit(pair), pair_name(pair[1].decode())
        if judged is not None and hides_text(member_kind(judged), edit.secret.rstrip(_PUNCTUATION)):
            _add_word(edit._replace(known=is_learned(fold_name(judged))), found)


def _find_commands(data: bytes, _: Collection[str], found: list[Edit]) -> None:
    """Append the passwords after short flags of some programs."""
    for program, flag in ((_CURL, _USER), (_MYSQL, _PASSWORD_FLAG)):
        if program.search(data):
            for hit in flag.finditer(data):
                before = data[max(0, hit.start() - _COMMAND) : hit.start()]
                if program.search(_COMMAND_END.split(before)[-1]):
                    _add_word(_make_last_group_edit(hit), found)
    for hit in _SSHPASS.finditer(data):
        _add_word(_make_last_group_edit(hit), found)


def _find_schemes(data: bytes, _: Collection[str], found: list[Edit]) -> None:
    """Append the credentials after `Bearer` or `Basic`."""
    found += [
        Edit(*hit.span(2), hit[2], True)
        for hit in _SCHEME.finditer(data)
        if _is_credential(hit[1], hit[2])
    ]


def _find_each(pattern: re.Pattern[bytes]) -> Find:
    """Return a search for everything that the pattern matches."""

    def find(data: bytes, _: Collection[str], found: list[Edit]) -> None:
        found += [_make_last_group_edit(hit) for hit in pattern.finditer(data)]

    return find


def _find_assignments(data: bytes, learned: Collection[str], found: list[Edit]) -> None:
    """Append the secrets of `name="value"` and `name: "value"`."""
    for hit in _ASSIGNED.finditer(data):
        name, edit = hit[1].decode(), _make_last_group_edit(hit)
        if hit[2] != b"=" and _is_template(fold_name(name), edit.secret):
            continue
        if hides_text(_variable_kind(name), edit.secret) or fold_name(name) in learned:
            found.append(edit._replace(known=is_learned(fold_name(name))))


def _is_template(folded: str, value: bytes) -> bool:
    """Whether a quoted value in code or in a form is a placeholder, a part of a credential or a
    name."""
    return (
        any(each.fullmatch(value) for each in (_CODE, _TYPE, _TEMPLATE))
        or value.lower().strip() in AUTH_SCHEMES
        or fold_name(value.decode("ascii", "replace")) in (folded, *_SCHEMED_NAMES)
    )


def _percent_encoded(data: bytes, learned: Collection[str], found: list[Edit]) -> list[Edit]:
    """Return secrets that are found only after percent-decoding, as in a query that contains a
    command line."""
    places, done = array("Q"), 0
    for escape in _ESCAPE.finditer(data):
        places.extend(range(done, escape.start() + 1))
        done = escape.end()
    places.extend(range(done, len(data) + 1))
    taken = bytearray(len(data))
    for start, end, *_ in found:
        taken[start:end] = b"\1" * (end - start)
    moved = [
        Edit(places[edit.start], places[edit.end], *edit[2:])
        for edit in _find_plain_secrets(unquote_to_bytes(data), learned)
    ]
    return [edit for edit in moved if 1 not in taken[edit.start : edit.end]]


def _make_last_group_edit(hit: re.Match[bytes]) -> Edit:
    """Return an edit for the last group that matched."""
    group = hit.lastindex or 0
    return Edit(*hit.span(group), hit[group], True)


def _find_flags(data: bytes, learned: Collection[str], found: list[Edit]) -> None:
    """Append the secrets after flags whose names are secret."""
    for hit in _FLAG.finditer(data):
        name, edit = hit[1].decode("ascii", "replace"), _make_last_group_edit(hit)
        folded, is_word = fold_name(name), data[hit.start() - 1 : hit.start()] == b" "
        if b"," in data[hit.end(1) : edit.start] and not is_argument(edit.secret):
            continue
        named = folded in learned or (
            not folded.endswith("auth") and hides_text(_flag_kind(name), edit.secret)
        )
        is_host = data.endswith(_HOST_FLAG, 0, hit.end(1))
        if not is_host and (named or (is_word and _secret_flag(folded, edit.secret))):
            _add_word(edit._replace(known=is_learned(folded)), found)


def _flag_kind(name: str) -> int:
    return member_kind(name) or (TEXT if fold_name(name).endswith("auth") else 0)


def _secret_flag(folded: str, value: bytes) -> bool:
    """Whether a flag holds a secret in a command line only: short names, and `--auth`, which may
    also name a method."""
    return folded in ("pass", "pw") or (
        folded.endswith("auth") and (b":" in value or looks_random(value))
    )


def _add_word(edit: Edit, found: list[Edit]) -> None:
    """Append a word of a command line without the punctuation at its end, unless it is a
    placeholder."""
    word = edit.secret.rstrip(_PUNCTUATION)
    if word and not _STAND_IN.fullmatch(word):
        found.append(Edit(edit.start, edit.start + len(word), word, edit.known))


def is_argument(text: bytes) -> bool:
    """Whether the word after a flag is its value, and not the next flag, a placeholder or a help
    text."""
    return len(text.split()) == 1 and not _STAND_IN.fullmatch(text)


def _named_member(member: re.Match[bytes], learned: Collection[str], found: list[Edit]) -> None:
    name = unescape_name(member[3].decode("utf-8", "replace").replace("\\\\", "\\"))
    if member[4] and (hides_text(member_kind(name), member[4]) or fold_name(name) in learned):
        _add_value(fold_name(name), member, 4, found)


def _named_number(number: re.Match[bytes], found: list[Edit]) -> None:
    name = number[1].decode("ascii", "replace")
    if member_kind(name) & NUMBER:
        found.append(Edit(*number.span(2), number[2], is_learned(fold_name(name))))


def _find_parameters(data: bytes, learned: Collection[str], found: list[Edit]) -> None:
    """Append the secrets of `name=value` in queries, forms and assignments."""
    done = 0
    for parameter in _PARAMETER.finditer(data):
        name = unquote_to_bytes(parameter[1].strip(b"[]")).decode("utf-8", "replace")
        start = parameter.start(1)
        in_query = start == 0 or data[start - 1 : start] in (b"?", b"&", b";")
        kind = (parameter_kind(name) if in_query else 0) or _variable_kind(name)
        is_taught = fold_name(name) in learned
        if start < done or not (kind or is_taught):
            continue
        value = _PARAMETER_VALUE.match(data, parameter.end())
        if value is None or _CONSTANT.fullmatch(value[0]) or (not in_query and _is_code(value)):
            continue
        plain = unquote_to_bytes(value[0].replace(b"+", b" "))
        if hides_text(kind, plain) or is_taught:
            found.append(Edit(*value.span(), plain, is_learned(fold_name(name))))
            done = value.end()


def _is_code(value: re.Match[bytes]) -> bool:
    """Whether the value is a variable, a constant or a call: `token=get_token()`, `password=None`,
    `key=$KEY`."""
    after = value.string[value.end() : value.end() + 1]
    return after in (b"(", b"[", b"{") or _CODE.fullmatch(value[0]) is not None


def _variable_kind(name: str) -> int:
    """Return the flags of `member_kind` for `name=value`."""
    return (member_kind(name) or TEXT) if is_secret_variable(name) else 0


def _find_fields(data: bytes, learned: Collection[str], found: list[Edit]) -> None:
    """Append the secrets of `name: value`, as in header blocks and logs. A plain word after
    `password:` is prose."""
    done = 0
    for field in _FIELD.finditer(data):
        name = field[1].decode("ascii", "replace")
        folded = fold_name(name)
        if field.start() < done or not (secret_field(name) or folded in learned):
            continue
        value = _FIELD_VALUE.match(data, field.end())
        if value is None:
            continue
        if folded in _SCHEMED_NAMES:
            _add_value(folded, value, 0, found)
            done = value.end()
            continue
        word = value[0].split(None, 1)[0] if value[0].strip() else b""
        done = value.start() + len(word)
        word = word.rstrip(b".,;)]}'")
        is_bare = folded in _BARE or folded.endswith("auth")
        is_word = is_bare and (not looks_random(word) or word.lower() in AUTH_SCHEMES)
        is_count = folded not in learned and not hides_text(member_kind(name) | TEXT, word)
        is_placeholder = _TYPE.match(word) or _CONSTANT.fullmatch(word)
        if word and not (is_word or is_count or is_placeholder):
            start = value.start() + value[0].index(word)
            found.append(Edit(start, start + len(word), word, is_learned(folded)))


def _form_parts(data: bytes, learned: Collection[str], found: list[Edit]) -> None:
    """Append the secret bodies of parts of a multipart form, after the blank line that follows
    `name="password"`."""
    at = 0
    while part := _PART.search(data, at):
        at = part.end()
        name = part[1].decode("utf-8", "replace")
        blank = _BLANK.search(data, at, at + _PART_HEAD)
        kind = parameter_kind(name) or (TEXT if fold_name(name) in learned else 0)
        if blank is None or not kind:
            continue
        start = blank.end()
        at = data.find(b"\n--", start)
        at = len(data) if at < 0 else at
        value = data[start:at].rstrip(b"\r\n")
        if value and hides_text(kind, value):
            found.append(Edit(start, start + len(value), value, is_learned(fold_name(name))))


def _add_value(folded: str, match: re.Match[bytes], group: int, found: list[Edit]) -> None:
    start = match.start(group)
    for begin, end in value_spans(folded, match[group]):
        secret = match[group][begin:end]
        is_prose = b" " in secret and folded.endswith("cookie")  # no cookie has a space
        known = is_learned(folded) and not is_prose
        found.append(Edit(start + begin, start + end, secret, known))


def value_spans(folded: str, value: bytes) -> list[tuple[int, int]]:
    """Return the secret spans of the value of a secret name, without the scheme word and the names
    of cookies."""
    if folded.endswith(("authorization", "authentication", "authheader")):
        return _after_scheme(value)
    if folded.endswith("setcookie"):
        return _find_cookie_spans(value.split(b";", 1)[0])
    if folded.endswith("cookie"):
        return _find_cookie_spans(value)
    if folded == "secwebsocketprotocol":
        return [token.span(token.lastindex or 0) for token in _SUBPROTOCOL.finditer(value)]
    return [(0, len(value))] if value else []


_SUBPROTOCOL = re.compile(
    rb"(?i)(?:\b(?:bearer|token|authorization|access_token|jwt)\s*,\s*"
    rb"|(?:bearer|token|jwt|auth\w*|api-?key)[._-](?:authorization\.k8s\.io\.)?)([^\s,]+)"
    rb"|(?<![\w+/=-])((?=[\w+/=-]*\d)(?=[\w+/=-]*[a-z])[\w+/=-]{20,})"
)
"""A token as a subprotocol: the item after a word for it, the rest of an item that begins with such
a word, or a part that is no name: long, with letters and digits."""


def _after_scheme(value: bytes) -> list[tuple[int, int]]:
    words = value.split(None, 1)
    if not words:
        return []
    end = len(value.rstrip())
    return [(end - len(words[-1].rstrip()), end)]


def _find_cookie_spans(value: bytes) -> list[tuple[int, int]]:
    """Return the spans of the values in `name=value; name=value`; a piece without a name is a
    value."""
    spans, start = [], 0
    for piece in value.split(b";"):
        end = start + len(piece)
        begin = start + piece.find(b"=") + 1
        if value[begin:end].strip():
            begin += len(value[begin:end]) - len(value[begin:end].lstrip())
            spans.append((begin, end))
        start = end + 1
    return spans


def _is_credential(scheme: bytes, value: bytes) -> bool:
    """Whether the word after `Bearer` or `Basic` is a credential and not the next word of a
    sentence."""
    if scheme.lower() == b"basic":
        return looks_random(value) or basic_secret(value) is not None
    return looks_random(value)


def basic_secret(value: bytes) -> bytes | None:
    """Return the password in Basic credentials, or None if the value is not such credentials."""
    try:
        pair = b64decode(value.rstrip(b"=") + b"=" * (-len(value.rstrip(b"=")) % 4), validate=True)
    except ValueError:
        return None
    user, colon, password = pair.partition(b":")
    return password if colon and password and user.isascii() else None


def looks_random(value: bytes) -> bool:
    """Whether a word looks generated: long, or with digits or capitals in its middle."""
    word = value.strip(b".,=-_")
    if len(word) < 6:
        return False
    letters = word[1:]
    mixed = letters.lower() != letters and letters.upper() != letters
    return len(word) >= 20 or mixed or any(48 <= byte <= 57 for byte in word)


Find = Callable[[bytes, Collection[str], list[Edit]], None]
"""Appends the secrets of a text to a list; the second argument has the learned names."""


class Search(NamedTuple):
    """A search, and what a text must contain before it can find something."""

    trigger: str
    """An RE2 expression. It requires nothing around a secret that an encoding may change, such as
    bounds of words."""
    find: Find


_VALUE: Final = r"[A-Za-z0-9\-._~+/=%]"
_BLANKS: Final = r"(?:[\s\x0b+]|%20|\\+[nrtf])+"
SEARCHES: Final = (
    *(Search(f"(?i:{trigger})", _find_named) for trigger in make_name_triggers()),
    Search(
        rf"(?i:bearer){_BLANKS}(?:{_VALUE}*[0-9]|{_VALUE}+[A-Z]|{_VALUE}{{20}})|"
        rf"(?i:basic){_BLANKS}{_VALUE}{{4}}",
        _find_schemes,
    ),
    Search(make_key_trigger(), _find_each(_SHAPES)),
    Search(r"eyJ[\w\-]{5,}\.", _find_each(_JWT)),
    Search(r"://[^/\s\"'<>@?#]+@", _find_each(_USER_INFO)),
    Search(r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY", _find_each(_PEM)),
    Search(
        r"curl(?:[ \t]|\\+t)(?:.* )?(?:-[A-Za-z]{0,4}[uU]|--(?:proxy-)?user)|(?:mysql|mariadb).* "
        r"-p|sshpass -p",
        _find_commands,
    ),
)
SESSIONS: Final = SEARCHES[1]
"""The search for names of sessions."""
_ESCAPED: Final = re.compile(rb"\\(?:u00([0-7][0-9a-fA-F])|([/\\]))")
"""Escapes of JSON, apart from those of characters that no trigger requires."""
_LAYERS: Final = 8
"""Layers of JSON in strings of JSON that are decoded; a walk decodes fewer."""
_PERCENT_BYTE, _BACKSLASH_BYTE = b"%\\"
"""Numbers, because `in` with a string of bytes first creates an exception, which takes ten times as
long."""


def _compile_triggers() -> re2.Set:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = _MAX_MEMORY
    triggers = re2.Set.SearchSet(options)
    for search in SEARCHES:
        triggers.Add(search.trigger.encode())
    triggers.Compile()
    return triggers


_MAX_MEMORY: Final = 32 << 20
"""Bytes of states that RE2 may keep. If they do not suffice, it begins anew, which takes time but
changes no result."""
_TRIGGERS: Final = _compile_triggers()
