"""What `show` was asked for: which exchanges, which of their frames, how much of each."""

from __future__ import annotations

import msgspec

from a2a_proxy.recording.reader import Recording
from a2a_proxy.recording.rows import ExchangeRow

Kept = dict[int, set[int]] | None
"""By key of an exchange the numbers of the frames that match a filter; None where there is no filter."""


class Wanted(msgspec.Struct, frozen=True):
    """What of a recording, and how much of it."""

    words: tuple[str, ...] = ()
    """Exchange numbers (`2`, or `1:2` with that of the session), frames (`2.5`), beginnings of task ids; empty: all."""
    payloads: bool = False
    raw: bool = False
    artifacts: bool = False
    """The content of each task's artifacts, put together from their chunks."""
    where: str = ""
    """An expression of the filter language: only frames that match."""

    def has(self, row: ExchangeRow) -> bool:
        """The exchange was asked for."""
        return not self.words or any(self._is(word, row) for word in self.words)

    def frames(self, row: ExchangeRow) -> set[int] | None:
        """The numbers of the frames that were asked for; None where all of the exchange is wanted."""
        named = [_split(word)[1] for word in self.words if self._is(word, row)]
        return None if None in named or not named else {seq for seq in named if seq is not None}

    @staticmethod
    def _is(word: str, row: ExchangeRow) -> bool:
        exchange = row.exchange
        if _split(word)[0] in (str(exchange.id), f"{row.session}:{exchange.id}"):
            return True
        return word == exchange.task_id or (len(word) >= 4 and exchange.task_id.startswith(word))


def _split(word: str) -> tuple[str, int | None]:
    """`#1:2.5`: the exchange's number and the frame's."""
    exchange, dot, seq = word.removeprefix("#").partition(".")
    return (exchange, int(seq)) if dot and seq.isascii() and seq.isdecimal() else (word.removeprefix("#"), None)


def named_frames(recording: Recording, rows: list[ExchangeRow], wanted: Wanted, kept: Kept) -> Kept:
    """The frames that match, or that were named; an exchange none of whose named frames is there has no entry."""
    if not any(wanted.frames(row) is not None for row in rows):
        return kept
    found: dict[int, set[int]] = {}
    for row in rows:
        named = wanted.frames(row)
        there = {each.frame.seq for each in recording.frames(row.key, payloads=False)}
        shown = there if named is None else there & named
        shown = shown if kept is None else shown & kept[row.key]
        if shown or named is None:
            found[row.key] = shown
    return found
