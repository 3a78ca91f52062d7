"""The actions of the screens, listed from their bindings: the help, the palette and the command
`keys` show them."""

from collections.abc import Iterator, Mapping

import msgspec
from textual.binding import Binding
from textual.dom import DOMNode
from textual.keys import _character_to_key, format_key

Keymap = Mapping[str, str]
"""Ids of actions with their keys as Textual names them, separated by commas."""


class KeyScope(msgspec.Struct, frozen=True):
    """A part of the application in which keys are in force."""

    title: str
    owner: type[DOMNode]
    """The class of the widget or screen that has the bindings."""
    nested: tuple[type[DOMNode], ...] = ()
    """Classes whose bindings are in force there as well; the keys of the application always are."""
    bindings: tuple[Binding, ...] | None = None
    """The bindings of this scope; None: the ones that the owner declares."""


class Action(msgspec.Struct, frozen=True):
    """An action that has keys."""

    id: str
    keys: tuple[str, ...]
    """The keys, as Textual names them."""
    label: str
    """Two or three words for the last line of the screen."""
    help: str
    """A sentence, or the label where that is enough."""
    place: str


def list_actions(scopes: tuple[KeyScope, ...], keymap: Keymap | None = None) -> list[Action]:
    """Return all actions in the order of the scopes, each id once, with the keys of the keymap if
    there is one."""
    found: dict[str, Action] = {}
    for place in scopes:
        for binding in own_bindings(place):
            if binding.id is None:
                continue
            keys = (keymap or {}).get(binding.id, binding.key)
            action = Action(
                binding.id, _split_keys(keys), binding.description, binding.tooltip, place.title
            )
            first = found.setdefault(binding.id, action)
            if not first.help and action.help:
                found[binding.id] = action
    return [
        msgspec.structs.replace(each, help=each.help or each.label.lower())
        for each in found.values()
    ]


def own_bindings(scope: KeyScope) -> Iterator[Binding]:
    """Yield the bindings of a scope, by default those in the body of its owner's class; inherited
    ones are left out."""
    for each in (
        scope.owner.__dict__.get("BINDINGS", ()) if scope.bindings is None else scope.bindings
    ):
        assert isinstance(each, Binding)
        yield each


def default_keys(scope: KeyScope) -> dict[str, tuple[str, ...]]:
    """Return the ids of the actions of a scope with their default keys."""
    return {each.id: _split_keys(each.key) for each in own_bindings(scope) if each.id is not None}


def normalize_key(key: str) -> str:
    """Return a key as Textual names it: `question_mark` for `?`, also after `ctrl+`."""
    *modifiers, last = (*key[:-1].split("+")[:-1], "+") if key.endswith("+") else key.split("+")
    return "+".join([*modifiers, _character_to_key(last) if len(last) == 1 else last])


def display_key(key: str) -> str:
    """Return a key as the file of keys has it: `?`, `ctrl+p`, `pageup`."""
    *modifiers, last = key.split("+")
    name = format_key(last)
    return "+".join([*modifiers, name if len(name) == 1 and name.isascii() else last])


def _split_keys(keys: str) -> tuple[str, ...]:
    return tuple(normalize_key(key.strip()) for key in keys.split(","))
