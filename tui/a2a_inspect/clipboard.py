"""Copying text: to the terminal with OSC 52, to a platform's tool, or to a file.

The caller always reports which one was used.

Terminals do not acknowledge OSC 52, so success cannot be detected; terminals known to ignore it are
skipped.
"""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping

OSC52, FILE = "OSC 52", "file"
_MAX_OSC52_BYTES = 74_994
"""Bytes that OSC 52 carries at least in common terminals: 100,000 characters including base64 and
framing."""
_WITHOUT_OSC52 = {"Apple_Terminal"}
"""`TERM_PROGRAM` values of terminals that ignore OSC 52."""
_TOOL_TIMEOUT = 5.0
_TOOLS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("tmux", "TMUX", ("tmux", "load-buffer", "-w", "-")),
    ("wl-copy", "WAYLAND_DISPLAY", ("wl-copy",)),
    ("xclip", "DISPLAY", ("xclip", "-selection", "clipboard")),
    ("xsel", "DISPLAY", ("xsel", "--clipboard", "--input")),
    ("pbcopy", "", ("pbcopy",)),
    ("clip.exe", "WSL_DISTRO_NAME", ("clip.exe",)),
)
"""Name, the environment variable that shows that the tool works here, and the command.

tmux is preferred inside its panes because by default it does not pass OSC 52 to the terminal.
"""


def copy_methods(
    environment: Mapping[str, str],
    byte_count: int,
    *,
    find_tool: Callable[[str], object] = shutil.which,
) -> list[str]:
    """Return the methods to try here for a text of `byte_count` bytes, in order. The last one, a
    file, always works."""
    tools = [
        name
        for name, variable, _ in _TOOLS
        if (not variable or environment.get(variable)) and find_tool(name)
    ]
    if environment.get("TMUX") and "tmux" in tools:
        return [*tools, FILE]
    deaf = (
        environment.get("TERM") in ("linux", "dumb")
        or environment.get("TERM_PROGRAM") in _WITHOUT_OSC52
    )
    remote = environment.get("SSH_CONNECTION") or environment.get("SSH_TTY")
    first = [] if deaf or byte_count > _MAX_OSC52_BYTES else [OSC52]
    return [*first, *([] if remote else tools), FILE]


def copy_to_clipboard(
    data: bytes,
    name: str,
    to_terminal: Callable[[str], None],
    environment: Mapping[str, str] = os.environ,
) -> str:
    """Copy a text, or write it to a file if it is not UTF-8, and return what was done:
    `copied with OSC 52`."""
    text = _decode_text(data)
    for way in copy_methods(environment, len(data)) if text is not None else [FILE]:
        if way == OSC52 and text is not None:
            to_terminal(text)
            return "copied with OSC 52"
        if way == FILE:
            break
        if _pipe_to_tool(way, data):
            return f"copied with {way}"
    handle, path = tempfile.mkstemp(prefix="a2a-", suffix=f"-{name}")
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    return f"written to {path}"


def _decode_text(data: bytes) -> str | None:
    with contextlib.suppress(UnicodeDecodeError):
        return data.decode()
    return None


def _pipe_to_tool(name: str, data: bytes) -> bool:
    command = next(command for tool, _, command in _TOOLS if tool == name)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    try:
        done = subprocess.run(command, input=data, timeout=_TOOL_TIMEOUT, check=False, **quiet)  # type: ignore[call-overload]
        return bool(done.returncode == 0)
    except (OSError, subprocess.TimeoutExpired):
        return False
