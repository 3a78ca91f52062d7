"""All scopes that have keys. Add a line for a new screen or widget that has bindings."""

from __future__ import annotations

from textual.app import App

from a2a_inspect.dialogs.choose_recording import ChooseRecording
from a2a_inspect.dialogs.command_line import CommandLine
from a2a_inspect.dialogs.copy_menu import CopyMenu
from a2a_inspect.dialogs.export_menu import ExportMenu, FormatMenu
from a2a_inspect.dialogs.filter_box import FilterBox
from a2a_inspect.dialogs.help import Help
from a2a_inspect.dialogs.note_box import NoteBox
from a2a_inspect.dialogs.seek_box import SeekBox
from a2a_inspect.dialogs.text_page import TextPage
from a2a_inspect.keys.actions import KeyScope
from a2a_inspect.keys.app_keys import APP_KEYS
from a2a_inspect.keys.main_keys import COMMAND_KEYS, FILTER_KEYS, MATCH_KEYS, PANE_KEYS, RECORDING_KEYS, ROW_KEYS
from a2a_inspect.screens.diff_screen import DiffScreen
from a2a_inspect.screens.lane_screen import LaneScreen
from a2a_inspect.screens.main import MainScreen
from a2a_inspect.screens.plot_screen import PlotScreen
from a2a_inspect.screens.replay_screen import JumpTo, ReplayScreen
from a2a_inspect.screens.views_screen import ViewsScreen
from a2a_inspect.widgets.detail import Detail
from a2a_inspect.widgets.diff_view import DiffView
from a2a_inspect.widgets.lane_list import LaneList
from a2a_inspect.widgets.lazy_list import LazyList
from a2a_inspect.widgets.recording_tree import RecordingTree
from a2a_inspect.widgets.text_view import TextView

KEY_SCOPES = (
    KeyScope("Everywhere", App, bindings=APP_KEYS),
    KeyScope("The recording", MainScreen, bindings=RECORDING_KEYS),
    KeyScope("Panes", MainScreen, bindings=PANE_KEYS),
    KeyScope("The tree", RecordingTree, (MainScreen,)),
    KeyScope("Finding things", MainScreen, bindings=FILTER_KEYS),
    KeyScope("Finding things", MainScreen, bindings=MATCH_KEYS),
    KeyScope("What is under the cursor", MainScreen, bindings=ROW_KEYS),
    KeyScope("Finding things", MainScreen, bindings=COMMAND_KEYS),
    KeyScope("The filter's line", FilterBox, (MainScreen,)),
    KeyScope("A list", LazyList, (MainScreen,)),
    KeyScope("A frame", Detail, (MainScreen,)),
    KeyScope("A text", TextView, (Detail, MainScreen)),
    KeyScope("A word in a text", SeekBox),
    KeyScope("A difference", DiffScreen),
    KeyScope("Its lines", DiffView, (DiffScreen,)),
    KeyScope("A list of recordings", ChooseRecording),
    KeyScope("A swimlane", LaneScreen),
    KeyScope("Its rows", LaneList, (LaneScreen, LazyList)),
    KeyScope("Copying", CopyMenu),
    KeyScope("Exporting", ExportMenu),
    KeyScope("A format", FormatMenu),
    KeyScope("A note", NoteBox),
    KeyScope("Plots", PlotScreen),
    KeyScope("A replay", ReplayScreen),
    KeyScope("A time to jump to", JumpTo),
    KeyScope("Saved views", ViewsScreen),
    KeyScope("A command", CommandLine),
    KeyScope("A page of text", TextPage),
    KeyScope("This page", Help),
)
