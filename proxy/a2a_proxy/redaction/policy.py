"""What to take out of a recording besides credentials, and what to leave in it: read from tables or from words.

A policy is a list of words, and every way of saying one comes down to them: `--redact WORD`, a TOML file, the session
that remembers what was applied to it.

    default | strict | pii | none       presets; strict and pii add to one another
    metadata-only                       no payload, no message text
    header:NAME  member:NAME            of header fields and JSON members; `*` stands for any characters
    path:PATH    $.JSON.PATH            a place in payloads, JSON and protobuf alike (`paths`)
    regex:PATTERN                       what looks so, anywhere
    keep:header:NAME  keep:member:NAME  keep:path:PATH  keep:regex:PATTERN      what stays though it would go
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from a2a_proxy.redaction.payload_paths import PathError, check_path
from a2a_proxy.redaction.secret_names import fold

PRESETS: Final = ("default", "strict", "pii", "none")
METADATA_ONLY: Final = "metadata-only"
_KINDS: Final = {"header": "headers", "member": "members", "path": "paths", "regex": "patterns"}
_TABLES: Final = {table: kind for kind, table in _KINDS.items()}
_KEEP: Final = "keep"
_PLACES = "header:NAME, member:NAME, path:PATH, regex:PATTERN, keep:..., metadata-only, or one of " + ", ".join(PRESETS)
_HINT = f"write {_PLACES}"


class PolicyError(ValueError):
    """No policy can be made of this. `str()` is the message, `hint` says what can be written."""

    def __init__(self, message: str, hint: str = _HINT) -> None:
        super().__init__(message)
        self.hint = hint


class Places(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where something stands, or how it looks."""

    headers: tuple[str, ...] = ()
    members: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()


class RedactionPolicy(msgspec.Struct, frozen=True):
    """What goes and what stays. The one that says nothing takes credentials out."""

    strict: bool = False
    """Also headers that are not the protocol's own, and words that a machine made."""
    pii: bool = False
    """Also what tells of persons: addresses, numbers of telephones, accounts and cards."""
    none: bool = False
    """Nothing goes, credentials neither."""
    metadata_only: bool = False
    take: Places = Places()
    keep: Places = Places()

    @property
    def plain(self) -> bool:
        """It takes credentials out and nothing else."""
        return self == RedactionPolicy()

    @property
    def words(self) -> tuple[str, ...]:
        """The words that it was made of, each once, in one order; none for the default."""
        presets = [name for name in ("strict", "pii", "none") if getattr(self, name)]
        presets += [METADATA_ONLY] if self.metadata_only else []
        taken = [f"{kind}:{value}" for kind, table in _KINDS.items() for value in getattr(self.take, table)]
        kept = [f"{_KEEP}:{kind}:{value}" for kind, table in _KINDS.items() for value in getattr(self.keep, table)]
        return (*presets, *taken, *kept)


DEFAULT: Final = RedactionPolicy()


def policy_of(words: Iterable[str]) -> RedactionPolicy:
    """The policy that these words say. Raises PolicyError."""
    presets: set[str] = set()
    take: dict[str, dict[str, None]] = {table: {} for table in _TABLES}
    keep: dict[str, dict[str, None]] = {table: {} for table in _TABLES}
    for word in words:
        if word in (*PRESETS, METADATA_ONLY):
            presets.add(word)
            continue
        kind, _, value = (f"path:{word}" if word.startswith("$") else word).partition(":")
        into = take
        if kind == _KEEP:
            into = keep
            kind, _, value = (f"path:{value}" if value.startswith("$") else value).partition(":")
        if kind not in _KINDS or not value:
            raise PolicyError(f"{word!r} says nothing to redact")
        _check(kind, value)
        into[_KINDS[kind]][value] = None
    if "none" in presets and (len(presets) > 1 or any(take.values())):
        raise PolicyError("'none' keeps everything, and something else is to be redacted", "leave one of them out")
    return RedactionPolicy(
        "strict" in presets,
        "pii" in presets,
        "none" in presets,
        METADATA_ONLY in presets,
        Places(**{table: tuple(values) for table, values in take.items()}),
        Places(**{table: tuple(values) for table, values in keep.items()}),
    )


def words_of(tables: Mapping[str, Any]) -> list[str]:
    """The words that the tables of a TOML file say. Raises PolicyError."""
    words: list[str] = []
    for name, value in tables.items():
        if name == "preset":
            words += _texts(name, [value] if isinstance(value, str) else value)
        elif name == METADATA_ONLY:
            if not isinstance(value, bool):
                raise PolicyError(f"{name} is true or false", "for example: metadata-only = true")
            words += [METADATA_ONLY] if value else []
        elif name == _KEEP and isinstance(value, Mapping):
            words += [f"{_KEEP}:{word}" for word in _places(value)]
        else:
            words += _places({name: value})
    unknown = [word for word in words if ":" not in word and word not in (*PRESETS, METADATA_ONLY)]
    if unknown:
        raise PolicyError(f"there is no preset {unknown[0]!r}", f"presets are: {', '.join(PRESETS)}")
    return words


def _places(tables: Mapping[str, Any]) -> list[str]:
    words = []
    for name, value in tables.items():
        if name not in _TABLES:
            known = ("preset", METADATA_ONLY, *_TABLES, _KEEP)
            raise PolicyError(f"{name!r} is no setting of a policy", f"settings are: {', '.join(known)}")
        words += [f"{_TABLES[name]}:{each}" for each in _texts(name, value)]
    return words


def _texts(name: str, value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
        raise PolicyError(f"{name} is a list of texts", f'for example: {name} = ["..."]')
    return value


def _check(kind: str, value: str) -> None:
    if kind == "regex":
        try:
            pattern = re.compile(value.encode())
        except (re.error, OverflowError, RecursionError) as wrong:
            raise PolicyError(
                f"{value!r} is no regular expression: {wrong}", "see Python's `re` for how to write one"
            ) from None
        if pattern.match(b""):
            raise PolicyError(f"{value!r} fits nothing at all too", "write what has to be there: x+ instead of x*")
    elif kind == "path":
        try:
            check_path(value)
        except PathError as wrong:
            raise PolicyError(
                f"{value!r} is no path: {wrong}", "for example: $..parts[*].text, or message.parts.text"
            ) from None
    elif not fold(value.replace("*", "")) and value != "*":
        raise PolicyError(f"{value!r} is no name")
