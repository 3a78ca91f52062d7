"""Errors of filter expressions, with their position."""

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
        """Offset of the error in `text`, in characters."""
        self.hint = hint
        self.incomplete = incomplete
        """Whether typing on at its end may make it valid."""

    @property
    def caret(self) -> str:
        """The expression, and below it a caret at the error. A long expression is cut around it."""
        start = max(0, self.at - 60)
        visible = "".join(c if c.isprintable() else "?" for c in self.text[start : self.at + 40])
        return f"{visible}\n{' ' * (self.at - start)}^"


class SearchStopped(Exception):
    """The watcher of a search ended it."""


def suggest_word(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean "task"?`, or an empty string if no known word is similar.

    Similar is a word with few other letters, else the longest one with which `word` begins: `sev` for `severity`.
    """
    candidates = list(known)
    beginnings = [each for each in candidates if len(each) > 1 and word.startswith(each)]
    near = difflib.get_close_matches(word, candidates, n=1, cutoff=0.6) or sorted(beginnings, key=len)[-1:]
    return f'; did you mean "{near[0]}"?' if near else ""
