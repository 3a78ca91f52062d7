"""Kinds of values that a field can have, and the parser of each kind.

A parser returns a value, or raises InvalidValue; the expression parser adds the position.
"""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

from a2a_proxy.recording.query.errors import suggest_word
from a2a_proxy.recording.query.tree import (
    COMPARISONS,
    Number,
    Op,
    TimeValue,
    Value,
    WordValue,
)

MAX_PATTERN = 1000
"""Maximum characters of a regular expression."""

_S, _MS = 1_000_000_000, 1_000_000
_DURATIONS = {"ns": 1, "us": 1000, "ms": _MS, "s": _S, "m": 60 * _S, "min": 60 * _S, "h": 3600 * _S}
_DURATIONS |= {"d": 86_400 * _S, "w": 604_800 * _S}
_DURATION = "a duration with its unit: 500ms, 2s, 1.5m"
_SIZES = {
    "": 1,
    "b": 1,
    "kb": 1000,
    "mb": 10**6,
    "gb": 10**9,
    "kib": 1 << 10,
    "mib": 1 << 20,
    "gib": 1 << 30,
}
_SIZES |= {"k": 1000, "m": 10**6, "g": 10**9}
_NUMBER = re.compile(r"([+-]?\d{1,18})(?:\.(\d{1,9}))?([a-zA-Zµ]*)")
_CLOCK = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?")
_TIME = re.compile(r"[T ]\d\d(?::?\d\d(?::?(\d\d)(?:[.,](\d+))?)?)?")
_MAX_INT64 = 2**63 - 1


class InvalidValue(Exception):
    """The text is not a value of the kind. `incomplete`: more characters may make it valid."""

    def __init__(self, message: str, *, incomplete: bool = False) -> None:
        super().__init__(message)
        self.incomplete = incomplete


class ValueKind:
    """A kind of value: its operators and its parser."""

    def __init__(
        self, name: str, ops: str, read: Callable[[str], Value], *, ranges: bool = False
    ) -> None:
        self.name = name
        self.ops = tuple(Op(op) for op in ops.split())
        self.read = read
        self.ranges = ranges
        self.words: tuple[str, ...] = ()
        """The values that can be typed, if they are a closed list."""


_COMPARED = ": = " + " ".join(COMPARISONS)


def parse_number(text: str) -> Number:
    """Parse a whole number."""
    return Number(text, _parse_number(text, {"": 1}, "a whole number"))


def parse_duration(text: str) -> Number:
    """Parse a duration with its unit. The value is in ns."""
    return Number(text, _parse_number(text, _DURATIONS, _DURATION))


def parse_length(text: str) -> int:
    """Parse a duration of a command-line option and return it in ns.

    It has no sign, may have spaces around its number, and is limited to 292 years (64 bits). Raises
    InvalidValue.
    """
    if not text.isascii() or text.strip()[:1] in ("+", "-"):
        raise InvalidValue(f'"{text}" is not a duration')
    return min(_exact_value("".join(text.split()), _DURATIONS, _DURATION), _MAX_INT64)


def parse_size(text: str) -> Number:
    """Parse a number of bytes, with or without a unit."""
    return Number(text, _parse_number(text, _SIZES, "a size: 512, 10kB, 4MiB"))


def _parse_number(text: str, units: Mapping[str, int], what: str) -> int:
    value = _exact_value(text, units, what)
    if abs(value) > _MAX_INT64:
        raise InvalidValue(f'"{text}" is too large')
    return value


def _exact_value(text: str, units: Mapping[str, int], what: str) -> int:
    """Return the number, however large."""
    match = _NUMBER.fullmatch(text)
    unit = match[3].replace("µ", "u") if match else ""
    factor = units.get(unit, units.get(unit.lower() if "mib" in units else unit))
    if match is None or factor is None or (match[2] and factor == 1):
        near = not text or (
            match is not None and any(each.startswith(unit.lower()) for each in units)
        )
        raise InvalidValue(f'"{text}" is not {what}', incomplete=near)
    value = int(match[1]) * factor
    if match[2]:
        part = int(match[2].ljust(9, "0")) * factor // 10**9
        value += -part if match[1].startswith("-") else part
    return value


def parse_time(text: str) -> TimeValue:
    """Parse a point in time: `12:30`, an ISO date or time, or `+5s` from the beginning of the
    session."""
    if text.startswith("+"):
        shift = parse_duration(text[1:])
        if abs(shift.value) > _MAX_INT64 // 2:
            raise InvalidValue(f'"{text}" is too far away')
        unit = _DURATIONS[re.sub(r"^[\d.]+", "", text[1:]).replace("µ", "u")]
        return TimeValue(text, "session", shift.value, unit)
    if match := _CLOCK.fullmatch(text):
        hours, minutes, seconds = int(match[1]), int(match[2]), int(match[3] or 0)
        if hours < 24 and minutes < 60 and seconds < 60:
            ns = ((hours * 60 + minutes) * 60 + seconds) * _S + int((match[4] or "").ljust(9, "0"))
            return TimeValue(text, "day", ns, _time_precision(match[3], match[4]))
    try:
        since = datetime.fromisoformat(text).astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    except (ValueError, OverflowError):
        raise InvalidValue(
            f'"{text}" is not a time: 12:30, 2026-01-31T09:41:07Z, +5s', incomplete=True
        ) from None
    clock = _TIME.search(text)
    span = _time_precision(clock[1], clock[2]) if clock else 86400 * _S
    ns = since // timedelta(microseconds=1) * 1000
    if abs(ns) > _MAX_INT64 // 2:
        raise InvalidValue(f'"{text}" is too far away')
    return TimeValue(text, "epoch", ns, span)


