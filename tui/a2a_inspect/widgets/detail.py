"""The selected frame in tabs: decoded, raw, headers of its exchange, findings, artifact, trace,
facts.

Shows the first 64 KiB of a large payload; `+` loads four times as much. Expensive content is read
and decoded in threads, only for the visible tab, and cancelled when another frame is selected.
"""

import asyncio
import re
from collections.abc import Callable
from itertools import islice
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import ContentSwitcher

from a2a_inspect.data.conversation import artifact_lines, process_lines, timing_lines
from a2a_inspect.data.finding_counts import find_findings
from a2a_inspect.data.frame_bytes import FrameBytes, byte_range_words, wire_bytes
from a2a_inspect.data.generation_gaps import GapWords, read_gaps
from a2a_inspect.data.source import ExchangeStream, RecordingSource
from a2a_inspect.widgets.facts import (
    extension_lines,
    fact_lines,
    header_lines,
    paint_artifact,
    paint_facts,
    paint_fields,
)
from a2a_inspect.widgets.finding_lines import ending_lines, finding_lines, paint_findings
from a2a_inspect.widgets.hex_view import HexView
from a2a_inspect.widgets.tab_line import TABS, TabLine
from a2a_inspect.widgets.text_view import TextView
from a2a_inspect.widgets.trace_lines import trace_lines
from a2a_proxy.model.values import Exchange, Finding, Frame
from a2a_proxy.present import text
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.read.reader import Recording

FIRST_BYTES = 64 << 10
"""Bytes of a payload that are shown at first."""
_GROWTH_FACTOR = 4
"""Factor by which `+` increases the shown bytes."""
_MAX_DECODED_BYTES = 2 << 20
"""Bytes: of a larger protobuf message the bytes are shown, not the values."""
_MAX_LINES = 20_000
_MEMBER_NAME = re.compile(r'( *)("(?:[^"\\]|\\.){0,200}")(: )?')
_LITERALS = ("true", "false", "null")


