"""Texts of the main screen: the titles of its panes, its breadcrumbs, the notice of an empty
screen."""

from collections.abc import Callable, Mapping

from a2a_inspect.data.notes import note_words
from a2a_inspect.data.source import ExchangeStream, FrameLine, RecordingSnapshot, RecordingSource
from a2a_inspect.screens.main_controller import MainController, MainParts
from a2a_inspect.widgets.breadcrumbs import breadcrumb_path
from a2a_inspect.widgets.lazy_list import LazyList
from a2a_inspect.widgets.pane import Pane
from a2a_proxy.present import text
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.recording.read.rows import split_key
from a2a_proxy.recording.write.note_writer import NotePlace


class PaneTitles(MainController):
    """Titles and remarks of the panes, and the breadcrumbs."""

    def __init__(
        self, parts: MainParts, panes: Mapping[str, Pane], list_remark: Callable[[], str]
    ) -> None:
        """`list_remark` returns the remark of the list of exchanges."""
        super().__init__(parts)
        self._panes = panes
        self._list_remark = list_remark

    def update_titles(self) -> None:
        """Show the titles of the selected exchange and frame."""
        stream, frames = self._state.stream, self._widgets.frames
        titles = {"tree": "Tree", "exchanges": "Exchanges", "frames": "Frames", "frame": "Frame"}
        is_single = self.screen.has_class("-single")
        if stream is not None:
            titles["frames"] = exchange_title(stream)
        if is_single and stream is not None:
            titles["frames"] = f"Exchanges › {titles['frames']}"
            titles["frame"] = f"Exchanges › #{stream.row.exchange.id} › Frame"
        line = frames.current_row if isinstance(frames.current_row, FrameLine) else None
        if line is not None:
            titles["frame"] = f"{titles['frame']} {line.row.frame.seq}: {line.text}"
        self._widgets.breadcrumbs.where = breadcrumb_path(
            stream, line, len(self._state.snapshot.sessions)
        )
        remarks = {
            "exchanges": self._list_remark(),
            "frames": list_remark(frames, 0),
            "frame": self._note_words(),
        }
        if is_single:  # the pane of the frame, which has the note, is hidden
            remarks["exchanges"] = "  ".join(
                filter(None, (self._note_words(frame=False), remarks["exchanges"]))
            )
        for name, pane in self._panes.items():
            pane.title.text, pane.title.remark = titles[name], remarks.get(name, "")

    def _note_words(self, *, frame: bool = True) -> str:
        """Return the note of the selected frame, or else of its exchange."""
        session, exchange = split_key(self._state.selected_exchange)
        line, notes = self._widgets.frames.current_row, self._widgets.marks.notes
        place = (
            NotePlace(session, exchange, line.row.frame.seq)
            if frame and isinstance(line, FrameLine)
            else None
        )
        note = (notes.get(place) if place is not None else None) or notes.get(
            NotePlace(session, exchange)
        )
        return note_words(note) if note is not None else ""


def rows_above(earlier: RecordingSnapshot, now: RecordingSnapshot, cursor: int) -> int:
    """Return how many rows were added above the cursor, that is, to sessions before the one under
    the cursor."""
    lengths = {
        session.id: length
        for session, length in zip(earlier.sessions, earlier.lengths, strict=True)
    }
    new_rows = old_rows = 0
    for session, length in zip(now.sessions, now.lengths, strict=True):
        old = lengths.get(session.id, 0)
        if cursor < old_rows + old:
            break
        old_rows += old
        new_rows += length - old
    return new_rows if cursor < earlier.exchanges else 0


def exchange_title(stream: ExchangeStream) -> str:
    """Return an exchange in one line: number, operation, binding, outcome, ending."""
    exchange = stream.row.exchange
    words = [
        f"#{exchange.id} {text.exchange_title(exchange)}",
        text.binding_and_dialect(exchange),
        text.outcome_label(exchange),
        stream.ending,
    ]
    return make_visible("  ".join(word for word in words if word))


def list_remark(rows: LazyList, late: int) -> str:
    """Return the number of rows, and whether the list follows the end."""
    new = rows.unseen_rows + late
    if not rows.total and not new:
        return ""
    if new > 0:
        return f"+{new} new  {rows.total}"
    return f"following  {rows.total}" if rows.follow else str(rows.total)


def empty_notice(source: RecordingSource, now: RecordingSnapshot) -> str:
    """Return the text of an empty screen: why it is empty, and what to do."""
    if source.files:
        return visible_lines("No exchanges yet in any of\n\n" + "\n".join(source.files))
    if now.sessions:
        facts = now.sessions[-1].facts
        ways = "\n".join(
            f"{a} -> {b}" for a, b in zip(facts.listens, facts.upstreams, strict=False)
        )
        return visible_lines(f"No exchanges yet\n\nPoint a client at the proxy:\n{ways}")
    what = "is empty" if source.path.exists() else "does not exist yet"
    return visible_lines(
        f"Waiting for a recording\n\n{source.path} {what}\n\n"
        f"a2a-proxy --listen :9000 --upstream HOST:PORT --record {source.path}"
    )


def visible_lines(lines: str) -> str:
    """Return several lines with control characters made visible in each."""
    return "\n".join(map(make_visible, lines.split("\n")))
