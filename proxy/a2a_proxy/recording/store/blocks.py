"""Storage of payload bytes: small payloads together in compressed blocks, large ones as blobs
stored once.

An address is (block, offset, size). The pieces of the open block are rows of `block_tail`, so that
each commit adds only its own bytes; a full block is compressed into `block` in the same
transaction.
"""

import hashlib
import sqlite3

from a2a_proxy.recording.store.zstd import make_compressor

BLOCK_SIZE = 1_048_576
"""Bytes of a full block. A payload is never split, so a block may be larger by one payload.

Half of this size costs 3 bytes of 150 more per frame on disk, a quarter costs 10; but reading one
payload takes 0.6 ms with this size, and half or a quarter of that with the smaller ones.
"""
_LEVEL = 4
"""At this block size it is as fast as level 3, and the result is 1 % smaller."""

Address = tuple[int, int, int]


class Blocks:
    """The blocks of one session. Use inside a write transaction, and call `flush` before its
    commit."""

    def __init__(self, db: sqlite3.Connection, session: int) -> None:
        self._db = db
        self._session = session
        self._compress = make_compressor(_LEVEL)
        self._parts: list[bytes] = []
        self._block = 0
        self._size = 0
        self._stored = self._stored_parts = 0
        """Number of bytes, and of parts, that the file already has."""

    def store_bytes(self, data: bytes) -> Address:
        """Add these bytes and return their address."""
        if not self._block:
            cursor = self._db.execute(
                "INSERT INTO block (session, size) VALUES (?, 0)", (self._session,)
            )
            self._block = cursor.lastrowid or 0
        offset, size = self._size, len(data)
        address = (self._block, offset, size)
        self._parts.append(data)
        self._size = offset + size
        if self._size >= BLOCK_SIZE:
            self._close_block()
        return address

    def flush(self) -> None:
        """Write the bytes added to the open block since the last flush."""
        if self._size > self._stored:
            new = b"".join(self._parts[self._stored_parts :])
            self._db.execute(
                "INSERT INTO block_tail VALUES (?, ?, ?)", (self._block, self._stored, new)
            )
            self._stored, self._stored_parts = self._size, len(self._parts)

    def close(self) -> None:
        """Compress the open block. No more bytes are added afterwards."""
        if self._block:
            self._close_block()

    def reload_block(self) -> None:
        """Load the open block from the file (after a rollback, or left by an earlier recorder)."""
        found = self._db.execute(
            "SELECT id FROM block WHERE session = ? AND data IS NULL", (self._session,)
        ).fetchone()
        self._block = found[0] if found else 0
        rows = self._db.execute(
            "SELECT data FROM block_tail WHERE block = ? ORDER BY offset", (self._block,)
        )
        data = b"".join(row[0] for row in rows)
        self._parts = [data] if data else []
        self._size = self._stored = len(data)
        self._stored_parts = len(self._parts)

    def _close_block(self) -> None:
        data = self._compress(b"".join(self._parts))
        self._db.execute(
            "UPDATE block SET size = ?, data = ? WHERE id = ?", (self._size, data, self._block)
        )
        if self._stored:
            self._db.execute("DELETE FROM block_tail WHERE block = ?", (self._block,))
        self._parts = []
        self._block = self._size = self._stored = self._stored_parts = 0


class Blobs:
    """Content-addressed bytes, shared by all sessions of a file. Use inside a write transaction."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._compress = make_compressor()

    def store_bytes(self, data: bytes) -> int:
        """Return the row number of these bytes, storing them if the file does not have them."""
        digest = hashlib.sha256(data).digest()
        found = self._db.execute("SELECT id FROM blob WHERE sha256 = ?", (digest,)).fetchone()
        if found:
            return int(found[0])
        packed = self._compress(data)
        codec, kept = ("zstd", packed) if len(packed) < len(data) else ("raw", data)
        row = (digest, len(data), codec, kept)
        number = self._db.execute(
            "INSERT INTO blob (sha256, size, codec, data) VALUES (?, ?, ?, ?)", row
        ).lastrowid
        assert number is not None
        return number
