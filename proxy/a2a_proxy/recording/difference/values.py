"""Results of a comparison: rows, each one difference, with its path on both sides."""

from __future__ import annotations

import json
import re
from enum import StrEnum
from typing import Any

import msgspec

Path = tuple[str | int, ...]
"""Names and indexes from the root of a JSON value."""

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


class ValueChange(StrEnum):
    """Kind of a change."""

    LEFT = "only left"
    RIGHT = "only right"
    CHANGED = "changed"
    MOVED = "moved"
    """The same value at another index of its list."""


class Ignored(StrEnum):
    """Reason why a difference does not count: it also occurs between two runs of one program."""

    NOT = ""
    ID = "id"
    """A different identifier, used consistently wherever the other side has its own."""
    TIME = "time"
    TRACE = "trace"
    SECRET = "credential"
    """Also the label that replaces a credential."""
    ADDRESS = "address"
    TRANSPORT = "transport"
    """Lengths, dates, names of software, encodings of bytes."""
    DEFAULT = "default"
    """Omitted on one side, and the default value on the other."""
    DIALECT = "dialect"
    """A consequence of the different dialects of the sides."""
    BINDING = "binding"
    """A consequence of the different bindings of the sides."""
    ARTIFACT = "artifact"
    """The cuts of an artifact into chunks. A difference in its text is shown once, for the whole
    text."""
    ORDER = "order"
    """Calls that ran at the same time began in a different order."""
    CLIENT = "client"
    """The client cancelled the call, and the agent was slower or faster than that."""
    ASKED = "asked"
    """The caller of the comparison excluded it."""


class ExchangePart(StrEnum):
    """Part of an exchange, in the order of display."""

    CALL = "call"
    FINDINGS = "findings"
    REQUEST = "request"
    ARTIFACTS = "artifacts"
    EVENTS = "events"
    HEADERS = "headers"


class DifferenceRow(msgspec.Struct, frozen=True):
    """One difference."""

    change: ValueChange
    left: Path | None
    """Path on the left, or where it would be; None for a list item that only the right side has."""
    right: Path | None
    before: Any = None
    """The value on the left."""
    after: Any = None
    """The value on the right."""
    ignored: Ignored = Ignored.NOT
    part: ExchangePart = ExchangePart.REQUEST
    frames: tuple[int, int] = (-1, -1)
    """Number of the frame on either side; -1 without one."""

    @property
    def counts(self) -> bool:
        """Whether the difference counts unless canonical fields are requested."""
        return not self.ignored


class CompareResult(msgspec.Struct, frozen=True):
    """Differences between two values."""

    rows: tuple[DifferenceRow, ...] = ()
    cut: tuple[str, ...] = ()
    """Values that were not compared, or only coarsely, with the reason; empty after a full
    comparison."""

    @property
    def same(self) -> bool:
        """Whether no difference that counts was found, as far as the values were compared."""
        return not any(row.counts for row in self.rows)


def format_path(path: Path) -> str:
    """Return `$.artifacts[0]["odd name"]`, as in the filter language."""
    return "$" + "".join(map(_step_text, path))


def _step_text(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return (
        f".{step}" if _PLAIN_NAME.fullmatch(step) else f"[{json.dumps(step, ensure_ascii=False)}]"
    )
