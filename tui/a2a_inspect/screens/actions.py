"""Actions on the row under the cursor: mark it, compare it, copy it, export it, annotate it."""

import asyncio
import time
from pathlib import Path

from a2a_inspect.clipboard import copy_to_clipboard
from a2a_inspect.data.source import FrameLine
from a2a_inspect.dialogs.copy_menu import CopyMenu
from a2a_inspect.dialogs.export_menu import ALL, FILTERED, SELECTED, ExportMenu, FormatMenu
from a2a_inspect.dialogs.note_box import NoteBox
from a2a_inspect.screens.controller import run_in_background
from a2a_inspect.screens.filter import FilterController
from a2a_inspect.screens.main_controller import MainController, MainParts
from a2a_inspect.screens.panes import Panes
from a2a_inspect.widgets.lazy_list import LazyList
from a2a_inspect.widgets.marks import MarkedRow
from a2a_proxy.present import text
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.read.rows import ExchangeRow, label_place, make_key, split_key
from a2a_proxy.recording.write.note_writer import NotePlace, write_note

_SUFFIXES = {"json": "call.json", "raw": "payload", "python": "call.py", "pytest": "test_call.py"}
"""Name of the file that is written when no clipboard takes a form; other forms are text files."""


class RowActions(MainController):
    """Acts on the exchange or frame under the cursor."""

    def __init__(self, parts: MainParts, panes: Panes, list_filter: FilterController) -> None:
        super().__init__(parts)
        self._marks = self._widgets.marks
        self._panes = panes
        self._filter = list_filter

    def _focused_list(self) -> LazyList:
        return self._widgets.frames if self._panes.focused_index() else self._widgets.exchanges

    def _row_under_cursor(self) -> MarkedRow | None:
        row = self._focused_list().current_row
        if isinstance(row, ExchangeRow):
            return MarkedRow(row.key)
        return MarkedRow(row.row.exchange_key, row.row.id) if isinstance(row, FrameLine) else None

    def _cursor_place(self) -> NotePlace | None:
        """Return the place under the cursor. In the list it is the exchange there: the panes below
        may lag behind."""
        row = self._focused_list().current_row
        if isinstance(row, FrameLine):
            return NotePlace(row.row.session, row.row.frame.exchange, row.row.frame.seq)
        if isinstance(row, ExchangeRow):
            return NotePlace(row.session, row.exchange.id)
        selected = self._state.selected_exchange
        return NotePlace(*split_key(selected)) if selected else None

    def _is_read_only(self, subject: str) -> bool:
        """Return whether nothing can be written from this screen, and say so if that is the
        case."""
        if self._source.files:
            self.screen.notify(
                f"several recordings are open as one: open a single one for {subject}",
                severity="warning",
            )
            return True
        if getattr(self.screen.app, "read_only", False):
            self.screen.notify(
                f"this screen is read-only: {subject} cannot be written", severity="warning"
            )
            return True
        return False

    # Marks.

    def toggle_mark(self) -> None:
        """Mark the row under the cursor, or remove its mark."""
        row = self._row_under_cursor()
        if row is not None:
            self._marks.toggle_mark(row)
        self._focused_list().refresh()

    def compare(self) -> None:
        """Compare the two marked rows, the marked row with this one, or this call with the one like
        it before."""
        from a2a_inspect.screens.compare import compare_from

        compare_from(self.screen, self._source, self._marks.marked_rows(), self._row_under_cursor())

    # Notes.

    def note(self) -> None:
        """Let the user type a note on the row under the cursor."""
        place = self._cursor_place()
        if place is not None and not self._is_read_only("a note"):
            note = self._marks.notes.get(place)
            self._type_note(place, note.text if note is not None else "")

    @run_in_background(group="note")
    async def _type_note(self, place: NotePlace, old_text: str) -> None:
        new_text = await self.screen.app.push_screen_wait(NoteBox(_label(place), old_text))
        if new_text is not None and new_text != old_text:
            await self._write_annotation(place, text=new_text)

    @run_in_background(group="note")
    async def toggle_bookmark(self) -> None:
        """Bookmark the row under the cursor, or remove its bookmark."""
        place = self._cursor_place()
        if place is not None and not self._is_read_only("a bookmark"):
            note = self._marks.notes.get(place)
            await self._write_annotation(place, bookmark=note is None or not note.bookmark)

    async def _write_annotation(
        self, place: NotePlace, *, text: str | None = None, bookmark: bool | None = None
    ) -> None:
        try:
            await asyncio.to_thread(
                write_note, self._source.path, place, time.time_ns(), text=text, bookmark=bookmark
            )
        except RecordingError as error:
            self.screen.notify(f"{error.message}\n{error.hint}", severity="error", markup=False)

    # Copying.

    @run_in_background(group="copy", exclusive=True)
    async def copy(self) -> None:
        """Let the user choose a form of the row, and copy it."""
        place = self._cursor_place()
        if place is None:
            return
        from a2a_inspect.formats.copying.forms import make_forms

        none: dict[str, bytes | str] = {}
        forms = await self._reader.run_query(
            "copy", lambda recording: make_forms(recording, place), none
        )
        refused = {name: str(form) for name, form in forms.items() if not isinstance(form, bytes)}
        name = await self.screen.app.push_screen_wait(CopyMenu(_label(place), refused))
        form = forms.get(name or "")
        if name is None or not isinstance(form, bytes):
            return
        if self.screen.app.is_web:
            self.screen.app.copy_to_clipboard(form.decode("utf-8", "replace"))
            self.screen.notify(
                f"{name} of {_label(place)}, {text.format_size(len(form))}: passed to the browser",
                markup=False,
            )
            return
        result = await asyncio.to_thread(
            copy_to_clipboard,
            form,
            _SUFFIXES.get(name, f"{name}.txt"),
            self.screen.app.copy_to_clipboard,
        )
        self.screen.notify(
            f"{name} of {_label(place)}, {text.format_size(len(form))}: {make_visible(result)}",
            markup=False,
        )

    # Exporting.

    def _export_sets(self) -> dict[str, str]:
        """Return the sets of exchanges that can be exported now, with their labels."""
        marked_count = len({each.exchange for each in self._marks.marked_rows()})
        sets = {
            SELECTED: text.format_count(marked_count, "marked exchange")
            if marked_count
            else "the exchange under the cursor"
        }
        if self._filter.current.make_expression():
            sets[FILTERED] = f"matches of {make_visible(self._filter.current.make_expression())}"
        return {**sets, ALL: "the whole recording"}

    @run_in_background(group="export", exclusive=True)
    async def export(self) -> None:
        """Let the user choose a set and a format, and write the set to a new file in the current
        folder."""
        place = self._cursor_place()
        if place is None or self._is_read_only("an export"):
            return
        sets, folder = self._export_sets(), Path.cwd()
        choice = await self.screen.app.push_screen_wait(ExportMenu(sets, make_visible(str(folder))))
        if choice is None:
            return
        name = choice[0]
        form: str | None = choice[1] or await self.screen.app.push_screen_wait(
            FormatMenu(sets[name])
        )
        if form is None:
            return
        keys = list(dict.fromkeys(each.exchange for each in self._marks.marked_rows())) or [
            make_key(place.session, place.exchange)
        ]
        where = self._filter.current.make_expression()
        self.screen.notify(f"exporting {sets[name]} …", timeout=2, markup=False)
        try:
            message = await asyncio.to_thread(self._export_to_file, folder, name, form, keys, where)
            self.screen.notify(message, markup=False)
        except RecordingError as error:
            self.screen.notify(f"{error.message}\n{error.hint}", severity="error", markup=False)

    def _export_to_file(
        self, folder: Path, name: str, form: str, keys: list[int], where: str
    ) -> str:
        """Write the file, in a thread and on a connection of its own, so that no list waits. Return
        a message."""
        from a2a_inspect.formats.chosen import ExportSelection
        from a2a_inspect.formats.export import export_selection, unused_path
        from a2a_inspect.formats.registry import FORMATS
        from a2a_proxy.recording.query.sql import Rows

        recording = self._source.reopen_recording()
        if recording is None:
            return "nothing to export yet: the recording is empty"
        with recording:
            selected = ExportSelection(recording, frozenset(keys), "exchanges that were selected")
            if name == ALL:
                selected = ExportSelection(recording)
            elif name == FILTERED:
                matching = frozenset(recording.get_queryable().select_ids(where, Rows.EXCHANGES))
                selected = ExportSelection(recording, matching, f"what matches {where}")
            target = unused_path(folder, self._source.path, name, FORMATS[form].suffix)
            count = export_selection(selected, target, form)
        return f"{text.format_count(count, 'exchange')} written to {make_visible(str(target))}"


def _label(place: NotePlace) -> str:
    return label_place(place.session, place.exchange, place.seq)
