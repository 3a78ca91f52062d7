"""The keys of the user: a TOML file of action ids and keys, which is checked before any screen is
shown.

frame.next = "n"
exchanges.filter = ["/", "ctrl+f"]
"""

import contextlib
import os
import tomllib
from collections.abc import Iterator
from itertools import combinations, product
from pathlib import Path
from typing import Any

from platformdirs import user_config_dir
from textual.app import App
from textual.keys import KEY_NAME_REPLACEMENTS, Keys

from a2a_inspect.keys.actions import KeyScope, default_keys, display_key, normalize_key
from a2a_proxy.capture.file_layout import user_folder
from a2a_proxy.model.errors import UserError
from a2a_proxy.recording.query.errors import suggest_word

CONFIG_VARIABLE = "A2A_PROXY_CONFIG"
_MODIFIERS = {"ctrl", "shift", "alt", "super", "hyper", "meta"}
_KEY_NAMES = {key.value for key in Keys} | set(KEY_NAME_REPLACEMENTS.values())
_LIST_HINT = "a2a-inspect keys lists all actions"


def config_file(name: str) -> Path | None:
    """Return the path of a file, which may not exist, in `$A2A_PROXY_CONFIG` or else in the
    platform's directory for configuration; None if the variable is not set and the user has no home
    directory."""
    with contextlib.suppress(OSError):
        return Path(os.environ.get(CONFIG_VARIABLE) or user_folder(user_config_dir)) / name
    return None


def keys_file() -> Path | None:
    """Return the path of the file of keys, as `config_file` does."""
    return config_file("keys.toml")


def read_keymap(path: Path | None, scopes: tuple[KeyScope, ...]) -> dict[str, str]:
    """Return the keys of a file in the form that Textual takes; no keys if there is no file.

    Raises:
        UserError: the file cannot be read, has an unknown action or key, or binds a key twice in
        one scope.
    """
    if path is None:
        return {}
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as wrong:
        raise UserError(
            f"{path} cannot be read: {(wrong.strerror or str(wrong)).lower()}", ""
        ) from wrong
    except UnicodeDecodeError as wrong:
        raise UserError(f"{path} is not UTF-8", "save it as UTF-8") from wrong
    except tomllib.TOMLDecodeError as wrong:
        raise UserError(
            f"{path} is not TOML: {wrong}", 'a line looks like: frame.next = "f2"'
        ) from wrong
    names = {name for place in scopes for name in default_keys(place)}
    keymap = {
        name: ",".join(_parse_keys(path, name, value)) for name, value in _flatten_names(values)
    }
    for name in keymap:
        if name not in names:
            raise UserError(
                f'{path}: unknown action "{name}"{suggest_word(name, names)}', _LIST_HINT
            )
    _check_clashes(path, scopes, keymap)
    return keymap


def _flatten_names(values: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield dotted names and their values: without quotes, TOML reads a dotted name as nested
    tables."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _flatten_names(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _parse_keys(path: Path, name: str, value: object) -> list[str]:
    listed = value if isinstance(value, list) else [value]
    words = [each for each in listed if isinstance(each, str) and each]
    if not words or len(words) < len(listed):
        raise UserError(
            f"{path}: {name} is not a key", f'write {name} = "x", or a list: {name} = ["x", "f2"]'
        )
    keys = [normalize_key(key) for key in words]
    for key, word in zip(keys, words, strict=True):
        *modifiers, last = key.split("+")
        if not set(modifiers) <= _MODIFIERS or (
            len(last) != 1 and last not in _KEY_NAMES and len(display_key(last)) != 1
        ):
            hint = (
                "a key is a character, or a name like f2, space, pageup; ctrl+, alt+ or shift+ may "
                "go before it"
            )
            raise UserError(f'{path}: {name}: unknown key "{word}"', hint)
    return keys


def _check_clashes(path: Path, scopes: tuple[KeyScope, ...], keymap: dict[str, str]) -> None:
    """Raise UserError if a key has two actions in scopes that are in force together, unless it has
    both by default."""
    for place in scopes:
        pairs = combinations(default_keys(place), 2)
        _check_pairs(path, pairs, keymap, (place, place))
    for one, other in combinations(scopes, 2):
        if _is_active_in(one, other) or _is_active_in(other, one):
            _check_pairs(
                path, product(default_keys(one), default_keys(other)), keymap, (one, other)
            )


def _check_pairs(
    path: Path,
    pairs: Iterator[tuple[str, str]],
    keymap: dict[str, str],
    scopes: tuple[KeyScope, KeyScope],
) -> None:
    defaults = (default_keys(scopes[0]), default_keys(scopes[1]))
    for one, other in pairs:
        if one == other or not (one in keymap or other in keymap):
            continue
        before = (set(defaults[0][one]), set(defaults[1][other]))
        now = [
            set(keymap[name].split(",")) if name in keymap else old
            for name, old in zip((one, other), before, strict=True)
        ]
        if both := (now[0] & now[1]) - (before[0] & before[1]):
            key = display_key(min(both))
            raise UserError(
                f'{path}: "{key}" is both {one} and {other}',
                f"bind one of them to another key; {_LIST_HINT}",
            )


def _is_active_in(outer: KeyScope, inner: KeyScope) -> bool:
    """Return whether the keys of `outer` are in force in `inner` too."""
    return issubclass(outer.owner, App) or any(
        issubclass(each, outer.owner) for each in (inner.owner, *inner.nested)
    )
