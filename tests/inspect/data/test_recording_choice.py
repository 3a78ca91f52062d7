"""Selection of the recording that a command uses."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from a2a_inspect.data.recording_choice import open_recording
from a2a_proxy.capture import file_layout
from support_inspect import sample


@pytest.mark.parametrize(("is_terminal", "is_named"), [(True, False), (True, True), (False, False)])
def test_a_terminal_shows_which_recording_was_chosen(
    *,
    is_terminal: bool,
    is_named: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Only if the user did not name it; the output of a pipe stays as it is."""
    monkeypatch.setenv("A2A_PROXY_STATE", str(tmp_path))
    folder = file_layout.recordings_dir()
    folder.mkdir(parents=True, exist_ok=True)
    path = sample(folder / "run.a2a.db")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    with open_recording(path if is_named else None):
        pass
    assert capsys.readouterr().err == (f"recording: {path}\n" if is_terminal and not is_named else "")
