"""What all imported files have: their records, the agents in them, and what they lack."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from a2a_proxy.model.chunk import Chunk


class ImportSource(Protocol):
    """A file to import. Raises UserError in every method if the file cannot be used."""

    @property
    def started(self) -> int:
        """Time of the first record, ns since the epoch."""

    @property
    def kind(self) -> str:
        """The kind of the file, in words."""

    @property
    def has_silence(self) -> bool:
        """Whether times without records are times without traffic."""

    @property
    def upstreams(self) -> tuple[str, ...]:
        """Addresses of the servers in the file, each once."""

    def read_chunks(self) -> Iterator[Chunk]:
        """Yield the records in order of time, without END."""

    @property
    def lacks(self) -> tuple[str, ...]:
        """What the recording lacks because the file lacks it, in words; complete after `read_chunks`."""
