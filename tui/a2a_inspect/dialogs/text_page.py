"""A page of text over the screen: the output of a command."""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from a2a_inspect.widgets.text_view import TextView


class TextPage(ModalScreen[None]):
    """The page. Its lines must not contain control characters."""

    DEFAULT_CSS = """
    TextPage { align: center middle; }
    TextPage > Vertical {
        width: 96%; height: auto; max-height: 80%;
        background: $surface; border: round $primary; border-title-color: $text;
    }
    TextPage TextView { height: auto; max-height: 100%; background: $surface; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter", "dismiss", "Close", id="page.close")
    ]

    def __init__(self, title: str, lines: Sequence[str]) -> None:
        super().__init__()
        self._heading = title
        self._lines = lines

    def compose(self) -> ComposeResult:
        """Return the text."""
        box = Vertical(TextView(id="page"))
        box.border_title, box.border_subtitle = self._heading, "esc closes"
        yield box

    def on_mount(self) -> None:
        """Focus the text."""
        self.query_one(TextView).show_lines(self._lines)
        self.query_one(TextView).focus()
