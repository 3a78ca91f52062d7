"""Input of the columns of the list: their names, separated by commas."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from a2a_inspect.data.list_columns import STANDARD_COLUMNS, parse_columns
from a2a_proxy.model.errors import UserError
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.recording.query.fields import FIELDS

_CHOICES = (
    ("titles", " ".join(STANDARD_COLUMNS)),
    ("fields", " ".join(name for name in FIELDS if name != "header")),
    ("headers", "header:content-type  req.header:user-agent  resp.header:server"),
    ("JSON paths", "$.params.message.role  $.result.task.status.state"),
)
_HINT = (
    "Enter uses and keeps them, Esc changes nothing; "
    "without a name the list has its standard columns"
)


class ColumnsBox(ModalScreen[str | None]):
    """The input. Returns the names, which are valid."""

    DEFAULT_CSS = """
    ColumnsBox { align: center bottom; }
    ColumnsBox > Vertical {
        height: auto; padding: 0 1;
        background: $surface; border: round $primary; border-title-color: $text;
    }
    ColumnsBox Input { background: $panel; }
    ColumnsBox Static { color: $foreground 80%; }
    ColumnsBox #wrong { color: $text-error; height: auto; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "escape", "dismiss", "Cancel", id="columns.cancel", tooltip="keep the previous columns"
        ),
    ]

    def __init__(self, names: str) -> None:
        super().__init__()
        self._names = names
        self._error_line = Static(id="wrong", markup=False)

    def compose(self) -> ComposeResult:
        """Return the input line, the error, and the names that can be written."""
        lines = [Content.assemble((f"{title:11}", "bold"), words) for title, words in _CHOICES]
        names = Input(
            self._names, placeholder="time, operation, ttfe, header:content-type", compact=True
        )
        names.select_on_focus = False
        box = Vertical(names, self._error_line, Static(Content("\n").join(lines)), Static(_HINT))
        box.border_title = "Columns"
        yield box

    @on(Input.Changed)
    def _check_names(self, message: Input.Changed) -> None:
        try:
            parse_columns(message.value)
        except UserError as wrong:
            self._error_line.update(make_visible(f"{wrong.message}; {wrong.hint}"))
        else:
            self._error_line.update("")

    @on(Input.Submitted)
    def _submit_names(self, message: Input.Submitted) -> None:
        try:
            parse_columns(message.value)
        except UserError:
            self.app.bell()  # the error is shown already
        else:
            self.dismiss(message.value)
