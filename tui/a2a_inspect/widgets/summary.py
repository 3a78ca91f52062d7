"""The first line of the screen: the recording, whether it grows, its contents, and whether the
capture is complete."""

from pathlib import Path
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from a2a_inspect.data.source import RecordingSnapshot
from a2a_inspect.widgets.columns import fit_text
from a2a_proxy.present import text
from a2a_proxy.protocol.text import make_visible


class SummaryLine(Widget):
    """The line. If it does not fit, parts at the right are left out, but never the loss of captured
    bytes."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"summary--name", "summary--loss", "summary--mode"}

    DEFAULT_CSS = """
    SummaryLine { height: 1; background: $panel; color: $foreground 80%; }
    SummaryLine > .summary--name { text-style: bold; color: $foreground; }
    SummaryLine > .summary--loss { text-style: bold; color: $text-error; }
    SummaryLine > .summary--mode { text-style: bold; color: $text-accent; }
    """

    snapshot: reactive[RecordingSnapshot] = reactive(RecordingSnapshot())
    paused: reactive[bool] = reactive(False)
    replay: reactive[bool] = reactive(False)
    """Whether the recording is shown as it was at some moment."""
    trouble: reactive[str] = reactive("")
    """Reason why the recording cannot be read now."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._file_name = make_visible(path.name)

    def render_line(self, y: int) -> Strip:  # noqa: ARG002 - one line only
        """Render the line."""
        width = self.size.width
        words = [(self._file_name, "summary--name"), *self._styled_words()]
        segments = [Segment(" ", self.rich_style)]
        rest = width - 2
        for word, name in words:
            if rest < 8:
                break
            visible = word if len(word) <= rest else fit_text(word, rest)
            segments += [Segment(visible, self._named_style(name)), Segment("   ", self.rich_style)]
            rest -= len(visible) + 3
        return Strip(segments).adjust_cell_length(width, self.rich_style)

    def _styled_words(self) -> list[tuple[str, str]]:
        now = self.snapshot
        if self.trouble:
            return [(make_visible(self.trouble), "summary--loss")]
        mode = "recording" if now.is_live else "ended" if now.sessions else "waiting"
        mode = "replay" if self.replay else "paused" if self.paused else mode
        words = [(mode, "summary--mode")]
        complete, whole = completeness_words(now)
        counts = [text.format_count(now.findings, "finding")] if now.findings else []
        counts += [
            text.format_count(now.exchanges, "exchange"),
            text.format_count(now.frames, "frame"),
        ]
        words += [(complete, "" if whole else "summary--loss")] if complete else []
        words += [(count, "") for count in counts]
        if len(now.sessions) != 1:
            words.append((text.format_count(len(now.sessions), "session"), ""))
        return [*words, (_route_words(now), "")] if now.sessions else words[:1]

    def _named_style(self, name: str) -> Style:
        return self.get_visual_style(name).rich_style if name else self.rich_style


def completeness_words(now: RecordingSnapshot) -> tuple[str, bool]:
    """Return whether the capture is complete, in words, and whether nothing is known to be missing.

    There are no words while it is recorded, because what was not decoded is stored at its end."""
    missing = [
        session.missing_text
        for session in now.sessions
        if session.complete and session.missing_text
    ]
    if missing:
        return f"INCOMPLETE: {make_visible(missing[-1])}", False
    if now.lag:
        return f"{text.format_lag(now.lag)} behind", True
    return ("" if now.is_live else "capture complete"), True


def _route_words(now: RecordingSnapshot) -> str:
    """Return the addresses of the last session."""
    facts = now.sessions[-1].facts
    return make_visible(
        ", ".join(f"{a} -> {b}" for a, b in zip(facts.listens, facts.upstreams, strict=False))
    )
