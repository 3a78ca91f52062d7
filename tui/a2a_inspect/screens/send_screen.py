"""A call that is sent again by a child command, `a2a-proxy send`: each message of its answer at its
arrival."""

import asyncio
import contextlib
import json
import os
import tempfile
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import deque
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Input

from a2a_inspect.data.payload_lines import json_text
from a2a_inspect.data.sendable_call import SendableCall, make_send_command
from a2a_inspect.diff.places import DiffSide
from a2a_inspect.screens.diff_screen import DiffScreen
from a2a_inspect.widgets.detail import paint_json
from a2a_inspect.widgets.key_line import KeyLine
from a2a_inspect.widgets.pane import PaneTitle
from a2a_inspect.widgets.text_view import TextView
from a2a_proxy.capture import file_layout
from a2a_proxy.present import text
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.names import recording_name
from a2a_proxy.recording.read.reader import Recording

_REFRESH_SECONDS = 0.1
_READ_SIZE = 65_536
_MAX_LINES, _MAX_CHARACTERS = 20_000, 16_000_000
"""Lines of the answer that are kept, and their characters together; the recording has all of
them."""
_MESSAGE_MARK = "<-- "
_EXIT_WORDS = {0: "answered", 1: "failed", 2: "not sent"}
"""Meaning of the exit codes of `a2a-proxy send`."""


