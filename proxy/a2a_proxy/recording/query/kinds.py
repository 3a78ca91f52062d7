"""What the values of a field may be, and how each kind is read from text.

A reader gives a value, or raises Wrong: the parser adds where in the expression that was.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

from a2a_proxy.recording.query.errors import suggest_word
from a2a_proxy.recording.query.tree import COMPARISONS, Anything, Number, Op, TimeValue, Value, WordValue

MAX_PATTERN = 1000
"""Characters of a regular expression."""

_S, _MS = 1_000_000_000, 1_000_000
_DURATIONS = {"ns": 1, "us": 1000, "ms": _MS, "s": _S, "m": 60 * _S, "min": 60 * _S, "h": 3600 * _S}
_DURATIONS |= {"d": 86_400 * _S, "w": 604_800 * _S}
_DURATION = "a duration with its unit: 500ms, 2s, 1.5m"
_SIZES = {"": 1, "b": 1, "kb": 1000, "mb": 10**6, "gb": 10**9, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}
_SIZES |= {"k": 1000, "m": 10**6, "g": 10**9}
_NUMBER = re.compile(r"([+-]?\d{1,18})(?:\.(\d{1,9}))?([a-zA-Zµ]*)")
_CLOCK = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?")
_TIME = re.compile(r"[T ]\d\d(?::?\d\d(?::?(\d\d)(?:[.,](\d+))?)?)?")
_MAX_INT64 = 2**63 - 1


class InvalidValue(Exception):
    """No value of the kind. `incomplete`: more characters may make it one."""

    def __init__(self, message: str, *, incomplete: bool = False) -> None:
        super().__init__(message)
        self.incomplete = incomplete


class ValueKind:
    """A kind of value: the operators it knows, and its reader."""

    def __init__(self, name: str, ops: str, read: Callable[[str], Value], *, ranges: bool = False) -> None:
        self.name = name
        self.ops = tuple(Op(op) for op in ops.split())
        self.read = read
        self.ranges = ranges
        self.words: tuple[str, ...] = ()
        """What can be typed, where that is a closed list."""


_COMPARED = ": = " + " ".join(COMPARISONS)


def parse_number(text: str) -> Number:
    """A whole number."""
    return Number(text, _scale(text, {"": 1}, "a whole number"))


def parse_duration(text: str) -> Number:
    """A span of time with its unit, in ns."""
    return Number(text, _scale(text, _DURATIONS, _DURATION))


def parse_length(text: str) -> int:
    """A duration as options have it, ns: without a sign, spaces around its number allowed, 292 years at most, which is
    as good as any longer one. Raises Wrong."""
    if not text.isascii() or text.strip()[:1] in ("+", "-"):
        raise InvalidValue(f'"{text}" is not a span of time')
    return min(_exact_value("".join(text.split()), _DURATIONS, _DURATION), _MAX_INT64)


def parse_size(text: str) -> Number:
    """A number of bytes, with or without a unit."""
    return Number(text, _scale(text, _SIZES, "a size: 512, 10kB, 4MiB"))


def _scale(text: str, units: Mapping[str, int], what: str) -> int:
    value = _exact_value(text, units, what)
    if abs(value) > _MAX_INT64:
        raise InvalidValue(f'"{text}" is too large')
    return value


def _exact_value(text: str, units: Mapping[str, int], what: str) -> int:
    """The number, however large."""
    match = _NUMBER.fullmatch(text)
    unit = match[3].replace("µ", "u") if match else ""
    factor = units.get(unit, units.get(unit.lower() if "mib" in units else unit))
    if match is None or factor is None or (match[2] and factor == 1):
        near = not text or (match is not None and any(each.startswith(unit.lower()) for each in units))
        raise InvalidValue(f'"{text}" is not {what}', incomplete=near)
    value = int(match[1]) * factor
    if match[2]:
        part = int(match[2].ljust(9, "0")) * factor // 10**9
        value += -part if match[1].startswith("-") else part
    return value


def parse_time(text: str) -> TimeValue:
    """A point in time: `12:30`, an ISO date or time, or `+5s` from the beginning of the session."""
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
        raise InvalidValue(f'"{text}" is not a time: 12:30, 2026-01-31T09:41:07Z, +5s', incomplete=True) from None
    clock = _TIME.search(text)
    span = _time_precision(clock[1], clock[2]) if clock else 86400 * _S
    ns = since // timedelta(microseconds=1) * 1000
    if abs(ns) > _MAX_INT64 // 2:
        raise InvalidValue(f'"{text}" is too far away')
    return TimeValue(text, "epoch", ns, span)


def _time_precision(seconds: object, fraction: str | None) -> int:
    """How long a time of this precision lasts, ns."""
    if fraction:
        return int(10 ** (9 - min(len(fraction), 9)))
    return _S if seconds is not None else 60 * _S


def parse_text(text: str) -> str:
    """Any text but the empty one."""
    if not text:
        raise InvalidValue("an empty text is in everything", incomplete=True)
    return text


def parse_pattern(text: str) -> str:
    """A regular expression.

    The package `regex` runs it, with a limit of time for each text: a pattern that takes exponential time is found
    out instead of standing still. It is imported for patterns alone.
    """
    import regex

    if len(text) > MAX_PATTERN:
        raise InvalidValue(f"a regular expression may have {MAX_PATTERN} characters")
    try:
        regex.compile(parse_text(text))
    except (regex.error, ValueError, OverflowError, RecursionError, MemoryError) as wrong:
        raise InvalidValue(f"not a regular expression: {wrong}", incomplete=True) from None
    return text


def choice_kind(name: str, words: Mapping[str, tuple[int | str, ...]], ops: str, **labels: str) -> ValueKind:
    """A closed list: every spelling with what it stands for. `labels` names those that are aliases of another."""
    folded = {word.lower().replace("_", "-"): word for word in words}

    def read(text: str) -> WordValue:
        word = folded.get(text.lower().replace("_", "-"))
        if word is None:
            begun = any(each.startswith(text.lower().replace("_", "-")) for each in folded)
            raise InvalidValue(f'there is no {name} "{text}"{suggest_word(text, words)}', incomplete=begun)
        return WordValue(labels.get(word, word), words[word])

    kind = ValueKind("one of a list", ops, read)
    kind.words = tuple(dict.fromkeys(labels.get(word, word) for word in words))
    return kind


def parse_anything(text: str) -> Anything | None:
    """`*` asks whether the field is there at all."""
    return Anything() if text == "*" else None


NUMBER = ValueKind("number", _COMPARED, parse_number, ranges=True)
DURATION = ValueKind("duration", _COMPARED, parse_duration, ranges=True)
SIZE = ValueKind("size", _COMPARED, parse_size, ranges=True)
TIME = ValueKind("time", _COMPARED, parse_time, ranges=True)
TEXT = ValueKind("text", ": = ~", parse_text)
"""`:` where it contains the value, whatever the case."""
LABEL = ValueKind("label", ": = ~", parse_text)
"""`:` where it is the value, whatever the case."""
IDENT = ValueKind("id", ": = ~", parse_text)
"""`:` where it begins with the value."""
JSON = ValueKind("JSON value", _COMPARED + " ~", parse_text)
TRACE = ValueKind("id", ": = ~", lambda text: parse_text(text).lower())
"""Trace ids are lower case."""


def parse_rule(text: str) -> str:
    """The id of a rule or its beginning: `GEN` is short for `A2A-GEN`; findings without a rule have their own."""
    word = parse_text(text).upper()
    own = len(word) > 3 and any(each.startswith(word) for each in ("UNDECODABLE", "RECORDER"))
    return word if own or word.startswith("A2A") else f"A2A-{word}"


RULE = ValueKind("rule", ": = ~", parse_rule)


def coded_kind(names: Mapping[str, tuple[int | str, ...]]) -> ValueKind:
    """A number that also has names."""
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
                f'"{text}" is no error\'s code or name{near}', incomplete=begun or wrong.incomplete
            ) from None

    kind = ValueKind("code", _COMPARED, read, ranges=True)
    kind.words = tuple(names)
    return kind
