"""Pairing of identifiers of two runs. Each identifier has at most one partner."""

from __future__ import annotations

import re

WORD_PATTERN = re.compile(r"[0-9A-Za-z_-]{8,}")
"""An identifier in a text, for all code that replaces identifiers. Shorter ones may be words."""
_LABEL_PATTERN = re.compile(r"redacted-[0-9a-f]{12}")
"""The label with which redaction replaces a credential."""
_MAX_SEARCHED_CHARS = 65_536
"""Maximum characters of a text that is searched for identifiers."""

LEFT, RIGHT = 0, 1


class PairedIds:
    """Pairs of identifiers, added in the order of comparison; the first pair of an identifier stays.

    Each pair has a number, so that neither side is the reference for the other.
    """

    def __init__(self) -> None:
        self._numbers: tuple[dict[tuple[str, str], int], dict[tuple[str, str], int]] = ({}, {})
        self._words: tuple[dict[str, str], dict[str, str]] = ({}, {})

    def pair(self, kind: str, left: str, right: str) -> bool:
        """Whether the two identifiers are partners. Two identifiers without partners are paired."""
        known, other = self.pair_number(LEFT, kind, left), self.pair_number(RIGHT, kind, right)
        if known or other:
            return known == other
        number = len(self._numbers[LEFT]) + 1
        self._numbers[LEFT][kind, left] = self._numbers[RIGHT][kind, right] = number
        fresh = left not in self._words[LEFT] and right not in self._words[RIGHT]
        if left != right and fresh and WORD_PATTERN.fullmatch(left) and WORD_PATTERN.fullmatch(right):
            self._words[LEFT][left] = self._words[RIGHT][right] = f"\0{number}"
        return True

    def pair_number(self, side: int, kind: str, identifier: str) -> int:
        """Return the number of the pair of an identifier of this side, or 0."""
        return self._numbers[side].get((kind, identifier), 0)

    def neutralize(self, side: int, text: str) -> str:
        """Return a text of this side with known identifiers replaced by the numbers of their pairs."""
        words = self._words[side]
        if not words or len(text) > _MAX_SEARCHED_CHARS:
            return text
        return WORD_PATTERN.sub(lambda found: words.get(found[0], found[0]), text)


def neutralize_labels(text: str) -> str:
    """Return a text in which all labels of credentials are equal."""
    return _LABEL_PATTERN.sub("redacted", text) if "redacted-" in text else text
