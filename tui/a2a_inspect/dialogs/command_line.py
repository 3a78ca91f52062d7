"""The command line: `:` and a command with its argument, for users who prefer typing to keys."""

from collections.abc import Mapping
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.suggester import SuggestFromList
from textual.widgets import Input, Static

Command = tuple[str, str]
"""Name of the argument, if the command takes one, and description of the command."""


class CommandLine(ModalScreen[tuple[str, str] | None]):
    """The command line. Returns the command and its argument."""

    DEFAULT_CSS = """
    CommandLine { align: left bottom; background: transparent; }
    CommandLine > Vertical { height: auto; background: $panel; }
    CommandLine Horizontal { height: 1; }
    CommandLine #colon { width: 2; text-style: bold; }
    CommandLine Input { width: 1fr; background: $panel; }
    CommandLine #commands { color: $foreground 80%; padding: 0 2; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "Cancel", id="command.cancel"),
        Binding("tab", "complete", "Complete", id="command.complete", priority=True),
    ]

    def __init__(self, commands: Mapping[str, Command]) -> None:
        super().__init__()
        self._commands = commands
        self._input = Input(compact=True, suggester=SuggestFromList(commands))
        self._command_list = Static(id="commands")

    def compose(self) -> ComposeResult:
        """Return the list of commands and the input line below it."""
        with Vertical():
            yield self._command_list
            with Horizontal():
                yield Static(":", id="colon")
                yield self._input

    def on_mount(self) -> None:
        """Show the commands and focus the input."""
        self._list_commands("")
        self._input.focus()

    @on(Input.Changed)
    def _update_suggestions(self, event: Input.Changed) -> None:
        self._list_commands(event.value.partition(" ")[0])

    def _list_commands(self, prefix: str) -> None:
        rows = [
            Content.assemble((f"{name} {argument}".ljust(16), "bold"), about)
            for name, (argument, about) in self._commands.items()
            if name.startswith(prefix)
        ]
        self._command_list.update(Content("\n").join(rows))

    @on(Input.Submitted)
    def _submit_command(self, event: Input.Submitted) -> None:
        name, _, argument = event.value.strip().partition(" ")
        names = [each for each in self._commands if each.startswith(name)]
        self.dismiss((names[0] if len(names) == 1 else name, argument.strip()))

    def action_complete(self) -> None:
        """Insert the suggestion."""
        self._input.action_cursor_right()

    def action_cancel(self) -> None:
        """Close without a command."""
        self.dismiss(None)
