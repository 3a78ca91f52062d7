"""Marks on exchanges and frames for comparing, copying or exporting them, kept until the program
ends."""

from collections.abc import Mapping

import msgspec

from a2a_inspect.data.notes import note_mark
from a2a_proxy.model.values import Note
from a2a_proxy.recording.write.note_writer import NotePlace


class MarkedRow(msgspec.Struct, frozen=True):
    """An exchange or one of its frames."""

    exchange: int
    """Key of the exchange."""
    frame: int = 0
    """Id of the frame; 0 if the exchange is marked."""


class RowMarks:
    """The marked rows, in the order of marking."""

    def __init__(self) -> None:
        self._marked: dict[MarkedRow, None] = {}
        self.notes: Mapping[NotePlace, Note] = {}
        """Notes of the recording, by place."""

    def toggle_mark(self, row: MarkedRow) -> None:
        """Mark the row, or remove its mark."""
        if row in self._marked:
            del self._marked[row]
        else:
            self._marked[row] = None

    def marked_rows(self) -> list[MarkedRow]:
        """Return all marked rows, the oldest mark first."""
        return list(self._marked)

    def is_exchange_marked(self, key: int) -> bool:
        """Return whether an exchange is marked."""
        return MarkedRow(key) in self._marked

    def is_frame_marked(self, exchange: int, frame: int) -> bool:
        """Return whether a frame is marked."""
        return MarkedRow(exchange, frame) in self._marked

    def note_sign(self, place: NotePlace) -> str:
        """Return the sign of the note or bookmark at a place; empty without one."""
        note = self.notes.get(place)
        return note_mark(note) if note is not None else ""


def with_signs(text: str, marked: bool, noted: str = "") -> str:
    """Return a row's number after the signs of its note and mark."""
    return f"{noted}{'*' if marked else ''}{text}"
