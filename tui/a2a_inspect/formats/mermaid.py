"""Markdown with a sequence diagram for each conversation."""

import re
from typing import BinaryIO

from a2a_inspect.formats.chosen import ExportSelection
from a2a_inspect.lanes.links import SessionLinks
from a2a_inspect.lanes.mermaid import diagram_lines
from a2a_inspect.lanes.read import LaneConversation
from a2a_proxy.present import text
from a2a_proxy.recording.read.rows import make_key

_MARKUP = re.compile(r"[<>&`*_\[\]!|\\]")
"""Characters that Markdown or HTML would interpret in a heading."""


def write_mermaid(selection: ExportSelection, stream: BinaryIO) -> None:
    """Write the complete conversations that have a selected exchange. Raises RecordingError."""
    for session in selection.read_sessions():
        drawn_exchanges: set[int] = set()
        links = SessionLinks(selection.recording, session.id)
        for number in _first_exchanges(selection, session.id):
            if number not in drawn_exchanges:
                conversation = LaneConversation(
                    selection.recording, make_key(session.id, number), links=links
                )
                drawn_exchanges |= set(conversation.exchanges)
                _write_conversation(conversation, stream)


def escape_heading(text: str) -> str:
    """Escape text for a heading, whatever characters a peer has put in it."""
    return _MARKUP.sub(r"\\\g<0>", text)


def _first_exchanges(selection: ExportSelection, session: int) -> list[int]:
    """Return one exchange of each task, by number, or every exchange if the session has no task."""
    tasks = [row.task.exchanges[0] for row in selection.read_tasks(session) if row.task.exchanges]
    return tasks or [row.exchange.id for row in selection.read_exchanges(session)]


def _write_conversation(conversation: LaneConversation, stream: BinaryIO) -> None:
    began = (
        text.format_date_time(conversation.order.start)
        if conversation.order.frames
        else "nothing was recorded"
    )
    title = escape_heading(f"Session {conversation.session}, {conversation.title}, {began}")
    lines = diagram_lines(conversation.lanes, conversation.iterate_rows(), len(conversation.order))
    for line in (f"## {title}", "", "```mermaid", *lines, "```", ""):
        stream.write(f"{line}\n".encode("utf-8", "replace"))
