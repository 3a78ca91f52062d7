"""Definitions shared by the fast checks of JSON in all dialects."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from a2a_proxy.rules.facts.partial_decode import GateResult

Check = Callable[[bytes], GateResult]
"""Checks whether a payload is valid."""
PayloadResult = tuple[GateResult, int]
"""Result of a check, with the number of quotes expected in a payload without escapes; 0 if it must be encoded to
count.
"""
DECODE_ERRORS: PayloadResult = (False, 0)

_Decoded = TypeVar("_Decoded")

Id = Annotated[str, Meta(min_length=1)]
MaybeId = Id | UnsetType
Text = str | UnsetType
Flag = bool | UnsetType
FreeObject = dict[str, Any] | UnsetType
RpcId = str | int
Length = Annotated[int, Meta(ge=0, lt=2**31)] | UnsetType
MediaType = Annotated[str, Meta(pattern=r"^[a-z]+/[a-z0-9.+*-]+\Z")]
_DATE_PATTERN = (
    "(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    "|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    "|02-(?:0[1-9]|1[0-9]|2[0-8]))"
)
_TIME_PATTERN = "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
_UTC_TIMESTAMP = re.compile(rf"[12][0-9]{{3}}-{_DATE_PATTERN}T{_TIME_PATTERN}\.[0-9]{{3,9}}Z").fullmatch
_ZONED_TIMESTAMP = re.compile(
    rf"[12][0-9]{{3}}-{_DATE_PATTERN}T{_TIME_PATTERN}(?:\.[0-9]{{1,9}})?(?:Z|[+-][0-9]{{2}}:[0-9]{{2}})"
).fullmatch
Generation = Annotated[str, Meta(pattern=r"^[1-9][0-9]{0,17}\Z")] | UnsetType
Version = Literal["2.0"]


class StrictStruct(Struct, rename="camel", forbid_unknown_fields=True, gc=False):
    """An object with camel-case names and no other members."""


class PlainPart(StrictStruct):
    """A 1.0 part with text or data. Bytes and URLs need the full check."""

    text: Text = UNSET
    data: Any = UNSET
    metadata: FreeObject = UNSET
    filename: Text = UNSET
    media_type: MediaType | UnsetType = UNSET


Parts = Annotated[list[PlainPart], Meta(min_length=1)]
TEXT_PART_QUOTES = 4
"""Quotes of a part that has a text and no other member."""


def have_one_content(parts: list[PlainPart]) -> bool:
    """Whether each part has exactly one content."""
    for part in parts:  # noqa: SIM110 - all() takes twice as long
        if (part.text is UNSET) is (part.data is UNSET):
            return False
    return True


def is_utc(stamp: Text) -> bool:
    """Whether the timestamp is absent, or in UTC with milliseconds."""
    return stamp is UNSET or _UTC_TIMESTAMP(stamp) is not None


def is_zoned(stamp: Text) -> bool:
    """Whether the timestamp is absent or has a zone, which is all that 0.x requires."""
    return stamp is UNSET or _ZONED_TIMESTAMP(stamp) is not None


def has_matching_ids(message: Any, task_id: str, context_id: str) -> bool:
    """Whether the ids in a message are absent or equal to the ids of the enclosing object."""
    inner = message.task_id
    if inner is not UNSET and inner != task_id:
        return False
    inner = message.context_id
    return inner is UNSET or inner == context_id


def collect_texts(parts: list[PlainPart]) -> tuple[list[bytes], int]:
    """Return the texts of parts and the number of quotes of their members; empty if a part is more than text."""
    texts: list[bytes] = []
    quotes = 0
    for part in parts:
        text = part.text
        if text is UNSET or part.data is not UNSET or part.metadata is not UNSET:
            return [], 0
        texts.append(text.encode())
        quotes += TEXT_PART_QUOTES
        if part.media_type is not UNSET:
            quotes += 4
        if part.filename is not UNSET:
            quotes += 4
    return texts, quotes


def make_checker(kind: type[_Decoded], inspect: Callable[[_Decoded], PayloadResult]) -> Check:
    """Return a check that decodes strictly as `kind` and runs `inspect` for conditions that types cannot express."""
    decode, encode = msgspec.json.Decoder(kind).decode, msgspec.json.Encoder().encode

    def check(payload: bytes) -> GateResult:
        try:
            made = decode(payload)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return False
        seen, quotes = inspect(made)
        # A duplicate member is lost in decoding, which the number of quotes reveals. Without a backslash no quote is
        # inside a text; otherwise both sides escape quotes in the same way, except as \u0022.
        if quotes and _BACKSLASH_BYTE not in payload:
            return payload.count(_QUOTE_BYTE) == quotes and seen
        if not seen or b"\\u0022" in payload:
            return False
        return payload.count(_QUOTE_BYTE) == encode(made).count(_QUOTE_BYTE) and seen

    return check


_QUOTE_BYTE, _BACKSLASH_BYTE = ord('"'), ord("\\")
