"""Saved views, and commands that are typed after `:`."""

from collections.abc import Callable
from typing import NamedTuple

from a2a_inspect.data.references import parse_reference
from a2a_inspect.data.saved_views import read_views, views_file, write_views
from a2a_inspect.dialogs.command_line import Command, CommandLine
from a2a_inspect.dialogs.text_page import TextPage
from a2a_inspect.screens.controller import run_in_background
from a2a_inspect.screens.filter import FilterController
from a2a_inspect.screens.main_controller import MainController, MainParts
from a2a_inspect.screens.views_screen import ViewsScreen
from a2a_proxy.model.errors import UserError
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.recording.query.errors import suggest_word
from a2a_proxy.recording.read.rows import make_key


class _TypedCommand(NamedTuple):
    """A command of the command line."""

    help: Command
    """Name of the argument, and a description."""
    run: Callable[[str], None]
    is_argument_needed: bool = True


class Commands(MainController):
    """Opens the views and the command line, and runs commands."""

    def __init__(self, parts: MainParts, list_filter: FilterController) -> None:
        super().__init__(parts)
        self._filter = list_filter
        self._commands: dict[str, _TypedCommand] = {
            "explain": _TypedCommand(
                ("", "the SQL query of the filter, and its plan"), self._explain, False
            ),
            "filter": _TypedCommand(
                ("EXPR", "show only matching exchanges"), self._filter.use_expression, False
            ),
            "view": _TypedCommand(("NAME", "use a saved view"), self._use_view),
            "save": _TypedCommand(("NAME", "save the filter as a view"), self._save_view),
            "go": _TypedCommand(
                ("PLACE", "go to #12, or its frame #12.4; in session 2: #2:12"), self._go_to_place
            ),
            "quit": _TypedCommand(("", "quit"), self._quit, False),
        }

    # Actions.

    def open_views(self) -> None:
        """Let the user choose, save or delete a view."""
        self.screen.app.push_screen(
            ViewsScreen(views_file(), self._filter.current.make_expression()), self._use_picked_view
        )

    def _use_picked_view(self, expression: str | None) -> None:
        if expression is not None:
            self._filter.use_expression(expression)

    def open_command_line(self) -> None:
        """Let the user type a command."""
        helps = {name: command.help for name, command in self._commands.items()}
        self.screen.app.push_screen(CommandLine(helps), self._run_later)

    def _run_later(self, command: tuple[str, str] | None) -> None:
        self.screen.call_after_refresh(self._run, command)  # when the command line is closed

    def _run(self, typed: tuple[str, str] | None) -> None:
        if typed is None or not typed[0]:
            return
        name, argument = typed
        command = self._commands.get(name)
        if command is None:
            self.show_message(
                f'unknown command "{name}"{suggest_word(name, self._commands)}', is_error=True
            )
            return
        if command.is_argument_needed and not argument:
            self.show_message(f"usage: :{name} {command.help[0]}", is_error=True)
            return
        try:
            command.run(argument)
        except UserError as error:
            self.show_message(error.message, is_error=True)

    # Commands.

    @run_in_background("explain", exclusive=True)
    async def _explain(self, _argument: str) -> None:
        from a2a_inspect.commands.filters import explain_lines

        node = self._filter.current.make_node()
        none: list[str] = []
        lines = await self._reader.run_query(
            "explain", lambda recording: explain_lines(recording, node), none
        )
        self.screen.app.push_screen(
            TextPage("SQL query of the filter", [make_visible(line) for line in lines])
        )

    def _use_view(self, name: str) -> None:
        views = read_views(views_file())
        if name not in views:
            raise UserError(f'no view is named "{name}"{suggest_word(name, views)}', "")
        self._filter.use_expression(views[name])

    def _save_view(self, name: str) -> None:
        expression = self._filter.current.make_expression()
        if not expression:
            raise UserError("nothing to save: the list has no filter", "")
        write_views(views_file(), {**read_views(views_file()), name: expression})
        self.show_message(f"saved: {name}")

    def _go_to_place(self, word: str) -> None:
        place = parse_reference(word)
        if place is None or not place.exchange:
            raise UserError(f'"{word}" is not a place: write #12, or #12.4 for its frame 4', "")
        session = place.session or self._state.snapshot.sessions[0].id
        self._go_if_listed(make_key(session, place.exchange), place.seq)

    @run_in_background("go", exclusive=True)
    async def _go_if_listed(self, exchange: int, seq: int) -> None:
        row = await self._reader.run_query(
            "exchanges", lambda recording: recording.read_exchange(exchange), None
        )
        if row is None or await self._filter.list_index(exchange) is None:
            self.show_message("no such exchange in the list", is_error=True)
        else:
            self._filter.go_to(exchange, seq)

    def _quit(self, _argument: str) -> None:
        self.screen.app.exit(0)
