"""The replay of a recording: the panes of the main screen, with a clock that keys move.

It shows the recording as it was at the time of the clock, without later exchanges, frames, outcomes
and findings.
"""

import time
from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from textual import events, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.reactive import reactive
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input, Static

from a2a_inspect.data.replay.clock import InvalidValue, ReplayClock, clock_line, parse_replay_time
from a2a_inspect.data.replay.source import ReplaySource
from a2a_inspect.data.source import RecordingSnapshot, RecordingSource
from a2a_inspect.keys.main_keys import REPLAY_CALLS
from a2a_inspect.screens.main import MainScreen
from a2a_inspect.widgets.columns import fit_text
from a2a_inspect.widgets.key_line import KeyLine
from a2a_proxy.protocol.text import make_visible

_AVAILABLE_ACTIONS = frozenset({"back", "leave", "play", "step", "speed", "jump"})
"""Actions of the screen that can be used in a replay; for the methods of controllers see
`REPLAY_CALLS`."""


class ClockBar(Widget):
    """One line: play or pause, time, speed, position."""

    DEFAULT_CSS = (
        "ClockBar { height: 1; background: $accent 25%; color: $foreground; text-style: bold; }"
    )

    clock: reactive[ReplayClock] = reactive(ReplayClock(0, 0, 0))
    frames: reactive[tuple[int, int]] = reactive((0, 0))
    """Frames before the time of the clock, and all frames."""

    def render_line(self, y: int) -> Strip:  # noqa: ARG002 - one line only
        """Return the line."""
        width = self.size.width
        last = self.clock.last
        words = (
            clock_line(self.clock, time.monotonic_ns(), self.frames, width - 2)
            if last
            else "reading the times of the frames"
        )
        return Strip([Segment(fit_text(f" {words}", width), self.rich_style)])


class JumpTo(ModalScreen[int]):
    """Input of a time. Returns the time in ns since the epoch, or 0 if none was typed."""

    DEFAULT_CSS = """
    JumpTo { align: center bottom; background: transparent; }
    JumpTo > Vertical { height: auto; background: $panel; padding: 0 1; }
    JumpTo Input { background: $panel; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "give_up", "Cancel", id="jump.cancel")
    ]

    def __init__(self, clock: ReplayClock) -> None:
        super().__init__()
        self._clock = clock
        self._hint = Static("12:30:05, +5s from the beginning, 50%, a date and time", markup=False)

    def compose(self) -> ComposeResult:
        """Yield the input, and a hint."""
        yield Vertical(Input(placeholder="jump to a time", compact=True), self._hint)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Return the time, or show what is wrong with it."""
        try:
            self.dismiss(parse_replay_time(event.value, self._clock))
        except InvalidValue as wrong:
            self._hint.update(make_visible(str(wrong)))

    def action_give_up(self) -> None:
        """Return no time."""
        self.dismiss(0)


class ReplayScreen(MainScreen):
    """See the module."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "play", "Play", id="replay.play", tooltip="play, or pause"),
        Binding(
            "full_stop", "step(1)", "Next", key_display=".", id="replay.next", tooltip="next frame"
        ),
        Binding(
            "comma",
            "step(-1)",
            "Previous",
            key_display=",",
            id="replay.before",
            tooltip="previous frame",
        ),
        Binding("greater_than_sign", "speed(1)", "Faster", key_display=">", id="replay.faster"),
        Binding("less_than_sign", "speed(-1)", "Slower", key_display="<", id="replay.slower"),
        Binding("at", "jump", "Jump", key_display="@", id="replay.jump", tooltip="jump to a time"),
    ]

    FIRST_KEYS: ClassVar[tuple[str, ...]] = (
        *(
            "replay.play",
            "replay.next",
            "replay.before",
            "replay.jump",
            "replay.faster",
            "replay.slower",
        ),
    )

    def __init__(
        self, source: RecordingSource, keys: Sequence[int] | None = None, start_time: int = 0
    ) -> None:
        """`keys`: of the exchanges to show, None for all. `start_time`: ns since the epoch, 0 for
        the beginning."""
        self._replay_source = ReplaySource(source, keys)
        super().__init__(self._replay_source)
        self._start_time = start_time
        self._clock_bar = ClockBar()

    def compose(self) -> ComposeResult:
        """Yield the clock above the last line."""
        for widget in super().compose():
            if isinstance(widget, KeyLine):
                yield self._clock_bar
            yield widget

    def on_mount(self) -> None:
        """Read the range of time, and begin paused."""
        self.widgets.summary.replay = True
        self._start_clock()

    def on_unmount(self) -> None:
        """Close the file."""
        self._replay_source.close()

    @work(group="start")
    async def _start_clock(self) -> None:
        first, last = await self.reader.answer_query(
            "clock", self._replay_source.time_range(), (0, 0)
        )
        total = await self.reader.answer_query("clock", self._replay_source.count_frames(), 0)
        self._clock_bar.frames = (0, total)
        self._set_clock(ReplayClock(first, last, first).jump_to(self._start_time or first))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Allow only actions that make sense at one point in time."""
        is_available = (
            parameters[0] in REPLAY_CALLS if action == "call" else action in _AVAILABLE_ACTIONS
        )
        return super().check_action(action, parameters) if is_available else False

    def _set_clock(self, clock: ReplayClock) -> None:
        self._clock_bar.clock = clock
        self._replay_source.until = clock.compute_position(time.monotonic_ns())

    def poll_recording(self) -> None:
        """Move a running clock, and read the recording as of its time."""
        now, clock = time.monotonic_ns(), self._clock_bar.clock
        if clock.playing:
            self._set_clock(clock.stop_at_end(now))
            self._clock_bar.refresh()
        super().poll_recording()

    def show_exchanges(self, before: RecordingSnapshot, now: RecordingSnapshot) -> None:  # noqa: ARG002 - the list is by time, and never grows above
        """Show the exchanges that had begun by the time of the clock."""
        self._clock_bar.frames = (now.frames, self._clock_bar.frames[1])
        self.widgets.exchanges.show_rows(now, now.exchanges, above=0)
        if not now.exchanges:
            self.selection.clear()

    def action_play(self) -> None:
        """Play, or pause."""
        self._set_clock(self._clock_bar.clock.toggle_playing(time.monotonic_ns()))

    def action_speed(self, by: int) -> None:
        """Change the speed."""
        self._set_clock(self._clock_bar.clock.change_speed(by, time.monotonic_ns()))

    @work(group="step", exclusive=True)
    async def action_step(self, by: int) -> None:
        """Pause, and go to the next frame of the recording, or to the one before."""
        clock = self._clock_bar.clock
        now = clock.compute_position(time.monotonic_ns())
        self._set_clock(clock.jump_to(now))
        self._set_clock(
            clock.jump_to(
                await self.reader.answer_query(
                    "clock", self._replay_source.next_frame_time(now, by), now
                )
            )
        )

    def action_jump(self) -> None:
        """Let the user type a time, and go to it."""

        def go(at: int | None) -> None:
            if at:
                self._set_clock(self._clock_bar.clock.jump_to(at))

        self.app.push_screen(JumpTo(self._clock_bar.clock), go)

    def action_back(self) -> None:
        """Go to the pane before, and from the first one back to the main screen."""
        if not (self.panes.focused_index() and self.panes.go_back()):
            self.dismiss()

    def action_leave(self) -> None:
        """Do the same as `action_back`."""
        self.action_back()

    def on_screen_resume(self, event: events.ScreenResume) -> None:  # noqa: ARG002 - the event has no data
        """Show the time of the clock, which continued while another screen was shown."""
        self._clock_bar.refresh()
