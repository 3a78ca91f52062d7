"""`a2a-inspect keys`: list every action of the screen with its id, its keys and its description."""

import json

import msgspec

from a2a_inspect.keys.actions import Action, display_key, list_actions
from a2a_inspect.keys.keymap import keys_file, read_keymap
from a2a_inspect.keys.places import KEY_SCOPES
from a2a_inspect.widgets.table import table_lines
from a2a_proxy.present.output import print_json, print_line, print_note


def show_keys(*, as_toml: bool, as_json: bool) -> None:
    """Print the current keys as a table, as a file to change, or as JSON lines.

    Raises:
        UserError: the user's file is not valid.
    """
    path = keys_file()
    now = list_actions(KEY_SCOPES, read_keymap(path, KEY_SCOPES))
    if as_json:
        for action, default in zip(now, list_actions(KEY_SCOPES), strict=True):
            values: dict[str, object] = msgspec.structs.asdict(action)
            print_json(
                values
                | {
                    "keys": [display_key(key) for key in action.keys],
                    "default": [display_key(key) for key in default.keys],
                }
            )
    elif as_toml:
        for line in toml_lines(now):
            print_line(line)
    else:
        for line in table_lines(
            ("ACTION", "KEYS", "WHAT"),
            [(each.id, " ".join(map(display_key, each.keys)), each.help) for each in now],
        ):
            print_line(line)
        if path is None:
            return
        found = (
            ""
            if path.exists()
            else ", which does not exist; create it from: a2a-inspect keys --print"
        )
        print_note()
        print_note(f"Keys are read from {path}{found}")


def toml_lines(listed: list[Action]) -> list[str]:
    """Return the lines of a key file with the current bindings."""
    lines: list[str] = []
    place = ""
    for each in listed:
        if each.place != place:
            place = each.place
            lines += [""] * bool(lines) + [f"# {place}"]
        keys = [json.dumps(display_key(key)) for key in each.keys]
        value = keys[0] if len(keys) == 1 else f"[{', '.join(keys)}]"
        lines.append(f"{each.id} = {value}  # {each.help}")
    return lines
