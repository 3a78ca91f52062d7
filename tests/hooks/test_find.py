"""Hooks found by name, and the errors for unknown names."""

from __future__ import annotations

from pathlib import Path

import pytest

from a2a_proxy.hooks.find import HookError, check_hook, installed_hooks, load_hook
from support_hooks import install, write_hooks


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Hooks that can be imported; one of them is installed."""
    environment = write_hooks(tmp_path / "hooks")
    monkeypatch.setenv("HOOKED", environment["HOOKED"])
    monkeypatch.syspath_prepend(environment["PYTHONPATH"])
    install(tmp_path / "hooks", "notes", "noting:Notes")
    return tmp_path / "hooks"


@pytest.mark.usefixtures("folder")
def test_installed_hooks_are_found_by_name() -> None:
    """With the package that brings them."""
    found = {each.name: each for each in installed_hooks()}
    assert (found["notes"].reference, found["notes"].package) == (
        "noting:Notes",
        "hooked-package 1.2",
    )
    check_hook("notes")
    assert load_hook("notes").__name__ == load_hook("noting:Notes").__name__ == "Notes"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        ("note", "no hook is named 'note'; similar: notes", "list all hooks: a2a-inspect plugins"),
        ("xyzzy", "no hook is named 'xyzzy'", "list the installed hooks: a2a-inspect plugins"),
        ("noting:", "hook 'noting:' does not name a class", "write it as module:Class"),
        ("no-ting:Notes", "hook 'no-ting:Notes' does not name a class", "write it as module:Class"),
        ("noting:Note", "hook noting:Note: noting has no Note", "similar names: Notes"),
        (
            "noting:Notes.made",
            "hook noting:Notes.made: Notes has no made",
            "check the name after the colon",
        ),
        ("noting:NUMBER", "hook noting:NUMBER: NUMBER is not a class", "name a class"),
    ],
)
def test_unknown_hooks_are_errors_with_a_hint(name: str, message: str, hint: str) -> None:
    """The message names the typed name, the hint a replacement."""
    with pytest.raises(HookError) as wrong:
        load_hook(name)
    assert wrong.value.message == message
    assert hint in wrong.value.hint


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", ["note", "xyzzy", "noting:", "nothing.at.all:A"])
def test_missing_names_and_modules_are_found_without_running_the_hook(name: str) -> None:
    """Without the hook's code: that there is no such name and no such module."""
    with pytest.raises(HookError) as looked:
        check_hook(name)
    with pytest.raises((HookError, ModuleNotFoundError)) as loaded:
        load_hook(name)
    assert looked.value.hint
    assert (
        isinstance(loaded.value, ModuleNotFoundError)
        or loaded.value.message == looked.value.message
    )


@pytest.mark.usefixtures("folder")
def test_listing_hooks_runs_no_hook_code() -> None:
    """A module that cannot be imported is found; only loading it fails."""
    check_hook("broken:Hook")
    with pytest.raises(ModuleNotFoundError):
        load_hook("broken:Hook")


def test_a_script_in_the_current_folder_is_found(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It need not be on PYTHONPATH, and hides no module that is."""
    (folder / "scripts").mkdir()
    (folder / "scripts/alone.py").write_text("class Mine:\n    pass\n")
    (folder / "scripts/json.py").write_text("raise RuntimeError('this one is not meant')\n")
    monkeypatch.chdir(folder / "scripts")
    check_hook("alone:Mine")
    assert load_hook("alone:Mine").__name__ == "Mine"
    assert load_hook("json:JSONDecoder").__module__ == "json.decoder"
