"""The help page: the keys available on the current screen first, then all others."""

import textwrap
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from a2a_inspect.keys.actions import Action, display_key

_SIGNS = (
    ("→ ←", "frame to the agent; frame to the client"),
    ("live ok error", "still open; succeeded; agent reported an error"),
    ("cut refused", "ended early by a peer; answered by the proxy"),
)


_KEYS_WIDTH, _MEANING_WIDTH = 24, 44
"""Cells of the two columns; both fit an 80-cell terminal."""


class Help(ModalScreen[None]):
    """The help page."""

    DEFAULT_CSS = """
    Help { align: center middle; }
    Help > VerticalScroll {
        width: 76; max-width: 96%; height: auto; max-height: 96%; padding: 0 2;
        background: $surface; border: round $primary; border-title-color: $text;
        scrollbar-size-vertical: 1;
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,f1,q,enter", "dismiss", "Close", id="keys.close"),
        Binding("j", "scroll(1)", "Down", show=False, id="keys.down"),
        Binding("k", "scroll(-1)", "Up", show=False, id="keys.up"),
    ]

    def __init__(self, actions: Sequence[Action], available: set[str]) -> None:
        """`available` has the ids of the actions available now."""
        super().__init__()
        self._lines = list(help_lines(actions, available))

    def compose(self) -> ComposeResult:
        """Return the text."""
        box = VerticalScroll(Static(Content("\n").join(self._lines)))
        box.border_title, box.border_subtitle = "Keys", "esc closes"
        yield box

    def action_scroll(self, by: int) -> None:
        """Scroll by lines."""
        self.query_one(VerticalScroll).scroll_relative(y=by, animate=False)


def help_lines(actions: Sequence[Action], available: set[str]) -> Iterator[Content]:
    """Yield the actions by place; places with available actions come first."""
    groups = [list(group) for _, group in groupby(actions, lambda each: each.place)]
    groups.sort(key=lambda group: not any(each.id in available for each in group))
    for group in groups:
        yield Content.styled(group[0].place, "bold underline")
        for each in group:
            yield _key_meaning_lines(" ".join(map(display_key, each.keys)), each.help)
        yield Content("")
    yield Content.styled("Signs", "bold underline")
    for signs, meaning in _SIGNS:
        yield _key_meaning_lines(signs, meaning)


def _key_meaning_lines(keys: str, meaning: str) -> Content:
    """Return keys and their meaning in two columns, wrapped to as many rows as needed."""
    first, *rest = textwrap.wrap(meaning, _MEANING_WIDTH) or [""]
    return Content("\n").join(
        [
            Content.assemble((f"{keys:{_KEYS_WIDTH}} ", "bold"), first),
            *(Content(" " * (_KEYS_WIDTH + 1) + row) for row in rest),
        ]
    )
