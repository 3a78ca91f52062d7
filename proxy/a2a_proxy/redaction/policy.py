"""Redaction policies: data to remove from a recording besides credentials, and data to keep.

A policy is a list of words. Each of its sources is converted to words: `--redact WORD`, a TOML
file, the record of the policy applied to a session.

    default | strict | pii | none  presets; strict and pii can be combined
    metadata-only                  no payload, no message text
    header:NAME  member:NAME       header fields and JSON members; `*` matches any characters
    path:PATH    $.JSON.PATH       a place in payloads, in JSON and protobuf alike (`payload_paths`)
    regex:PATTERN                  text that matches, anywhere
    keep:header:NAME  keep:member:NAME  keep:path:PATH  keep:regex:PATTERN  exceptions, which stay
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from a2a_proxy.redaction.payload_paths import PathError, check_path
from a2a_proxy.redaction.secret_names import fold_name

PRESETS: Final = ("default", "strict", "pii", "none")
METADATA_ONLY: Final = "metadata-only"
_KINDS: Final = {"header": "headers", "member": "members", "path": "paths", "regex": "patterns"}
_TABLES: Final = {table: kind for kind, table in _KINDS.items()}
_KEEP: Final = "keep"
_PLACES = (
    "header:NAME, member:NAME, path:PATH, regex:PATTERN, keep:..., metadata-only, or one of "
    + ", ".join(PRESETS)
)
_HINT = f"use {_PLACES}"


class PolicyError(ValueError):
    """An invalid policy. `str()` is the message, `hint` shows valid input."""

    def __init__(self, message: str, hint: str = _HINT) -> None:
        super().__init__(message)
        self.hint = hint


class Places(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Values of a policy, by place or by pattern."""

    headers: tuple[str, ...] = ()
    members: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()


class RedactionPolicy(msgspec.Struct, frozen=True):
    """Data to redact and data to keep. The empty policy redacts credentials only."""

    strict: bool = False
    """Whether headers other than the protocol's, and random words, are redacted too."""
    pii: bool = False
    """Whether personal data is redacted too: addresses, and numbers of telephones, accounts and
    cards."""
    none: bool = False
    """Whether nothing is redacted, not even credentials."""
    metadata_only: bool = False
    take: Places = Places()
    keep: Places = Places()

    @property
    def plain(self) -> bool:
        """Whether the policy redacts credentials and nothing else."""
        return self == RedactionPolicy()

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the policy, each once, in a fixed order; empty for the default."""
        presets = [name for name in ("strict", "pii", "none") if getattr(self, name)]
        presets += [METADATA_ONLY] if self.metadata_only else []
        taken = [
            f"{kind}:{value}"
            for kind, table in _KINDS.items()
            for value in getattr(self.take, table)
        ]
        kept = [
            f"{_KEEP}:{kind}:{value}"
            for kind, table in _KINDS.items()
            for value in getattr(self.keep, table)
        ]
        return (*presets, *taken, *kept)


DEFAULT: Final = RedactionPolicy()


def policy_of(words: Iterable[str]) -> RedactionPolicy:
    """Return the policy for these words. Raises PolicyError if a word is invalid or two words
    contradict each other."""
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
            raise PolicyError(f"{word!r} is not a redaction policy")
        _check_pattern(kind, value)
        into[_KINDS[kind]][value] = None
    if "none" in presets and (len(presets) > 1 or any(take.values())):
        raise PolicyError(
            "'none' redacts nothing and cannot be combined with other words",
            "remove 'none' or the other words",
        )
    return RedactionPolicy(
        "strict" in presets,
        "pii" in presets,
        "none" in presets,
        METADATA_ONLY in presets,
        Places(**{table: tuple(values) for table, values in take.items()}),
        Places(**{table: tuple(values) for table, values in keep.items()}),
    )


def words_of(tables: Mapping[str, Any]) -> list[str]:
    """Return the words for the tables of a TOML file. Raises PolicyError if a table is invalid."""
    words: list[str] = []
    for name, value in tables.items():
        if name == "preset":
            words += _check_texts(name, [value] if isinstance(value, str) else value)
        elif name == METADATA_ONLY:
            if not isinstance(value, bool):
                raise PolicyError(
                    f"{name} must be true or false", "for example: metadata-only = true"
                )
            words += [METADATA_ONLY] if value else []
        elif name == _KEEP and isinstance(value, Mapping):
            words += [f"{_KEEP}:{word}" for word in _read_policy_words(value)]
        else:
            words += _read_policy_words({name: value})
    unknown = [word for word in words if ":" not in word and word not in (*PRESETS, METADATA_ONLY)]
    if unknown:
        raise PolicyError(f"unknown preset {unknown[0]!r}", f"use one of {', '.join(PRESETS)}")
    return words


def _read_policy_words(tables: Mapping[str, Any]) -> list[str]:
    words = []
    for name, value in tables.items():
        if name not in _TABLES:
            known = ("preset", METADATA_ONLY, *_TABLES, _KEEP)
            raise PolicyError(
                f"unknown setting {name!r} in the policy", f"use one of {', '.join(known)}"
            )
        words += [f"{_TABLES[name]}:{each}" for each in _check_texts(name, value)]
    return words


def _check_texts(name: str, value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
        raise PolicyError(
            f"{name} must be a list of non-empty strings", f'for example: {name} = ["..."]'
        )
    return value


def _check_pattern(kind: str, value: str) -> None:
    if kind == "regex":
        try:
            pattern = re.compile(value.encode())
        except (re.error, OverflowError, RecursionError) as wrong:
            raise PolicyError(
                f"{value!r} is not a regular expression: {wrong}",
                "use the syntax of Python's `re` module",
            ) from None
        if pattern.match(b""):
            raise PolicyError(
                f"{value!r} also matches the empty string",
                "require at least one character: x+ instead of x*",
            )
    elif kind == "path":
        try:
            check_path(value)
        except PathError as wrong:
            raise PolicyError(
                f"{value!r} is not a path: {wrong}",
                "for example: $..parts[*].text, or message.parts.text",
            ) from None
    elif not fold_name(value.replace("*", "")) and value != "*":
        raise PolicyError(f"{value!r} is not a name")
