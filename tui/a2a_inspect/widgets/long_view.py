"""Base of views of many lines: they grow without a new layout of the screen, cache their styles
while painting, and detect keys that are pressed twice.
"""

from collections.abc import Callable
from time import monotonic

from rich.style import Style
from textual import events
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from a2a_inspect.widgets.styles import component_style

_CURSOR_ACTIONS = frozenset({"move", "page", "scroll_down", "scroll_up", "page_down", "page_up"})
"""Actions that move the cursor or scroll."""
_DOUBLE_PRESS_SECONDS = 1.0
"""Seconds within which two presses count as double."""


class LongView(ScrollView, can_focus=True):
    """The base class. Subclasses call `set_row_count` instead of setting `virtual_size`, and paint
    with `combine_styles`."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._styles: dict[tuple[str, ...], Style] = {}
        self._first_press = 0.0
        self._known_size = Size(0, 0)
        """Size at the last layout."""

    def on_resize(self, event: events.Resize) -> None:
        """Do nothing; subclasses override it."""
        self._known_size = event.size

    def set_row_count(self, rows: int, width: int = 0) -> None:
        """Set the number of rows; `width` if it differs from that of the last layout.

        Setting Textual's `virtual_size` would lay the whole screen out again, which takes longer
        than painting it. Only the scroll bar changes here; Textual handles its appearance and
        disappearance.
        """
        size = Size(width or self.size.width, rows)
        if size != self.virtual_size:
            self.set_reactive(ScrollView.virtual_size, size)
            self._scroll_update(size)
        self.refresh()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Render some lines. The styles are computed once for all of them, because they are the
        expensive part.

        A view may be painted before it has its size: if Textual's layout is queried between showing
        a view and the next layout, that layout finds no change.
        """
        if self._known_size != self.outer_size:
            self._known_size = self.outer_size
            self.post_message(
                events.Resize(self.outer_size, self.virtual_size, self.container_size)
            )
        self._styles.clear()
        return super().render_lines(crop)

    def combine_styles(self, *names: str) -> Style:
        """Return the combined style of these component classes; without names the style of the
        view."""
        if (style := self._styles.get(names)) is None:
            style = self._styles[names] = component_style(self, *names)
        return style

    def is_cursor_key(self, key: str) -> bool:
        """Return whether a key only moves the cursor or scrolls here."""
        bound = self._bindings.key_to_bindings.get(key, ())
        return any(each.action.partition("(")[0] in _CURSOR_ACTIONS for each in bound)

    @property
    def is_settled(self) -> bool:
        """Whether the current cursor position has been reported."""
        return True

    def report_cursor(self) -> None:
        """Report a delayed cursor position at once."""

    def run_on_second_press(self, action: Callable[[], None]) -> None:
        """Run the action if the key is pressed twice, as in `gg`."""
        now = (
            getattr(self.app, "typed_at", 0.0) or monotonic()
        )  # time of the key press: it may have been queued
        if now - self._first_press < _DOUBLE_PRESS_SECONDS:
            self._first_press = 0.0
            action()
        else:
            self._first_press = now
