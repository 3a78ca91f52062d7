"""Job of a process that archives a live session.

Imports nothing heavy, because the proxy process encodes the job.
"""

from __future__ import annotations

import msgspec


class ArchiveJob(msgspec.Struct, frozen=True):
    """Source and destination of one archiving process."""

    path: str
    session: str
    url: str
    proxy: str
    every: float
    """Seconds after which pending rows are uploaded, however few they are."""


def encode_job(url: str, proxy: str, every: float) -> str:
    """Return the destination as one command-line argument; see `decode_job`."""
    return msgspec.json.encode((url, proxy, every)).decode()


def decode_job(path: str, session: str, word: str) -> ArchiveJob:
    """Return the job that archives `session` of the recording at `path` to the destination in `word`."""
    return ArchiveJob(path, session, *msgspec.json.decode(word, type=tuple[str, str, float]))
