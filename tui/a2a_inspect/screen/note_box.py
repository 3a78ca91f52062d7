"""Where a note is typed: Enter writes it, Esc leaves what was there; an empty one is deleted."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input


class NoteBox(ModalScreen[str | None]):
    """See the module. Gives the text."""

    DEFAULT_CSS = """
    NoteBox { align: center bottom; }
    NoteBox > Vertical {
        height: auto; background: $surface; border: round $primary; border-title-color: $text; padding: 0 1;
    }
    NoteBox Input { border: none; height: 1; padding: 0; background: $surface; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "Leave", id="note.leave", tooltip="leave the note as it was"),
    ]

    def __init__(self, place: str, text: str) -> None:
        super().__init__()
        self._place = place
        self._text = text

    def compose(self) -> ComposeResult:
        """One line."""
        box = Vertical(Input(self._text, placeholder="empty: no note"))
        box.border_title = f"Note at {self._place}"
        yield box

    @on(Input.Submitted)
    def _written(self, message: Input.Submitted) -> None:
        self.dismiss(message.value.strip())
