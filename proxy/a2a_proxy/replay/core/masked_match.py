"""A masked match: a request that equals a recorded one except for values that differ in every
run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from a2a_proxy.protocol.text import make_visible
from a2a_proxy.recording.difference.values import DifferenceRow, ValueChange
from a2a_proxy.replay.core.masks import MaskKind, iter_masked, member_kind
from a2a_proxy.replay.core.miss import row_detail

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
        said = f"masked match: {self.request_text} equals {self.place} except for: {kinds}"
        if self.others:
            listed = ", ".join(self.others[:_MAX_PLACES]) + (
                ", ..." if len(self.others) > _MAX_PLACES else ""
            )
            said += f"; {listed} would match too, {self.place} is the first in recorded order"
        return make_visible(said)

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
