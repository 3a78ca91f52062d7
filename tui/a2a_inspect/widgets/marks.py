"""Marks on exchanges and frames, kept for the sitting: what is compared, copied or exported next."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from a2a_inspect.data.notes import note_mark
from a2a_proxy.model.note import Note
from a2a_proxy.recording.write.note_writer import NotePlace


class MarkedRow(msgspec.Struct, frozen=True):
    """An exchange or one of its frames."""

    exchange: int
    """Its key."""
    frame: int = 0
    """The id of the frame; 0 where the exchange itself is marked."""


class RowMarks:
    """What is marked, in the order of marking."""

    def __init__(self) -> None:
        self._marked: dict[MarkedRow, None] = {}
        self.notes: Mapping[NotePlace, Note] = {}
        """Those that the recording holds, by place."""

    def toggle(self, row: MarkedRow) -> None:
        """Mark it, or take its mark away."""
        if row in self._marked:
            del self._marked[row]
        else:
            self._marked[row] = None

    def marked_rows(self) -> list[MarkedRow]:
        """All of them, the oldest mark first."""
        return list(self._marked)

    def is_exchange_marked(self, key: int) -> bool:
        """Whether an exchange is marked."""
        return MarkedRow(key) in self._marked

    def is_frame_marked(self, exchange: int, frame: int) -> bool:
        """Whether a frame is marked."""
        return MarkedRow(exchange, frame) in self._marked

    def note_sign(self, place: NotePlace) -> str:
        """The sign of a note or bookmark at a place; nothing where there is none."""
        note = self.notes.get(place)
        return note_mark(note) if note is not None else ""


def with_signs(text: str, marked: bool, noted: str = "") -> str:
    """A row's number with the signs of a note and of a mark before it."""
    return f"{noted}{'*' if marked else ''}{text}"