def _time_precision(seconds: object, fraction: str | None) -> int:
    """Return the length of a time of this precision, in ns."""
    if fraction:
        return int(10 ** (9 - min(len(fraction), 9)))
    return _S if seconds is not None else 60 * _S


def parse_text(text: str) -> str:
    """Parse a text, which must not be empty."""
    if not text:
        raise InvalidValue("an empty text matches everything", incomplete=True)
    return text


def parse_pattern(text: str) -> str:
    """Parse a regular expression.

    It is executed by the package `regex` with a time limit for each text, which detects a pattern
    that takes exponential time. The package is imported only for patterns.
    """
    import regex

    if len(text) > MAX_PATTERN:
        raise InvalidValue(f"a regular expression can have at most {MAX_PATTERN} characters")
    try:
        regex.compile(parse_text(text))
    except (regex.error, ValueError, OverflowError, RecursionError, MemoryError) as wrong:
        raise InvalidValue(f"not a regular expression: {wrong}", incomplete=True) from None
    return text


def choice_kind(
    name: str,
    words: Mapping[str, tuple[int | str, ...]],
    ops: str,
    labels: Mapping[str, str] | None = None,
    *,
    prefixes: bool = False,
) -> ValueKind:
    """Return the kind of a closed list of words, each with its keys.

    `labels` maps an alias to the word that it stands for. With `prefixes` a value such as `Send*`
    stands for all words that begin with it.
    """
    labels = labels or {}
    folded = {word.lower().replace("_", "-"): word for word in words}

    def read(text: str) -> WordValue:
        typed = text.lower().replace("_", "-")
        word = folded.get(typed)
        if word is None:
            begun = [
                each for key, each in folded.items() if key.startswith(typed.removesuffix("*"))
            ]
            if prefixes and begun and len(text) > 1 and text.endswith("*"):
                return WordValue(
                    text, tuple(dict.fromkeys(key for each in begun for key in words[each]))
                )
            raise InvalidValue(
                f'there is no {name} "{text}"{suggest_word(text, words)}', incomplete=bool(begun)
            )
        return WordValue(labels.get(word, word), words[word])

    kind = ValueKind("one of a list", ops, read)
    kind.words = tuple(dict.fromkeys(labels.get(word, word) for word in words))
    return kind


NUMBER = ValueKind("number", _COMPARED, parse_number, ranges=True)
DURATION = ValueKind("duration", _COMPARED, parse_duration, ranges=True)
SIZE = ValueKind("size", _COMPARED, parse_size, ranges=True)
TIME = ValueKind("time", _COMPARED, parse_time, ranges=True)
TEXT = ValueKind("text", ": = ~", parse_text)
"""`:` matches if the field contains the value, ignoring case."""
LABEL = ValueKind("label", ": = ~", parse_text)
"""`:` matches if the field equals the value, ignoring case."""
IDENT = ValueKind("id", ": = ~", parse_text)
"""`:` matches if the field begins with the value."""
JSON = ValueKind("JSON value", _COMPARED + " ~", parse_text)
TRACE = ValueKind("id", ": = ~", lambda text: parse_text(text).lower())
"""Ids of traces, which are lower case."""


_OTHER_FINDINGS = ("UNDECODABLE", "HANDSHAKE", "RECORDER", "IMPORT")


def parse_rule(text: str) -> str:
    """Parse the id of a rule or its prefix: `GEN` is short for `A2A-GEN`.

    Findings without a rule have their own prefixes.
    """
    word = parse_text(text).upper()
    own = len(word) > 3 and any(each.startswith(word) for each in _OTHER_FINDINGS)
    return word if own or word.startswith("A2A") else f"A2A-{word}"


RULE = ValueKind("rule", ": = ~", parse_rule)


def coded_kind(names: Mapping[str, tuple[int | str, ...]]) -> ValueKind:
    """Return the kind of a number that also has names."""
    folded = {name.replace("_", "").lower(): name for name in names}

    def read(text: str) -> Value:
        name = folded.get(text.replace("_", "").replace("-", "").lower())
        if name is not None:
            return WordValue(name, names[name])
        try:
            return parse_number(text)
        except InvalidValue as wrong:
            begun = any(each.startswith(text.replace("_", "").lower()) for each in folded)
            near = suggest_word(text.upper(), names)
            raise InvalidValue(
                f'"{text}" is not the code or name of an error{near}',
                incomplete=begun or wrong.incomplete,
            ) from None

    kind = ValueKind("code", _COMPARED, read, ranges=True)
    kind.words = tuple(names)
    return kind
