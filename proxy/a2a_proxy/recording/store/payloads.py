"""Reading of payload bytes."""

import sqlite3
from collections import OrderedDict, deque

from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.store.long_runs import insert_pieces
from a2a_proxy.recording.store.zstd import ZstdError, decompress_frame

_MAX_CACHED_BLOCKS = 8
"""Number of decompressed blocks that are cached: 8 MiB."""
_MAX_BYTES = 256 << 20
"""Maximum bytes of a payload, a block or a blob. A stored payload has 64 MiB at most, and a block
may exceed its size by one payload.
"""


class Payloads:
    """Reads addresses of blocks, and blobs. One instance per connection to the file."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._blocks: OrderedDict[int, bytes] = OrderedDict()
        self._tails: deque[tuple[int, int, bytes]] = deque(maxlen=_MAX_CACHED_BLOCKS)
        """The rows of open blocks that were read last: block, offset and bytes of each."""
        self._broken: set[str] = set()
        """Blocks and blobs that could not be decompressed, so that this is not attempted again for
        every frame."""

    def read(self, block: int | None, offset: int | None, size: int | None) -> bytes:
        """Return bytes of a block, or no bytes for NULLs. Raises RecordingError if the file does
        not have them."""
        if not block or offset is None or size is None:
            return b""
        data = self._blocks.get(block)
        if data is None:
            raw = self._read_tail(block, offset, size)
            if len(raw) == size:
                return raw
            data = self._load_block(block)
            if data is None:
                return self._read_open_block(block, offset, size)
        raw = data[offset : offset + size]
        if len(raw) != size:
            raise RecordingError(
                f"block {block} of the recording is too short", "the file is damaged"
            )
        return raw

    def read_whole(self, frame: int, rest: bytes) -> bytes:
        """Return the payload of a frame that has pieces. `rest` is the part of it in the block."""
        pieces: list[tuple[int, bytes]] = []
        size = 0
        rows = self._db.execute(
            "SELECT at, blob FROM piece WHERE frame = ? ORDER BY position", (frame,)
        ).fetchall()
        for at, blob in rows:
            data = self.read_blob(blob)
            size += len(data)
            if size > _MAX_BYTES:
                raise RecordingError(
                    f"frame {frame} of the recording has too many pieces", "the file is damaged"
                )
            if at is None:
                rest = data
            else:
                pieces.append((at, data))
        return insert_pieces(rest, pieces) if pieces else rest

    def read_blob(self, number: int) -> bytes:
        """Return the bytes of a blob. Raises RecordingError."""
        row = self._db.execute("SELECT codec, data FROM blob WHERE id = ?", (number,)).fetchone()
        if row is None:
            raise RecordingError(
                f"blob {number} of the recording is missing", "the file is damaged"
            )
        codec, data = row
        return (
            self._decompress_payload(data, f"blob {number}")
            if codec == "zstd"
            else _check_bytes(data, f"blob {number}")
        )

    def _load_block(self, block: int) -> bytes | None:
        """Return a closed block and cache it, or None for the open block, which still grows."""
        row = self._db.execute("SELECT data FROM block WHERE id = ?", (block,)).fetchone()
        if row is None or row[0] is None:
            return None
        data = self._blocks[block] = self._decompress_payload(row[0], f"block {block}")
        if len(self._blocks) > _MAX_CACHED_BLOCKS:
            self._blocks.popitem(last=False)
        return data

    def _decompress_payload(self, data: object, what: str) -> bytes:
        try:
            if what in self._broken:
                raise ZstdError("as before")
            return decompress_frame(_check_bytes(data, what), _MAX_BYTES)
        except ZstdError as error:
            self._broken.add(what)
            raise RecordingError(
                f"{what} of the recording cannot be read: {error}", "the file is damaged"
            ) from None

    def _read_open_block(self, block: int, offset: int, size: int) -> bytes:
        """Return bytes of the open block. One commit wrote them, so they are all in one row."""
        find = (
            "SELECT offset, data FROM block_tail WHERE block = ? AND offset <= ? ORDER BY offset "
            "DESC LIMIT 1"
        )
        row = self._db.execute(find, (block, offset)).fetchone()
        if row is not None:
            self._tails.append((block, row[0], _check_bytes(row[1], f"block {block}")))
        raw = self._read_tail(block, offset, size)
        if len(raw) == size:
            return raw
        data = self._load_block(block)  # the block was closed between the two queries
        if data is None or len(data) < offset + size:
            raise RecordingError(
                f"block {block} of the recording is missing", "the file is damaged"
            )
        return data[offset : offset + size]

    def _read_tail(self, block: int, offset: int, size: int) -> bytes:
        """Return bytes of a row that was read before, or fewer if they are in none."""
        for known, start, data in self._tails:
            if known == block and start <= offset < start + len(data):
                return data[offset - start : offset - start + size]
        return b""


def _check_bytes(data: object, source: str) -> bytes:
    if not isinstance(data, bytes):
        raise RecordingError(f"{source} of the recording holds no bytes", "the file is damaged")
    return data
