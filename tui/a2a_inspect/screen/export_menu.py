"""What is exported, and in which form: one key for both."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from a2a_inspect.screen.menu import MENU_CSS

SELECTED, FILTERED, ALL = "selected", "filtered", "all"
_SETS = (("s", SELECTED, "what is selected"), ("f", FILTERED, "what matches"), ("a", ALL, "everything"))


class ExportMenu(ModalScreen[tuple[str, str] | None]):
    """See the module. Gives the set and the form: a small letter writes a cassette, a capital one JSON lines."""

    DEFAULT_CSS = MENU_CSS.replace("MENU", "ExportMenu")

    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(
                key if form == "cassette" else key.upper(),
                f"choose('{name}', '{form}')",
                f"Export {about}" + (" as JSON lines" if form == "jsonl" else ""),
                show=False,
                id=f"export.{name}" if form == "cassette" else f"export.{name}_lines",
            )
            for form in ("cassette", "jsonl")
            for key, name, about in _SETS
        ),
        Binding("escape,q,x", "dismiss", "Close", id="export.close", tooltip="export nothing"),
    ]

    def __init__(self, sets: dict[str, str], folder: str) -> None:
        super().__init__()
        self._sets = sets
        """Name of a set -> what is in it, in words."""
        self._folder = folder

    def compose(self) -> ComposeResult:
        """A line for each set."""
        lines = [
            Content.assemble((f"{key} {key.upper()}  ", "bold"), self._sets[name])
            for key, name, _ in _SETS
            if name in self._sets
        ]
        lines.append(Content.assemble(("\nsmall letter: a cassette (*.a2a.jsonl); capital: JSON lines", "dim")))
        lines.append(Content.assemble((f"into {self._folder}", "dim")))
        box = VerticalScroll(Static(Content("\n").join(lines)))
        box.border_title, box.border_subtitle = "Export", "esc closes"
        yield box

    def action_choose(self, name: str, form: str) -> None:
        """Take a set, in a form."""
        if name in self._sets:
            self.dismiss((name, form))
