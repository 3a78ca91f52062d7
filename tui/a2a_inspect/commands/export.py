"""`a2a-inspect export`: a recording, or what of it matches, to a file or to the next program."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import BinaryIO

from a2a_inspect.cleaned import Wish, cleaned
from a2a_inspect.export import export
from a2a_inspect.place import STDOUT, opened
from a2a_proxy.cli import text
from a2a_proxy.cli.errors import UserError
from a2a_proxy.protocol.text import visible
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.query.sql import Rows
from a2a_proxy.recording.reader import Recording

NOTHING = Wish()


def export_recording(path: Path | None, target: Path | None, form: str, where: str, wish: Wish = NOTHING) -> None:
    """Write it; to standard output where no file is named. What was written is told on standard error.

    Raises:
        UserError: it cannot be read or written, the filter or a policy is wrong, or nothing matches it.
    """
    _ = wish.policy  # what is wrong with it is told before anything is read
    if target == STDOUT:
        target = None
    with opened(path) as recording:
        keys = set(recording.asked().ids(where, Rows.EXCHANGES)) if where else None
        if keys is not None and not keys:
            raise UserError(f"nothing matches {visible(where)}", "see what there is with: a2a-inspect ls")
        if target is None:
            sys.stdout.flush()
        to = sys.stdout.buffer if target is None else target
        with cleaned(recording, keys, wish) as (clean, kept):
            count = _written(clean, to, form, kept, f"what matches {where}")
    if target is not None:
        print(f"{text.plural(count, 'exchange')} written to {visible(str(target))}", file=sys.stderr)


def _written(recording: Recording, to: Path | BinaryIO, form: str, keys: set[int] | None, what: str) -> int:
    try:
        return export(recording, to, form, keys, what)
    except RecordingError as wrong:
        raise UserError(wrong.message, wrong.hint) from wrong
