"""Annotations of an example: the fields of an exchange, other than payloads, that differ from the usual ones."""

from __future__ import annotations

import re
from collections.abc import Mapping

from a2a_proxy.rules.examples.script import UPSTREAM

_Changes = Mapping[str, str | None] | None
"""Header fields that an example adds or changes; None removes a field."""
HOST = "localhost:8000"
_JSON_TYPES = ("application/json", "application/a2a+json")
_OLD_METHOD = re.compile(r'"method":"\w+/')
"""A JSON-RPC method of 0.x."""


def header_notes(changes: _Changes, *more: str) -> str:
    """Return the header fields changed by an example, and further notes, in brackets. A field with several values is
    listed once for each.
    """
    words = [*more]
    for name, value in (changes or {}).items():
        words += [f"(no {name})"] if value is None else [f"{name}: {item}" for item in value.split("\0")]
    return f" [{'; '.join(words)}]" if words else ""


def request_notes(
    target: str, body: str, changes: _Changes, *, version: str, media: str, host: str, upstream: str
) -> list[str]:
    """Return the unusual properties of an HTTP request: the version, the content type of a body that is not JSON, the
    host, and the agent's URL if it is not the usual one.
    """
    words = [f"to {upstream}"] if upstream != UPSTREAM else []
    if host not in (HOST, upstream.partition("://")[2]):
        words.append(f"Host: {host}")
    expected = "" if target.startswith(("/.well-known/", "/v1/")) or _OLD_METHOD.search(body) else "1.0"
    words += version_notes(version, expected, changes)
    return words + (media_notes(media, changes) if body else [])


def version_notes(version: str, expected: str, changes: _Changes) -> list[str]:
    """Return the version if it is not the expected one."""
    if version == expected or _changes_field(changes, "a2a-version"):
        return []
    return [f"A2A-Version: {version}" if version else "(no A2A-Version)"]


def media_notes(media: str, changes: _Changes) -> list[str]:
    """Return the content type if it is not JSON."""
    return [] if media in _JSON_TYPES or _changes_field(changes, "content-type") else [f"Content-Type: {media}"]


def _changes_field(changes: _Changes, name: str) -> bool:
    """Whether the example changes this field, which is then shown anyway."""
    return any(each.lower() == name for each in changes or {})
