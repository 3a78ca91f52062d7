"""Menus that select what is exported and in which format: one key for JSON lines, two for another
format."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from a2a_inspect.dialogs.menu import MENU_CSS
from a2a_inspect.formats.registry import DEFAULT_FORMAT, FORMATS

SELECTED, FILTERED, ALL = "selected", "filtered", "all"
_SETS = (("s", SELECTED, "the selection"), ("f", FILTERED, "the matches"), ("a", ALL, "everything"))


class ExportMenu(ModalScreen[tuple[str, str] | None]):
    """The menu of exported sets.

    Returns the set and the format: a small letter selects the default format, a capital one returns
    an empty format, which opens the format menu.
    """

    DEFAULT_CSS = MENU_CSS.replace("MENU", "ExportMenu")

    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(
                key,
                f"choose('{name}', '{DEFAULT_FORMAT}')",
                f"Export {about}",
                show=False,
                id=f"export.{name}",
            )
            for key, name, about in _SETS
        ),
        *(
            Binding(
                key.upper(),
                f"choose('{name}', '')",
                f"Export {about} in another format",
                show=False,
                id=f"export.{name}_as",
            )
            for key, name, about in _SETS
        ),
        Binding(
            "escape,q,x", "dismiss", "Close", id="export.close", tooltip="close without exporting"
        ),
    ]

    def __init__(self, sets: dict[str, str], folder: str) -> None:
        super().__init__()
        self._sets = sets
        """Name of a set -> its contents in words."""
        self._folder = folder

    def compose(self) -> ComposeResult:
        """Return a line for each set."""
        lines = [
            Content.assemble((f"{key} {key.upper()}  ", "bold"), self._sets[name])
            for key, name, _ in _SETS
            if name in self._sets
        ]
        kind = (
            f"\nlower case: JSON lines (*{FORMATS[DEFAULT_FORMAT].suffix}); upper case: choose a "
            f"format"
        )
        lines.append(Content.assemble((kind, "dim")))
        lines.append(Content.assemble((f"to {self._folder}", "dim")))
        box = VerticalScroll(Static(Content("\n").join(lines)))
        box.border_title, box.border_subtitle = "Export", "esc closes"
        yield box

    def action_choose(self, name: str, form: str) -> None:
        """Choose a set and a format."""
        if name in self._sets:
            self.dismiss((name, form))


_FORMAT_KEYS = "123456789"
"""Keys of the formats, in their order."""


class FormatMenu(ModalScreen[str | None]):
    """The menu of formats. Returns the name of a format."""

    DEFAULT_CSS = MENU_CSS.replace("MENU", "FormatMenu")

    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(key, f"choose({place})", f"Format {key}", show=False, id=f"format.{key}")
            for place, key in enumerate(_FORMAT_KEYS)
        ),
        Binding(
            "escape,q,x", "dismiss", "Close", id="format.close", tooltip="close without exporting"
        ),
    ]

    def __init__(self, subject: str) -> None:
        super().__init__()
        self._subject = subject

    def compose(self) -> ComposeResult:
        """Return a line for each format."""
        lines = [Content.assemble((self._subject, "dim"))]
        lines += [
            Content.assemble((f"{key}  ", "bold"), f"{form.name:9}{form.description}")
            for key, form in zip(_FORMAT_KEYS, FORMATS.values(), strict=False)
        ]
        box = VerticalScroll(Static(Content("\n").join(lines)))
        box.border_title, box.border_subtitle = "Export as", "esc closes"
        yield box

    def action_choose(self, place: int) -> None:
        """Choose the format at this position, if it exists."""
        for name in list(FORMATS)[place : place + 1]:
            self.dismiss(name)
