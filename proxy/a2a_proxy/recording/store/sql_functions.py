"""SQL functions over a recording; `sqlite_utils_plugin` registers them for `sqlite-utils`.

`payload(block, offset, size)` and `payload(frame_id)` return bytes, or NULL if there is no payload.
`message_id(frame_id)` returns a frame's message id as text, or NULL if it has none.
"""

import sqlite3
from collections.abc import Callable
from typing import Any

from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.store.codec import unpack_ident
from a2a_proxy.recording.store.payloads import Payloads

_MESSAGE = "SELECT message FROM frame WHERE id = ?"
_FRAME = (
    "SELECT block, offset, size, flags >> 5 & 1 FROM frame JOIN shape ON shape.id = frame.shape "
    "WHERE frame.id = ?"
)


def register_functions(db: sqlite3.Connection, payloads: Payloads | None = None) -> None:
    """Register the functions on a connection."""
    read = payloads or Payloads(db)

    def at(block: int | None, offset: int | None, size: int | None) -> bytes | None:
        return read.read(block, offset, size) if block else None

    def read_frame(frame: int) -> bytes | None:
        row = db.execute(_FRAME, (frame,)).fetchone()
        if row is None:
            return None
        rest = read.read(*row[:3])
        return read.read_whole(frame, rest) if row[3] else rest

    def message(frame: int) -> str | None:
        found = db.execute(_MESSAGE, (frame,)).fetchone()
        if found is None or found[0] is None:
            return None
        if not isinstance(found[0], int):
            return unpack_ident(found[0]).encode("utf-8", "replace").decode()
        data = read_frame(frame)
        return data[found[0] : found[0] + 36].decode() if data else None

    db.create_function("payload", 3, _null_on_damage(at), deterministic=True)
    db.create_function("payload", 1, _null_on_damage(read_frame))
    db.create_function("message_id", 1, _null_on_damage(message))


_Function = Callable[..., bytes | str | None]


def _null_on_damage(function: _Function) -> _Function:
    """Wrap a function so that it returns NULL if the file is damaged, and a query still shows the
    other rows."""

    def call(*arguments: Any) -> bytes | str | None:
        try:
            return function(*arguments)
        except RecordingError:
            return None

    return call
