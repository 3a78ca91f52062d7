"""JSON lines that convert back to a recording without loss: a cassette."""

from typing import BinaryIO

from a2a_inspect.formats.chosen import ExportSelection
from a2a_proxy.protocol.completeness import CHOICE_PREFIX
from a2a_proxy.recording.cassette.exporter import Exporter, Selection


def write_jsonl(source: ExportSelection, stream: BinaryIO, *, with_command: bool = False) -> None:
    """Write the selection; if exchanges were selected, the sessions name the selection.

    `with_command` keeps command lines and process ids of proxies. Raises RecordingError.
    """
    recording, keys = source.recording, source.keys
    selection = (
        None if keys is None else Selection(recording, keys, f"{CHOICE_PREFIX}{source.description}")
    )
    Exporter(
        recording, recording.read_sessions(), stream, selection=selection, with_command=with_command
    ).run()
