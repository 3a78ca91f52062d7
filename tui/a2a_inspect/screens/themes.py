"""The colours of the screen: a dark theme, a light one, and one of the terminal's own sixteen. Which one was chosen.

The contrast of every text of every screen is tested (WCAG 2.2, 1.4.3: 4.5 to 1), so colours are given in full where
Textual would mix them.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from textual.theme import Theme

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
"""The terminal's foreground and background stay, whichever they are. What stands out does so by reversing them too."""
OWN_THEMES = (NIGHT, DAY, SIXTEEN)

APP_CSS = """
CommandPalette > Vertical { width: 100; max-width: 100%; }
OptionList:focus, RecordingTree:focus { background-tint: $foreground 0%; }
Input > .input--placeholder { color: $foreground 80%; }
App:ansi {
    LazyList:focus > .list--cursor { text-style: reverse; }
    Pane.-focused > PaneTitle { text-style: bold reverse; }
    ToastRack, Toast { background: ansi_default; }
}
"""


def next_theme(name: str) -> str:
    """The theme after this one, around in a circle; after one that is not ours, the first."""
    names = [theme.name for theme in OWN_THEMES]
    return names[(names.index(name) + 1) % len(names)] if name in names else names[0]


class ThemeMemory:
    """A file with the name of the theme that was chosen last. Without a file nothing is remembered."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path

    def read(self) -> str:
        """The name; empty where there is none to read."""
        if self._path is not None:
            with contextlib.suppress(OSError, UnicodeDecodeError):
                return self._path.read_text("utf-8").strip()
        return ""

    def write(self, name: str) -> None:
        """Remember it; a disk that will not have it is no reason to stop."""
        if self._path is not None:
            with contextlib.suppress(OSError):
                fresh = self._path.with_name(f"{self._path.name}.{os.getpid()}")
                fresh.write_text(f"{name}\n", "utf-8")
                fresh.replace(self._path)
