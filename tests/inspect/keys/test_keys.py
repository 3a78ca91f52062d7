"""Keys: the list of actions, the user's file of keys, and keys rebound on the screen."""

from __future__ import annotations

from inspect import signature
from pathlib import Path

import pytest
from textual.actions import parse

from a2a_inspect.app import InspectApp
from a2a_inspect.data.source import RecordingSource
from a2a_inspect.keys.actions import list_actions, own_bindings
from a2a_inspect.keys.keymap import read_keymap
from a2a_inspect.keys.main_keys import MAIN_KEYS, REPLAY_CALLS
from a2a_inspect.keys.places import KEY_SCOPES
from a2a_inspect.screens.main import MainScreen
from a2a_proxy.model.errors import UserError
from support_inspect import sample
from support_screen import LARGE, Person


def test_every_key_has_an_id_and_a_description() -> None:
    """Each binding of each place has an id and words; an id is never the beginning of another: TOML
    needs that."""
    for place in KEY_SCOPES:
        for binding in own_bindings(place):
            assert binding.id, binding
            assert binding.description, binding
    known = [each.id for each in list_actions(KEY_SCOPES)]
    assert not [(one, other) for one in known for other in known if other.startswith(f"{one}.")]


def test_every_key_of_the_main_screen_calls_a_method_that_exists(tmp_path: Path) -> None:
    """The method of a controller, with as many arguments as the key gives it."""
    source = RecordingSource(sample(tmp_path / "r.db"))
    screen = MainScreen(source)
    called = set()
    for binding in MAIN_KEYS:
        _, action, arguments = parse(binding.action)
        if action == "call":
            name, *rest = arguments
            signature(screen.find_method(str(name))).bind(*rest)
            called.add(name)
        else:
            assert callable(getattr(screen, f"action_{action}")), binding
    assert called > REPLAY_CALLS
    screen.filter.close()
    source.close()


def read(folder: Path, text: str) -> dict[str, str]:
    path = folder / "keys.toml"
    path.write_text(text)
    return read_keymap(path, KEY_SCOPES)


def test_the_keys_file_rebinds_keys(tmp_path: Path) -> None:
    """Ids with or without quotes, one key or several, characters as they are; two keys may be
    swapped."""
    assert read_keymap(tmp_path / "none.toml", KEY_SCOPES) == {}
    text = 'frame.next = "f2"\n"list.last" = ["$", "ctrl+?", "+", "ctrl++"]\n'
    assert read(tmp_path, text) == {
        "frame.next": "f2",
        "list.last": "dollar_sign,ctrl+question_mark,plus,ctrl+plus",
    }
    swapped = read(tmp_path, 'list.down = "k"\nlist.up = "j"\n')
    assert swapped == {"list.down": "k", "list.up": "j"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("frame.next = ", "is not TOML"),
        ('frame.nxt = "f2"', 'unknown action "frame.nxt"; did you mean "frame.next"'),
        ("frame.next = 3", "frame.next is not a key"),
        ("frame.next = []", "frame.next is not a key"),
        ('frame.next = ""', "frame.next is not a key"),
        ('frame.next = "f99"', 'unknown key "f99"'),
        ('frame.next = "hyp+x"', 'unknown key "hyp+x"'),
        ('list.down = "k"', '"k" is both list.down and list.up'),
        ('list.down = "p"', '"p" is both view.pause and list.down'),
        ('view.pause = "ctrl+q"', '"ctrl+q" is both app.quit and view.pause'),
    ],
)
def test_an_invalid_keys_file_is_one_error_line(tmp_path: Path, text: str, words: str) -> None:
    """One line names the file and the place in it."""
    with pytest.raises(UserError) as caught:
        read(tmp_path, text)
    assert words in caught.value.message
    assert "keys.toml" in caught.value.message
    assert caught.value.hint


def test_a_key_may_be_bound_in_a_list_and_in_a_text(tmp_path: Path) -> None:
    """They never have the focus together."""
    assert read(tmp_path, 'list.down = "ctrl+n"\ntext.down = "ctrl+n"')


async def test_keys_are_rebound_in_the_app_and_in_its_help(tmp_path: Path) -> None:
    """The new key works, the old one does not; ? and the help go with it."""
    source = RecordingSource(sample(tmp_path / "r.db"))
    app = InspectApp(source, {"view.pause": "f9", "app.keys": "f3"})
    async with app.run_test(size=LARGE) as pilot:
        person = Person(app, pilot)
        await person.sees("3 exchanges")
        await person.types("p", "f9")
        await person.sees("paused")
        await person.types("question_mark", "f3")
        await person.sees("Recording", "f9")
        await person.types("escape")
        await person.sees("OPERATION")