class Detail(Vertical):
    """The tabs. `show` and `show_stream` set the content."""

    DEFAULT_CSS = "Detail ContentSwitcher { height: 1fr; }"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "[",
            "screen.call('navigation.step_frame', -1)",
            "Previous",
            id="frame.previous",
            tooltip="previous frame",
        ),
        Binding(
            "]",
            "screen.call('navigation.step_frame', 1)",
            "Next",
            id="frame.next",
            tooltip="next frame",
        ),
        Binding("l,right", "turn(1)", "Next tab", show=False, id="tab.next"),
        Binding("h,left", "turn(-1)", "Previous tab", show=False, id="tab.previous"),
        Binding(
            "plus",
            "more",
            "More",
            show=False,
            id="frame.more",
            tooltip="load four times as much of a large payload",
        ),
    ]

    def __init__(self, source: RecordingSource, *, id: str) -> None:
        super().__init__(id=id)
        self._source = source
        self._tabs = TabLine()
        self.decoded = TextView(id="decoded")
        self.raw = HexView(id="raw")
        self.headers = TextView(id="headers")
        self.findings = TextView(id="findings")
        self.artifact = TextView(id="artifact")
        self.trace = TextView(id="trace")
        self.facts = TextView(id="facts")
        self._views = (
            self.decoded,
            self.raw,
            self.headers,
            self.findings,
            self.artifact,
            self.trace,
            self.facts,
        )
        self._frame: Frame | None = None
        self._stream: ExchangeStream | None = None
        self._limit = FIRST_BYTES
        self._is_filling = False

    def compose(self) -> ComposeResult:
        """Return the tab line and the selected view."""
        yield self._tabs
        with ContentSwitcher(initial="decoded"):
            yield from self._views

    @property
    def current_view(self) -> TextView:
        """The visible view."""
        return self._views[self._tabs.chosen]

    def show_stream(self, stream: ExchangeStream | None, *, keep: bool) -> None:
        """Show the current state of an exchange; with `keep` the same exchange as before, in a new
        state."""
        self._stream = stream
        if not keep:
            self._frame = None
            self.decoded.show_lines([])
            self.raw.show_bytes(FrameBytes())
            for view in (self.findings, self.artifact, self.trace, self.facts):
                view.show_lines([])
        if stream is None:
            self.headers.show_lines([])
            return
        self.headers.show_lines(header_lines(stream.row.exchange), paint_fields, keep=keep)
        self._refresh_tab(keep=keep)

    async def show(self, frame: Frame, stream: ExchangeStream) -> None:
        """Show one frame with its payload. Cancel the coroutine to show another: decoding happens
        in a thread."""
        self._limit = FIRST_BYTES
        await self._show_frame(frame, stream, keep=False)

    async def _show_frame(self, frame: Frame, stream: ExchangeStream, *, keep: bool) -> None:
        lines = await asyncio.to_thread(
            _decode_payload_lines, frame, stream.row.exchange, self._limit
        )
        data = await asyncio.to_thread(wire_bytes, frame, self._limit)
        from a2a_proxy.protocol.schema import TRAILERS  # already imported by the reader thread

        self._frame, self._stream = frame, stream
        self.decoded.show_lines(
            lines, paint_fields if frame.schema == TRAILERS else paint_json, keep=keep
        )
        self.raw.show_bytes(data, byte_range_words(frame, data), keep=keep)
        self._refresh_tab(keep=keep)

    def _refresh_tab(self, *, keep: bool) -> None:
        """Fill the visible tab if its content may have changed."""
        if not (keep and self._is_filling):  # the next state of a live exchange follows soon
            self._refill_tab(keep)

    @work(group="detail", exclusive=True)
    async def _refill_tab(self, keep: bool) -> None:
        self._is_filling = True
        try:
            await self._fill_tab(keep)
        finally:
            self._is_filling = False

    async def _fill_tab(self, keep: bool) -> None:
        stream, frame, view = self._stream, self._frame, self.current_view
        if stream is None:
            return
        seq = None if frame is None else frame.seq
        at, until = stream.row.key, self._source.until
        if not view.lines and view in (self.findings, self.artifact, self.trace, self.facts):
            view.show_lines(["(reading …)"])
        if view is self.findings:
            self.findings.show_lines(
                await self._read_finding_lines(stream, seq), paint_findings, keep=keep
            )
        elif view is self.artifact:
            self.artifact.show_lines(
                await self._ask_lines(lambda r: artifact_lines(r, at, seq, until)),
                paint_artifact,
                keep=keep,
            )
        elif view is self.trace:
            timing = await self._ask_lines(lambda r: timing_lines(r, at, seq, until))
            self.trace.show_lines(trace_lines(stream, frame, timing), paint_facts, keep=keep)
        elif view is self.facts:
            process = await self._ask_lines(lambda r: process_lines(r, at))
            used = (
                await asyncio.to_thread(extension_lines, frame, stream.row.exchange)
                if frame is not None
                else []
            )
            self.facts.show_lines(
                [*fact_lines(stream, frame), *used, *process], paint_facts, keep=keep
            )

    async def _read_finding_lines(self, stream: ExchangeStream, seq: int | None) -> list[str]:
        until = self._source.until
        nothing: tuple[tuple[list[Finding], int], GapWords, list[str]] = (([], 0), {}, [])

        def read(recording: Recording) -> tuple[tuple[list[Finding], int], GapWords, list[str]]:
            found = find_findings(recording, stream.row, seq, until)
            ending = ending_lines(recording, stream.row) if not until else []
            return found, read_gaps(recording, stream.row, until), ending

        try:
            (found, total), gaps, ending = await self._source.run_query(read, nothing)
        except RecordingError as trouble:
            return [make_visible(trouble.message)]
        # The first call imports all rules.
        return [*ending, *await asyncio.to_thread(finding_lines, found, seq, total, gaps)]

    async def _ask_lines(self, question: Callable[[Recording], list[str]]) -> list[str]:
        try:
            return await self._source.run_query(question, [])
        except RecordingError as trouble:
            return [make_visible(trouble.message)]

    def action_tab(self, tab: int) -> None:
        """Show one tab."""
        had_focus = self.current_view.has_focus
        self._tabs.chosen = tab
        self.query_one(ContentSwitcher).current = self.current_view.id
        if had_focus:
            self.current_view.focus()
        self._refill_tab(True)

    def action_turn(self, by: int) -> None:
        """Show the next or previous tab."""
        self.action_tab((self._tabs.chosen + by) % len(TABS))

    @work(group="more", exclusive=True)
    async def action_more(self) -> None:
        """Load more of a large payload."""
        if (
            self._frame is not None
            and self._stream is not None
            and self._limit < len(self._frame.payload)
        ):
            self._limit *= _GROWTH_FACTOR
            await self._show_frame(self._frame, self._stream, keep=True)

    def on_tab_line_clicked(self, message: TabLine.Clicked) -> None:
        """Show the clicked tab."""
        self.action_tab(message.tab)
        self.current_view.focus()


