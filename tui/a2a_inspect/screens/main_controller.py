"""Base of the controllers that read the recording and change the widgets of the main screen."""

from dataclasses import dataclass

from textual.screen import Screen

from a2a_inspect.screens.controller import Controller
from a2a_inspect.screens.reader import RecordingReader
from a2a_inspect.screens.state import MainState, MainWidgets


@dataclass(frozen=True)
class MainParts:
    """The parts of the main screen that its controllers work on."""

    screen: Screen[None]
    reader: RecordingReader
    state: MainState
    widgets: MainWidgets


class MainController(Controller):
    """A controller of the main screen."""

    def __init__(self, parts: MainParts) -> None:
        super().__init__(parts.screen)
        self._reader = parts.reader
        self._source = parts.reader.source
        self._state = parts.state
        self._widgets = parts.widgets
