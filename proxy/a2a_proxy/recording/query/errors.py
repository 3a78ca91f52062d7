"""Errors of filter expressions, with their position."""

import difflib
from collections.abc import Iterable

from a2a_proxy.model.errors import UserError


class QueryError(UserError):
    """The expression cannot be used. `str()` is the message alone."""

    def __init__(
        self, message: str, text: str = "", at: int = 0, *, hint: str = "", incomplete: bool = False
    ) -> None:
        super().__init__(message, hint or "the language is described by: a2a-inspect help filters")
        self.text = text
        self.at = at
        """Offset of the error in `text`, in characters."""
        self.incomplete = incomplete
        """Whether typing on at its end may make it valid."""
        self.details = [f"  {line}" for line in self.caret]

    @property
    def caret(self) -> tuple[str, str]:
        """The expression, and below it a caret at the error. A long expression is cut around it."""
        start = max(0, self.at - 60)
        visible = "".join(c if c.isprintable() else "?" for c in self.text[start : self.at + 40])
        return visible, f"{' ' * (self.at - start)}^"


class SearchStopped(Exception):
    """The watcher of a search ended it."""


_MIN_PREFIX = 3
"""Minimum number of characters of a known word that is suggested for a word that begins with it."""


def suggest_word(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean "task"?`, or an empty string if no known word is similar."""
    words = list(known)
    near = difflib.get_close_matches(word, words, n=1, cutoff=0.6)
    near = near or [each for each in words if len(each) >= _MIN_PREFIX and word.startswith(each)]
    return f'; did you mean "{near[0]}"?' if near else ""
