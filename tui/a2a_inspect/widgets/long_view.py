"""What views of many lines have in common: they grow without a new layout of the screen, they know their styles while
they paint, and they know a key that is pressed twice.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from rich.style import Style
from textual import events
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from a2a_inspect.widgets.styles import component_style

_CURSOR_ACTIONS = frozenset({"move", "page", "scroll_down", "scroll_up", "page_down", "page_up"})
"""Actions that move."""
_DOUBLE_PRESS_SECONDS = 1.0
"""Seconds in which a key is pressed twice."""


class LongView(ScrollView, can_focus=True):
    """See the module. Subclasses call `set_row_count`, never set `virtual_size`, and ask `style` while they paint."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._styles: dict[tuple[str, ...], Style] = {}
        self._first_press = 0.0
        self._known_size = Size(0, 0)
        """The size that the view knows to have."""

    def on_resize(self, event: events.Resize) -> None:
        """Subclasses do something about it."""
        self._known_size = event.size

    def set_row_count(self, rows: int, width: int = 0) -> None:
        """There are so many rows now; `width` where it is not that of the last layout.

        Textual's `virtual_size` lays the whole screen out anew, which takes longer than to paint it. Nothing moves
        here but the scroll bar; where that comes or goes, Textual sees to it.
        """
        size = Size(width or self.size.width, rows)
        if size != self.virtual_size:
            self.set_reactive(ScrollView.virtual_size, size)
            self._scroll_update(size)
        self.refresh()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Some lines of the screen. Styles are asked for once for all of them: that is what takes the time.

        A view may come to be painted that was not told its size: where Textual is asked what stands where between the
        moment that a view is shown and the next layout, that layout finds nothing new.
        """
        if self._known_size != self.outer_size:
            self._known_size = self.outer_size
            self.post_message(events.Resize(self.outer_size, self.virtual_size, self.container_size))
        self._styles.clear()
        return super().render_lines(crop)

    def style(self, *names: str) -> Style:
        """The style of these component classes together; of the view itself without any."""
        if (style := self._styles.get(names)) is None:
            style = self._styles[names] = component_style(self, *names)
        return style

    def is_cursor_key(self, key: str) -> bool:
        """Whether a key moves the cursor or scrolls here, and does nothing else."""
        bound = self._bindings.key_to_bindings.get(key, ())
        return any(each.action.partition("(")[0] in _CURSOR_ACTIONS for each in bound)

    @property
    def is_settled(self) -> bool:
        """Whether everybody has been told where the cursor stands."""
        return True

    def settle(self) -> None:
        """Tell at once what was kept back."""

    def run_on_second_press(self, action: Callable[[], None]) -> None:
        """A key that does something when it is pressed twice, as `gg`."""
        now = getattr(self.app, "typed_at", 0.0) or monotonic()  # it may have waited before it was handled
        if now - self._first_press < _DOUBLE_PRESS_SECONDS:
            self._first_press = 0.0
            action()
        else:
            self._first_press = now
