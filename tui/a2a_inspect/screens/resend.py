"""Sends the call under the cursor again: asks for the agent, lets the user edit the request, and
opens its screen."""

from a2a_inspect.data.source import FrameLine
from a2a_inspect.screens.controller import run_in_background
from a2a_inspect.screens.main_controller import MainController, MainParts
from a2a_inspect.screens.panes import Panes
from a2a_proxy.cli.errors import state_directory_errors
from a2a_proxy.model.errors import UserError
from a2a_proxy.protocol.text import make_visible, shell_line
from a2a_proxy.recording.read.rows import ExchangeRow

_AGENT_HINT = "HOST:PORT or a URL; https:// for TLS"
_COMMAND_HINT = "the command of a stdio agent, for example: python my_agent.py"


class ResendController(MainController):
    """Sends recorded calls again."""

    def __init__(self, parts: MainParts, panes: Panes) -> None:
        super().__init__(parts)
        self._panes = panes
        self._edited_requests: dict[int, str] = {}
        """Key of an exchange -> its request as saved last."""

    def _key_under_cursor(self) -> int:
        rows = self._widgets.frames if self._panes.focused_index() else self._widgets.exchanges
        row = rows.current_row
        if isinstance(row, ExchangeRow):
            return row.key
        return row.row.exchange_key if isinstance(row, FrameLine) else self._state.selected_exchange

    def _is_refused(self) -> bool:
        """Return whether nothing can be sent from this screen, and say so if that is the case."""
        if self._source.files:
            self.show_message(
                "several recordings are open as one: open a single one to send a call",
                is_error=True,
            )
        elif getattr(self.screen.app, "read_only", False):
            self.show_message("this screen is read-only: no call is sent", is_error=True)
        else:
            return False
        return True

    @run_in_background(group="send", exclusive=True)
    async def open_menu(self) -> None:
        """Let the user confirm, and send the call."""
        key = self._key_under_cursor()
        if not key or self._is_refused():
            return
        from a2a_inspect.data.sendable_call import SendableCall, read_sendable_call
        from a2a_inspect.dialogs.send_menu import AGENT, EDIT, AgentBox, SendMenu
        from a2a_inspect.screens.send_screen import SendScreen

        none: SendableCall | str = ""
        call = await self._reader.run_query(
            "send", lambda recording: read_sendable_call(recording, key), none
        )
        if isinstance(call, str):
            self.show_message(call or "nothing to send yet", is_error=True)
            return
        agent, is_edited = call.agent, False
        while True:
            menu = SendMenu(
                call.title, make_visible(agent), is_edited=is_edited, is_editable=bool(call.request)
            )
            choice = await self.screen.app.push_screen_wait(menu)
            if choice is None:
                return
            if choice == AGENT:
                hint = _COMMAND_HINT if call.is_stdio else _AGENT_HINT
                named = await self.screen.app.push_screen_wait(AgentBox(agent, hint))
                agent = named or agent
            elif choice == EDIT:
                words = shell_line(
                    "a2a-proxy", "send", str(self._source.path), call.place, "-u", agent, "--edit"
                )
                is_edited = self._edit_request(key, call.request, words) or is_edited
            else:
                break
        request = self._edited_requests[key] if is_edited else ""
        try:
            with state_directory_errors():
                send_screen = SendScreen(self._source.path, call, agent, request)
        except UserError as wrong:
            self.show_message(wrong.message, is_error=True)
        else:
            self.screen.app.push_screen(send_screen)

    def _edit_request(self, key: int, recorded: str, command: str) -> bool:
        """Open the request in the user's editor, and return whether it was saved."""
        import click
        from textual.app import SuspendNotSupported

        try:
            with self.screen.app.suspend():
                saved = click.edit(self._edited_requests.get(key, recorded), extension=".json")
        except SuspendNotSupported:
            self.show_message(
                f"no editor can be opened here; in a terminal: {command}", is_error=True
            )
            return False
        except click.ClickException as wrong:
            self.show_message(f"the editor failed: {wrong.format_message()}", is_error=True)
            return False
        if saved is None:
            self.show_message("the editor saved nothing: the request is unchanged")
            return False
        self._edited_requests[key] = saved
        return True
