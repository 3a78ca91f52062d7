"""What is wrong with an expression, and where."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class QueryError(Exception):
    """The expression cannot be used. `str()` is the message alone."""

    def __init__(self, message: str, text: str = "", at: int = 0, *, hint: str = "", incomplete: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.text = text
        self.at = at
        """Offset in `text`, in characters, of what is wrong."""
        self.hint = hint
        self.incomplete = incomplete
        """It may become right by typing on at its end."""

    @property
    def caret(self) -> str:
        """The expression, and under it a caret at what is wrong; a long one is cut around it."""
        start = max(0, self.at - 60)
        shown = "".join(c if c.isprintable() else "?" for c in self.text[start : self.at + 40])
        return f"{shown}\n{' ' * (self.at - start)}^"


class SearchStopped(Exception):
    """Whoever watched a search wanted no more of it."""


def suggest_word(word: str, known: Iterable[str]) -> str:
    """`; did you mean "task"?`, or nothing where no known word is near."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f'; did you mean "{near[0]}"?' if near else ""
