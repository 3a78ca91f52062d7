"""Wrap the command of a stdio agent in a card (manual/protocol.md "Stdio framing"): put another
command before it.

Two forms: a command line, which clients split as a POSIX shell does, or pass to a shell; and
`stdio:///PATH?WORD&WORD`. Runs nothing, and changes nothing except by insertion.
"""

import re
import shlex
from collections.abc import Sequence

from a2a_proxy.protocol.stdio_command import STDIO_URI

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_SPACE = " \t\n"
_SHELL_BUILTIN = re.compile(r"(?:exec|eval|source|\.)(?=\s)")
"""The start of a command that only a shell has."""


def has_program(text: str) -> bool:
    """Return whether the command has more than environment assignments."""
    return STDIO_URI.match(text) is not None or _find_command(text) < len(text)


def is_wrapped(text: str, words: Sequence[str]) -> bool:
    """Return whether the command already begins with these two words, whatever the folder of the
    first one."""
    if found := STDIO_URI.match(text):
        program, _, query = text[found.end() :].partition("?")
        first = [program, *query.split("&")]
    else:
        command = text[_find_command(text) :]
        try:
            first = shlex.split(command)
        except ValueError:  # an unclosed quote
            first = command.split()
    return len(first) > 1 and [first[0].rpartition("/")[2], first[1]] == list(words)


def wrap_command(text: str, words: Sequence[str], program: str) -> str:
    """Return the command with `words` before it, after its environment assignments. `program` is
    the absolute path of the first word, which the form `stdio:///PATH` needs."""
    if found := STDIO_URI.match(text):
        path, mark, query = text[found.end() :].partition("?")
        inserted = "&".join(_quote_for_query(word) for word in words[1:])
        return (
            f"{found[0]}{_quote_for_query(program)}?{inserted}&{path}{'&' if mark else ''}{query}"
        )
    before = shlex.join(words)
    if _needs_shell(text):
        return f"{before} sh -c {shlex.quote(text)}"
    at = _find_command(text)
    return f"{text[:at]}{before} {text[at:]}"


def _quote_for_query(word: str) -> str:
    """Return a word without the characters that would end it. The form has no rules except those of
    URIs."""
    return re.sub(
        r"[%&#?\s]", lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), word
    )


def _find_command(text: str) -> int:
    """Return where the command's own name begins, after `VAR=value` words."""
    at = _skip_space(text, 0)
    while _ASSIGNMENT.match(text, at):
        at = _skip_space(text, _word_end(text, at)[0])
    return at


def _skip_space(text: str, position: int) -> int:
    while position < len(text) and text[position] in _SPACE:
        position += 1
    return position


def _needs_shell(text: str) -> bool:
    """Return whether the text holds several commands, which only a shell can run in sequence, or a
    shell builtin."""
    at, several = 0, _SHELL_BUILTIN.match(text, _find_command(text)) is not None
    while at < len(text):
        at, found = _word_end(text, _skip_space(text, at))
        several = several or found
    return several


def _word_end(text: str, position: int) -> tuple[int, bool]:
    """Return where the word that begins here ends, and whether it holds, outside quotes, a
    separator of commands."""
    open_: list[str] = []
    parts = False
    while position < len(text):
        char, closer = text[position], open_[-1] if open_ else ""
        if char == closer:
            open_.pop()
        elif closer == "'":
            pass
        elif char == "\\":
            position += 1
        elif char in '"`' or (char == "'" and closer != '"'):
            open_.append(char)
        elif text.startswith(("$(", "${"), position) or (char == "(" and closer == ")"):
            position += char == "$"
            open_.append(")" if text[position] == "(" else "}")
        elif not open_ and char in _SPACE:
            break
        elif not open_ and char in ";|&()":
            parts = True
        position += 1
    return min(position, len(text)), parts
