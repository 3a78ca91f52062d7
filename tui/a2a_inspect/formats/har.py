"""HAR 1.2, which browsers' developer tools open: a page per session and an entry per exchange,
written one by one."""

from collections.abc import Iterator
from typing import Any, BinaryIO

from a2a_inspect.formats.chosen import ExportSelection
from a2a_inspect.formats.har_entry import format_time, har_entry
from a2a_proxy import __version__
from a2a_proxy.present import text
from a2a_proxy.protocol.completeness import UNENDED
from a2a_proxy.protocol.text import strict_json
from a2a_proxy.recording.read.rows import SessionRow, make_key


def write_har(selection: ExportSelection, stream: BinaryIO) -> None:
    """Write the selection. Raises RecordingError."""
    sessions = selection.read_sessions()
    log = {
        "version": "1.2",
        "creator": {"name": "a2a-inspect", "version": __version__},
        "comment": selection.description or "all exchanges",
        "pages": [
            {
                "startedDateTime": format_time(row.facts.started),
                "id": page_id(row.id),
                "title": ", ".join(text.session_routes(row.facts)) or f"session {row.id}",
                "pageTimings": {"onContentLoad": -1, "onLoad": -1},
                "comment": row.complete or UNENDED,
            }
            for row in sessions
        ],
    }
    stream.write(b'{"log":' + _encode_json(log)[:-1] + b',"entries":[')
    separator = b"\n"
    for each in _exchange_entries(selection, sessions):
        stream.write(separator + _encode_json(each))
        separator = b",\n"
    stream.write(b"\n]}}\n")


def _encode_json(value: dict[str, Any]) -> bytes:
    return strict_json(value).encode()


def page_id(session: int) -> str:
    """Return the id by which entries refer to the page of a session."""
    return f"session_{session}"


def _exchange_entries(
    selection: ExportSelection, sessions: list[SessionRow]
) -> Iterator[dict[str, Any]]:
    recording = selection.recording
    for session in sessions:
        for row in selection.read_exchanges(session.id):
            connection = recording.read_connection(make_key(session.id, row.exchange.connection))
            frames = [each.frame for each in recording.read_frames(row.key)]
            found = [each.finding for each in recording.read_findings(exchange=row.key)]
            entry = har_entry(
                row.exchange,
                connection.connection if connection is not None else None,
                frames,
                found,
            )
            yield {"pageref": page_id(session.id), **entry}
