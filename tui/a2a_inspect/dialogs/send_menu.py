"""The confirmation of a call that is sent again, which names the agent, and the input of another
agent."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from a2a_inspect.dialogs.menu import MENU_CSS
from a2a_proxy.protocol.text import make_visible

SEND, EDIT, AGENT = "send", "edit", "agent"
_WARNING = "A real agent acts on it: it books the table once more."


class SendMenu(ModalScreen[str | None]):
    """The menu. Returns what to do; nothing is sent without it."""

    DEFAULT_CSS = MENU_CSS.replace("MENU", "SendMenu")

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "s",
            f"choose('{SEND}')",
            "Send",
            show=False,
            id="send.now",
            tooltip="send the call to the named agent",
        ),
        Binding(
            "e",
            f"choose('{EDIT}')",
            "Edit",
            show=False,
            id="send.edit",
            tooltip="edit the request in $EDITOR",
        ),
        Binding(
            "a",
            f"choose('{AGENT}')",
            "Agent",
            show=False,
            id="send.agent",
            tooltip="choose another agent",
        ),
        Binding("escape,q", "dismiss", "Close", id="send.close", tooltip="close without sending"),
    ]

    def __init__(self, title: str, agent: str, *, is_edited: bool, is_editable: bool) -> None:
        super().__init__()
        self._title = title
        self._agent = agent
        self._is_edited = is_edited
        self._is_editable = is_editable

    def compose(self) -> ComposeResult:
        """Return a line for each choice."""
        subject = "the edited request" if self._is_edited else "it as it was"
        lines = [Content.assemble((self._title, "dim")), Content()]
        if self._agent:
            lines.append(
                Content.assemble(("s  ", "bold"), f"send {subject} to ", (self._agent, "bold"))
            )
        if self._is_editable:
            lines.append(
                Content.assemble(
                    ("e  ", "bold"), f"edit the request {'again' if self._is_edited else 'first'}"
                )
            )
        lines.append(
            Content.assemble(
                ("a  ", "bold"), "choose another agent" if self._agent else "name the agent"
            )
        )
        lines += [Content(), Content(_WARNING)]
        box = VerticalScroll(Static(Content("\n").join(lines)))
        box.border_title, box.border_subtitle = "Send again", "esc sends nothing"
        yield box

    def action_choose(self, choice: str) -> None:
        """Choose, if this is offered."""
        if (choice != SEND or self._agent) and (choice != EDIT or self._is_editable):
            self.dismiss(choice)


class AgentBox(ModalScreen[str | None]):
    """The input of an agent. Returns its address, or the command line of a stdio agent."""

    DEFAULT_CSS = """
    AgentBox { align: center bottom; }
    AgentBox > Vertical {
        height: auto; padding: 0 1;
        background: $surface; border: round $primary; border-title-color: $text;
    }
    AgentBox Input { background: $panel; }
    AgentBox Static { color: $foreground 70%; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "Cancel", id="agent.leave", tooltip="keep the agent"),
    ]

    def __init__(self, agent: str, hint: str) -> None:
        super().__init__()
        self._agent = agent
        self._hint = hint

    def compose(self) -> ComposeResult:
        """Return the input line and the hint."""
        box = Vertical(
            Input(self._agent, compact=True), Static(make_visible(self._hint), markup=False)
        )
        box.border_title = "Agent"
        yield box

    @on(Input.Submitted)
    def _submit_agent(self, message: Input.Submitted) -> None:
        if message.value.strip():
            self.dismiss(message.value.strip())
