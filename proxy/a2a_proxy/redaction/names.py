"""Which names hold secrets: of JSON members, header fields, query parameters. Names only, never values."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache
from typing import Any

_SEPARATORS = str.maketrans("", "", "_-. ")

_WHOLE = frozenset(
    {
        "token",
        "secret",
        "password",
        "passwd",
        "pwd",
        "passphrase",
        "credential",
        "credentials",
        "authorization",
        "proxyauthorization",
        "cookie",
        "cookies",
        "setcookie",
        "bearer",
        "apikey",
        "privatekey",
    }
)
_END = (
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "credential",
    "credentials",
    "authorization",
    "cookie",
    "apikey",
    "privatekey",
    "secretkey",
    "accesskey",
    "signingkey",
    "authkey",
    "sharedkey",
    "encryptionkey",
    "masterkey",
    "accountkey",
    "subscriptionkey",
    "sshkey",
    "hmackey",
)
_INNOCENT_END = (
    "pagetoken",
    "continuationtoken",
    "synctoken",
    "progresstoken",
    "stoptoken",
    "eostoken",
    "bostoken",
    "padtoken",
    "unktoken",
    "masktoken",
    "septoken",
    "maxtoken",
    "nexttoken",
)

_HEADER_END = ("token", "secret", "key", "password", "authorization", "cookie", "credential", "credentials")
_INNOCENT_HEADERS = frozenset(
    {
        "idempotencykey",
        "xidempotencykey",
        "secwebsocketkey",
        "cachekey",
        "xcachekey",
        "surrogatekey",
        "xsurrogatekey",
        "publickey",
    }
)
_PARAMETERS = frozenset(
    {
        "key",
        "sig",
        "signature",
        "token",
        "auth",
        "code",
        "pass",
        "pwd",
        "secret",
        "xamzsignature",
        "xamzcredential",
        "xgoogsignature",
    }
)

_CLEAR = frozenset(
    {
        "contenttype",
        "contentlength",
        "host",
        "accept",
        "useragent",
        "a2aversion",
        "a2aextensions",
        "message",
        "messageid",
        "contextid",
        "taskid",
        "artifactid",
        "method",
        "jsonrpc",
        "result",
        "params",
        "status",
        "metadata",
        "filename",
        "mediatype",
        "protocolversion",
    }
)
"""Names of the protocol's own. A card that calls its API key so would blank the recording; it is not obeyed."""

_ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})")


def fold(name: str) -> str:
    """The name without case and separators: `API-Key`, `api_key` and `apiKey` are one."""
    return name.translate(_SEPARATORS).lower()


@lru_cache(maxsize=4096)
def secret_member(name: str) -> bool:
    """Whether a JSON member, Struct key or protobuf field of that name holds a secret where its value is a string."""
    folded = fold(name)
    if folded in _WHOLE:
        return True
    return folded.endswith(_END) and not folded.endswith(_INNOCENT_END)


@lru_cache(maxsize=4096)
def secret_header(name: str) -> bool:
    """Whether a header or metadata field of that name holds a secret; gRPC's `-bin` form counts as the plain one."""
    folded = fold(name.lower().removesuffix("-bin"))
    return folded.endswith(_HEADER_END) and folded not in _INNOCENT_HEADERS and not folded.endswith(_INNOCENT_END)


@lru_cache(maxsize=4096)
def secret_parameter(name: str) -> bool:
    """Whether a query parameter or form field of that name holds a secret."""
    return fold(name) in _PARAMETERS or secret_member(name)


def unescape_name(name: str) -> str:
    r"""A member name of broken JSON with its `\u` escapes resolved."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), name)


def card_names(card: dict[str, Any]) -> set[str]:
    """The folded names under which an agent card wants its API keys, in all dialects (protocol sheet 3.6).

    `in`/`name` up to 0.3, `location`/`name` within `apiKeySecurityScheme` in 1.0, and an object of that shape under
    `authentication` in 0.1.
    """
    found: set[str] = set()
    for member in ("securitySchemes", "security_schemes", "authentication"):
        _collect(card.get(member), found, 8)
    return {name for name in found if len(name) > 1 and name not in _CLEAR}


def _collect(value: Any, found: set[str], depth: int) -> None:
    if depth == 0:
        return
    if isinstance(value, dict):
        name = value.get("name")
        if isinstance(name, str) and ("in" in value or "location" in value):
            found.add(fold(name))
        for inner in value.values():
            _collect(inner, found, depth - 1)
    elif isinstance(value, list):
        for inner in value:
            _collect(inner, found, depth - 1)


def listed() -> dict[str, Collection[str]]:
    """All names that this module knows, folded, by what they are names of. The manual lists them."""
    return {
        "Members, fields, flags and parameters": _WHOLE,
        "Names that end with": _END,
        "Headers and metadata that end with": _HEADER_END,
        "Query parameters and form fields": _PARAMETERS,
        "Never, though the end fits": _INNOCENT_END,
        "Never, as a header": _INNOCENT_HEADERS,
    }
