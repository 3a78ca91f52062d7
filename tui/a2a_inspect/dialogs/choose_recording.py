"""Dialog that selects another recording: one from the same folder, the newest first, or any file by
its name."""

from pathlib import Path
from typing import ClassVar

from rich.cells import cell_len
from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from a2a_inspect.widgets.columns import fit_text
from a2a_proxy.present import text
from a2a_proxy.protocol.text import make_visible

_MAX_LISTED_FILES = 200
_SUFFIXES = (".db", ".a2a.jsonl")


class ChooseRecording(ModalScreen[Path | None]):
    """The dialog. Returns the path, or None if it is closed."""

    DEFAULT_CSS = """
    ChooseRecording { align: center middle; }
    ChooseRecording > Vertical {
        width: 76; max-width: 96%; height: auto; max-height: 90%; padding: 0 1;
        background: $surface; border: round $primary; border-title-color: $text;
    }
    ChooseRecording OptionList {
        height: auto; max-height: 16; border: none; background: $surface; padding: 0;
    }
    ChooseRecording Input { margin: 1 0 0 0; background: $panel; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "Close", id="choose.close", tooltip="close without choosing"),
    ]

    def __init__(self, current: Path, title: str) -> None:
        super().__init__()
        self._current = current
        self._box_title = title
        self._files: list[Path] = []
        self._list = OptionList(id="recordings", compact=True)

    def compose(self) -> ComposeResult:
        """Return the list and the input line."""
        box = Vertical(
            self._list, Input(placeholder="or type a file name", id="name", compact=True)
        )
        box.border_title = self._box_title
        yield box

    def on_mount(self) -> None:
        """List the recordings of the folder."""
        self._list.focus()
        self._read_folder()

    @work(thread=True, exit_on_error=False)
    def _read_folder(self) -> None:
        self.app.call_from_thread(self._show_recordings, recordings_beside(self._current))

    def _show_recordings(self, recordings: list[tuple[Path, str]]) -> None:
        self._files = [path for path, _ in recordings]
        self._list.clear_options()
        width = max((cell_len(make_visible(path.name)) for path, _ in recordings), default=0)
        self._list.add_options(
            [
                Option(Content(f"{fit_text(path.name, width)}  {words}"))
                for path, words in recordings
            ]
        )
        if recordings:
            self._list.highlighted = 0
        else:
            self.query_one(Input).focus()

    @on(OptionList.OptionSelected)
    def _select_listed(self, message: OptionList.OptionSelected) -> None:
        self.dismiss(self._files[message.option_index])

    @on(Input.Submitted)
    def _open_typed_path(self, message: Input.Submitted) -> None:
        if message.value.strip():
            self.dismiss(Path(message.value.strip()).expanduser())


def recordings_beside(path: Path) -> list[tuple[Path, str]]:
    """Return the other recordings and cassettes in the folder, the newest first, each with its date
    and size."""
    found = []
    try:
        for file in path.absolute().parent.iterdir():
            if file.name.endswith(_SUFFIXES) and file.is_file() and file.name != path.name:
                about = file.stat()
                found.append(
                    (
                        about.st_mtime_ns,
                        file,
                        (
                            f"{text.format_date_time(about.st_mtime_ns)}  "
                            f"{text.format_size(about.st_size)}"
                        ),
                    )
                )
    except OSError:
        pass  # files that cannot be listed are skipped; any file name can be typed
    return [(file, words) for _, file, words in sorted(found, reverse=True)[:_MAX_LISTED_FILES]]
