"""The screen: exchanges above, the frames of the chosen one below, the chosen frame beside them.

On a small terminal one of the three at a time. Here messages of the widgets become questions to the `Source`, and its
answers become their state; pausing holds back answers, it stops no recording.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import ClassVar, TypeVar

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Footer, Static

from a2a_inspect.screen.detail import TABS, Detail
from a2a_inspect.screen.exchange_list import ExchangeList
from a2a_inspect.screen.frame_list import FrameList
from a2a_inspect.screen.lazy_list import LazyList
from a2a_inspect.screen.pane import ListHead, Pane
from a2a_inspect.screen.summary import Summary
from a2a_inspect.source import FrameLine, Snapshot, Source, Stream
from a2a_proxy.cli import text
from a2a_proxy.protocol.text import visible
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.rows import ExchangeRow

POLL = 0.1
"""Seconds."""
_WIDE, _HIGH = 120, 30
"""Cells from which the panes stand side by side."""
_PANES = ("exchanges", "frames", "frame")

_Value = TypeVar("_Value")


class MainScreen(Screen[None]):
    """See the module."""

    DEFAULT_CSS = """
    MainScreen { background: $background; }
    MainScreen #notice { height: 1fr; content-align: center middle; text-align: center; color: $foreground 70%; }
    MainScreen #exchanges { height: 2fr; }
    MainScreen #lower { height: 3fr; }
    MainScreen #frames { width: 9fr; }
    MainScreen #frame { width: 10fr; border-left: vkey $surface; }
    MainScreen.-empty #exchange-list, MainScreen.-empty ListHead, MainScreen.-empty #lower { display: none; }
    MainScreen.-empty #exchanges { height: 1fr; }
    MainScreen #notice { display: none; }
    MainScreen.-empty #notice { display: block; }
    MainScreen.-single #exchanges, MainScreen.-single #lower { height: 1fr; }
    MainScreen.-single #frames, MainScreen.-single #frame { width: 1fr; border: none; }
    MainScreen.-single.-at-exchanges #lower { display: none; }
    MainScreen.-single.-at-frames #exchanges, MainScreen.-single.-at-frames #frame { display: none; }
    MainScreen.-single.-at-frame #exchanges, MainScreen.-single.-at-frame #frames { display: none; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "Back", id="app.back", tooltip="go back to the pane before"),
        Binding("tab", "turn(1)", "Next pane", show=False, priority=True, id="pane.next"),
        Binding("shift+tab", "turn(-1)", "Previous pane", show=False, priority=True, id="pane.previous"),
        Binding("[", "frame(-1)", "Previous frame", show=False, id="frame.previous"),
        Binding("]", "frame(1)", "Next frame", show=False, id="frame.next"),
        *(
            Binding(
                str(tab + 1),
                f"tab({tab})",
                name,
                show=False,
                id=f"tab.{name.lower()}",
                tooltip=f"the frame's tab {name}",
            )
            for tab, name in enumerate(TABS)
        ),
        Binding("p", "pause", "Pause", id="view.pause", tooltip="hold the display, or go on; recording goes on anyway"),
        Binding("q", "leave", "Quit", id="app.leave", tooltip="go back, and from the first pane out"),
    ]

    def __init__(self, source: Source) -> None:
        super().__init__()
        self._source = source
        self._summary = Summary(source.path)
        self._exchanges = ExchangeList(self._load_exchanges, id="exchange-list")
        self._frames = FrameList(self._load_frames, id="frame-list")
        self._detail = Detail(id="detail")
        notice = Static(id="notice", markup=False)
        self._panes = {
            "exchanges": Pane(ListHead(self._exchanges), self._exchanges, notice, id="exchanges"),
            "frames": Pane(ListHead(self._frames), self._frames, id="frames"),
            "frame": Pane(self._detail, id="frame"),
        }
        self._shown = Snapshot()
        self._held: Snapshot | None = None
        self._polling = False
        self._troubles: dict[str, str] = {}
        self._chosen = 0
        self._stream: Stream | None = None
        self._frame = 0

    def compose(self) -> ComposeResult:
        """The layout."""
        yield self._summary
        yield self._panes["exchanges"]
        with Horizontal(id="lower"):
            yield self._panes["frames"]
            yield self._panes["frame"]
        yield Footer()

    def on_mount(self) -> None:
        """Begin to follow."""
        self._exchanges.follow = True
        self._show_notice()
        self._enter("exchanges")
        self.set_interval(POLL, self._tick)
        self._tick()

    def on_resize(self, event: events.Resize) -> None:
        """One pane or all."""
        self.set_class(event.size.width < _WIDE or event.size.height < _HIGH, "-single")

    # Reading.

    def _tick(self) -> None:
        if not self._polling:
            self._polling = True
            self._poll()

    @work(group="poll")
    async def _poll(self) -> None:
        try:
            snapshot = await self._asked("poll", self._source.poll(), None)
            if snapshot is not None:
                self._held = snapshot
                self._apply()
        finally:
            self._polling = False

    async def _asked(self, about: str, question: Awaitable[_Value], nothing: _Value) -> _Value:
        """An answer of the source; where it cannot read, say why, until it can, and go on with nothing."""
        try:
            answer = await question
            self._troubles.pop(about, None)
        except RecordingError as trouble:
            answer = nothing
            self._troubles[about] = trouble.message
        self._summary.trouble = next(iter(self._troubles.values()), "")
        return answer

    async def _load_exchanges(self, page: int) -> Sequence[ExchangeRow]:
        return await self._asked("exchanges", self._source.exchanges(page), [])

    async def _load_frames(self, exchange: int, page: int) -> Sequence[FrameLine]:
        return await self._asked("frames", self._source.frames(exchange, page), [])

    def _apply(self) -> None:
        """Show what the last poll found, unless the display is paused."""
        now = self._held
        if now is None or self._summary.paused:
            self._retitle()
            return
        before, self._shown, self._held = self._shown, now, None
        self._summary.snapshot = now
        self._show_notice()
        self._exchanges.show(now, above=_above(before, now, self._exchanges.cursor))
        if self._chosen:
            self._choose(self._chosen)

    @work(group="stream", exclusive=True)
    async def _choose(self, exchange: int) -> None:
        stream = await self._asked("stream", self._source.stream(exchange), None)
        if stream is None:
            return
        same = self._stream is not None and self._stream.row.key == exchange
        if not same:
            self.workers.cancel_group(self, "frame")
        self._stream = stream
        self._frames.show(stream)
        self._detail.show_stream(stream, keep=same)
        if not same:
            self._frame = 0
        self._retitle()

    @work(group="frame", exclusive=True)
    async def _choose_frame(self, number: int) -> None:
        row = await self._asked("frame", self._source.frame(number), None)
        if row is not None and self._stream is not None:
            await self._detail.show(row.frame, self._stream)

    # What the widgets say.

    @on(LazyList.Moved)
    def _moved(self, message: LazyList.Moved) -> None:
        row = message.row
        if isinstance(row, ExchangeRow) and row.key != self._chosen:
            self._chosen = row.key
            self._choose(self._chosen)
        elif isinstance(row, FrameLine) and row.row.id != self._frame:
            self._frame = row.row.id
            self._choose_frame(row.row.id)
        self._retitle()

    @on(LazyList.Opened)
    def _opened(self, message: LazyList.Moved) -> None:
        self._enter("frames" if message.sender is self._exchanges else "frame")

    @on(LazyList.Changed)
    def _changed(self) -> None:
        for head in self.query(ListHead):
            head.refresh()
        self._retitle()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """The pane with the focus is the one that a small terminal shows."""
        for name, pane in self._panes.items():
            self.set_class(pane in event.widget.ancestors, f"-at-{name}")
        self._retitle()

    # Words.

    def _show_notice(self) -> None:
        empty = not self._shown.exchanges
        self.set_class(empty, "-empty")
        if empty:
            self.query_one("#notice", Static).update(_waiting(self._source, self._shown))

    def _retitle(self) -> None:
        exchanges, frames = self._exchanges, self._frames
        titles = {"exchanges": "Exchanges", "frames": "Frames", "frame": "Frame"}
        if self._stream is not None:
            titles["frames"] = _exchange_title(self._stream)
        if self.has_class("-single") and self._stream is not None:
            titles["frames"] = f"Exchanges › {titles['frames']}"
            titles["frame"] = f"Exchanges › #{self._stream.row.exchange.id} › Frame"
        if isinstance(line := frames.row, FrameLine):
            titles["frame"] = f"{titles['frame']} {line.row.frame.seq}: {line.text}"
        late = self._held.exchanges - self._shown.exchanges if self._held is not None else 0
        remarks = {"exchanges": _remark(exchanges, late), "frames": _remark(frames, 0), "frame": ""}
        for name, pane in self._panes.items():
            pane.title.text, pane.title.remark = titles[name], remarks[name]

    # What the user does.

    def _enter(self, name: str) -> None:
        for each in _PANES:
            self.set_class(each == name, f"-at-{each}")
        targets: dict[str, Widget] = {"exchanges": self._exchanges, "frames": self._frames, "frame": self._detail.view}
        targets[name].focus()

    def _where(self) -> int:
        return next((at for at, name in enumerate(_PANES) if self.has_class(f"-at-{name}")), 0)

    def action_back(self) -> None:
        """To the pane before."""
        if self._where():
            self._enter(_PANES[self._where() - 1])

    def action_leave(self) -> None:
        """Back, and from the first pane out."""
        if self._where():
            self.action_back()
        else:
            self.app.exit(0)

    def action_turn(self, by: int) -> None:
        """To the pane beside."""
        if not self.has_class("-empty"):
            self._enter(_PANES[(self._where() + by) % len(_PANES)])

    def action_frame(self, by: int) -> None:
        """Another frame of the same exchange, from any pane."""
        self._frames.action_move(by)

    def action_tab(self, tab: int) -> None:
        """A tab of the frame, from any pane."""
        self._detail.action_tab(tab)

    def action_pause(self) -> None:
        """Hold the display, or show what has come."""
        self._summary.paused = not self._summary.paused
        self._apply()


