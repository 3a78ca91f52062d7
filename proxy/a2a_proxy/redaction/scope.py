"""Names around a value of JSON or of a Struct: they determine whether it is a secret, and by which
name."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from a2a_proxy.redaction.secret_names import (
    AUTH_SCHEMES,
    LIST,
    OBJECT,
    PROTOCOL,
    fold_name,
    member_kind,
    pair_name,
)
from a2a_proxy.redaction.secret_patterns import is_argument, looks_random

_OWN: Final = frozenset(
    {
        "scheme",
        "schemes",
        "securityschemes",
        "tokenurl",
        "authorizationurl",
        "refreshurl",
        "scopes",
        "pagetoken",
        "nextpagetoken",
    }
)
"""Fields of A2A and OpenAPI that stay in an object with a secret's name."""
_CHOSEN: Final = {
    **dict.fromkeys(("securityschemes", "schemes", "flows", "properties"), True),
    **dict.fromkeys(("security", "securityrequirements"), False),
}
"""Names of objects (True) and of arrays of objects (False) whose members are named by users:
`flows.password` does not contain a secret, nor does `properties.password` of a JSON schema."""
_PROTOCOL_PARENTS: Final = frozenset(
    {"params", "result", "task", "tasks", "message", "history", "statusupdate", "artifactupdate"}
)
_JSONRPC: Final = {each: f"jsonrpc.{each}" for each in ("params", "result")}
"""Names by which members of JSON-RPC messages are judged. Messages with A2A 0.1 fields may be
quoted anywhere."""
_MODEL: Final = frozenset(
    {"logprob", "logprobs", "toplogprobs", "tokenlogprobs", "tokenids", "offsets"}
)
"""Siblings that mark a `token` as a language model's."""
_KEY_PARTNERS: Final = frozenset({"secretaccesskey", "accesskeysecret", "secretkey"})
"""Siblings of an `accessKeyId`, which is one half of the credentials."""
_GRANTS: Final = ("authorization_code", "jwt-bearer")
"""Ends of OAuth grant types whose siblings `code` and `assertion` are credentials."""
_NAME_LISTS: Final = frozenset(
    {"required", "enum", "scopes", "schemes", "fields", "columns", "tags"}
)
"""Names of arrays of names, in which the item after a name is not its value."""
_NAME: Final = re.compile(r"[\w\-]{2,64}")
_WORD: Final = 16
"""Letters from which on an item is not an ordinary word."""
_HEADERS: Final = frozenset({"authorization", "proxyauthorization", "cookie", "setcookie"})
_HINT: Final = re.compile(
    rb"(?i)value|logprob|grant|verifier|session|bytes|offsets|token.?ids|access.?key.?id|\\u"
)
_SHORTEST_CODE: Final = 4


class Scope(NamedTuple):
    """Facts about an object or array that affect the names of its values."""

    secret: str | None = None
    """Name of an enclosing secret, which applies to all values inside."""
    chosen: bool = False
    """Whether users choose the names of its members, or of its objects' members, so that the names
    imply nothing."""
    protocol: bool = False
    """Whether it may have fields of A2A 0.1."""


ROOT: Final = Scope(protocol=True)
"""Scope of a payload."""
INNER: Final = Scope()
"""Scope of JSON in a string, and of messages with a schema."""


def judged_name(scope: Scope, name: str | None) -> str | None:
    """Return the name by which a string or number is judged. `name` is the member's own name, None
    in an array."""
    if name is None:
        return scope.secret
    if scope.secret is None:
        return None if scope.protocol and member_kind(name) & PROTOCOL else name
    if member_kind(name) & OBJECT:
        return name
    return None if fold_name(name) in _OWN else scope.secret


@lru_cache(maxsize=4096)
def inner_scope(scope: Scope, name: str | None, is_object: bool) -> Scope:
    """Return the scope of an object or array with this name; `name` is None in an array."""
    flag = OBJECT if is_object else LIST
    secret = scope.secret if scope.secret is not None and member_kind(scope.secret) & flag else None
    if name is None:
        return Scope(secret, scope.chosen and is_object, scope.protocol)
    folded = fold_name(name)
    if folded in _OWN:
        secret = None
    elif not scope.chosen and member_kind(name) & flag:
        secret = name
    protocol = name in _JSONRPC.values() or (scope.protocol and folded in _PROTOCOL_PARENTS)
    return Scope(secret, _CHOSEN.get(folded) is is_object, protocol)


def has_siblings(data: bytes) -> bool:
    """Whether the data may contain objects for which `sibling_names` returns names."""
    return _HINT.search(data) is not None


def sibling_names(texts: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return the members of an object judged by another name than their own, with that name, or
    None if they stay.

    `texts` maps the folded names of the members to their values, or to None for values that are not
    strings.
    """
    return dict(_sibling_names(texts))


def _sibling_names(texts: Mapping[str, str | None]) -> Iterator[tuple[str, str | None]]:
    if "value" in texts:
        for each in ("name", "key"):
            name = pair_name(texts.get(each) or "")
            if name is not None:
                yield "value", name
    if not _MODEL.isdisjoint(texts) or texts.get("bytes", "") is None:
        yield from (("token", None), ("tokens", None))
    if not _KEY_PARTNERS.isdisjoint(texts):
        yield "accesskeyid", "secret"
    if "jsonrpc" in texts:
        yield from _JSONRPC.items()
    if texts.get("id") and texts.get("status", "") is None:
        yield "sessionid", None  # a task of A2A 0.1
    if "codeverifier" in texts or (texts.get("granttype") or "").lower().endswith(_GRANTS):
        yield from (
            (each, "secret")
            for each in ("code", "assertion")
            if len(texts.get(each) or "") >= _SHORTEST_CODE
        )


def item_name(before: str, item: bytes, array: str | None, *, pair: bool) -> str | None:
    """Return the name by which the item after `before` is judged, or None if it stays.

    It has a name after a flag (`["agent", "--api-key", "..."]`) and as the second item of a `pair`
    (`["Authorization", "..."]`). `array` is the name of the array, or None if it is itself in an
    array, as in a list of header fields. An array may also be a list of names
    (`["password", "username"]`), so an ordinary word is not treated as a secret.
    """
    if before.startswith("--"):
        return before[2:] if member_kind(before[2:]) and is_argument(item) else None
    name = pair_name(before) if pair and _NAME.fullmatch(before) else None
    if (
        name is None
        or item.lower() in AUTH_SCHEMES
        or pair_name(item.decode("utf-8", "replace")) is not None
    ):
        return None
    if fold_name(before) in _HEADERS:
        return name
    if array is not None and (fold_name(array) in _NAME_LISTS or not looks_random(item)):
        return None
    return None if item.isalpha() and len(item) < _WORD else name
