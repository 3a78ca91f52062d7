"""Assembles a message body from its pieces, whatever its content."""

import hashlib
from typing import Any

from a2a_proxy.model.saved_state import State

MAX_BODY_SIZE = 64 << 20
"""Largest body (or event) that is kept whole, bytes."""

TRUNCATED_SIZE = 64 << 10
"""Bytes kept of a larger body."""


class BodyCollector(State):
    """Collects one body. Above `limit` bytes only the first `keep` bytes, the full size and the
    hash are kept.

    A hash cannot be saved: after a restart in a body that was already truncated, `sha256` stays
    empty.
    """

    limit: int = MAX_BODY_SIZE
    keep: int = TRUNCATED_SIZE
    size: int = 0
    """Full size, bytes."""
    truncated: bool = False
    began: int = 0
    """Time the first piece arrived, ns; 0 before that."""
    at: int = 0
    """Time the last piece arrived, ns."""
    start: int = 0
    end: int = 0
    _parts: list[bytes] = []
    _hash: Any = None

    def add(self, data: bytes, at: int, start: int, end: int) -> None:
        """Add the next piece, which arrived at `at` (ns) in the byte range `start` to `end` of its
        direction."""
        if not self.began:
            self.began, self.start = at, start
        self.at, self.end = at, end
        self.size += len(data)
        if not self.truncated:
            self._parts.append(data)
            if self.size > self.limit:
                self._truncate_body()
        elif self._hash is not None:
            self._hash.update(data)

    @property
    def data(self) -> bytes:
        """The body, or its first `keep` bytes if it is truncated."""
        if len(self._parts) > 1:
            self._parts = [b"".join(self._parts)]
        return self._parts[0] if self._parts else b""

    @property
    def sha256(self) -> bytes:
        """SHA-256 of the whole body, 32 bytes; empty if the body is not truncated or the hash is
        unknown."""
        return bytes(self._hash.digest()) if self._hash is not None else b""

    def _truncate_body(self) -> None:
        self.truncated = True
        whole = self.data
        self._hash = hashlib.sha256(whole)
        self._parts = [whole[: self.keep]]
