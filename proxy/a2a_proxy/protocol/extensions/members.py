"""Members of decoded JSON, whose types are the peer's choice."""

from typing import Any

_MAX_QUOTE = 48
"""Maximum number of quoted characters."""
_MAX_NAMES = 3
"""Maximum number of listed names."""


def text_member(value: Any, *names: str) -> str:
    """Return the first of these members that is a text, or an empty string."""
    found = (value.get(name) for name in names) if isinstance(value, dict) else ()
    return next((each for each in found if isinstance(each, str) and each), "")


def object_member(value: Any, name: str) -> dict[str, Any]:
    """Return a member that is an object, or an empty one."""
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def list_member(value: Any, name: str) -> list[Any]:
    """Return a member that is an array, or an empty one."""
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, list) else []


def quote(text: str) -> str:
    """Return the beginning of a text in quotation marks."""
    return f'"{text[: _MAX_QUOTE - 1]}…"' if len(text) > _MAX_QUOTE else f'"{text}"'


def count(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def list_names(names: list[str]) -> str:
    """Return the first names, and how many more there are."""
    more = len(names) - _MAX_NAMES
    return ", ".join(names[:_MAX_NAMES]) + (f" and {more} more" if more > 0 else "")


def malformed(what: str) -> str:
    """Return the words for content that does not have the form of its extension."""
    return f"malformed: {what}"
