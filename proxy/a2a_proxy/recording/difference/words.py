"""Differences of two texts, by words."""

import re
from collections.abc import Iterator

import msgspec

from a2a_proxy.recording.difference.fields import ValueChange
from a2a_proxy.recording.difference.sequences import align_sequences

MAX_CHARS = 262_144
"""Characters of each text that are compared by words."""
_WORD_PATTERN = re.compile(r"\s+|\w+(?:[-.]\w+)*|[^\w\s]")
"""Identifiers with hyphens are one word, and so are versions and host names."""


class WordRun(msgspec.Struct, frozen=True):
    """A run of words that both texts have, or only one of them."""

    change: ValueChange | None
    """None if both texts have it."""
    text: str
    left: int
    """Offset of its beginning in the left text, in characters, or where it would begin."""
    right: int


def compare_texts(left: str, right: str) -> tuple[WordRun, ...]:
    """Return the runs in order.

    The runs of the left text and of both together form the left text; likewise on the right.

    Text after MAX_CHARS is one run of both sides if equal, else one run of each side.
    """
    words = _WORD_PATTERN.findall(left[:MAX_CHARS]), _WORD_PATTERN.findall(right[:MAX_CHARS])
    pieces: list[WordRun] = []
    done = [0, 0]
    at = [0, 0]

    def take(change: ValueChange | None, ends: tuple[int, int]) -> None:
        side = 1 if change is ValueChange.RIGHT else 0
        if text := "".join(words[side][done[side] : ends[side]]):
            pieces.append(WordRun(change, text, at[0], at[1]))
            for number in (0, 1) if change is None else (side,):
                at[number] += len(text)
                done[number] = ends[number]

    for first, last in _pair_runs(align_sequences(*words).pairs):
        take(ValueChange.LEFT, first)
        take(ValueChange.RIGHT, first)
        take(None, last)
    ends = len(words[0]), len(words[1])
    take(ValueChange.LEFT, ends)
    take(ValueChange.RIGHT, ends)
    rest, other = left[MAX_CHARS:], right[MAX_CHARS:]
    for change, tail in (
        ((None, rest),) if rest == other else ((ValueChange.LEFT, rest), (ValueChange.RIGHT, other))
    ):
        if tail:
            pieces.append(WordRun(change, tail, at[0], at[1]))
            at[0] += len(tail) if change is ValueChange.LEFT else 0
    return tuple(_join_runs(pieces))


def _pair_runs(pairs: list[tuple[int, int]]) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Yield runs of neighbouring pairs as (first, after the last)."""
    first: tuple[int, int] | None = None
    last = (0, 0)
    for i, j in pairs:
        if first is not None and (i, j) != last:
            yield first, last
            first = None
        first = first or (i, j)
        last = (i + 1, j + 1)
    if first is not None:
        yield first, last


def _join_runs(pieces: list[WordRun]) -> Iterator[WordRun]:
    """Merge two differences that are separated only by a space, which is easier to read."""
    waiting: list[WordRun] = []
    for number, piece in enumerate(pieces):
        between = 0 < number < len(pieces) - 1
        if piece.change is None and not (between and piece.text.isspace()):
            yield from _merge_runs(waiting)
            waiting = []
            yield piece
        else:
            waiting.append(piece)
    yield from _merge_runs(waiting)


def _merge_runs(pieces: list[WordRun]) -> Iterator[WordRun]:
    """Yield at most one run of either side."""
    if not pieces:
        return
    first = pieces[0]
    for side, other in (
        (ValueChange.LEFT, ValueChange.RIGHT),
        (ValueChange.RIGHT, ValueChange.LEFT),
    ):
        if text := "".join(piece.text for piece in pieces if piece.change is not other):
            left = first.left if side is ValueChange.LEFT else pieces[-1].left
            yield WordRun(side, text, left, first.right)
