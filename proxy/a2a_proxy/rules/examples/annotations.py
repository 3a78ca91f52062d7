"""What an example shows of an exchange beside its payloads: the fields that are not what a reader would expect."""

from __future__ import annotations

import re
from collections.abc import Mapping

from a2a_proxy.rules.examples.script import UPSTREAM

_Changes = Mapping[str, str | None] | None
"""Header fields that an example adds or changes; None takes one away."""
HOST = "localhost:8000"
_JSON_TYPES = ("application/json", "application/a2a+json")
_OLD_METHOD = re.compile(r'"method":"\w+/')
"""A JSON-RPC method of 0.x."""


def header_notes(changes: _Changes, *more: str) -> str:
    """The header fields that an example changes, and what else there is, in brackets. A field of several values is
    given once for each.
    """
    words = [*more]
    for name, value in (changes or {}).items():
        words += [f"(no {name})"] if value is None else [f"{name}: {item}" for item in value.split("\0")]
    return f" [{'; '.join(words)}]" if words else ""


def request_notes(
    target: str, body: str, changes: _Changes, *, version: str, media: str, host: str, upstream: str
) -> list[str]:
    """What is odd about a request over HTTP: the version, the content type of a body that is not JSON, the host, and
    the agent's URL where it is elsewhere.
    """
    words = [f"to {upstream}"] if upstream != UPSTREAM else []
    if host not in (HOST, upstream.partition("://")[2]):
        words.append(f"Host: {host}")
    expected = "" if target.startswith(("/.well-known/", "/v1/")) or _OLD_METHOD.search(body) else "1.0"
    words += version_notes(version, expected, changes)
    return words + (media_notes(media, changes) if body else [])


def version_notes(version: str, expected: str, changes: _Changes) -> list[str]:
    """The version where it is not that of the call: 1.0, or none."""
    if version == expected or _changes_field(changes, "a2a-version"):
        return []
    return [f"A2A-Version: {version}" if version else "(no A2A-Version)"]


def media_notes(media: str, changes: _Changes) -> list[str]:
    """The content type where it is not JSON."""
    return [] if media in _JSON_TYPES or _changes_field(changes, "content-type") else [f"Content-Type: {media}"]


def _changes_field(changes: _Changes, name: str) -> bool:
    """The example changes this field, so it is shown anyway."""
    return any(each.lower() == name for each in changes or {})
