"""All places that have keys. A new screen or widget with bindings of its own gets a line here."""

from __future__ import annotations

from a2a_inspect.app import InspectApp
from a2a_inspect.keys.actions import Place
from a2a_inspect.screen.acting import Acting
from a2a_inspect.screen.choose_recording import ChooseRecording
from a2a_inspect.screen.command_line import CommandLine
from a2a_inspect.screen.commanded import Commanded
from a2a_inspect.screen.copy_menu import CopyMenu
from a2a_inspect.screen.detail import Detail
from a2a_inspect.screen.diff_screen import DiffScreen
from a2a_inspect.screen.diff_view import DiffView
from a2a_inspect.screen.export_menu import ExportMenu, FormatMenu
from a2a_inspect.screen.filter_box import FilterBox
from a2a_inspect.screen.help import Help
from a2a_inspect.screen.hopping import Hopping
from a2a_inspect.screen.lane_list import LaneList
from a2a_inspect.screen.lane_screen import LaneScreen
from a2a_inspect.screen.lazy_list import LazyList
from a2a_inspect.screen.main import MainScreen
from a2a_inspect.screen.narrowed import Narrowed
from a2a_inspect.screen.note_box import NoteBox
from a2a_inspect.screen.plot_screen import PlotScreen
from a2a_inspect.screen.recording_tree import RecordingTree
from a2a_inspect.screen.replay_screen import JumpTo, ReplayScreen
from a2a_inspect.screen.seek_box import SeekBox
from a2a_inspect.screen.text_page import TextPage
from a2a_inspect.screen.text_view import TextView
from a2a_inspect.screen.treed import Treed
from a2a_inspect.screen.views_screen import ViewsScreen

PLACES = (
    Place("Everywhere", InspectApp),
    Place("The recording", MainScreen),
    Place("Panes", Treed),
    Place("The tree", RecordingTree, (MainScreen,)),
    Place("Finding things", Narrowed),
    Place("Finding things", Hopping),
    Place("What is under the cursor", Acting),
    Place("Finding things", Commanded),
    Place("The filter's line", FilterBox, (MainScreen,)),
    Place("A list", LazyList, (MainScreen,)),
    Place("A frame", Detail, (MainScreen,)),
    Place("A text", TextView, (Detail, MainScreen)),
    Place("A word in a text", SeekBox),
    Place("A difference", DiffScreen),
    Place("Its lines", DiffView, (DiffScreen,)),
    Place("A list of recordings", ChooseRecording),
    Place("A swimlane", LaneScreen),
    Place("Its rows", LaneList, (LaneScreen, LazyList)),
    Place("Copying", CopyMenu),
    Place("Exporting", ExportMenu),
    Place("A format", FormatMenu),
    Place("A note", NoteBox),
    Place("Plots", PlotScreen),
    Place("A replay", ReplayScreen),
    Place("A time to jump to", JumpTo),
    Place("Saved views", ViewsScreen),
    Place("A command", CommandLine),
    Place("A page of text", TextPage),
    Place("This page", Help),
)
