"""Random texts with secrets in the encodings of payloads, which compare the sieve with the complete
search.

Each text is a secret of a random form under a random name in a random format, encoded by one to
three serializers.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache, lru_cache
from itertools import islice
from random import Random
from string import ascii_letters
from typing import Any, NamedTuple
from unittest.mock import patch
from urllib.parse import quote, quote_plus

from a2a_proxy.redaction import secret_patterns
from a2a_proxy.redaction.key_formats import FORMATS, WEBHOOKS, KeyFormat
from a2a_proxy.redaction.payload import fields_clean, redact_payload
from a2a_proxy.redaction.scrubber import Scrubber
from a2a_proxy.redaction.secret_names import hides_text, list_names_by_use, member_kind
from a2a_proxy.redaction.secret_patterns import (
    SEARCHES,
    Edit,
    Find,
    Search,
    choose_searches,
    find_secrets,
)
from support_planted import ALNUM, BASE64, CAPITALS, HEX, WORD, Key

NAMES = sorted(
    {name for use, names in list_names_by_use().items() if "Never" not in use for name in names}
)
VARIANTS: list[Callable[[str], str]] = [
    str,
    str.upper,
    str.capitalize,
    lambda name: "-".join((name[: len(name) // 2], name[len(name) // 2 :])),
    lambda name: f"x-{name}",
    lambda name: f"X-Corp-{name.title()}",
    lambda name: f"X-Custom-{name.title()}-Data",
    lambda name: f"DB_{name.upper()}",
    lambda name: f"my{name.capitalize()}",
    lambda name: f"{name}s",
    lambda name: f"{name}_value",
    lambda name: f"{name}sValue",
    lambda name: f"{name}-bin",
    lambda name: f"user[{name}]",
    lambda name: name.replace("k", "\u212a"),
]
WORDS: list[Callable[[Random], str]] = [
    lambda random: Key("", "q", ALNUM, 21).made(random),
    lambda random: Key("", "q", ALNUM, random.randrange(3, 12)).made(random),
    lambda random: Key("", "7", "0123456789", random.randrange(3, 9)).made(random),
    lambda random: Key("", "p", ALNUM + "!#$%&()*+,-./:;<=>?@[]^_{|}~\u00e9\u00df\u4e16", 14).made(
        random
    ),
    lambda random: (
        Key("", "eyJ", WORD, 20).made(random) + Key("", ".eyJ", WORD, 20).made(random) + ".sig"
    ),
    lambda random: b64encode(f"bob:{Key('', 'p', ALNUM, 8).made(random)}".encode()).decode(),
    lambda random: Key("", "", CAPITALS, 20).made(random),
    lambda random: Key("", "", HEX, 32).made(random),
    lambda random: Key("", "", BASE64, 40).made(random),
    lambda _: "hunter22",
]
TEXTS = [
    *(
        "{n}={v}",
        "?{n}={v}&a=1",
        "a=1;{n}={v}",
        "{n}: {v}",
        "{n}:{v}",
        '{n}="{v}"',
        "{n} = '{v}'",
        '{n}: "{v}"',
    ),
    *(
        '"{n}": "{v}"',
        "'{n}': '{v}'",
        '\\"{n}\\": \\"{v}\\"',
        '"{n}":{v}',
        "--{n} {v}",
        "--{n}={v}",
        "--{n} '{v}'",
    ),
    *(
        "--my-{n}\t{v}",
        "['--{n}', '{v}']",
        '["--{n}", "{v}"]',
        "<{n}>{v}</{n}>",
        '<a:{n} b="c">{v}</a:{n}>',
    ),
    *(
        "- name: {n}\n  value: {v}\n",
        '- name: "{n}"\n  value: "{v}"',
        '<add key="{n}" value="{v}"/>',
    ),
    *(
        'Content-Disposition: form-data; name="{n}"\r\n\r\n{v}\r\n--b',
        "{n} := `{v}`",
        "{n}: str = '{v}'",
    ),
    *(
        "Bearer {v}",
        "bearer+{v}",
        "Basic {v}",
        "Authorization: Bearer {v}",
        "authorization: Basic {v}",
    ),
    *(
        "Cookie: a=b; {n}={v}",
        "postgres://bob:{v}@db/x",
        "http://{v}@h/",
        "curl -u bob:{v} http://h/",
        "{v}",
    ),
    *(
        "curl -X POST --user 'bob:{v}'",
        "mysql -h db -p{v} x",
        "mysqldump -uroot -p'{v}'",
        "mariadb-dump -p{v}",
    ),
    *(
        "sshpass -p {v} ssh h",
        "sshpass -p{v} ssh h",
        "export {n}={v}",
        "use {v} now",
        "({v})",
        "a.{v}",
        "http://h/{v}",
    ),
    *(
        "-----BEGIN RSA PRIVATE KEY-----\n{v}\n-----END RSA PRIVATE KEY-----",
        "Sec-WebSocket-Protocol: bearer, {v}",
        "Sec-WebSocket-Protocol: a2a.v1, {v}",
    ),
]
VALUES: list[Callable[[str, str], Any]] = [
    lambda name, value: {name: value},
    lambda name, value: {name: {"a": [value]}},
    lambda name, value: {name: [value]},
    lambda name, value: {name: 4711},
    lambda name, value: {"name": name, "value": value},
    lambda name, value: {"value": value, "key": name},
    lambda name, value: [name, value],
    lambda name, value: {"headers": [[name, value]]},
    lambda name, value: ["agent", f"--{name}", value],
    lambda _, value: {"grant_type": "authorization_code", "code": value},
    lambda _, value: {"code_verifier": "x", "code": value},
    lambda _, value: {
        "assertion": value,
        "grantType": "urn:ietf:params:oauth:grant-type:jwt-bearer",
    },
    lambda _, value: {"accessKeyId": value, "secretAccessKey": "x"},
    lambda name, value: {"params": {"sessionId": "s-1", "note": f"{name}={value}"}},
]
AROUND = [
    "",
    "",
    "",
    " ",
    "\n",
    "\t",
    "\u00a0",
    "\u00e9",
    "\u4e16",
    "\U0001f600",
    '"',
    "'",
    "<b>",
    "\\",
    "&",
    "x ",
    ": ",
]


class EncodedText(NamedTuple):
    """A payload with what it was made from."""

    kind: str
    """Format, serializers and the kind of the secret."""
    schema: str
    data: bytes


def made_texts(seed: int, count: int) -> Iterator[EncodedText]:
    """Yield random texts, the same for the same seed."""
    random = Random(seed)
    for number in range(count):
        if number % _ALIKE == 0:
            name = random.choice(VARIANTS)(random.choice(NAMES))
            what, secret = _made_secret(random)
        yield _made_text(random, name, what, secret)


def _made_text(random: Random, name: str, what: str, secret: str) -> EncodedText:
    kind = random.randrange(3)
    if kind == 0:
        number = random.randrange(len(VALUES))
        value, form = VALUES[number](name, secret), f"value {number}"
    else:
        form = random.choice(TEXTS)
        line = form.replace("{n}", name).replace("{v}", secret)
        value = random.choice(AROUND) + line + random.choice(AROUND)
    used = []
    for _ in range(random.randrange(3)):
        inner = random.choice(INNER)
        value = inner(value)
        used.append(inner.__name__)
    outer = random.choice(OUTER)
    schema, data = outer(value)
    return EncodedText(
        f"{form} | {name} | {what} | {'+'.join((*used, outer.__name__))}", schema, data
    )


def _made_secret(random: Random) -> tuple[str, str]:
    if random.random() < 0.5:
        number = random.randrange(len(WORDS))
        return f"word {number}", WORDS[number](random)
    form = random.choice(_FORMS)
    prefix = random.choice(form.prefixes)
    alphabet = _ALPHABETS[form.alphabet]
    around = [_expand(each, random) for each in (form.before + form.near, form.after)]
    return prefix, around[0] + prefix + around[1] + "".join(random.choices(alphabet, k=form.length))


def _expand(expression: str, random: Random) -> str:
    """Return text that matches an expression of `KeyFormat`: sets of characters with counts, and
    plain characters."""
    return "".join(
        "".join(random.choices(_ALPHABETS[found[1]], k=int(found[3] or found[2] or 1)))
        if found[1]
        else found[4]
        for found in re.finditer(r"\[([^\]]+)\](?:\{(\d+)(?:,(\d+))?\})?|\\?(.)", expression)
    )


class _Alphabets(dict[str, list[str]]):
    def __missing__(self, characters: str) -> list[str]:
        found = [each for each in map(chr, range(33, 127)) if re.fullmatch(f"[{characters}]", each)]
        return self.setdefault(characters, found)


_ALIKE = 4
"""Texts with the same name and the same secret, which RE2 searches faster than different ones."""
_FORMS: tuple[KeyFormat, ...] = (*FORMATS, *WEBHOOKS)
_ALPHABETS = _Alphabets()


def _text_of(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def python_json(value: Any) -> str:
    """Return JSON as Python writes it."""
    return json.dumps(value)


def plain_json(value: Any) -> str:
    """Return JSON without escapes of characters beyond ASCII."""
    return json.dumps({"text": value}, ensure_ascii=False, indent=1)


def go_json(value: Any) -> str:
    """Return JSON as Go writes it."""
    return json.dumps([value], ensure_ascii=False, separators=(",", ":")).translate(_escapes("<>&"))


def dotnet_json(value: Any) -> str:
    """Return JSON as System.Text.Json writes it."""
    text = json.dumps({"t": value}, separators=(",", ":")).replace('\\"', "\\u0022")
    return re.sub(
        r"(?<=\\u)[0-9a-f]{4}", lambda each: each[0].upper(), text.translate(_escapes("<>&'+`"))
    )


def php_json(value: Any) -> str:
    """Return JSON as PHP writes it."""
    return json.dumps([value]).replace("/", "\\/")


@cache
def _escapes(characters: str) -> dict[int, str]:
    return {ord(each): f"\\u{ord(each):04X}" for each in characters}


def all_escaped_json(value: Any) -> str:
    """Return JSON whose letters are all escaped."""
    text = json.dumps(_text_of(value), ensure_ascii=False).replace("\\", "\\\\")
    return text.translate(_escapes(ascii_letters))


def percent(value: Any) -> str:
    """Return percent-encoded text."""
    return "q=" + quote(_text_of(value), safe="")


def form(value: Any) -> str:
    """Return a field of a form."""
    return f"a=1&{quote_plus(_text_of(value), safe='=')}"


def as_text(value: Any) -> tuple[str, bytes]:
    """Return a payload of text."""
    return "text", _text_of(value).encode()


def as_lines(value: Any) -> tuple[str, bytes]:
    """Return a payload of several lines."""
    return "text", b"first\n" + _text_of(value).encode() + b"\nlast"


def _field(number: int, data: bytes) -> bytes:
    size, length = len(data), b""
    while size > 127:
        length += bytes([size & 127 | 128])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + data


def _proto_value(value: Any) -> bytes:
    match value:
        case str():
            return _field(3, value.encode())
        case int():
            return b"\x11" + b"\0\0\0\0\0\0\x59\x40"
        case list():
            return _field(6, b"".join(_field(1, _proto_value(each)) for each in value))
        case _:
            return _field(5, _struct(value))


def _struct(value: dict[str, Any]) -> bytes:
    return b"".join(
        _field(1, _field(1, name.encode()) + _field(2, _proto_value(each)))
        for name, each in value.items()
    )


def as_part(value: Any) -> tuple[str, bytes]:
    """Return a message of protobuf with a text, or with a value of Struct."""
    data = _field(1, value.encode()) if isinstance(value, str) else _field(4, _proto_value(value))
    return "lf.a2a.v1.Part", data + _field(7, b"text/plain")


def _as_json(write: Callable[[Any], str]) -> Callable[[Any], tuple[str, bytes]]:
    def encode(value: Any) -> tuple[str, bytes]:
        return "json", write(value).encode()

    encode.__name__ = write.__name__
    return encode


JSON = (python_json, plain_json, go_json, dotnet_json, php_json, all_escaped_json)
INNER: list[Callable[[Any], Any]] = [*JSON, percent, form]
OUTER = [*map(_as_json, JSON), as_text, as_lines, as_part, as_part]


class _CompleteScrubber(Scrubber):
    """A scrubber that searches everything."""

    def may_hold_secret(self, data: bytes, *, is_payload: bool = False) -> bool:
        return True


class _CheckingScrubber(_CompleteScrubber):
    """A scrubber that searches everything, and notes a secret that the sieve would have skipped."""

    is_doubtful = False
    """Whether the sieve would have skipped a search that found something."""

    def find_edits(self, data: bytes, *, cut: bool) -> list[Edit]:
        edits, is_doubtful = _check_text(data, cut)
        self.is_doubtful |= is_doubtful
        return [*edits]

    def redact_string(
        self, value: bytes, name: str | None, cut: bool, depth: int = 0
    ) -> bytes | None:
        new = super().redact_string(value, name, cut, depth)
        if new is not None and not (name is not None and hides_text(member_kind(name), value)):
            self.is_doubtful |= not _choose_finds(value)
        return new

    def make_label(self, secret: bytes) -> bytes:
        return _LABEL


def _check_search(find: Find) -> Search:
    """Return a search that notes if it finds something and the sieve would have skipped it."""

    def check(data: bytes, learned: Collection[str], found: list[Edit]) -> None:
        before = len(found)
        find(data, learned, found)
        if len(found) > before and find not in _choose_finds(data):
            _skipped.append(data)

    return Search("", check)


@lru_cache(maxsize=4096)
def _check_text(data: bytes, cut: bool) -> tuple[list[Edit], bool]:
    """Return the secrets that all searches find, and whether the sieve would have skipped one."""
    _skipped.clear()
    edits = find_secrets(data, cut=cut)
    return edits, bool(_skipped or (edits and not _choose_finds(data)))


@lru_cache(maxsize=256)
def _choose_finds(data: bytes) -> frozenset[Find]:
    return frozenset(search.find for search in choose_searches(data))


_LABEL = Scrubber(b"k").make_label(b"secret")
_skipped: list[bytes] = []
"""Texts in which a search found something that the sieve would have skipped."""
_CHECKED_SEARCHES = [_check_search(find) for find in dict.fromkeys(each.find for each in SEARCHES)]
_sieve = Scrubber(b"k").may_hold_secret
_TOGETHER = 16
"""Texts that are checked together. RE2 still knows the states of their strings when it searches the
payloads."""
_IN_FULL = 64
"""One text of so many is redacted twice in any case."""


def find_disagreements(texts: Iterable[EncodedText]) -> tuple[Counter[str], list[EncodedText]]:
    """Compare redaction with and without the sieve; return counts, and the texts whose results
    differ.

    Each text is redacted with all searches, and wherever one finds something, the sieve must have
    chosen it: for the search, for the string, for each string around it, and for the payload. Then
    redaction with the sieve takes the same steps. Only a text with another step is redacted twice.
    """
    counts: Counter[str] = Counter()
    different = []
    texts = iter(texts)
    _check_text.cache_clear()
    _choose_finds.cache_clear()
    while some := list(islice(texts, _TOGETHER)):
        doubtful, found = _check_texts(some)
        counts.update({"texts": len(some), "secrets": len(found)})
        if counts["texts"] % _IN_FULL == 0:
            doubtful.append(some[0])
        doubtful += [each for each in found if not _is_searched(each)]
        different += [text for text in dict.fromkeys(doubtful) if is_redacted_differently(text)]
    counts["different"] = len(different)
    return counts, different


def _check_texts(texts: Iterable[EncodedText]) -> tuple[list[EncodedText], list[EncodedText]]:
    """Redact the texts with all searches; return those in which the sieve would have skipped one
    that finds something, and those with secrets."""
    doubtful, found = [], []
    with patch.object(secret_patterns, "choose_searches", lambda _: _CHECKED_SEARCHES):
        for text in texts:
            scrub = _CheckingScrubber(b"k")
            if redact_payload(scrub, text.schema, text.data, cut=False)[0] != text.data:
                found.append(text)
            if scrub.is_doubtful:
                doubtful.append(text)
    return doubtful, found


def is_redacted_differently(text: EncodedText) -> bool:
    """Whether redaction with and without the sieve has different results."""
    with patch.object(secret_patterns, "choose_searches", lambda _: SEARCHES):
        complete = redact_payload(_CompleteScrubber(b"k"), text.schema, text.data, cut=False)[0]
    if not _is_searched(text):
        return complete != text.data
    return redact_payload(Scrubber(b"k"), text.schema, text.data, cut=False)[0] != complete


def _is_searched(text: EncodedText) -> bool:
    """Whether a redactor searches the payload."""
    return _sieve(text.data, is_payload=True) or not fields_clean(text.schema, text.data)
