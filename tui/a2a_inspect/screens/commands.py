"""What is asked for by name: saved views, and commands after `:`."""

from __future__ import annotations

import re
from typing import ClassVar

from textual import work
from textual.binding import Binding, BindingType

from a2a_inspect.data.saved_views import read_views, views_file, write_views
from a2a_inspect.dialogs.command_line import Command, CommandLine
from a2a_inspect.dialogs.text_page import TextPage
from a2a_inspect.screens.navigation import NavigationScreen
from a2a_inspect.screens.views_screen import ViewsScreen
from a2a_proxy.cli.errors import UserError
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.recording.query.errors import suggest_word
from a2a_proxy.recording.read.rows import make_key

_COMMANDS: dict[str, Command] = {
    "explain": ("", "what SQLite is asked for what the list is narrowed to"),
    "filter": ("EXPR", "show only what matches"),
    "view": ("NAME", "use a saved view"),
    "save": ("NAME", "save what the list is narrowed to as a view"),
    "go": ("NUMBER", "to an exchange: 12, or 2:12 of the second session"),
    "quit": ("", "quit"),
}


class CommandScreen(NavigationScreen):
    """See the module."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("v", "views", "Views", show=False, id="exchanges.views", tooltip="saved views: use, save, delete"),
        Binding("colon", "command", "Command", show=False, id="app.command", tooltip="a command by its name: :explain"),
    ]

    def action_views(self) -> None:
        """Pick, save or delete a view."""
        self.app.push_screen(ViewsScreen(views_file(), self._filter.expression()), self._apply_picked_view)

    def _apply_picked_view(self, expression: str | None) -> None:
        if expression is not None:
            self.use_expression(expression)

    def action_command(self) -> None:
        """Type one."""
        self.app.push_screen(CommandLine(_COMMANDS), self._run_command_later)

    def _run_command_later(self, command: tuple[str, str] | None) -> None:
        self.call_after_refresh(self._run_command, command)  # when this is the screen again

    def _run_command(self, command: tuple[str, str] | None) -> None:
        if command is None or not command[0]:
            return
        name, argument = command
        if name not in _COMMANDS:
            self.show_message(f'there is no command "{name}"{suggest_word(name, _COMMANDS)}', is_error=True)
            return
        if _COMMANDS[name][0] and not argument and name != "filter":
            self.show_message(f"write :{name} {_COMMANDS[name][0]}", is_error=True)
            return
        try:
            getattr(self, f"_do_{name}")(argument)
        except UserError as wrong:
            self.show_message(wrong.message, is_error=True)

    @work(group="explain", exclusive=True)
    async def _do_explain(self, _argument: str) -> None:
        from a2a_inspect.commands.filters import explain_lines

        node = self._filter.node()
        none: list[str] = []
        lines = await self._await_answer("explain", self._source.ask(lambda r: explain_lines(r, node), none), none)
        self.app.push_screen(TextPage("What SQLite is asked", [make_visible(line) for line in lines]))

    def _do_filter(self, argument: str) -> None:
        self.use_expression(argument)

    def _do_view(self, argument: str) -> None:
        views = read_views(views_file())
        if argument not in views:
            raise UserError(f'there is no view "{argument}"{suggest_word(argument, views)}', "")
        self.use_expression(views[argument])

    def _do_save(self, argument: str) -> None:
        expression = self._filter.expression()
        if not expression:
            raise UserError("the list is not narrowed: there is nothing to save", "")
        write_views(views_file(), {**read_views(views_file()), argument: expression})
        self.show_message(f"saved: {argument}")

    def _do_go(self, argument: str) -> None:
        found = re.fullmatch(r"(?:(\d{1,6}):)?(\d{1,12})", argument)
        if found is None:
            raise UserError(f'"{argument}" is no number of an exchange: 12, or 2:12', "")
        session = int(found[1]) if found[1] else self._snapshot.sessions[0].id
        self._go_if_there(make_key(session, int(found[2])))

    @work(group="go", exclusive=True)
    async def _go_if_there(self, exchange: int) -> None:
        row = await self._await_answer("exchanges", self._source.ask(lambda r: r.exchange(exchange), None), None)
        if row is None or await self._list_index(exchange) is None:
            self.show_message("there is no such exchange in the list", is_error=True)
        else:
            self._go_to(exchange)

    def _do_quit(self, _argument: str) -> None:
        self.app.exit(0)
