"""What a comparison gives: rows, each one difference, with the place of it on both sides."""

from __future__ import annotations

import json
import re
from enum import StrEnum
from typing import Any

import msgspec

Path = tuple[str | int, ...]
"""Names and positions from the root of a JSON value."""

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


class ValueChange(StrEnum):
    """What became of a value."""

    LEFT = "only left"
    RIGHT = "only right"
    CHANGED = "changed"
    MOVED = "moved"
    """The same value at another place of its list."""


class Ignored(StrEnum):
    """Why a difference does not count: two runs of one program have it as well."""

    NOT = ""
    ID = "id"
    """Another identifier, but the same one wherever the other side has its own."""
    TIME = "time"
    TRACE = "trace"
    SECRET = "credential"
    """Also the label that stands for one."""
    ADDRESS = "address"
    TRANSPORT = "transport"
    """Lengths, dates, who the software is, how bytes are carried."""
    DEFAULT = "default"
    """Left out on one side, and on the other what leaving it out means."""
    DIALECT = "dialect"
    """The sides speak different lines of the protocol, and this is how."""
    BINDING = "binding"
    """The sides carry their messages differently, and this is how."""
    ARTIFACT = "artifact"
    """How an artifact was cut into chunks; what differs in its text is told once, of the whole."""
    ORDER = "order"
    """Calls that ran at the same time began in another order."""
    CLIENT = "client"
    """The client broke the call off, and the agent was slower or faster than that."""
    ASKED = "asked"
    """Whoever compares has asked not to count it."""


class ExchangePart(StrEnum):
    """Which part of an exchange a row is about, in the order in which they are told."""

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
    """Where it is on the left, or would be; None of an item that only a list on the right has."""
    right: Path | None
    before: Any = None
    """The value on the left."""
    after: Any = None
    """The value on the right."""
    ignored: Ignored = Ignored.NOT
    part: ExchangePart = ExchangePart.REQUEST
    frames: tuple[int, int] = (-1, -1)
    """Number of the frame on either side; -1 where it has none, or there is none."""

    @property
    def counts(self) -> bool:
        """It is a difference unless canonical fields are asked for."""
        return not self.ignored


class CompareResult(msgspec.Struct, frozen=True):
    """What differs between two values."""

    rows: tuple[DifferenceRow, ...] = ()
    cut: tuple[str, ...] = ()
    """What was not compared, or only coarsely, and why; empty where all of it was."""

    @property
    def same(self) -> bool:
        """Nothing that counts differs, as far as it was compared."""
        return not any(row.counts for row in self.rows)


def format_path(path: Path) -> str:
    """`$.artifacts[0]["odd name"]`, as the filter language writes it."""
    return "$" + "".join(map(_step_text, path))


def _step_text(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if _PLAIN_NAME.fullmatch(step) else f"[{json.dumps(step, ensure_ascii=False)}]"
