"""The keys, on one page over the screen."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

_KEYS = (
    ("Move", ""),
    ("j k  ↓ ↑", "next, previous row"),
    ("gg G  Home End", "first row; last row, and follow"),
    ("PgDn PgUp  ^d ^u", "a screen further, back"),
    ("Enter  Esc", "look into it; back"),
    ("Tab  Shift+Tab", "next, previous pane"),
    ("[ ]", "previous, next frame of the exchange"),
    ("1 2 3 4  ← →", "tabs: decoded, raw, headers, facts"),
    ("", ""),
    ("Live", ""),
    ("F", "follow the end of the list; moving up stops it"),
    ("p", "pause the display; recording goes on"),
    ("", ""),
    ("App", ""),
    ("Ctrl+P", "all commands and themes"),
    ("?", "this page"),
    ("q  Ctrl+Q", "back, or quit; quit"),
    ("", ""),
    ("→ ←", "a frame to the agent; to the client"),
    ("live ok error", "still open; ended well; the agent said no"),
    ("cut refused", "somebody broke off; the proxy answered"),
)


class Help(ModalScreen[None]):
    """See the module."""

    DEFAULT_CSS = """
    Help { align: center middle; }
    Help > VerticalScroll {
        width: 72; max-width: 96%; height: auto; max-height: 96%; padding: 0 2;
        background: $surface; border: round $primary; border-title-color: $text;
        scrollbar-size-vertical: 1;
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,q,enter", "dismiss", "Close"),
    ]

    def compose(self) -> ComposeResult:
        """One text."""
        box = VerticalScroll(Static(Content("\n").join(_line(*entry) for entry in _KEYS)))
        box.border_title = "Keys"
        yield box


def _line(keys: str, meaning: str) -> Content:
    return Content.assemble((f"{keys:20}", "bold"), meaning)
