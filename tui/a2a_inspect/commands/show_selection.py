"""The part of a recording that `show` prints: named exchanges, frames, sessions and tasks, and
matches of a filter."""

import msgspec

from a2a_inspect.commands.filters import matching_frames
from a2a_inspect.data.references import (
    is_task_prefix,
    no_such_place,
    parse_reference,
    resolve_places,
)
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import ExchangeRow, make_key

FrameNumbers = dict[int, set[int]]
"""Key of an exchange -> numbers of its shown frames; an exchange without an entry is shown
completely."""


class ShowSelection(msgspec.Struct, frozen=True):
    """The selected part of a recording and the level of detail."""

    words: tuple[str, ...] = ()
    """Exchanges (`2`, or `1:2` with its session), frames (`2.5`), sessions (`1:`), beginnings of
    task ids; empty: everything.
    """
    payloads: bool = False
    raw: bool = False
    artifacts: bool = False
    """Whether to print the content of each task's artifacts, assembled from their chunks."""
    where: str = ""
    """Filter expression: only frames that match."""

    def is_selected(self, row: ExchangeRow) -> bool:
        """Return whether the exchange is selected."""
        return not self.words or any(_is_exchange_named(word, row) for word in self.words)

    def is_session_selected(self, session: int) -> bool:
        """Return whether the whole session is selected, including connections without exchanges."""
        points = [point for word in self.words if (point := parse_reference(word))]
        is_session_named = any(
            not point.exchange and point.is_in_exchange(session, 0) for point in points
        )
        return not self.where and (not self.words or is_session_named)

    def select_rows(
        self, recording: Recording, session: int
    ) -> tuple[list[ExchangeRow], FrameNumbers]:
        """Return the selected exchanges of this session and their selected frames."""
        frame_numbers = self._selected_frames(session)
        matching = matching_frames(recording, session, self.where)
        rows = [row for row in recording.read_exchanges(session) if self.is_selected(row)]
        if matching is None:
            return rows, frame_numbers
        frame_numbers = {
            row.key: matching[row.key] & frame_numbers.get(row.key, matching[row.key])
            for row in rows
            if row.key in matching
        }
        return [row for row in rows if frame_numbers.get(row.key)], frame_numbers

    def check_words(self, recording: Recording) -> None:
        """Check that each word names a place.

        Raises:
            UserError: a word names nothing.
        """
        missing = [word for word in self.words if not resolve_places(recording, word)]
        if missing:
            task_ids = {row.exchange.task_id for row in recording.read_exchanges()}
            missing = [
                word for word in missing if not any(is_task_prefix(word, task) for task in task_ids)
            ]
        if missing:
            raise no_such_place(recording, missing[0])

    def _selected_frames(self, session: int) -> FrameNumbers:
        """Return the frame numbers of exchanges of which only single frames were named."""
        frame_numbers: FrameNumbers = {}
        points = [
            point
            for word in self.words
            if (point := parse_reference(word)) and point.session in (None, session)
        ]
        for point in points:
            if not any(
                other.seq < 0 and other.is_in_exchange(session, point.exchange) for other in points
            ):
                frame_numbers.setdefault(make_key(session, point.exchange), set()).add(point.seq)
        return frame_numbers


def _is_exchange_named(word: str, row: ExchangeRow) -> bool:
    point = parse_reference(word)
    if point is not None and point.is_in_exchange(row.session, row.exchange.id):
        return True
    return is_task_prefix(word, row.exchange.task_id)
