"""Escapes of JSON texts as an agent writes them: which characters become `\\uXXXX`."""

import re

_ESCAPE = re.compile(rb"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_NEVER = frozenset('"\\') | {chr(code) for code in range(32)}
"""Characters that JSON escapes anyway."""
LINE_SEPARATORS = "\x85\u2028\u2029"
"""Characters that some clients take for the end of a line of an event stream."""


def escape_as_recorded(data: bytes, recorded: bytes) -> bytes:
    """Return JSON with the characters escaped that the recorded JSON escapes.

    If the recorded JSON is ASCII, all other characters are escaped.
    """
    found = {bytes(code or char) for code, char in _ESCAPE.findall(recorded)}
    codes = {each for each in found if len(each) == 4}
    if data.isascii() and not codes and b"/" not in found:
        return data
    escaped = {chr(int(each, 16)) for each in codes}
    pairs = {char for char in escaped if "\ud800" <= char <= "\udfff"}
    chars = "".join(map(re.escape, escaped - _NEVER - pairs))
    ranges = r"\x80-\U0010ffff" if recorded.isascii() else r"\U00010000-\U0010ffff" if pairs else ""
    slash = "/" if b"/" in found and "/" not in escaped else ""
    return _escape_chars(
        data, chars + ranges, slash=slash, upper=any(each != each.lower() for each in codes)
    )


def escape_line_separators(data: bytes) -> bytes:
    """Return JSON with the line separators escaped."""
    return data if data.isascii() else _escape_chars(data, LINE_SEPARATORS)


def _escape_chars(data: bytes, chars: str, *, slash: str = "", upper: bool = False) -> bytes:
    """Return JSON with these characters, written as in a class of a regular expression, escaped in
    all strings."""
    if not chars and not slash:
        return data
    pattern = re.compile(rf"\\.|[{chars}{slash}]")
    form = "\\u{:04X}" if upper else "\\u{:04x}"

    def escape(found: re.Match[str]) -> str:
        text = found[0]
        if text[0] == "\\":
            return text
        if text == slash:
            return "\\/"
        units = text.encode("utf-16-be")
        return "".join(
            form.format(int.from_bytes(units[at : at + 2])) for at in range(0, len(units), 2)
        )

    return _STRING.sub(lambda string: pattern.sub(escape, string[0]), data.decode()).encode()
