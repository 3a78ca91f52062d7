"""Peers' text made fit for one line of a terminal: control characters as symbols, bounded length."""

from __future__ import annotations

_PICTURES = {code: chr(0x2400 + code) for code in range(32)} | {0x7F: "␡"}


def visible(text: str) -> str:
    """Give `text` without a character that could act on a terminal: controls and formatting marks become symbols."""
    return text if text.isprintable() else "".join(map(_shown, text))


def one_line(text: str, limit: int = 160) -> str:
    """The same, cut to `limit` characters of the original with an ellipsis."""
    return visible(text[: limit - 1] + "…" if len(text) > limit else text)


def _shown(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    return _PICTURES.get(code) or f"<U+{code:04X}>"
