"""Peers' text made safe for one line of a terminal, and for JSON that strict readers and terminals
accept."""

import json
import re
import shlex
from typing import Any

_CONTROL_PICTURES = {code: chr(0x2400 + code) for code in range(32)} | {0x7F: "␡"}

_BINARY_CHARACTERS = re.compile("[\0-\x08\x0e-\x1a\x1c-\x1f]")
_HIDDEN_CHARACTERS = re.compile(
    "[\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
"""Characters that control a terminal or are invisible in it, but are allowed unescaped in JSON."""


def strict_json(value: Any, indent: int | None = None) -> str:
    """Return `value` as JSON. A lone surrogate in a peer's text, which strict readers reject,
    becomes a question mark; characters that control a terminal are escaped; all others are written
    unescaped."""
    text = json.dumps(value, indent=indent, ensure_ascii=False).encode("utf-8", "replace").decode()
    return escape_hidden(text)


def escape_hidden(text: str) -> str:
    """Return JSON text of the same value in which terminal control characters and invisible ones
    are `\\uXXXX`."""
    return _HIDDEN_CHARACTERS.sub(lambda found: json.dumps(found[0])[1:-1], text)


def make_visible(text: str) -> str:
    """Return `text` with symbols in place of the characters that could control a terminal
    (controls, formatting marks)."""
    return text if text.isprintable() else "".join(map(_visible_character, text))


def shell_line(*words: str) -> str:
    """Return the command line that a shell splits into these words, on one line and safe for a
    terminal.

    Unprintable characters are written as octal escapes in `$'...'`, which bash, zsh and ksh read.
    """
    return " ".join(map(_shell_word, words))


def _shell_word(word: str) -> str:
    if word.isprintable():
        return shlex.quote(word)
    escaped = "".join(map(_escape_character, word))
    return f"$'{escaped}'"


def _escape_character(character: str) -> str:
    if character in "\\'":
        return "\\" + character
    if character.isprintable():
        return character
    errors = "surrogateescape" if "\udc80" <= character <= "\udcff" else "surrogatepass"
    return "".join(f"\\{byte:03o}" for byte in character.encode("utf-8", errors))


def text_of_body(data: bytes) -> str | None:
    """Return the beginning of a body as text; None if it is binary: not UTF-8 (the last character
    may be cut), or with controls that no text has."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        if error.start < len(data) - 3:
            return None
        text = data[: error.start].decode()
    return None if _BINARY_CHARACTERS.search(text) else text


def to_one_line(text: str, limit: int = 160) -> str:
    """Return the visible form of `text` (`make_visible`), cut to `limit` characters including the
    ellipsis."""
    return make_visible(text[: limit - 1] + "…" if len(text) > limit else text)


def _visible_character(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    return _CONTROL_PICTURES.get(code) or f"<U+{code:04X}>"
