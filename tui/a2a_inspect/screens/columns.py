"""The columns of the list that the user chose. They are kept in the file of views."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a_inspect.data.saved_views import read_columns, views_file, write_columns
from a2a_inspect.screens.filter import FilterController
from a2a_inspect.screens.main_controller import MainController, MainParts
from a2a_proxy.model.errors import UserError

if TYPE_CHECKING:
    from a2a_inspect.data.list_columns import UserColumn


class ListColumns(MainController):
    """Restores the columns, and lets the user choose others."""

    def __init__(self, parts: MainParts, list_filter: FilterController) -> None:
        super().__init__(parts)
        self._filter = list_filter
        self._columns: tuple[UserColumn, ...] = ()

    def restore_columns(self) -> None:
        """Show the columns of the file of views. A wrong file is reported, and the list has its
        standard columns."""
        try:
            if names := read_columns(views_file()):
                from a2a_inspect.data.list_columns import parse_columns

                self._show(parse_columns(",".join(names)))
        except UserError as wrong:
            self.show_message(f"{views_file()}: {wrong.message}", is_error=True)

    def open_box(self) -> None:
        """Let the user edit the names of the columns."""
        from a2a_inspect.data.list_columns import STANDARD_COLUMNS
        from a2a_inspect.dialogs.columns_box import ColumnsBox

        names = [each.name for each in self._columns] or STANDARD_COLUMNS
        self.screen.app.push_screen(ColumnsBox(", ".join(names)), self._use)

    def _use(self, words: str | None) -> None:
        if words is None:
            return
        from a2a_inspect.data.list_columns import STANDARD_COLUMNS, parse_columns

        columns = parse_columns(words)
        if tuple(each.name for each in columns) == STANDARD_COLUMNS:
            columns = ()
        self._show(columns)
        try:
            write_columns(views_file(), [each.name for each in columns])
        except UserError as wrong:
            self.show_message(wrong.message, is_error=True)

    def _show(self, columns: tuple[UserColumn, ...]) -> None:
        self._columns = columns
        self._filter.read_columns(columns)
        self._widgets.exchanges.show_columns(columns)
