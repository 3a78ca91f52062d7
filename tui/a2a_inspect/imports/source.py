"""An opened file of another program, of any format that can be imported."""

from collections.abc import Iterator
from typing import ClassVar, Protocol

from a2a_proxy.model.wire import Chunk


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
        """What the recording lacks because the file lacks it, in words; complete after the records
        have been read."""

    def read_chunks(self) -> Iterator[Chunk]:
        """Yield the records in order of time. Raises UserError."""
