"""Menu of the forms in which the frame or exchange under the cursor can be copied: one key each, or
the reason why a form is not available.
"""

from collections.abc import Mapping
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from a2a_inspect.dialogs.menu import MENU_CSS

FORMS = (
    ("j", "json", "JSON", "the frame decoded, or the whole exchange"),
    ("r", "raw", "raw", "the payload as sent on the wire"),
    ("c", "curl", "curl", "a shell command that repeats the request"),
    ("g", "grpcurl", "grpcurl", "the same for gRPC"),
    ("p", "python", "Python", "a program with the SDK of its dialect"),
    ("t", "pytest", "pytest", "a test that asserts the recorded answer"),
    ("i", "ids", "ids", "task, context, message, trace"),
)
"""Key, name of the form, label, description."""


class CopyMenu(ModalScreen[str | None]):
    """The menu. Returns the name of a form."""

    DEFAULT_CSS = MENU_CSS.replace("MENU", "CopyMenu")

    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(
                key,
                f"choose('{name}')",
                f"As {label}",
                show=False,
                id=f"copy.{name}",
                tooltip=f"copy {about}",
            )
            for key, name, label, about in FORMS
        ),
        Binding("escape,q,y", "dismiss", "Close", id="copy.close", tooltip="close without copying"),
    ]

    def __init__(self, subject: str, refusals: Mapping[str, str]) -> None:
        super().__init__()
        self._subject = subject
        self._refusals = refusals
        """Name of a form -> reason why it is not available."""

    def compose(self) -> ComposeResult:
        """Return a line for each form."""
        box = VerticalScroll(Static(Content("\n").join(self._form_line(*form) for form in FORMS)))
        box.border_title, box.border_subtitle = f"Copy {self._subject} as", "esc closes"
        yield box

    def _form_line(self, key: str, name: str, label: str, about: str) -> Content:
        why = self._refusals.get(name)
        if why is not None:
            return Content.assemble((f"-  {label:9}({why})", "dim"))
        return Content.assemble((f"{key}  ", "bold"), f"{label:9}", about)

    def action_choose(self, name: str) -> None:
        """Choose a form; show the reason if it is not available."""
        if name in self._refusals:
            self.notify(f"not as {name}: {self._refusals[name]}", severity="warning", markup=False)
        else:
            self.dismiss(name)
