"""Marks on exchanges and frames, kept for the sitting: what is compared, copied or exported next."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from a2a_inspect.data.notes import note_mark
from a2a_proxy.model.note import Note
from a2a_proxy.recording.write.note_writer import NotePlace


class Marked(msgspec.Struct, frozen=True):
    """An exchange or one of its frames."""

    exchange: int
    """Its key."""
    frame: int = 0
    """The id of the frame; 0 where the exchange itself is marked."""


class RowMarks:
    """What is marked, in the order of marking."""

    def __init__(self) -> None:
        self._all: dict[Marked, None] = {}
        self.notes: Mapping[NotePlace, Note] = {}
        """Those that the recording holds, by place."""

    def toggle(self, one: Marked) -> None:
        """Mark it, or take its mark away."""
        if one in self._all:
            del self._all[one]
        else:
            self._all[one] = None

    def listed(self) -> list[Marked]:
        """All of them, the oldest mark first."""
        return list(self._all)

    def exchange(self, key: int) -> bool:
        """Whether an exchange is marked."""
        return Marked(key) in self._all

    def frame(self, exchange: int, frame: int) -> bool:
        """Whether a frame is marked."""
        return Marked(exchange, frame) in self._all

    def noted(self, place: NotePlace) -> str:
        """The sign of a note or bookmark at a place; nothing where there is none."""
        note = self.notes.get(place)
        return note_mark(note) if note is not None else ""


def with_mark(text: str, marked: bool, noted: str = "") -> str:
    """A row's number with the signs of a note and of a mark before it."""
    return f"{noted}{'*' if marked else ''}{text}"
