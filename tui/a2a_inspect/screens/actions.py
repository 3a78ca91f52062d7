"""What is done with the row under the cursor: copied, exported, noted, bookmarked."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import ClassVar

from textual import work
from textual.binding import Binding, BindingType

from a2a_inspect.clipboard import copy_to_clipboard
from a2a_inspect.data.references import format_place
from a2a_inspect.data.source import FrameLine
from a2a_inspect.dialogs.copy_menu import CopyMenu
from a2a_inspect.dialogs.export_menu import ALL, FILTERED, SELECTED, ExportMenu, FormatMenu
from a2a_inspect.dialogs.note_box import NoteBox
from a2a_inspect.screens.commands import CommandScreen
from a2a_proxy.present import text
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.read.rows import ExchangeRow, make_key, split_key
from a2a_proxy.recording.write.note_writer import NotePlace, annotate

_SUFFIXES = {"json": "call.json", "raw": "payload", "python": "call.py", "pytest": "test_call.py"}
"""How a file is called that takes what no clipboard takes; others are text."""


class ActionScreen(CommandScreen):
    """See the module."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "copy", "Copy", id="view.copy", tooltip="copy it: JSON, raw, curl, grpcurl, Python, pytest, ids"),
        Binding("x", "export", "Export", show=False, id="view.export", tooltip="write it, or what matches, to a file"),
        Binding("semicolon", "note", "Note", show=False, key_display=";", id="view.note", tooltip="write a note here"),
        Binding("b", "bookmark", "Bookmark", show=False, id="view.bookmark", tooltip="bookmark it, or take that away"),
    ]

    def _cursor_place(self) -> NotePlace | None:
        """The exchange under the first pane's cursor, else the frame: what the panes below show may lag behind."""
        row = self._frames.current_row if self._focused_pane_index() else self._exchanges.current_row
        if isinstance(row, FrameLine):
            return NotePlace(row.row.session, row.row.frame.exchange, row.row.frame.seq)
        if isinstance(row, ExchangeRow):
            return NotePlace(row.session, row.exchange.id)
        return NotePlace(*split_key(self._selected_exchange)) if self._selected_exchange else None

    def _is_read_only(self, subject: str) -> bool:
        """Whether this app may not write; then it says so."""
        if self._source.files:
            self.notify(f"several recordings are shown as one: {subject} is for one of them alone", severity="warning")
            return True
        if getattr(self.app, "read_only", False):
            self.notify(f"this screen is read-only: {subject} is for the one who opened it", severity="warning")
            return True
        return False

    # Notes.

    def action_note(self) -> None:
        """Type a note at this place."""
        place = self._cursor_place()
        if place is not None and not self._is_read_only("a note"):
            known = self._marks.notes.get(place)
            self._type_note(place, known.text if known is not None else "")

    @work(group="note")
    async def _type_note(self, place: NotePlace, old_text: str) -> None:
        typed = await self.app.push_screen_wait(NoteBox(format_place(place), old_text))
        if typed is not None and typed != old_text:
            await self._write_annotation(place, text=typed)

    @work(group="note")
    async def action_bookmark(self) -> None:
        """Bookmark this place, or take its bookmark away."""
        place = self._cursor_place()
        if place is not None and not self._is_read_only("a bookmark"):
            known = self._marks.notes.get(place)
            await self._write_annotation(place, bookmark=known is None or not known.bookmark)

    async def _write_annotation(
        self, place: NotePlace, *, text: str | None = None, bookmark: bool | None = None
    ) -> None:
        try:
            await asyncio.to_thread(annotate, self._source.path, place, time.time_ns(), text=text, bookmark=bookmark)
        except RecordingError as wrong:
            self.notify(f"{wrong.message}\n{wrong.hint}", severity="error", markup=False)

    # Copying.

    @work(group="copy", exclusive=True)
    async def action_copy(self) -> None:
        """Choose a form, and copy it."""
        place = self._cursor_place()
        if place is None:
            return
        from a2a_inspect.formats.copying.forms import make_forms

        none: dict[str, bytes | str] = {}
        forms = await self._await_answer(
            "copy", self._source.ask(lambda recording: make_forms(recording, place), none), none
        )
        refused = {name: str(form) for name, form in forms.items() if not isinstance(form, bytes)}
        name = await self.app.push_screen_wait(CopyMenu(format_place(place), refused))
        form = forms.get(name or "")
        if name is None or not isinstance(form, bytes):
            return
        if self.app.is_web:
            self.app.copy_to_clipboard(form.decode("utf-8", "replace"))
            self.notify(
                f"{name} of {format_place(place)}, {text.format_size(len(form))}: handed to the browser", markup=False
            )
            return
        done = await asyncio.to_thread(
            copy_to_clipboard, form, _SUFFIXES.get(name, f"{name}.txt"), self.app.copy_to_clipboard
        )
        self.notify(
            f"{name} of {format_place(place)}, {text.format_size(len(form))}: {make_visible(done)}", markup=False
        )

    # Exporting.

    def _export_sets(self) -> dict[str, str]:
        """What can be exported now, in words."""
        marked = len({each.exchange for each in self._marks.marked_rows()})
        sets = {SELECTED: text.format_count(marked, "marked exchange") if marked else "the exchange under the cursor"}
        if self.narrowing.expression():
            sets[FILTERED] = f"what matches {make_visible(self.narrowing.expression())}"
        return {**sets, ALL: "the whole recording"}

    @work(group="export", exclusive=True)
    async def action_export(self) -> None:
        """Choose a set and a format, and write them to a new file in the current folder."""
        place = self._cursor_place()
        if place is None or self._is_read_only("an export"):
            return
        sets, folder = self._export_sets(), Path.cwd()
        chosen = await self.app.push_screen_wait(ExportMenu(sets, make_visible(str(folder))))
        if chosen is None:
            return
        name = chosen[0]
        form: str | None = chosen[1] or await self.app.push_screen_wait(FormatMenu(sets[name]))
        if form is None:
            return
        keys = list(dict.fromkeys(each.exchange for each in self._marks.marked_rows())) or [
            make_key(place.session, place.exchange)
        ]
        where = self.narrowing.expression()
        self.notify(f"exporting {sets[name]} …", timeout=2, markup=False)
        try:
            told = await asyncio.to_thread(self._export_to_file, folder, name, form, keys, where)
            self.notify(told, markup=False)
        except RecordingError as wrong:
            self.notify(f"{wrong.message}\n{wrong.hint}", severity="error", markup=False)

    def _export_to_file(self, folder: Path, name: str, form: str, keys: list[int], where: str) -> str:
        """In a thread, on a connection of its own: a large export holds no list up."""
        from a2a_inspect.formats.chosen import ExportSelection
        from a2a_inspect.formats.export import export_selection, unused_path
        from a2a_inspect.formats.registry import FORMATS
        from a2a_proxy.recording.query.sql import Rows

        recording = self._source.reopen_recording()
        if recording is None:
            return "there is nothing to export yet"
        with recording:
            wanted = ExportSelection(recording, frozenset(keys), "exchanges that were selected")
            if name == ALL:
                wanted = ExportSelection(recording)
            elif name == FILTERED:
                matching = frozenset(recording.queryable().ids(where, Rows.EXCHANGES))
                wanted = ExportSelection(recording, matching, f"what matches {where}")
            target = unused_path(folder, self._source.path, name, FORMATS[form].suffix)
            count = export_selection(wanted, target, form)
        return f"{text.format_count(count, 'exchange')} written to {make_visible(str(target))}"
