"""Masks of the values that differ in every run of a program: UUIDs, ISO dates and times, epoch times, request ids."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Any

from a2a_proxy.recording.difference.ids import WORD_PATTERN


class MaskKind(StrEnum):
    """What a mask stands for."""

    UUID = "UUID"
    DATE = "date"
    TIME = "time"
    DATE_TIME = "date and time"
    EPOCH = "epoch time"
    REQUEST = "request id"


_ZONE = r"(?:Z|[+-]\d\d:?\d\d)?"
_CLOCK = r"(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:[.,]\d{1,9})?)?" + _ZONE
_DATE = r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])"
_PATTERNS = {
    MaskKind.REQUEST: (
        r"""(?<![0-9A-Za-z])(?:request|req|correlation|trace)(?:[ _-]?id["']?[ ]?(?:is|[:=#])?|[ ]?\#)[ ]?["']?"""
        r"(?P<named>(?=[\w.-]*\d)[0-9A-Za-z][\w.-]*(?<=\w))"
        r"|(?<![0-9A-Za-z\0])(?:request|req)[_-](?=[0-9A-Za-z]*\d)[0-9A-Za-z]+(?:[_-][0-9A-Za-z]+)*"
    ),
    MaskKind.UUID: (
        r"(?<![0-9A-Za-z\0])(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32})(?![0-9A-Za-z])"
    ),
    MaskKind.DATE_TIME: rf"(?<!\d)(?<!\d-)(?:{_DATE}[T ]{_CLOCK}|\d{{8}}T\d{{6}}(?:\.\d{{1,9}})?{_ZONE})(?![\d:])",
    MaskKind.DATE: rf"(?<!\d)(?<!\d-)(?:{_DATE}|\d{{4}}-W[0-5]\d(?:-[1-7])?)(?!-?\d)",
    MaskKind.TIME: rf"(?<![\d:.]){_CLOCK}(?![\d:])",
    # From 2014 to 2033, in s, ms, us or ns: nearly all other numbers have fewer digits.
    MaskKind.EPOCH: r"(?<![0-9A-Za-z_.,\0-])1[4-9]\d{8}(?:\d{3}|\d{6}|\d{9})?(?:\.\d+)?(?![0-9A-Za-z_]|[.,]\d)",
}
_MASKED = re.compile(
    "|".join(f"(?P<{kind.name}>{pattern})" for kind, pattern in _PATTERNS.items()), re.IGNORECASE | re.ASCII
)
_REQUEST_MEMBERS = frozenset({"requestid", "xrequestid", "correlationid", "xcorrelationid"})
"""Names of JSON members with a request id, in lower case and without `_` and `-`."""


def mask_text(text: str) -> str:
    """Return a text with a mask in place of each value that differs in every run. Other numbers stay."""
    return _MASKED.sub(_mask_match, text)


def mask_members(value: Any, name: str = "", depth: int = 0) -> Any:
    """Return a JSON value with masks in place of numbers that are epoch times, and of members that are request ids.

    Its texts are not masked, because they may contain identifiers of the conversation.
    """
    if isinstance(value, dict):
        return {key: mask_members(item, key, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [mask_members(item, name, depth + 1) for item in value]
    if isinstance(value, bool) or not isinstance(value, str | int | float) or not value:
        return value
    if name and name.lower().replace("_", "").replace("-", "") in _REQUEST_MEMBERS:
        return f"\0{MaskKind.REQUEST}"
    found = None if isinstance(value, str) else _MASKED.fullmatch(str(value))
    return value if found is None else f"\0{_kind_of(found)}"


def coarse_text(text: str) -> str:
    """Return a text without masked values and long words: the same for two texts that are equal after masking, whatever
    identifiers they name."""
    return WORD_PATTERN.sub("", _MASKED.sub(_kept_prefix, text))


def iter_masked(text: str) -> Iterator[tuple[MaskKind, str]]:
    """Yield kind and text of each value of a text that `mask_text` masks."""
    for found in _MASKED.finditer(text):
        yield _kind_of(found), found["named"] or found[0]


def _kind_of(found: re.Match[str]) -> MaskKind:
    return next(kind for kind in MaskKind if found[kind.name] is not None)


def _mask_match(found: re.Match[str]) -> str:
    return f"{_kept_prefix(found)}\0{_kind_of(found)}"


def _kept_prefix(found: re.Match[str]) -> str:
    """Return what a masked value keeps: the name of a request id."""
    return found[0][: found.start("named") - found.start()] if found["named"] else ""
