"""A miss: a request, or a message within a stream, for which the recording has no answer. In text
and as JSON.

A masked match: a request that equals a recorded one except for values that differ in every
run.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import Any

import msgspec

from a2a_proxy.protocol.text import make_visible
from a2a_proxy.recording.difference.fields import DifferenceRow, ValueChange, format_path
from a2a_proxy.replay.core.masks import MaskKind, iter_masked, member_kind
from a2a_proxy.replay.core.match_rules import MATCHER_STEP

DETAIL_TYPE = "a2a-replay-miss"
_MAX_ROWS = 8
"""Maximum number of differences listed."""
_MAX_VALUE_CHARS = 120
"""Maximum number of characters of a value."""


class MissKind(StrEnum):
    """Why there is no answer."""

    UNKNOWN = "unknown-operation"
    """The recording has no call of this operation."""
    DIFFERS = "arguments-differ"
    """The recording has calls of this operation, but none with this request."""
    EXHAUSTED = "exhausted"
    """The recording has matching calls, but all of them have been played."""
    REFUSED = "not-served"
    """A call matched, but it cannot be served, for example because the end of its answer was not
    captured."""
    DIVERGED = "diverged"
    """A call matched, but within the stream the client sent or did something else."""


class Miss(msgspec.Struct, frozen=True, kw_only=True):
    """The request, the nearest recorded call, the differences, and hints."""

    kind: MissKind
    operation: str
    request_text: str
    """The request in one line of text."""
    nearest: str = ""
    """Place of the nearest recorded call or line: `#3`, `#3.4`; empty if there is none."""
    rows: tuple[DifferenceRow, ...] = ()
    """The differences; left is recorded, right is the request."""
    reason: str = ""
    """The reason in words, if it is not a difference of contents."""
    known_operations: tuple[str, ...] = ()
    """Operations of the recording with their number of calls: `SendMessage x2`."""
    recording: str = ""
    hints: tuple[str, ...] = ()

    def full_text(self) -> str:
        """Return the miss as text of several lines, without control characters."""
        hints = [f"  hint: {make_visible(hint)}" for hint in self.hints]
        return "\n".join([self.first_line, *self._reason_lines(), *hints])

    def allowed_text(self) -> str:
        """Return the text of a miss that was answered nevertheless, without hints."""
        title = make_visible(f"answered nevertheless ({self.kind}): {self.request_text}")
        return "\n".join([title, *self._reason_lines()])

    @property
    def first_line(self) -> str:
        """The first line, for a log or a status message."""
        return make_visible(f"replay miss ({self.kind}): {self.request_text}")

    def error_detail(self) -> dict[str, Any]:
        """Return the detail of the error that refuses the call, as JSON."""
        return {
            "@type": DETAIL_TYPE,
            "kind": str(self.kind),
            "operation": self.operation,
            "asked": self.request_text,
            "nearest": self.nearest,
            "why": self.reason,
            "differences": [row_detail(row) for row in self.rows[:_MAX_ROWS]],
            "recording": self.recording,
        }

    def _reason_lines(self) -> list[str]:
        lines = [f"  {self.reason}"] if self.reason else []
        if self.nearest and self.rows:
            lines.append(f"  nearest: {self.nearest}, which differs in:")
            lines += [f"    {_row_text(row)}" for row in self.rows[:_MAX_ROWS]]
            if len(self.rows) > _MAX_ROWS:
                lines.append(f"    and {len(self.rows) - _MAX_ROWS} more")
        elif self.nearest:
            lines.append(f"  nearest: {self.nearest}")
        if self.known_operations:
            lines.append(f"  recorded: {', '.join(self.known_operations)}")
        return [make_visible(line) for line in lines]


def _row_text(row: DifferenceRow) -> str:
    path = row.right or row.left or ()
    if path[:1] == (MATCHER_STEP,):
        return f"matcher {path[-1]}: {row.after}"
    place = format_path(path)
    if row.change is ValueChange.LEFT:
        return f"{place}: recorded {_value_text(row.before)}, not requested"
    if row.change is ValueChange.RIGHT:
        return f"{place}: requested {_value_text(row.after)}, not recorded"
    if row.change is ValueChange.MOVED:
        return f"{place}: {_value_text(row.after)} is at another position"
    return f"{place}: recorded {_value_text(row.before)}, requested {_value_text(row.after)}"


def _value_text(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return (
        text
        if len(text) <= _MAX_VALUE_CHARS
        else f"{text[:_MAX_VALUE_CHARS]}... ({len(text)} characters)"
    )


def row_detail(row: DifferenceRow) -> dict[str, Any]:
    """Return a difference as JSON."""
    return {
        "path": format_path(row.right or row.left or ()),
        "recorded": row.before,
        "asked": row.after,
    }


_MAX_PLACES = 8
"""Maximum number of calls listed."""


class MaskedMatch(msgspec.Struct, frozen=True, kw_only=True):
    """The report of a masked match."""

    place: str
    """The call, or the line of a stream, that answers."""
    operation: str
    request_text: str
    """The request in one line of text."""
    rows: tuple[DifferenceRow, ...]
    """The masked differences; left is recorded, right is the request."""
    pairs: tuple[tuple[str, str], ...] = ()
    """The recorded and the live value of each masked UUID and request id; answers use the live
    one."""
    others: tuple[str, ...] = ()
    """The other calls that match and have not been played, in recorded order."""

    @property
    def text(self) -> str:
        """The report in one line, without control characters."""
        kinds = ", ".join(
            sorted({str(kind) for row in self.rows for kind in _differing_kinds(row)})
        )
        note = f"masked match: {self.request_text} equals {self.place} except for: {kinds}"
        if self.others:
            listed = ", ".join(self.others[:_MAX_PLACES]) + (
                ", ..." if len(self.others) > _MAX_PLACES else ""
            )
            note += f"; {listed} would match too, {self.place} is the first in recorded order"
        return make_visible(note)

    def detail(self) -> dict[str, Any]:
        """Return the report as JSON."""
        return {
            "place": self.place,
            "operation": self.operation,
            "asked": self.request_text,
            "others": list(self.others),
            "differences": [row_detail(row) for row in self.rows],
        }


def masked_pairs(rows: tuple[DifferenceRow, ...]) -> Iterator[tuple[str, str]]:
    """Yield the recorded and the live value of each UUID and request id that the rows mask."""
    for row in rows:
        for (kind, recorded), (other, live) in _paired_masks(row):
            if kind is other and kind in (MaskKind.UUID, MaskKind.REQUEST):
                yield recorded, live


def _paired_masks(
    row: DifferenceRow,
) -> Iterator[tuple[tuple[MaskKind, str], tuple[MaskKind, str]]]:
    if isinstance(row.before, str) and isinstance(row.after, str):
        yield from zip(iter_masked(row.before), iter_masked(row.after), strict=False)


def _differing_kinds(row: DifferenceRow) -> Iterator[MaskKind]:
    name = next(
        (step for step in reversed(row.right or row.left or ()) if isinstance(step, str)), ""
    )
    kind = member_kind(name, row.before) if row.change is ValueChange.CHANGED else None
    yield from (
        [one[0] for one, other in _paired_masks(row) if one[1] != other[1]]
        if kind is None
        else [kind]
    )
