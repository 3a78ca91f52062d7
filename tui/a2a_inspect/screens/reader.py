"""Reading of the recording for the main screen: polls for what is new, and reports what cannot be
read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from textual.screen import Screen

from a2a_inspect.data.finding_tree import FindingBranch, FindingPage, read_findings
from a2a_inspect.data.source import FrameLine, RecordingSource
from a2a_inspect.data.tree import TreeBranch, TreePage, read_children
from a2a_inspect.screens.controller import Controller, run_in_background
from a2a_inspect.screens.keys_in_order import KeysInOrder
from a2a_inspect.screens.state import MainState
from a2a_inspect.widgets.summary import SummaryLine
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.read.reader import Recording

if TYPE_CHECKING:
    from a2a_proxy.recording.query.complete import Completion

POLL_INTERVAL = 0.1
"""Seconds between two polls of the recording."""

_Value = TypeVar("_Value")


def release_keys(screen: Screen[None]) -> None:
    """Let the keys be handled that were held until there is something to use them on."""
    if isinstance(screen.app, KeysInOrder):
        screen.app.release_keys()


class RecordingReader(Controller):
    """Queries of the source. A failed query returns a default; the summary line shows why, until
    the query succeeds."""

    def __init__(
        self,
        screen: Screen[None],
        source: RecordingSource,
        state: MainState,
        summary: SummaryLine,
        *,
        on_new: Callable[[], None],
        on_empty: Callable[[], None],
    ) -> None:
        """`on_new` is called after each poll that found something new, `on_empty` if the first one
        found nothing."""
        super().__init__(screen)
        self.source = source
        self._state = state
        self._summary = summary
        self._on_new = on_new
        self._on_empty = on_empty
        self._errors: dict[str, str] = {}
        self.is_polling = False

    def start_poll(self) -> None:
        """Poll the recording, unless a poll is running."""
        if not self.is_polling:
            self.is_polling = True
            self._poll_source()

    @run_in_background("poll")
    async def _poll_source(self) -> None:
        try:
            snapshot = await self.answer_query("poll", self.source.poll(), None)
            is_first, self._state.has_answer = not self._state.has_answer, True
            if snapshot is not None:
                self._state.pending_snapshot = snapshot
                self._on_new()
            elif is_first:
                self._on_empty()
        finally:
            self.is_polling = False

    async def answer_query(self, topic: str, query: Awaitable[_Value], default: _Value) -> _Value:
        """Return the result of a query, or the default if the recording cannot be read."""
        try:
            value = await query
            self._errors.pop(topic, None)
        except RecordingError as error:
            value = default
            self._errors[topic] = error.message
            release_keys(self.screen)
        self._summary.trouble = next(iter(self._errors.values()), "")
        return value

    async def run_query(
        self, topic: str, query: Callable[[Recording], _Value], default: _Value
    ) -> _Value:
        """Run a function on the recording in the thread of the source, and return its result or the
        default."""
        return await self.answer_query(topic, self.source.run_query(query, default), default)

    async def load_frames(self, exchange: int, page: int) -> Sequence[FrameLine]:
        """Read one page of the frames of an exchange."""
        return await self.answer_query("frames", self.source.read_frames(exchange, page), [])

    async def load_branches(self, branch: TreeBranch | None, after: int | None) -> TreePage:
        """Read children of a branch of the tree."""
        return await self.run_query(
            "tree", lambda recording: read_children(recording, branch, after), TreePage()
        )

    async def load_findings(self, branch: FindingBranch | None, after: int | None) -> FindingPage:
        """Read the findings of a rule, or the rules that have findings."""
        return await self.run_query(
            "findings", lambda recording: read_findings(recording, branch, after), FindingPage()
        )

    async def complete_expression(self, text: str, cursor: int) -> Completion:
        """Return what can follow in a filter that is being typed, with counts from the
        recording."""
        from a2a_proxy.recording.query.complete import Completion, suggest_completions

        def count(recording: Recording) -> Completion:
            return suggest_completions(text, cursor, recording.db)

        query = self.source.ask_cancellable(count, suggest_completions(text, cursor))
        return await self.answer_query("suggestions", query, Completion(0, 0, ()))