def _above(before: Snapshot, now: Snapshot, cursor: int) -> int:
    """Rows that were added before the row under the cursor: those of sessions before its own."""
    known = {session.id: length for session, length in zip(before.sessions, before.lengths, strict=True)}
    added = passed = 0
    for session, length in zip(now.sessions, now.lengths, strict=True):
        old = known.get(session.id, 0)
        if cursor < passed + old:
            break
        passed += old
        added += length - old
    return added if cursor < before.exchanges else 0


def _exchange_title(stream: Stream) -> str:
    exchange = stream.row.exchange
    words = [f"#{exchange.id} {text.title(exchange)}", text.manner(exchange), text.standing(exchange)]
    return visible("  ".join(word for word in words if word))


def _remark(rows: LazyList, late: int) -> str:
    """How many, and whether the end is followed."""
    new = rows.unseen + late
    if not rows.total and not new:
        return ""
    if new > 0:
        return f"+{new} new  {rows.total}"
    return f"following  {rows.total}" if rows.follow else str(rows.total)


def _waiting(source: Source, now: Snapshot) -> str:
    """What to say, and what to do, where there is nothing to show."""
    if now.sessions:
        facts = now.sessions[-1].facts
        ways = "\n".join(f"{a} -> {b}" for a, b in zip(facts.listens, facts.upstreams, strict=False))
        return visible_lines(f"No exchanges yet\n\nPoint a client at the proxy:\n{ways}")
    what = "is empty" if source.path.exists() else "does not exist yet"
    return visible_lines(
        f"Waiting for a recording\n\n{source.path} {what}\n\n"
        f"a2a-proxy --listen :9000 --upstream HOST:PORT --record {source.path}"
    )


def visible_lines(words: str) -> str:
    """Several lines, each harmless."""
    return "\n".join(map(visible, words.split("\n")))
