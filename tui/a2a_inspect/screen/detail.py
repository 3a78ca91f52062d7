"""The selected frame in tabs: decoded, raw, headers of its exchange, facts."""

from __future__ import annotations

import asyncio
import json
from itertools import islice
from typing import ClassVar

from rich.segment import Segment
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import ContentSwitcher

from a2a_inspect.screen.facts import fact_lines, header_lines, paint_facts, paint_fields
from a2a_inspect.screen.hex_view import HexView
from a2a_inspect.screen.json_paint import paint_json
from a2a_inspect.screen.text_view import TextView
from a2a_inspect.source import Stream
from a2a_proxy.cli import text
from a2a_proxy.model.exchange import Exchange
from a2a_proxy.model.frame import Frame
from a2a_proxy.protocol.text import visible

TABS = ("Decoded", "Raw", "Headers", "Facts")

_DECODED = 2 << 20
"""Octets: of a larger payload the octets are shown, not the values."""
_LINES = 100_000


class TabLine(Widget):
    """The names of the tabs in one line; the chosen one in brackets."""

    DEFAULT_CSS = """
    TabLine { height: 1; background: $background; color: $text-muted; }
    TabLine > .tab--chosen { color: $text-accent; text-style: bold; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {"tab--chosen"}

    chosen: reactive[int] = reactive(0)

    class Clicked(Message):
        """A tab was clicked."""

        def __init__(self, tab: int) -> None:
            super().__init__()
            self.tab = tab

    def render_line(self, y: int) -> Strip:  # noqa: ARG002 - one line only
        """` [Decoded]  Raw  Headers  Facts `, with the key of each."""
        base, chosen = self.rich_style, self.get_visual_style("tab--chosen").rich_style
        words = [Segment(_word(tab, tab == self.chosen), chosen if tab == self.chosen else base) for tab in _ALL]
        return Strip(words).adjust_cell_length(self.size.width, base)

    def on_click(self, event: events.Click) -> None:
        """Choose."""
        begin = 0
        for tab in _ALL:
            begin += len(_word(tab, False))
            if event.x < begin:
                self.post_message(self.Clicked(tab))
                return


_ALL = range(len(TABS))


def _word(tab: int, chosen: bool) -> str:
    return f" [{tab + 1} {TABS[tab]}]" if chosen else f"  {tab + 1} {TABS[tab]} "


class Detail(Vertical):
    """See the module. `show` and `show_stream` give it what it shows."""

    DEFAULT_CSS = "Detail ContentSwitcher { height: 1fr; }"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("[", "screen.frame(-1)", "Previous frame", id="frame.previous"),
        Binding("]", "screen.frame(1)", "Next frame", id="frame.next"),
        Binding("l,right", "turn(1)", "Next tab", show=False, id="tab.next"),
        Binding("h,left", "turn(-1)", "Previous tab", show=False, id="tab.previous"),
    ]

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._tabs = TabLine()
        self.decoded = TextView(id="decoded")
        self.raw = HexView(id="raw")
        self.headers = TextView(id="headers")
        self.facts = TextView(id="facts")
        self._views = (self.decoded, self.raw, self.headers, self.facts)
        self._frame: Frame | None = None

    def compose(self) -> ComposeResult:
        """Tab line and the chosen view."""
        yield self._tabs
        with ContentSwitcher(initial="decoded"):
            yield from self._views

    @property
    def view(self) -> TextView:
        """What is in front."""
        return self._views[self._tabs.chosen]

    def show_stream(self, stream: Stream | None, *, keep: bool) -> None:
        """The exchange as it is now; with `keep` the same as before, in a new state."""
        if not keep:
            self._frame = None
            self.decoded.show([])
            self.raw.dump(b"")
        if stream is None:
            self.headers.show([])
            self.facts.show([])
            return
        self.headers.show(header_lines(stream.row.exchange), paint_fields, keep=keep)
        self.facts.show(fact_lines(stream, self._frame), paint_facts, keep=keep)

    async def show(self, frame: Frame, stream: Stream) -> None:
        """One frame with its payload. Cancel it when another is wanted: decoding happens in a thread."""
        lines = await asyncio.to_thread(_decoded, frame, stream.row.exchange)
        from a2a_proxy.protocol.schema import TRAILERS  # that thread has loaded it

        self._frame = frame
        self.decoded.show(lines, paint_fields if frame.schema == TRAILERS else paint_json)
        self.raw.dump(frame.payload)
        self.facts.show(fact_lines(stream, frame), paint_facts)

    def action_tab(self, tab: int) -> None:
        """Show one tab."""
        had_focus = self.view.has_focus
        self._tabs.chosen = tab
        self.query_one(ContentSwitcher).current = self.view.id
        if had_focus:
            self.view.focus()

    def action_turn(self, by: int) -> None:
        """Show the tab beside."""
        self.action_tab((self._tabs.chosen + by) % len(TABS))

    def on_tab_line_clicked(self, message: TabLine.Clicked) -> None:
        """The mouse."""
        self.action_tab(message.tab)
        self.view.focus()


def _decoded(frame: Frame, exchange: Exchange) -> list[str]:
    """The lines of the Decoded tab."""
    from a2a_inspect.decoded import decoded_lines
    from a2a_proxy.protocol.schema import TRAILERS

    if not frame.payload:
        return ["(no payload)"]
    if len(frame.payload) > _DECODED:
        return [f"({text.size(frame.size)}: too large to show decoded; the octets are under Raw)"]
    try:
        if frame.schema == TRAILERS:
            return [visible(f"{name}: {value}") for name, value in json.loads(frame.payload)]
        lines = list(islice(decoded_lines(frame, exchange), _LINES + 1))
    except (ValueError, TypeError, RecursionError):
        return ["(this payload cannot be shown decoded; the octets are under Raw)"]
    if len(lines) > _LINES:
        lines[_LINES:] = ["(and more)"]
    return [f"(first {text.size(len(frame.payload))} of {text.size(frame.size)})"] * frame.truncated + lines
