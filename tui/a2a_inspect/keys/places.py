"""All scopes that have keys. Add a line for a new screen or widget that has bindings."""

from textual.app import App

from a2a_inspect.dialogs.choose_recording import ChooseRecording
from a2a_inspect.dialogs.columns_box import ColumnsBox
from a2a_inspect.dialogs.command_line import CommandLine
from a2a_inspect.dialogs.copy_menu import CopyMenu
from a2a_inspect.dialogs.export_menu import ExportMenu, FormatMenu
from a2a_inspect.dialogs.filter_box import FilterBox
from a2a_inspect.dialogs.help import Help
from a2a_inspect.dialogs.note_box import NoteBox
from a2a_inspect.dialogs.seek_box import SeekBox
from a2a_inspect.dialogs.send_menu import AgentBox, SendMenu
from a2a_inspect.dialogs.text_page import TextPage
from a2a_inspect.keys.actions import KeyScope
from a2a_inspect.keys.app_keys import APP_KEYS
from a2a_inspect.keys.main_keys import (
    COMMAND_KEYS,
    FILTER_KEYS,
    MATCH_KEYS,
    PANE_KEYS,
    RECORDING_KEYS,
    ROW_KEYS,
)
from a2a_inspect.screens.diff_screen import DiffScreen
from a2a_inspect.screens.findings_screen import FindingsScreen
from a2a_inspect.screens.lane_screen import LaneScreen
from a2a_inspect.screens.main import MainScreen
from a2a_inspect.screens.plot_screen import PlotScreen
from a2a_inspect.screens.replay_screen import JumpTo, ReplayScreen
from a2a_inspect.screens.send_screen import SendScreen
from a2a_inspect.screens.views_screen import ViewsScreen
from a2a_inspect.widgets.branch_tree import BranchTree
from a2a_inspect.widgets.detail import Detail
from a2a_inspect.widgets.diff_view import DiffView
from a2a_inspect.widgets.lane_list import LaneList
from a2a_inspect.widgets.lazy_list import LazyList
from a2a_inspect.widgets.text_view import TextView

KEY_SCOPES = (
    KeyScope("All screens", App, bindings=APP_KEYS),
    KeyScope("Recording", MainScreen, bindings=RECORDING_KEYS),
    KeyScope("Panes", MainScreen, bindings=PANE_KEYS),
    KeyScope("Tree", BranchTree, (MainScreen,)),
    KeyScope("Search and filter", MainScreen, bindings=FILTER_KEYS),
    KeyScope("Search and filter", MainScreen, bindings=MATCH_KEYS),
    KeyScope("Selected row", MainScreen, bindings=ROW_KEYS),
    KeyScope("Search and filter", MainScreen, bindings=COMMAND_KEYS),
    KeyScope("Filter input", FilterBox, (MainScreen,)),
    KeyScope("Lists", LazyList, (MainScreen,)),
    KeyScope("Frame", Detail, (MainScreen,)),
    KeyScope("Text", TextView, (Detail, MainScreen)),
    KeyScope("Text search", SeekBox),
    KeyScope("Diff", DiffScreen),
    KeyScope("Diff lines", DiffView, (DiffScreen,)),
    KeyScope("List of recordings", ChooseRecording),
    KeyScope("Swimlane", LaneScreen),
    KeyScope("Swimlane rows", LaneList, (LaneScreen, LazyList)),
    KeyScope("Copy menu", CopyMenu),
    KeyScope("Export menu", ExportMenu),
    KeyScope("Format menu", FormatMenu),
    KeyScope("Note", NoteBox),
    KeyScope("Send menu", SendMenu),
    KeyScope("Agent", AgentBox),
    KeyScope("Call that is sent again", SendScreen),
    KeyScope("Findings by rule", FindingsScreen, (BranchTree,)),
    KeyScope("Plots", PlotScreen),
    KeyScope("Replay", ReplayScreen),
    KeyScope("Jump to a time", JumpTo),
    KeyScope("Saved views", ViewsScreen),
    KeyScope("Columns", ColumnsBox),
    KeyScope("Command line", CommandLine),
    KeyScope("Text page", TextPage),
    KeyScope("Help", Help),
)
