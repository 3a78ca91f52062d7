"""An application with our themes: the one that was chosen last, else the one that suits the terminal."""

from __future__ import annotations

import os

from rich.console import Console
from textual.binding import Binding
from textual.driver import Driver
from textual.theme import Theme

from a2a_inspect.screens.keys_in_order import KeysInOrder
from a2a_inspect.screens.themes import APP_CSS, NIGHT, OWN_THEMES, SIXTEEN, ThemeMemory, next_theme

_FEW_COLOURS = (None, "standard", "windows")
"""What Rich calls terminals of sixteen colours, or of none."""


def theme_for_console(console: Console) -> str:
    """The theme for a terminal of which nothing else is known."""
    return SIXTEEN.name if console.color_system in _FEW_COLOURS else NIGHT.name


class ThemedApp(KeysInOrder):
    """With NO_COLOR nothing is coloured, whichever the theme; what is chosen is told by words, marks and reversing."""

    CSS = APP_CSS

    def __init__(self, driver_class: type[Driver] | None, memory: ThemeMemory, theme: str) -> None:
        super().__init__(driver_class, ansi_color=True if "NO_COLOR" in os.environ else None)
        for each in OWN_THEMES:
            self.register_theme(each)
        self._memory = memory
        remembered = memory.read()
        self.theme = remembered if remembered in self.available_themes else theme

    def on_mount(self) -> None:
        """Remember what is chosen from now on."""
        self.theme_changed_signal.subscribe(self, self._save_theme)

    def _save_theme(self, theme: Theme) -> None:
        self._memory.write(theme.name)

    def get_key_display(self, binding: Binding) -> str:
        """In letters that every terminal has, and everywhere the same."""
        shown = super().get_key_display(binding)
        return "enter" if shown == "⏎" else shown

    def action_next_theme(self) -> None:
        """Another of our themes; the palette has Textual's as well."""
        self.theme = next_theme(self.theme)
        self.notify(self.theme, title="Theme", timeout=2)
