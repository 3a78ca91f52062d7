"""The themes: a dark one, a light one, and one of the sixteen colours of the terminal; the
application that uses them.

The contrast of every text of every screen is tested (WCAG 2.2, 1.4.3: 4.5 to 1), so colours are
written in full where Textual would mix them.
"""

import contextlib
import os
from pathlib import Path

from rich.console import Console
from textual.binding import Binding
from textual.driver import Driver
from textual.theme import Theme

from a2a_inspect.screens.keys_in_order import KeysInOrder

NIGHT = Theme(
    name="night",
    dark=True,
    primary="#4c8dff",
    secondary="#7d8cff",
    accent="#ffb454",
    success="#7ed491",
    warning="#f2c46d",
    error="#ff7b86",
    foreground="#dbe1ec",
    background="#10141b",
    surface="#1a212c",
    panel="#222b38",
    variables={
        "text-muted": "#97a3b6",
        "text-primary": "#82b6ff",
        "text-secondary": "#b3aaff",
        "text-accent": "#ffbd66",
        "text-success": "#86d998",
        "text-warning": "#f2cb80",
        "text-error": "#ff8f98",
        "footer-key-foreground": "#ffbd66",
        "footer-background": "#222b38",
        "footer-description-foreground": "#b6c0d0",
        "border": "#4c8dff",
        "scrollbar": "#3a4658",
        "scrollbar-hover": "#4d5d75",
        "scrollbar-active": "#4c8dff",
        "scrollbar-background": "#151b24",
        "scrollbar-background-hover": "#151b24",
        "scrollbar-background-active": "#151b24",
        "scrollbar-corner-color": "#151b24",
        "input-selection-background": "#2f5597",
        "block-cursor-background": "#23406f",
        "block-cursor-foreground": "#ffffff",
    },
)
DAY = Theme(
    name="day",
    dark=False,
    primary="#1a66d6",
    secondary="#5a4bc4",
    accent="#a84a00",
    success="#1c7a3d",
    warning="#8a5a00",
    error="#c01f35",
    foreground="#1f2733",
    background="#fcfbf8",
    surface="#efede7",
    panel="#e3e0d8",
    variables={
        "text-muted": "#4b5463",
        "text-primary": "#0d50b0",
        "text-secondary": "#4a3cab",
        "text-accent": "#944000",
        "text-success": "#10622e",
        "text-warning": "#744b00",
        "text-error": "#ab1229",
        "footer-key-foreground": "#944000",
        "footer-background": "#e3e0d8",
        "footer-description-foreground": "#3d4654",
        "border": "#1a66d6",
        "scrollbar": "#c3bfb4",
        "scrollbar-hover": "#a9a498",
        "scrollbar-active": "#1a66d6",
        "scrollbar-background": "#f3f1eb",
        "scrollbar-background-hover": "#f3f1eb",
        "scrollbar-background-active": "#f3f1eb",
        "scrollbar-corner-color": "#f3f1eb",
        "input-selection-background": "#a9c9fb",
        "block-cursor-background": "#c9defc",
        "block-cursor-foreground": "#10151c",
    },
)
SIXTEEN = Theme(
    name="sixteen",
    ansi=True,
    primary="ansi_default",
    secondary="ansi_default",
    accent="ansi_yellow",
    success="ansi_green",
    warning="ansi_yellow",
    error="ansi_red",
    foreground="ansi_default",
    background="ansi_default",
    surface="ansi_default",
    panel="ansi_default",
    variables={
        "ansi-background": "ansi_black",
        "ansi-foreground": "ansi_white",
        "text-muted": "ansi_default",
        "text-primary": "ansi_cyan",
        "text-secondary": "ansi_magenta",
        "border": "ansi_cyan",
        "footer-key-foreground": "ansi_yellow",
        "block-cursor-background": "ansi_default",
        "block-cursor-text-style": "bold reverse",
        "scrollbar": "ansi_cyan",
        "scrollbar-hover": "ansi_cyan",
        "scrollbar-active": "ansi_cyan",
        "scrollbar-background": "ansi_default",
        "scrollbar-background-hover": "ansi_default",
        "scrollbar-background-active": "ansi_default",
    },
)
"""Keeps the foreground and background of the terminal. Emphasis also reverses them."""
OWN_THEMES = (NIGHT, DAY, SIXTEEN)

APP_CSS = """
CommandPalette > Vertical { width: 100; max-width: 100%; }
OptionList:focus, BranchTree:focus { background-tint: $foreground 0%; }
Input > .input--placeholder { color: $foreground 80%; }
App:ansi {
    LazyList:focus > .list--cursor { text-style: reverse; }
    Pane.-focused > PaneTitle { text-style: bold reverse; }
    ToastRack, Toast { background: ansi_default; }
}
"""
_FEW_COLOURS = (None, "standard", "windows")
"""Colour systems of Rich for terminals of at most sixteen colours."""


def next_theme(name: str) -> str:
    """Return the name of the next own theme; the first after the last, and after a theme of
    Textual."""
    names = [theme.name for theme in OWN_THEMES]
    return names[(names.index(name) + 1) % len(names)] if name in names else names[0]


class ThemeMemory:
    """File with the name of the theme that was chosen last. Without a path nothing is
    remembered."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path

    def read(self) -> str:
        """Return the name, or an empty string if the file cannot be read."""
        if self._path is not None:
            with contextlib.suppress(OSError, UnicodeDecodeError):
                return self._path.read_text("utf-8").strip()
        return ""

    def write(self, name: str) -> None:
        """Write the name. A failure is ignored, because the theme is not worth an error."""
        if self._path is not None:
            with contextlib.suppress(OSError):
                fresh = self._path.with_name(f"{self._path.name}.{os.getpid()}")
                fresh.write_text(f"{name}\n", "utf-8")
                fresh.replace(self._path)


def theme_for_console(console: Console) -> str:
    """Return the name of the default theme for a terminal."""
    return SIXTEEN.name if console.color_system in _FEW_COLOURS else NIGHT.name


class ThemedApp(KeysInOrder):
    """Application with own themes. NO_COLOR disables all colours; words, marks and reversing then
    show a choice."""

    CSS = APP_CSS

    def __init__(self, driver_class: type[Driver] | None, memory: ThemeMemory, theme: str) -> None:
        super().__init__(driver_class, ansi_color=True if "NO_COLOR" in os.environ else None)
        for each in OWN_THEMES:
            self.register_theme(each)
        self._memory = memory
        remembered = memory.read()
        self.theme = remembered if remembered in self.available_themes else theme

    def on_mount(self) -> None:
        """Remember themes that are chosen from now on."""
        self.theme_changed_signal.subscribe(self, self._save_theme)

    def _save_theme(self, theme: Theme) -> None:
        self._memory.write(theme.name)

    def get_key_display(self, binding: Binding) -> str:
        """Return the name of a key in characters that every terminal has."""
        display = super().get_key_display(binding)
        return "enter" if display == "⏎" else display

    def action_next_theme(self) -> None:
        """Use the next own theme; the palette offers the themes of Textual too."""
        self.theme = next_theme(self.theme)
        self.notify(self.theme, title="Theme", timeout=2)
