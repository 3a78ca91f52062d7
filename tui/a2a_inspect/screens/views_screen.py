"""The saved views: use one, save the current filter as one, delete one."""

from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from a2a_inspect.data.saved_views import read_views, write_views
from a2a_proxy.model.errors import UserError
from a2a_proxy.protocol.text import make_visible


class ViewsScreen(ModalScreen[str | None]):
    """See the module. Returns the expression of the view that was chosen."""

    DEFAULT_CSS = """
    ViewsScreen { align: center middle; }
    ViewsScreen > Vertical {
        width: 76; max-width: 96%; height: auto; max-height: 90%; padding: 0 1;
        background: $surface; border: round $primary; border-title-color: $text;
    }
    ViewsScreen OptionList {
        height: auto; max-height: 16; border: none; background: $surface; padding: 0;
    }
    ViewsScreen Input { display: none; margin: 1 0 0 0; background: $panel; }
    ViewsScreen.-naming Input { display: block; }
    ViewsScreen Static { color: $foreground 70%; margin: 1 0 0 0; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "close", "Close", id="views.close"),
        Binding("j", "move('down')", "Down", show=False, id="views.down"),
        Binding("k", "move('up')", "Up", show=False, id="views.up"),
        Binding("s", "save", "Save", id="views.save", tooltip="save the filter under a name"),
        Binding("d,delete", "delete", "Delete", id="views.delete", tooltip="delete the view"),
    ]

    def __init__(self, path: Path | None, expression: str) -> None:
        """`expression` is the current filter."""
        super().__init__()
        self._path = path
        self._expression = expression
        self._views: dict[str, str] = {}
        self._list = OptionList(compact=True)
        self._name_input = Input(placeholder="name", compact=True)
        self._hint = Static(markup=False)

    def compose(self) -> ComposeResult:
        """Yield the list, an input for a name, a hint."""
        box = Vertical(self._list, self._name_input, self._hint)
        box.border_title = "Views"
        yield box

    def on_mount(self) -> None:
        """Read the views."""
        try:
            self._views = read_views(self._path)
        except UserError as wrong:
            self._show_views(wrong.message)
        else:
            self._show_views()

    def _show_views(self, trouble: str = "") -> None:
        width = max(map(len, self._views), default=0)
        self._list.clear_options()
        for name, expression in self._views.items():
            words = Content.assemble(
                (f"{make_visible(name):{width}}", "bold"), "  ", make_visible(expression)
            )
            self._list.add_option(Option(words, id=name))
        none = f"{make_visible(trouble)}. " if trouble else "" if self._views else "No views yet. "
        saves = (
            f"s saves: {make_visible(self._expression)}"
            if self._expression
            else "s saves the filter"
        )
        self._hint.update(f"{none}Enter uses a view, d deletes it, {saves}")
        if self._views:
            self._list.highlighted = 0
            self._list.focus()

    @on(OptionList.OptionSelected)
    def _pick_view(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._views[str(event.option.id)])

    @on(Input.Submitted)
    def _save_named_view(self, event: Input.Submitted) -> None:
        name = event.value.strip()
        self.remove_class("-naming")
        if name:
            self._write_views({**self._views, name: self._expression})
        self._list.focus()

    def _write_views(self, views: dict[str, str]) -> None:
        try:
            write_views(self._path, views)
            self._views = views
        except UserError as wrong:
            self._show_views(wrong.message)
        else:
            self._show_views()

    def action_move(self, way: str) -> None:
        """Go to the view above or below."""
        getattr(self._list, f"action_cursor_{way}")()

    def action_save(self) -> None:
        """Let the user type a name for the current filter."""
        if not self._expression:
            self._hint.update("Nothing to save: the list has no filter")
            return
        self._name_input.value = ""
        self.add_class("-naming")
        self._name_input.focus()

    def action_delete(self) -> None:
        """Delete the view under the cursor."""
        index = self._list.highlighted
        if index is not None:
            view_id = self._list.get_option_at_index(index).id
            self._write_views({name: text for name, text in self._views.items() if name != view_id})

    def action_close(self) -> None:
        """Close the screen, or, while a name is typed, the input."""
        if self.has_class("-naming"):
            self.remove_class("-naming")
            self._list.focus()
        else:
            self.dismiss(None)