class SendScreen(Screen[None]):
    """See the module."""

    DEFAULT_CSS = """
    SendScreen { background: $background; }
    SendScreen PaneTitle { background: $primary 35%; color: $foreground; text-style: bold; }
    SendScreen Input { background: $panel; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "escape,q",
            "close",
            "Back",
            id="sent.close",
            tooltip="back to the recording; ends a call that runs",
        ),
        Binding(
            "D",
            "compare",
            "Diff",
            id="sent.diff",
            tooltip="compare the answer with the recorded one",
        ),
    ]

    def __init__(self, recording: Path, call: SendableCall, agent: str, request: str) -> None:
        """`request` is the edited request; empty to send the recorded one."""
        super().__init__()
        self._recording = recording
        self._call = call
        self._agent = agent
        self._request = request
        self._new_recording = file_layout.recordings_dir() / recording_name(time.time_ns())
        self._title = PaneTitle()
        self._view = TextView(id="answer")
        self._input = Input(
            placeholder="a further message; an empty line ends the client's stream", compact=True
        )
        self._lines: deque[str] = deque()
        self._character_count = 0
        self._dropped_count = 0
        """Lines from the beginning that are no longer kept."""
        self._shown_count = 0
        """Lines, with the dropped ones, at the last refresh."""
        self._message_count = 0
        self._process: Process | None = None
        self._has_ended = False

    def compose(self) -> ComposeResult:
        """Yield the title, the answer, an input for a live call, the keys."""
        yield self._title
        yield self._view
        if self._call.is_live:
            yield self._input
        yield KeyLine()

    def on_mount(self) -> None:
        """Send the call."""
        self._title.text = make_visible(f"{self._call.title} to {self._agent}")
        self._title.remark = "waiting"
        (self._input if self._call.is_live else self._view).focus()
        self.set_interval(_REFRESH_SECONDS, self._show_new_lines)
        self._send()

    @work(group="child", exclusive=True)
    async def _send(self) -> None:
        """Run the command, and show its output."""
        try:
            with _request_file(self._request) as request:
                command = make_send_command(
                    self._recording, self._call, self._agent, self._new_recording, request
                )
                self._process = await asyncio.create_subprocess_exec(
                    *command,
                    stdin=PIPE if self._call.is_live else DEVNULL,
                    stdout=PIPE,
                    stderr=PIPE,
                )
                try:
                    await self._read_output(self._process)
                finally:
                    await _end_process(self._process)
        except* (OSError, ValueError) as group:
            failed = "start" if self._process is None else "read the output of"
            for wrong in group.exceptions:
                self._add_line(f"cannot {failed} a2a-proxy send: {wrong}")
        code = self._process.returncode if self._process is not None else None
        self._has_ended = True
        self._title.remark = _EXIT_WORDS.get(code, "ended") if code is not None else "not sent"
        self._input.display = False
        self._view.focus()
        self._show_new_lines()

    async def _read_output(self, process: Process) -> None:
        """Collect the lines of the command until it ends."""
        assert process.stdout is not None
        assert process.stderr is not None

        async def read_errors(stream: asyncio.StreamReader) -> None:
            async for line in _iter_lines(stream):
                self._add_line(line)

        async def read_answers(stream: asyncio.StreamReader) -> None:
            async for line in _iter_lines(stream):
                self._add_message(line)

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(read_errors(process.stderr))
            tasks.create_task(read_answers(process.stdout))
        await process.wait()

    def _add_message(self, line: str) -> None:
        self._message_count += 1
        at = text.format_time(time.time_ns())
        self._add_line(f"{_MESSAGE_MARK}message {self._message_count}, {at}")
        try:
            shown = json_text(json.loads(line))
        except (ValueError, RecursionError):
            shown = line
        for each in shown.split("\n"):
            self._add_line(each)

    def _add_line(self, line: str) -> None:
        """Keep a line, and drop the oldest ones that are too many; the newest line is always
        kept."""
        self._lines.append(make_visible(line))
        self._character_count += len(self._lines[-1])
        while len(self._lines) > _MAX_LINES or (
            self._character_count > _MAX_CHARACTERS and len(self._lines) > 1
        ):
            self._character_count -= len(self._lines.popleft())
            self._dropped_count += 1

    def _show_new_lines(self) -> None:
        count = self._dropped_count + len(self._lines)
        if self._shown_count == count:
            return
        follows = self._view.is_vertical_scroll_end
        self._shown_count = count
        dropped = text.format_count(self._dropped_count, "earlier line")
        note = (
            [f"{dropped} not shown; the recording has all of them"] if self._dropped_count else []
        )
        self._view.show_lines([*note, *self._lines], _paint_output, keep=True)
        if follows:
            self._view.scroll_end(animate=False)
        if not self._has_ended:
            self._title.remark = text.format_count(self._message_count, "message")

    @on(Input.Submitted)
    async def _send_text(self, message: Input.Submitted) -> None:
        """Pass a typed line to the command; an empty one ends its input."""
        stdin = self._process.stdin if self._process is not None else None
        if stdin is None or stdin.is_closing():
            return
        if not message.value.strip():
            self._input.display = False
            self._view.focus()
            stdin.close()
            return
        self._add_line(f"--> {message.value}")
        self._input.value = ""
        stdin.write(message.value.encode() + b"\n")
        with contextlib.suppress(ConnectionError):
            await stdin.drain()

    def action_close(self) -> None:
        """Close the screen, and end the call if it still runs; its recording stays."""
        self.workers.cancel_node(self)
        self.dismiss()

    def action_compare(self) -> None:
        """Open the difference between the recorded call and this one."""
        place = self._sent_place() if self._has_ended else ""
        if not place:
            self.notify("the call has not ended" if not self._has_ended else "nothing was recorded")
            return
        self.app.push_screen(
            DiffScreen(
                DiffSide(self._recording, self._call.place), DiffSide(self._new_recording, place)
            )
        )

    def _sent_place(self) -> str:
        """Return the place of the call in the new recording; empty if it is not there."""
        try:
            with Recording(self._new_recording) as recording:
                rows = list(recording.read_exchanges())
        except RecordingError:
            return ""
        return f"{rows[-1].session}:{rows[-1].exchange.id}" if rows else ""


def _paint_output(line: str) -> list[tuple[int, str]]:
    if line.startswith(_MESSAGE_MARK):
        return [(0, "text--title")]
    return paint_json(line) if line[:1] in ' {}[]"' else [(0, "text--dim")]


@contextlib.contextmanager
def _request_file(request: str) -> Iterator[Path | None]:
    """Yield a file with the request while the block runs, readable by the user only; None without a
    request."""
    if not request:
        yield None
        return
    descriptor, name = tempfile.mkstemp(prefix="a2a-request-", suffix=".json")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(request)
        yield Path(name)
    finally:
        os.unlink(name)


async def _iter_lines(stream: asyncio.StreamReader) -> AsyncIterator[str]:
    """Yield lines of any length; the limit of `readline` would end the output at a large
    message."""
    parts: list[bytes] = []
    while data := await stream.read(_READ_SIZE):
        end, *beginnings = data.split(b"\n")
        parts.append(end)
        for beginning in beginnings:
            yield b"".join(parts).decode("utf-8", "replace")
            parts = [beginning]
    if rest := b"".join(parts):
        yield rest.decode("utf-8", "replace")


async def _end_process(process: Process) -> None:
    """End the command if it still runs, and wait until it has ended."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await asyncio.shield(process.wait())
