"""Input of a text to search for in the displayed lines; an empty text ends the search."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input


class SeekBox(ModalScreen[str | None]):
    """The search input. Returns the text; None if it is closed."""

    DEFAULT_CSS = """
    SeekBox { align: center bottom; background: transparent; }
    SeekBox > Vertical {
        height: auto; padding: 0 1;
        background: $surface; border: round $primary; border-title-color: $text;
    }
    SeekBox Input { background: $panel; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "Cancel", id="seek.leave", tooltip="end the search"),
    ]

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        """Return the input line."""
        box = Vertical(
            Input(
                self._text,
                placeholder="text to find; n and N go to the next and previous match",
                compact=True,
            )
        )
        box.border_title = "Search"
        yield box

    @on(Input.Submitted)
    def _submit_text(self, message: Input.Submitted) -> None:
        self.dismiss(message.value)
