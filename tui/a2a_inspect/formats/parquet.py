"""Parquet: one row per frame, with the columns of the archive's table `frames`."""

from collections.abc import Iterator
from typing import BinaryIO

from a2a_inspect.formats.chosen import ExportSelection
from a2a_proxy.installation import install_hint
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.read.rows import FrameRow


def write_parquet(selection: ExportSelection, stream: BinaryIO) -> None:
    """Write the selection. Raises RecordingError, also if pyarrow is not installed."""
    try:
        from a2a_proxy.archive.rows import write_frames
    except ModuleNotFoundError as missing:
        raise RecordingError(
            f"Parquet needs the extra lake: {missing.name} is not installed", install_hint("lake")
        ) from missing
    write_frames(selection.recording, _selected_frames(selection), stream)


def _selected_frames(selection: ExportSelection) -> Iterator[FrameRow]:
    """Yield the frames in order of storing."""
    if selection.keys is None:
        yield from selection.recording.frames_after(0)
        return
    for number in sorted(selection.keys):
        yield from selection.recording.read_frames(number)
