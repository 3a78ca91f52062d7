"""Places in a payload that look like a credential, redacted or not."""

import re
from collections.abc import Iterator
from typing import Any

from a2a_proxy.redaction.scope import INNER, Scope, inner_scope, judged_name
from a2a_proxy.redaction.secret_names import NUMBER, hides_text, member_kind
from a2a_proxy.redaction.secret_patterns import find_secrets

_REDACTION_LABEL = re.compile(r"redacted-[0-9a-f]{12}")
_MAX_DEPTH = 32
"""Maximum nesting depth that is searched."""


def secret_paths(value: Any, skip: frozenset[str] = frozenset()) -> Iterator[str]:
    """Yield the paths of strings and numbers that contain a redaction label or a value that
    redaction would replace.

    Members named in `skip` are omitted with their whole content. A finding about such a place must
    not use it as its `path`, because findings at redacted places are dropped; the presence of the
    credential can still be reported.
    """
    return (
        path
        for path, name, scalar in _walk_scalars(value, "", None, INNER, skip, _MAX_DEPTH)
        if _is_secret(name, scalar)
    )


def _is_secret(name: str | None, scalar: str | float) -> bool:
    kind = member_kind(name) if name is not None else 0
    if not isinstance(scalar, str):
        return bool(kind & NUMBER) and hides_text(kind, str(scalar).encode())
    data = scalar.encode("utf-8", "surrogatepass")
    return bool(_REDACTION_LABEL.search(scalar) or hides_text(kind, data) or find_secrets(data))


def _walk_scalars(
    value: Any, path: str, name: str | None, scope: Scope, skip: frozenset[str], depth: int
) -> Iterator[tuple[str, str | None, str | float]]:
    """Yield strings and numbers, each with its path and the name by which redaction judges it."""
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        if value != "":
            yield path, judged_name(scope, name), value
    elif depth and isinstance(value, dict):
        inner = inner_scope(scope, name, True)
        for key, item in value.items():
            if key not in skip:
                yield from _walk_scalars(
                    item, f"{path}.{key}" if path else key, key, inner, skip, depth - 1
                )
    elif depth and isinstance(value, list):
        inner = inner_scope(scope, name, False)
        for index, item in enumerate(value):
            yield from _walk_scalars(item, f"{path}[{index}]", None, inner, skip, depth - 1)
