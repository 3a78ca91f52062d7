"""`a2a-inspect lanes`: a conversation as a swimlane, as JSON lines, or as a diagram in Mermaid's language."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from itertools import chain

import msgspec

from a2a_inspect.data.positions import PAGE
from a2a_inspect.data.references import is_task, not_there, places
from a2a_inspect.lanes.layout import MARGIN, NARROWEST, geometry, head, paint
from a2a_inspect.lanes.mermaid import diagram
from a2a_inspect.lanes.model import LaneRow
from a2a_inspect.lanes.objects import lanes_object, row_object
from a2a_inspect.lanes.read import LaneConversation
from a2a_proxy.cli.errors import UserError
from a2a_proxy.present import text
from a2a_proxy.protocol.text import shell_line
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import make_key, split_key

_PIPED = 120
"""Cells where the output goes to no terminal."""
_LEAST = MARGIN + NARROWEST + 1


class LaneOptions(msgspec.Struct, frozen=True):
    """What to draw, and how."""

    words: tuple[str, ...] = ()
    """An exchange number (`2`, or `1:2` with that of the session) or the beginning of a task id."""
    as_json: bool = False
    mermaid: bool = False
    width: int | None = None
    """Cells; None: those of the terminal."""


def show_lanes(recording: Recording, drawing: LaneOptions) -> None:
    """Print one conversation.

    Raises:
        UserError: there is no such one, several are meant, or both forms of output are wanted.
    """
    if drawing.as_json and drawing.mermaid:
        raise UserError("--json and --mermaid exclude each other", "choose one")
    conversation = LaneConversation(recording, _meant(recording, drawing.words))
    if drawing.as_json:
        print(json.dumps(lanes_object(conversation.session, conversation.title, conversation.lanes)))
        for row in rows_of(conversation):
            print(json.dumps(row_object(row, conversation.lanes)))
        return
    for line in (
        diagram(conversation.lanes, rows_of(conversation), len(conversation.order))
        if drawing.mermaid
        else _lines(conversation, drawing)
    ):
        print(line)


def _lines(conversation: LaneConversation, drawing: LaneOptions) -> Iterator[str]:
    width = drawing.width or shutil.get_terminal_size((_PIPED, 0)).columns
    places = geometry(max(width, _LEAST), conversation.lanes)
    began = text.day(conversation.order.start) if conversation.order.frames else "nothing was recorded"
    yield f"session {conversation.session}  {conversation.title}  {began}"
    yield head(places).rstrip()
    for row in rows_of(conversation):
        yield "".join(said for said, _ in paint(row, places)).rstrip()


def rows_of(conversation: LaneConversation) -> Iterator[LaneRow]:
    """All of its rows, read page by page."""
    pages = (conversation.rows(first, PAGE) for first in range(0, len(conversation.order), PAGE))
    return chain.from_iterable(pages)


def _meant(recording: Recording, words: tuple[str, ...]) -> int:
    """Key of an exchange of the conversation."""
    listing = shell_line("a2a-inspect", "ls", recording.path)
    if len(words) > 1:
        raise UserError("one conversation at a time", f"name one exchange or task of: {listing}")
    found = list(_of_word(recording, words[0])) if words else list(_all(recording))
    if not found:
        if words:
            raise not_there(recording, words[0])
        raise UserError("there is no conversation in it", f"see what there is with: {listing}")
    if len(found) > 1 and not _are_one(recording, found):
        what = f"{words[0]} may be one of {len(found)}" if words else "several conversations are in it"
        raise UserError(what, f"name one exchange or task of: {listing}")
    return found[0]


def _are_one(recording: Recording, exchanges: list[int]) -> bool:
    """They belong to one conversation: agents have handed over from one to the next."""
    session = split_key(exchanges[0])[0]
    numbers = [number for of, number in map(split_key, exchanges) if of == session]
    return len(numbers) == len(exchanges) and LaneConversation(recording, exchanges[0]).exchanges.issuperset(numbers)


def _of_word(recording: Recording, word: str) -> Iterator[int]:
    yield from (make_key(at.session, at.exchange) for at in places(recording, word) if at.exchange)
    exact = [row for row in recording.task(word) if row.task.exchanges]
    rows = exact or [row for row in recording.tasks() if is_task(word, row.task.task_id)]
    yield from (make_key(row.session, row.task.exchanges[0]) for row in rows if row.task.exchanges)


def _all(recording: Recording) -> Iterator[int]:
    """An exchange of each task; where there is no task, each exchange."""
    tasks = [make_key(row.session, row.task.exchanges[0]) for row in recording.tasks() if row.task.exchanges]
    yield from tasks or (row.key for row in recording.exchanges())
