"""Where a note is typed: Enter writes it, Esc leaves what was there; an empty one is deleted."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

_HINT = "Enter keeps it, Esc leaves what was there; an empty note is deleted"


class NoteBox(ModalScreen[str | None]):
    """See the module. Gives the text."""

    DEFAULT_CSS = """
    NoteBox { align: center bottom; }
    NoteBox > Vertical {
        height: auto; background: $surface; border: round $primary; border-title-color: $text; padding: 0 1;
    }
    NoteBox Input { background: $panel; }
    NoteBox Static { color: $foreground 70%; }
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
        box = Vertical(Input(self._text, placeholder="what is to be known here", compact=True), Static(_HINT))
        box.border_title = f"Note at {self._place}"
        yield box

    @on(Input.Submitted)
    def _submit_note(self, message: Input.Submitted) -> None:
        self.dismiss(message.value.strip())
