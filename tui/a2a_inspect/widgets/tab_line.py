"""The names of a frame's tabs in one line."""

from typing import ClassVar

from rich.segment import Segment
from textual import events
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

TABS = ("Decoded", "Raw", "Headers", "Findings", "Artifact", "Trace", "Facts")
_SHORT = ("Dec", "Raw", "Head", "Find", "Art", "Trace", "Facts")
_ALL_TABS = range(len(TABS))


def tab_titles(selected: int, width: int) -> list[str]:
    """Return ` 1 Decoded  [2 Raw]  3 Headers `: the selected tab in brackets.

    In a narrow line the spaces around the names go first, then the names are abbreviated, and then
    only the numbers of the other tabs are left.
    """
    wide = [
        f" [{tab + 1} {TABS[tab]}]" if tab == selected else f"  {tab + 1} {TABS[tab]} "
        for tab in _ALL_TABS
    ]
    forms = (wide, *(_narrow_titles(selected, names) for names in (TABS, _SHORT)))
    numbers = [
        f"[{tab + 1} {TABS[tab]}]" if tab == selected else f" {tab + 1} " for tab in _ALL_TABS
    ]
    return next((titles for titles in forms if sum(map(len, titles)) <= width), numbers)


def _narrow_titles(selected: int, names: tuple[str, ...]) -> list[str]:
    return [
        f"[{tab + 1} {TABS[tab]}]" if tab == selected else f" {tab + 1} {names[tab]} "
        for tab in _ALL_TABS
    ]


class TabLine(Widget):
    """The line of tabs."""

    DEFAULT_CSS = """
    TabLine { height: 1; background: $background; color: $text-muted; }
    TabLine > .tab--chosen { color: $text-accent; text-style: bold; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {"tab--chosen"}

    chosen: reactive[int] = reactive(0)

    class Clicked(Message):
        """Posted when a tab was clicked."""

        def __init__(self, tab: int) -> None:
            super().__init__()
            self.tab = tab

    def render_line(self, y: int) -> Strip:  # noqa: ARG002 - one line only
        """Render all tabs."""
        base, selected = self.rich_style, self.get_visual_style("tab--chosen").rich_style
        titles = tab_titles(self.chosen, self.size.width)
        parts = [
            Segment(word, selected if tab == self.chosen else base)
            for tab, word in enumerate(titles)
        ]
        return Strip(parts).adjust_cell_length(self.size.width, base)

    def on_click(self, event: events.Click) -> None:
        """Select the clicked tab."""
        begin = 0
        for tab, word in enumerate(tab_titles(self.chosen, self.size.width)):
            begin += len(word)
            if event.x < begin:
                self.post_message(self.Clicked(tab))
                return
