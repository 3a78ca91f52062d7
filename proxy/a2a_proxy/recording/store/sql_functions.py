"""SQL functions over a recording; `sqlite_utils_plugin` gives them to that tool.

`payload(block, offset, size)` and `payload(frame_id)` give octets; both are NULL where there are none.
`message_id(frame_id)` gives a frame's message id, as text; NULL where it has none.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.store.codec import unpack_ident
from a2a_proxy.recording.store.payloads import Payloads

_MESSAGE = "SELECT message FROM frame WHERE id = ?"
_FRAME = "SELECT block, offset, size, flags >> 5 & 1 FROM frame JOIN shape ON shape.id = frame.shape WHERE frame.id = ?"


def register(db: sqlite3.Connection, payloads: Payloads | None = None) -> None:
    """Make the functions known to a connection."""
    read = payloads or Payloads(db)

    def at(block: int | None, offset: int | None, size: int | None) -> bytes | None:
        return read.at(block, offset, size) if block else None

    def of(frame: int) -> bytes | None:
        row = db.execute(_FRAME, (frame,)).fetchone()
        if row is None:
            return None
        rest = read.at(*row[:3])
        return read.whole(frame, rest) if row[3] else rest

    def message(frame: int) -> str | None:
        found = db.execute(_MESSAGE, (frame,)).fetchone()
        if found is None or found[0] is None:
            return None
        if not isinstance(found[0], int):
            return unpack_ident(found[0]).encode("utf-8", "replace").decode()
        octets = of(frame)
        return octets[found[0] : found[0] + 36].decode() if octets else None

    db.create_function("payload", 3, _quiet(at), deterministic=True)
    db.create_function("payload", 1, _quiet(of))
    db.create_function("message_id", 1, _quiet(message))


_Function = Callable[..., bytes | str | None]


def _quiet(function: _Function) -> _Function:
    """NULL where the file is damaged, so that one query still shows the rest."""

    def call(*arguments: Any) -> bytes | str | None:
        try:
            return function(*arguments)
        except RecordingError:
            return None

    return call
