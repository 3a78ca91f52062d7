"""An opened file of another program, of any format that can be imported."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Protocol

from a2a_proxy.model.chunk import Chunk


def check_time(at: int) -> int:
    """Return `at`, in ns since the epoch. Raises ValueError: it does not fit in the 63 bits of a recording."""
    if not 0 <= at < 1 << 63:
        raise ValueError("a time is before 1970 or after 2262")
    return at


class ImportSource(Protocol):
    """A file as the records of a journal."""

    label: ClassVar[str]
    """The format in words: `HAR file`."""
    started: int
    """Time of the first record, ns since the epoch."""
    upstreams: tuple[str, ...]
    """Addresses of the servers, the first ones."""

    @property
    def lacks(self) -> tuple[str, ...]:
        """What the recording lacks because the file lacks it, in words; complete after the records have been read."""

    def read_chunks(self) -> Iterator[Chunk]:
        """Yield the records in order of time. Raises UserError."""
