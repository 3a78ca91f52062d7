"""Assembles a message body from its pieces, whatever its content."""

from __future__ import annotations

import hashlib

import msgspec

MAX_BODY_SIZE = 64 << 20
"""Largest body (or event) that is kept whole, bytes."""

TRUNCATED_SIZE = 64 << 10
"""Bytes kept of a larger body."""


class _BodyState(msgspec.Struct):
    limit: int
    keep: int
    data: bytes
    size: int
    truncated: bool
    began: int
    at: int
    start: int
    end: int


class BodyCollector:
    """Collects one body. Above `limit` bytes only the first `keep` bytes, the full size and the
    hash are kept.

    A hash cannot be saved: after `restore` of a body that was already truncated, `sha256` stays
    empty.
    """

    __slots__ = (
        "_hash",
        "_parts",
        "at",
        "began",
        "end",
        "keep",
        "limit",
        "size",
        "start",
        "truncated",
    )

    def __init__(self, limit: int = MAX_BODY_SIZE, keep: int = TRUNCATED_SIZE) -> None:
        self.limit = limit
        self.keep = keep
        self.size = 0
        """Full size, bytes."""
        self.truncated = False
        self.began = 0
        """Time the first piece arrived, ns; 0 before that."""
        self.at = 0
        """Time the last piece arrived, ns."""
        self.start = 0
        self.end = 0
        self._parts: list[bytes] = []
        self._hash: hashlib._Hash | None = None

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
        return self._hash.digest() if self._hash is not None else b""

    def save(self) -> dict[str, object]:
        """Plain values for `restore`."""
        state: dict[str, object] = {"data": self.data}
        for name in ("limit", "keep", "size", "truncated", "began", "at", "start", "end"):
            state[name] = getattr(self, name)
        return state

    @classmethod
    def restore(cls, state: dict[str, object]) -> BodyCollector:
        """Return the collector that `save` was called on. Raises msgspec.ValidationError on other
        values."""
        saved = msgspec.convert(state, _BodyState)
        collector = cls(saved.limit, saved.keep)
        collector.size, collector.truncated = saved.size, saved.truncated
        collector.began, collector.at = saved.began, saved.at
        collector.start, collector.end = saved.start, saved.end
        collector._parts = [saved.data] if saved.data else []
        return collector

    def _truncate_body(self) -> None:
        self.truncated = True
        whole = self.data
        self._hash = hashlib.sha256(whole)
        self._parts = [whole[: self.keep]]
