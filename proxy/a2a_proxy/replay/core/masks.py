"""Masks of the values that differ in every run of a program: UUIDs, request ids, and the dates and
times of the run."""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import Any

import msgspec

from a2a_proxy.recording.difference.ids import WORD_PATTERN


class RunTimes(msgspec.Struct, frozen=True):
    """The times of two messages that are compared, in ns since the Unix epoch."""

    recorded: int
    now: int


class MaskKind(StrEnum):
    """What a mask stands for."""

    UUID = "UUID"
    DATE = "date"
    DATE_TIME = "date and time"
    EPOCH = "epoch time"
    REQUEST = "request id"


_DAY_NS = 86_400_000_000_000
_ZONE = r"(?:[ ]?(?:Z|UTC|GMT)(?![A-Z]))?(?:[ ]?[+-]\d\d:?\d\d(?!\d))?"
_CLOCK = r"(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:[.,]\d{1,9})?)?(?:[ ]?[AP]M(?![A-Z]))?" + _ZONE
_YEAR, _DAY = r"(?:19|20)\d\d", r"(?:0?[1-9]|[12]\d|3[01])"
_ISO = r"\d{4}(?:-(?:0[1-9]|1[0-2])-|/(?:0[1-9]|1[0-2])/)(?:0[1-9]|[12]\d|3[01])"
_NUMERIC = rf"(?<![./])\d{{1,2}}(?:\.\d{{1,2}}\.|/\d{{1,2}}/|-\d{{1,2}}-){_YEAR}"
_WEEKDAY = r"(?:(?:Mon|Tue|Tues|Wed|Wednes|Thu|Thurs|Fri|Sat|Satur|Sun)(?:day)?,?[ ])?"
_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|"
    r"Sept?(?:ember)?|Oct(?:ober)?"
    r"|Nov(?:ember)?|Dec(?:ember)?)"
)
_MONTH_DAY = rf"{_WEEKDAY}{_MONTH}[ ]{{1,2}}{_DAY}(?:st|nd|rd|th)?(?!\w)"
_DAY_MONTH = rf"{_WEEKDAY}{_DAY}(?:st|nd|rd|th)?(?:[ ]of)?[ -]{_MONTH}(?!\w)"
_DATE = rf"(?:{_ISO}|{_NUMERIC}|(?:{_MONTH_DAY}|{_DAY_MONTH})(?:,?[ -]{_YEAR})?)"
_HEX_TOKEN = r"(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{6,}(?![.-]*\w)"
"""A token with a digit and a letter: a plain number after `request` may be an amount."""
_PATTERNS = {
    MaskKind.REQUEST: (
        r"""(?:(?:request|req|correlation|trace)"""
        r"""(?:[ _-]?id["']?[ ]?(?:is|[:=#])?|[ ]?\#)[ ]?["']?(?=[\w.-]*\d)"""
        rf"""|(?:request|req|correlation|trace|ref(?:erence)?)(?:[ ]|:[ ]?)["']?(?={_HEX_TOKEN}))"""
        r"(?P<named>[0-9A-Za-z][\w.-]*(?<=\w))"
        r"|(?<!\0)(?:request|req)[_-](?=[0-9A-Za-z]*\d)[0-9A-Za-z]+(?:[_-][0-9A-Za-z]+)*"
    ),
    MaskKind.UUID: (
        r"(?<!\0)(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|"
        r"[0-9a-f]{32})(?![0-9A-Za-z])"
    ),
    # A time without a date is not masked: in a prompt it is often the time of an appointment.
    MaskKind.DATE_TIME: (
        rf"(?<!\d-)(?:{_MONTH_DAY}[ ]{_CLOCK}[ ]{_YEAR}|{_DATE}(?:T|,?[ ]){_CLOCK}"
        rf"|\d{{8}}T\d{{6}}(?:\.\d{{1,9}})?{_ZONE})(?![\d:])"
    ),
    MaskKind.DATE: rf"(?<!\d-)(?:{_DATE}|\d{{4}}-W[0-5]\d(?:-[1-7])?)(?!-?\d)",
    # From 2014 to 2033, in s, ms, us or ns: nearly all other numbers have fewer digits.
    MaskKind.EPOCH: (
        r"(?<![_.,\0-])1[4-9]\d{8}(?:\d{3}|\d{6}|"
        r"\d{9})?(?:\.\d+)?(?![0-9A-Za-z_]|[.,]\d)"
    ),
}
_ANY_KIND = "|".join(f"(?P<{kind.name}>{pattern})" for kind, pattern in _PATTERNS.items())
_MASKED = re.compile(rf"(?<![0-9A-Za-z])(?:{_ANY_KIND})", re.IGNORECASE | re.ASCII)
_READ_DATE = re.compile(
    r"(?P<iso_year>\d{4})[-/]?(?P<iso_month>\d\d)[-/]?(?P<iso_day>\d\d)|"
    r"(?P<week_year>\d{4})-W(?P<week>\d\d)"
    r"|(?P<one>\d{1,2})[./-](?P<other>\d{1,2})[./-](?P<numeric_year>\d{4})"
    rf"|{_WEEKDAY}(?:(?P<day>\d{{1,2}})[a-z]{{0,2}}(?:[ ]of)?[ -])?(?P<month>{_MONTH})"
    rf"(?:[ ]{{1,2}}(?P<day_after>\d{{1,2}})(?!\d))?(?:.*(?<!\d)(?P<year>{_YEAR})(?!\d))?",
    re.IGNORECASE | re.ASCII,
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_REQUEST_MEMBERS = frozenset({"requestid", "xrequestid", "correlationid", "xcorrelationid"})
"""Names of JSON members with a request id, in lower case and without `_` and `-`."""


def mask_text(text: str) -> str:
    """Return a text with a mask in place of each value that may differ in every run. Other numbers
    stay.

    Dates and times that are not of the run are masked as well; `is_of_run` distinguishes them.
    """
    return _MASKED.sub(_mask_match, text)


def mask_members(value: Any, name: str = "", depth: int = 0) -> Any:
    """Return a JSON value with masks in place of numbers that are epoch times, and of members that
    are request ids.

    Its texts are not masked, because they may contain identifiers of the conversation.
    """
    if isinstance(value, dict):
        return {key: mask_members(item, key, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [mask_members(item, name, depth + 1) for item in value]
    kind = member_kind(name, value)
    return value if kind is None else f"\0{kind}"


def coarse_text(text: str) -> str:
    """Return a text without masked values and long words: the same for two texts that are equal
    after masking, whatever identifiers they name."""
    return WORD_PATTERN.sub("", _MASKED.sub(_kept_prefix, text))


def iter_masked(text: str) -> Iterator[tuple[MaskKind, str]]:
    """Yield kind and text of each value of a text that `mask_text` masks."""
    for found in _MASKED.finditer(text):
        yield _kind_of(found), found["named"] or found[0]


def member_kind(name: str, value: Any) -> MaskKind | None:
    """Return the kind of a JSON member that is masked as a whole; None if it is not."""
    if isinstance(value, bool) or not isinstance(value, str | int | float) or not value:
        return None
    if name and name.lower().replace("_", "").replace("-", "") in _REQUEST_MEMBERS:
        return MaskKind.REQUEST
    found = None if isinstance(value, str) else _MASKED.fullmatch(str(value))
    return found and _kind_of(found)


def is_of_run(kind: MaskKind, text: str, at: int) -> bool:
    """Whether a masked value may be of a run that took place at a time, in ns since the Unix epoch.

    A date is, with or without a time, if it is the day of the run, the day before or the day after,
    because of time zones; an epoch time, if it is at most a day away. UUIDs and request ids always
    are.
    """
    if kind is MaskKind.EPOCH:
        whole = text.partition(".")[0]
        return abs(int(whole.ljust(19, "0")) - at) <= _DAY_NS
    if kind not in (MaskKind.DATE, MaskKind.DATE_TIME):
        return True
    today = datetime.fromtimestamp(at // 1_000_000_000, UTC).date()
    found = _READ_DATE.match(text)
    return found is not None and any(
        _names_day(found, today + timedelta(days=days)) for days in (0, -1, 1)
    )


def _names_day(found: re.Match[str], day: date) -> bool:
    """Whether a date, as text, means this day. A numeric date may have the month before the day or
    after it."""
    if found["week"]:
        return (int(found["week_year"]), int(found["week"])) == day.isocalendar()[:2]
    if found["iso_year"]:
        return (
            tuple(int(found[name]) for name in ("iso_year", "iso_month", "iso_day"))
            == day.timetuple()[:3]
        )
    if found["numeric_year"]:
        numbers = {
            (int(found["one"]), int(found["other"])),
            (int(found["other"]), int(found["one"])),
        }
        return int(found["numeric_year"]) == day.year and (day.day, day.month) in numbers
    month, number = found["month"][:3].lower(), int(found["day"] or found["day_after"])
    return (month, number) == (_MONTHS[day.month - 1], day.day) and int(
        found["year"] or day.year
    ) == day.year


def _kind_of(found: re.Match[str]) -> MaskKind:
    return next(kind for kind in MaskKind if found[kind.name] is not None)


def _mask_match(found: re.Match[str]) -> str:
    return f"{_kept_prefix(found)}\0{_kind_of(found)}"


def _kept_prefix(found: re.Match[str]) -> str:
    """Return what a masked value keeps: the name of a request id."""
    return found[0][: found.start("named") - found.start()] if found["named"] else ""
