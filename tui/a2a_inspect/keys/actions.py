"""The actions of the screens, read off their bindings: the one list behind the help, the palette and `keys`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
from textual.binding import Binding
from textual.dom import DOMNode
from textual.keys import _character_to_key, format_key

Keymap = Mapping[str, str]
"""Action id -> keys as Textual names them, with commas between."""


class KeyScope(msgspec.Struct, frozen=True):
    """Where keys are in force."""

    title: str
    owner: type[DOMNode]
    """Whose own bindings these are."""
    nested: tuple[type[DOMNode], ...] = ()
    """Whose bindings are in force there as well; those of the application always are."""
    bindings: tuple[Binding, ...] | None = None
    """The bindings of this scope; None: those that the owner declares."""


class Action(msgspec.Struct, frozen=True):
    """Something that a key does."""

    id: str
    keys: tuple[str, ...]
    """As Textual names them."""
    label: str
    """Two or three words."""
    help: str
    """A sentence; what the label says where there is no more to say."""
    place: str


def list_actions(scopes: tuple[KeyScope, ...], keymap: Keymap | None = None) -> list[Action]:
    """All of them in the order of the places, each id once; with a keymap the keys are its."""
    found: dict[str, Action] = {}
    for place in scopes:
        for binding in own_bindings(place):
            if binding.id is None:
                continue
            keys = (keymap or {}).get(binding.id, binding.key)
            action = Action(binding.id, _split_keys(keys), binding.description, binding.tooltip, place.title)
            known = found.setdefault(binding.id, action)
            if not known.help and action.help:
                found[binding.id] = action
    return [msgspec.structs.replace(each, help=each.help or each.label.lower()) for each in found.values()]


def own_bindings(scope: KeyScope) -> Iterator[Binding]:
    """Yield the bindings of a scope, or those that its owner itself declares, without those of its base classes."""
    for each in scope.owner.__dict__.get("BINDINGS", ()) if scope.bindings is None else scope.bindings:
        assert isinstance(each, Binding)
        yield each


def default_keys(scope: KeyScope) -> dict[str, tuple[str, ...]]:
    """Ids of the actions of one place, with the keys that they have by default."""
    return {each.id: _split_keys(each.key) for each in own_bindings(scope) if each.id is not None}


def normalize_key(key: str) -> str:
    """A key as Textual names it: `?` is `question_mark`, also after `ctrl+`."""
    *modifiers, last = (*key[:-1].split("+")[:-1], "+") if key.endswith("+") else key.split("+")
    return "+".join([*modifiers, _character_to_key(last) if len(last) == 1 else last])


def display_key(key: str) -> str:
    """A key as people write it, and as the file of keys takes it: `?`, `ctrl+p`, `pageup`."""
    *modifiers, last = key.split("+")
    name = format_key(last)
    return "+".join([*modifiers, name if len(name) == 1 and name.isascii() else last])


def _split_keys(keys: str) -> tuple[str, ...]:
    return tuple(normalize_key(key.strip()) for key in keys.split(","))
