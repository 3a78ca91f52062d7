"""Input of a note: Enter saves it, Esc keeps the previous note, and an empty note is deleted."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

_HINT = "Enter saves, Esc keeps the previous note; an empty note is deleted"


class NoteBox(ModalScreen[str | None]):
    """The note input. Returns the text."""

    DEFAULT_CSS = """
    NoteBox { align: center bottom; }
    NoteBox > Vertical {
        height: auto; padding: 0 1;
        background: $surface; border: round $primary; border-title-color: $text;
    }
    NoteBox Input { background: $panel; }
    NoteBox Static { color: $foreground 70%; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "Cancel", id="note.leave", tooltip="keep the previous note"),
    ]

    def __init__(self, place: str, text: str) -> None:
        super().__init__()
        self._place = place
        self._text = text

    def compose(self) -> ComposeResult:
        """Return the input line and the hint."""
        box = Vertical(
            Input(self._text, placeholder="text of the note", compact=True), Static(_HINT)
        )
        box.border_title = f"Note at {self._place}"
        yield box

    @on(Input.Submitted)
    def _submit_note(self, message: Input.Submitted) -> None:
        self.dismiss(message.value.strip())
