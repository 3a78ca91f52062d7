"""Input of a filter, with error messages below a caret and suggestions for completion."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input, Static

from a2a_inspect.data.list_filter import VALID, FilterCheck, FilterHistory, check_filter
from a2a_inspect.widgets.columns import fit_text

if TYPE_CHECKING:
    from a2a_proxy.recording.query.complete import Completion, Suggestion

_MAX_SHOWN_SUGGESTIONS = 6
"""Maximum number of visible suggestions."""
_SUGGEST_DELAY, _APPLY_DELAY = 0.05, 0.15
"""Seconds without a key press before suggestions are requested, and before the filter is
applied."""

FILTER_PROMPT = "/ "

Complete = Callable[[str, int], "Awaitable[Completion]"]


class Suggestions(Widget):
    """The list of suggestions, one per line; the selected one has a mark."""

    DEFAULT_CSS = """
    Suggestions { height: auto; background: $panel; color: $foreground 80%; }
    Suggestions > .suggestions--chosen { text-style: bold; color: $foreground; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {"suggestions--chosen"}

    found: reactive[tuple[Suggestion, ...]] = reactive((), layout=True)
    chosen: reactive[int] = reactive(-1)

    def get_content_height(self, *_sizes: object) -> int:
        """Return the number of lines: one per suggestion, at most six."""
        return min(len(self.found), _MAX_SHOWN_SUGGESTIONS)

    def render_line(self, y: int) -> Strip:
        """Return `▸ working   12`."""
        top = (
            max(
                0,
                min(
                    self.chosen - _MAX_SHOWN_SUGGESTIONS + 1,
                    len(self.found) - _MAX_SHOWN_SUGGESTIONS,
                ),
            )
            if self.chosen >= 0
            else 0
        )
        index = top + y
        if index >= len(self.found):
            return Strip.blank(self.size.width, self.rich_style)
        item, is_chosen = self.found[index], index == self.chosen
        style = (
            self.get_visual_style("suggestions--chosen").rich_style
            if is_chosen
            else self.rich_style
        )
        about = item.about or (str(item.count) if item.count >= 0 else "")
        width = max((len(each.text) for each in self.found), default=0)
        text = f"{'▸' if is_chosen else ' '} {fit_text(item.text, min(width, 40))}  {about}"
        return Strip([Segment(fit_text(text, self.size.width), style)])


class FilterBox(Vertical):
    """The filter input. Hidden until `open`."""

    DEFAULT_CSS = """
    FilterBox { height: auto; display: none; background: $panel; }
    FilterBox.-open { display: block; }
    FilterBox Horizontal { height: 1; }
    FilterBox #prompt { width: auto; text-style: bold; }
    FilterBox Input { width: 1fr; background: $panel; }
    FilterBox #word { width: 12; text-align: right; padding-right: 1; }
    FilterBox #wrong { height: 1; color: $foreground 80%; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "use", "Use", id="filter.use", priority=True, tooltip="show only matches"),
        Binding(
            "ctrl+n",
            "find",
            "Find",
            id="filter.find",
            tooltip="keep all rows; n and N go to matches",
        ),
        Binding(
            "tab",
            "complete(1)",
            "Complete",
            id="filter.complete",
            priority=True,
            tooltip="the next suggestion",
        ),
        Binding(
            "shift+tab",
            "complete(-1)",
            "Complete",
            show=False,
            id="filter.complete-back",
            priority=True,
        ),
        Binding("up", "history(-1)", "History", id="filter.older", tooltip="previous filters"),
        Binding("down", "history(1)", "History", show=False, id="filter.newer"),
        Binding("escape", "close", "Cancel", id="filter.cancel", tooltip="restore the list"),
    ]

    class ExpressionMessage(Message):
        """Base of the messages with a valid expression."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Typed(ExpressionMessage):
        """Posted after a moment without a key press."""

    class Used(ExpressionMessage):
        """Posted when the user wants to see only matches."""

    class MatchSearch(ExpressionMessage):
        """Posted when the user wants to go to matches."""

    class Closed(Message):
        """Posted when the user cancels."""

    def __init__(self, complete: Complete) -> None:
        super().__init__(id="filter")
        self._complete = complete
        self._input = Input(
            compact=True,
            placeholder="op:SendMessage slow:>2s err  or a word",
            select_on_focus=False,
        )
        self._suggestions = Suggestions()
        self._prompt = Static(FILTER_PROMPT, id="prompt", markup=False)
        self._input_line = Horizontal()
        self._status_line = Static(id="word", markup=False)
        self._error_line = Static(id="wrong", markup=False)
        self._history = FilterHistory()
        self._prompt_text = FILTER_PROMPT
        self._delay_timers: list[Timer] = []
        self._suggestions_ready = asyncio.Event()
        """Set when the suggestions belong to the current text."""
        self._completion_span = (0, 0)
        """First and last character of the word that is being typed."""
        self._ignore_next_change = False
        """Whether the next change of the text comes from completion or history."""

    def compose(self) -> ComposeResult:
        """Return the suggestions, the input line and the error line."""
        yield self._suggestions
        with self._input_line:
            yield self._prompt
            yield self._input
            yield self._status_line
        yield self._error_line

    @property
    def is_open(self) -> bool:
        """Whether the input is visible."""
        return self.has_class("-open")

    def open(self, text: str, prompt: str = FILTER_PROMPT, *, is_above: bool = False) -> None:
        """Show the input with this text; with `is_above` the error and the suggestions are below
        the input."""
        self.add_class("-open")
        self._prompt_text = prompt
        self._prompt.update(prompt)
        if is_above:
            self.move_child(self._suggestions, after=self._error_line)
        else:
            self.move_child(self._suggestions, before=self._input_line)
        self._input.value = text
        self._input.cursor_position = len(text)
        self._history.add("")
        self._check_expression()
        self._input.focus()

    def hide_input(self) -> None:
        """Hide the input."""
        self._stop_timers()
        self.workers.cancel_node(self)  # requesting suggestions would delay the list
        self._suggestions.found = ()
        self.remove_class("-open")

    @on(Input.Changed)
    def _update_on_change(self, event: Input.Changed) -> None:
        event.stop()
        if self.is_open:
            self._check_expression()

    def _check_expression(self) -> None:
        text = self._input.value
        result = check_filter(text)
        self._status_line.update(result.status)
        self._error_line.update(
            error_with_caret(result, len(self._prompt_text), self.size.width or 80)
        )
        self._stop_timers()
        if result.status == VALID:
            self._delay_timers.append(
                self.set_timer(_APPLY_DELAY, lambda: self.post_message(self.Typed(text)))
            )
        if not self._ignore_next_change:
            self._suggestions_ready.clear()
            self.workers.cancel_group(self, "suggest")  # they belong to the previous text
            self._delay_timers.append(self.set_timer(_SUGGEST_DELAY, self._update_suggestions))
        self._ignore_next_change = False

    @work(group="suggest", exclusive=True)
    async def _update_suggestions(self) -> None:
        found = await self._complete(self._input.value, self._input.cursor_position)
        self._suggestions.chosen = -1
        self._suggestions.found = found.items
        self._completion_span = found.start, found.end
        self._suggestions_ready.set()

    def _stop_timers(self) -> None:
        while self._delay_timers:
            self._delay_timers.pop().stop()

    def _set_text(self, text: str, cursor: int) -> None:
        if text != self._input.value:
            self._ignore_next_change = True
            self._input.value = text
        self._input.cursor_position = cursor

    @work(group="complete")
    async def action_complete(self, by: int) -> None:
        """Replace the word being typed with the next suggestion, as soon as there are suggestions
        for it."""
        await self._suggestions_ready.wait()
        items, (start, end) = self._suggestions.found, self._completion_span
        if not items:
            return
        before = self._suggestions.chosen
        old = items[before].text if before >= 0 else self._input.value[start:end]
        position = (before + by) % len(items) if before >= 0 or by > 0 else len(items) - 1
        text = self._input.value
        new = items[position].text
        self._suggestions.chosen = position
        self._set_text(text[:start] + new + text[start + len(old) :], start + len(new))
        if len(items) == 1:
            self._suggestions_ready.clear()
            self._update_suggestions()

    def action_history(self, by: int) -> None:
        """Insert another expression of the history."""
        text = self._history.previous_or_next(by, self._input.value)
        self._input.value = text
        self._input.cursor_position = len(text)

    def action_use(self) -> None:
        """Show only matches if the expression is valid."""
        self._post_expression(self.Used)

    def action_find(self) -> None:
        """Go to the next match if the expression is valid."""
        self._post_expression(self.MatchSearch)

    def _post_expression(self, message: type[ExpressionMessage]) -> None:
        text = self._input.value.strip()
        if check_filter(text).status != VALID:
            self._check_expression()
            self.app.bell()
            return
        self._history.add(text)
        self.hide_input()
        self.post_message(message(text))

    def action_close(self) -> None:
        """Cancel, which restores the list."""
        self.hide_input()
        self.post_message(self.Closed())


def error_with_caret(check: FilterCheck, indent: int, width: int) -> str:
    """Return a caret below the error, with the message to its right or left, wherever it fits."""
    if not check.message:
        return ""
    column = indent + check.offset
    if column + 2 + len(check.message) <= width:
        return f"{' ' * column}^ {check.message}"
    if len(check.message) + 1 <= column < width:
        return f"{check.message:>{column - 1}} ^"
    return fit_text(f"{' ' * indent}{check.message}", width).rstrip()
