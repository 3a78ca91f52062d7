"""Identifiers of two runs: which one on the left is which one on the right. Each stands for one alone."""

from __future__ import annotations

import re

WORD_PATTERN = re.compile(r"[0-9A-Za-z_-]{8,}")
"""An identifier inside a text, for all who put one in the place of another; shorter ones may be words."""
_LABEL_PATTERN = re.compile(r"redacted-[0-9a-f]{12}")
"""What redaction writes in the place of a credential."""
_MAX_SEARCHED_CHARS = 65_536
"""Characters: longer texts are not searched for identifiers."""

LEFT, RIGHT = 0, 1


class PairedIds:
    """Grows while things are compared in order; what is paired first stays paired. Each pair has a number, so that
    neither side is the measure of the other."""

    def __init__(self) -> None:
        self._numbers: tuple[dict[tuple[str, str], int], dict[tuple[str, str], int]] = ({}, {})
        self._words: tuple[dict[str, str], dict[str, str]] = ({}, {})

    def pair(self, kind: str, left: str, right: str) -> bool:
        """Whether the two stand for each other; two that nobody has seen yet do from now on."""
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
        """Of the pair that an identifier of this side is in; 0 where nobody knows."""
        return self._numbers[side].get((kind, identifier), 0)

    def neutralize(self, side: int, text: str) -> str:
        """A text of this side with numbers in the place of known identifiers."""
        words = self._words[side]
        if not words or len(text) > _MAX_SEARCHED_CHARS:
            return text
        return WORD_PATTERN.sub(lambda found: words.get(found[0], found[0]), text)


def neutralize_labels(text: str) -> str:
    """A text in which one label of a credential is as good as another."""
    return _LABEL_PATTERN.sub("redacted", text) if "redacted-" in text else text
