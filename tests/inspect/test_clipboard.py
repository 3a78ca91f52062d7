"""Where copied text goes, by terminal; each method works or falls back to the next."""

from __future__ import annotations

from pathlib import Path

import pytest

from a2a_inspect.clipboard import copy_methods, copy_to_clipboard

LOCAL = {"TERM": "xterm-256color", "DISPLAY": ":0"}


def everything(_: str) -> str:
    return "/usr/bin/it"


def nothing(_: str) -> None:
    return None


@pytest.mark.parametrize(
    ("environment", "data", "ways"),
    [
        (LOCAL, 100, ["OSC 52", "xclip", "xsel", "pbcopy", "file"]),
        (LOCAL, 100_000, ["xclip", "xsel", "pbcopy", "file"]),
        ({"TERM": "linux"}, 100, ["pbcopy", "file"]),
        ({"TERM_PROGRAM": "Apple_Terminal"}, 100, ["pbcopy", "file"]),
        ({**LOCAL, "SSH_TTY": "/dev/pts/1"}, 100, ["OSC 52", "file"]),
        ({**LOCAL, "SSH_TTY": "/dev/pts/1"}, 100_000, ["file"]),
        ({"TMUX": "/tmp/t,1,0", "SSH_TTY": "/dev/pts/1"}, 100, ["tmux", "pbcopy", "file"]),
        (
            {"WAYLAND_DISPLAY": "w", "WSL_DISTRO_NAME": "D"},
            100_000,
            ["wl-copy", "pbcopy", "clip.exe", "file"],
        ),
    ],
)
def test_the_order_of_copy_methods(environment: dict[str, str], data: int, ways: list[str]) -> None:
    """OSC 52 first where the terminal takes it and the text fits; a remote machine's own clipboard
    is nobody's."""
    assert copy_methods(environment, data, find_tool=everything) == ways


def test_missing_tools_are_not_tried() -> None:
    assert copy_methods({**LOCAL, "TMUX": "1"}, 100, find_tool=nothing) == ["OSC 52", "file"]


def test_the_terminal_gets_the_text() -> None:
    got: list[str] = []
    assert (
        copy_to_clipboard("ä\n".encode(), "x.txt", got.append, {"SSH_TTY": "1"})
        == "copied with OSC 52"
    )
    assert got == ["ä\n"]


def test_uncopyable_content_is_written_to_a_private_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes that are no text, and text that is too long; only its owner may read it."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for data in (b"\xff\x00", b"x" * 100_000):
        done = copy_to_clipboard(data, "payload", pytest.fail, {"SSH_TTY": "1"})
        path = Path(done.removeprefix("written to "))
        assert path.parent == tmp_path
        assert path.name.endswith("-payload")
        assert path.read_bytes() == data
        assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(("code", "done"), [(0, "copied with xclip"), (1, "copied with xsel")])
def test_a_failing_tool_falls_back_to_the_next(
    code: int, done: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fake tool keeps its input; if it fails, the next method is used."""
    for name, ends in (("xclip", code), ("xsel", 0)):
        tool = tmp_path / name
        tool.write_text(f"#!/bin/sh\ncat > {tmp_path}/got\nexit {ends}\n")
        tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr("a2a_inspect.clipboard._TOOL_TIMEOUT", 60.0)
    text = b"x" * 100_000
    assert copy_to_clipboard(text, "x", pytest.fail, {"DISPLAY": ":0"}) == done
    assert (tmp_path / "got").read_bytes() == text
