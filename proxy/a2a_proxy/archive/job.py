"""What a process that archives is told. Imports nothing heavy: the proxy itself says it."""

from __future__ import annotations

import msgspec


class ArchiveJob(msgspec.Struct, frozen=True):
    """What goes where."""

    path: str
    session: str
    url: str
    proxy: str
    every: float
    """Seconds after which what has come is put, however little it is."""


def encode_job(url: str, proxy: str, every: float) -> str:
    """The word of a command line that says where to; see `decode_job`."""
    return msgspec.json.encode((url, proxy, every)).decode()


def decode_job(path: str, session: str, word: str) -> ArchiveJob:
    """What such a word says, of a session."""
    return ArchiveJob(path, session, *msgspec.json.decode(word, type=tuple[str, str, float]))
