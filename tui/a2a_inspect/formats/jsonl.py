"""JSON lines that are a recording again, without loss: a cassette."""

from __future__ import annotations

from typing import BinaryIO

from a2a_inspect.formats.chosen import ExportSelection
from a2a_proxy.recording.cassette.exporter import Exporter, Selection
from a2a_proxy.recording.read.rows import SELECTION_PREFIX


def write(source: ExportSelection, stream: BinaryIO) -> None:
    """Write it; where exchanges were chosen, the sessions say which. Raises RecordingError."""
    recording, keys = source.recording, source.keys
    selection = None if keys is None else Selection(recording, keys, f"{SELECTION_PREFIX}{source.description}")
    Exporter(recording, recording.sessions(), stream, selection=selection).run()
