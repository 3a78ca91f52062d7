"""The states of a task in a column that may be too narrow for them."""

import re
from collections.abc import Iterator

from rich.cells import cell_len

SHORT_STATES = {
    "submitted": "subm",
    "working": "work",
    "input-required": "input",
    "auth-required": "auth",
    "completed": "compl",
    "canceled": "canc",
    "failed": "fail",
    "rejected": "rej",
}
"""States with their abbreviations; other names are not abbreviated."""
_ARROW = " > "
_AFTER_STATES = re.compile(r"  |, ")
"""What separates the states from the words after them."""


def abbreviate_states(text: str, width: int) -> str:
    """Return `submitted > working > completed`, followed by other words, in at most `width` cells
    if possible.

    First the earlier states are abbreviated, then all of them; then the states between the first
    and the last are left out: `subm>…>compl`. A result that is still too long loses its end.
    """
    if cell_len(text) <= width:
        return text
    separator = _AFTER_STATES.search(text)
    end = separator.start() if separator else len(text)
    rest = text[end:]
    forms = list(_shorter_forms(text[:end].split(_ARROW)))
    return next((form + rest for form in forms if cell_len(form + rest) <= width), forms[-1] + rest)


def _shorter_forms(states: list[str]) -> Iterator[str]:
    short = [SHORT_STATES.get(state, state) for state in states]
    yield _ARROW.join([*short[:-1], states[-1]])
    yield ">".join(short)
    if len(short) > 2:
        yield ">".join([short[0], "…", short[-1]])