def _decode_payload_lines(frame: Frame, exchange: Exchange, limit: int) -> list[str]:
    """Return the lines of the Decoded tab."""
    from a2a_inspect.data.payload_lines import decoded_lines, json_text
    from a2a_proxy.protocol.decoded import readable_payload
    from a2a_proxy.protocol.schema import TRAILERS

    if not frame.payload:
        return ["(no payload)"]
    cut = [
        f"(first {text.format_size(len(frame.payload))} of {text.format_size(frame.size)})"
    ] * frame.truncated
    if len(frame.payload) > limit:
        return cut + _first_payload_lines(frame, exchange, limit)
    try:
        if frame.schema == TRAILERS:
            fields = readable_payload(frame, exchange)
            text_lines = "\n".join(f"{name}: {json_text(value)}" for name, value in fields)
            lines = list(map(make_visible, text_lines.split("\n")))
        else:
            lines = list(islice(decoded_lines(frame, exchange), _MAX_LINES + 1))
    except (ValueError, TypeError, RecursionError):
        return ["(this payload cannot be decoded; the tab Raw has its bytes)"]
    if len(lines) > _MAX_LINES:
        lines[_MAX_LINES:] = ["(more lines left out)"]
    return cut + lines


def _first_payload_lines(frame: Frame, exchange: Exchange, limit: int) -> list[str]:
    """Return the first bytes of a large payload: JSON as sent, indented, or the first lines of a
    decoded message."""
    from a2a_inspect.data.payload_lines import decoded_lines, indent_json
    from a2a_proxy.protocol.schema import is_protobuf

    rest = f"({text.format_size(limit)} of {text.format_size(frame.size)}; + loads more)"
    if not is_protobuf(frame.schema):
        return [*islice(indent_json(frame.payload[:limit]), _MAX_LINES), rest]
    if len(frame.payload) > _MAX_DECODED_BYTES:
        return [f"({text.format_size(frame.size)}: too large to decode; the tab Raw has its bytes)"]
    left = limit
    lines: list[str] = []
    for line in decoded_lines(frame, exchange):
        left -= len(line)
        if left < 0:
            return [*lines, rest]
        lines.append(line)
    return lines


def paint_json(line: str) -> list[tuple[int, str]]:
    """Return where each name, string, number or word of one line of indented JSON begins, with its
    style.

    The text is never changed; a colour may be wrong for cut JSON.
    """
    found = _MEMBER_NAME.match(line)
    if found is None or not found[3]:
        begin = len(line) - len(line.lstrip(" "))
        return [(0, ""), *_paint_value(line, begin)]
    return [
        (0, ""),
        (found.start(2), "text--name"),
        (found.end(2), ""),
        *_paint_value(line, found.end()),
    ]


def _paint_value(line: str, begin: int) -> list[tuple[int, str]]:
    first = line[begin : begin + 1]
    if first == '"':
        end = len(line) - line.endswith(",")
        return [(begin, "text--string"), (end, "")]
    if first.isdigit() or first == "-":
        return [(begin, "text--number"), (len(line) - line.endswith(","), "")]
    return [(begin, "text--word")] if line.startswith(_LITERALS, begin) else []
