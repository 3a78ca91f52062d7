"""Markdown with a sequence diagram for each conversation, as `a2a-inspect lanes --mermaid` draws one."""

from __future__ import annotations

import re
from typing import BinaryIO

from a2a_inspect.commands.lanes import rows_of
from a2a_inspect.formats.chosen import ExportSelection
from a2a_inspect.lanes.links import AllLinks
from a2a_inspect.lanes.mermaid import diagram
from a2a_inspect.lanes.read import LaneConversation
from a2a_proxy.present import text
from a2a_proxy.recording.read.rows import make_key

_MARKUP = re.compile(r"[<>&`*_\[\]!|\\]")
"""What could be Markdown's or HTML's in a heading."""


def write(chosen: ExportSelection, stream: BinaryIO) -> None:
    """Write it: the conversations that have a chosen exchange, each whole. Raises RecordingError."""
    for session in chosen.sessions():
        drawn: set[int] = set()
        links = AllLinks(chosen.recording, session.id)
        for number in _begun(chosen, session.id):
            if number not in drawn:
                conversation = LaneConversation(chosen.recording, make_key(session.id, number), links=links)
                drawn |= set(conversation.exchanges)
                _write(conversation, stream)


def heading(words: str) -> str:
    """The words as a heading's, whatever a peer has put among them."""
    return _MARKUP.sub(r"\\\g<0>", words)


def _begun(chosen: ExportSelection, session: int) -> list[int]:
    """An exchange of each task, by number; where there is no task, each exchange."""
    tasks = [row.task.exchanges[0] for row in chosen.tasks(session) if row.task.exchanges]
    return tasks or [row.exchange.id for row in chosen.exchanges(session)]


def _write(conversation: LaneConversation, stream: BinaryIO) -> None:
    began = text.day(conversation.order.start) if conversation.order.frames else "nothing was recorded"
    title = heading(f"Session {conversation.session}, {conversation.title}, {began}")
    lines = diagram(conversation.lanes, rows_of(conversation), len(conversation.order))
    for line in (f"## {title}", "", "```mermaid", *lines, "```", ""):
        stream.write(f"{line}\n".encode("utf-8", "replace"))
