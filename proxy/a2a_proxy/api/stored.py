"""Base classes of the objects that represent a row of a recording."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from a2a_proxy.recording.read.rows import ExchangeRow, FindingRow, FrameRow, SessionRow

if TYPE_CHECKING:
    from a2a_proxy.api.file import RecordingFile

Row = TypeVar("Row", SessionRow, ExchangeRow, FrameRow, FindingRow)


class StoredRow(Generic[Row]):
    """A row and its file."""

    def __init__(self, file: RecordingFile, row: Row) -> None:
        self._file: RecordingFile = file
        self._row: Row = row

    @property
    def file(self) -> str:
        """Short name of the file that contains it."""
        return self._file.member.name


Part = TypeVar("Part", ExchangeRow, FrameRow, FindingRow)


class OfSession(StoredRow[Part]):
    """A row that belongs to a session."""

    @property
    def session(self) -> int:
        """Number of its session within the file."""
        return self._row.session
