"""Keys of the main screen, in groups. Most name a method of a controller:
`call('filter.toggle_only', 'task')`.

`MainScreen.action_call` calls that method. Actions without a controller are methods of the screen.
"""

from textual.binding import Binding

from a2a_inspect.widgets.tab_line import TABS

FILTER_KEYS = (
    Binding(
        "slash",
        "call('filter.open_box')",
        "Filter",
        key_display="/",
        id="exchanges.filter",
        tooltip="show only matching exchanges",
    ),
    Binding(
        "i",
        "call('filter.edit_whole')",
        "Edit filter",
        show=False,
        id="exchanges.edit",
        tooltip="edit all that narrows the list, in its line",
    ),
    Binding(
        "o",
        "call('filter.toggle_only', 'task')",
        "Only task",
        show=False,
        id="exchanges.task",
        tooltip="show only this task, or all",
    ),
    Binding(
        "O",
        "call('filter.toggle_only', 'context')",
        "Only context",
        show=False,
        id="exchanges.context",
        tooltip="show only this context, or all",
    ),
    Binding(
        "ctrl+z",
        "call('filter.toggle_findings')",
        "Only findings",
        show=False,
        id="exchanges.findings",
        tooltip="show only exchanges with findings, or all",
    ),
)
MATCH_KEYS = (
    Binding(
        "n",
        "call('navigation.step_match', 1)",
        "Next match",
        show=False,
        id="match.next",
        tooltip="next matching frame",
    ),
    Binding(
        "N", "call('navigation.step_match', -1)", "Previous match", show=False, id="match.previous"
    ),
    Binding(
        "e",
        "call('navigation.step_finding', 1)",
        "Next finding",
        show=False,
        id="finding.next",
        tooltip="next finding, with its rule",
    ),
    Binding(
        "E",
        "call('navigation.step_finding', -1)",
        "Previous finding",
        show=False,
        id="finding.previous",
    ),
    Binding(
        "exclamation_mark",
        "call('navigation.next_error')",
        "Next error",
        show=False,
        id="error.next",
        tooltip="next error: a finding, or a call that failed",
    ),
)
COMMAND_KEYS = (
    Binding(
        "c",
        "call('columns.open_box')",
        "Columns",
        show=False,
        id="exchanges.columns",
        tooltip="choose the columns: fields of filters, headers, JSON paths",
    ),
    Binding(
        "v",
        "call('commands.open_views')",
        "Views",
        show=False,
        id="exchanges.views",
        tooltip="saved views: use, save, delete",
    ),
    Binding(
        "colon",
        "call('commands.open_command_line')",
        "Command",
        show=False,
        id="app.command",
        tooltip="type a command, for example :explain",
    ),
)
ROW_KEYS = (
    Binding(
        "y",
        "call('row_actions.copy')",
        "Copy",
        id="view.copy",
        tooltip="copy as JSON, raw, curl, grpcurl, Python, pytest or ids",
    ),
    Binding(
        "x",
        "call('row_actions.export')",
        "Export",
        show=False,
        id="view.export",
        tooltip="export the selection, the matches or everything",
    ),
    Binding(
        "semicolon",
        "call('row_actions.note')",
        "Note",
        show=False,
        key_display=";",
        id="view.note",
        tooltip="write a note on the row",
    ),
    Binding(
        "b",
        "call('row_actions.toggle_bookmark')",
        "Bookmark",
        show=False,
        id="view.bookmark",
        tooltip="add or remove a bookmark",
    ),
    Binding(
        "S",
        "call('resend.open_menu')",
        "Send again",
        show=False,
        id="view.send",
        tooltip="send the call to an agent again, as it was or edited",
    ),
)
PANE_KEYS = (
    Binding(
        "t",
        "call('panes.toggle_tree')",
        "Tree",
        show=False,
        id="pane.tree",
        tooltip="show or hide the tree of the recording",
    ),
    Binding(
        "minus",
        "call('panes.next_layout')",
        "Layout",
        show=False,
        id="view.layout",
        tooltip="next layout: with tree, without tree, columns",
    ),
    Binding(
        "z",
        "call('panes.toggle_zoom')",
        "Zoom",
        show=False,
        id="view.zoom",
        tooltip="show one pane, or all",
    ),
    Binding(
        "{",
        "call('navigation.step_in_task', -1)",
        "Previous in task",
        show=False,
        id="task.previous",
        tooltip="previous frame of the task",
    ),
    Binding(
        "}",
        "call('navigation.step_in_task', 1)",
        "Next in task",
        show=False,
        id="task.next",
        tooltip="next frame of the task",
    ),
)
RECORDING_KEYS = (
    Binding(
        "escape",
        "back",
        "Back",
        id="app.back",
        tooltip="previous pane; in the first, widen the list",
    ),
    Binding("tab", "call('panes.turn', 1)", "Next pane", show=False, priority=True, id="pane.next"),
    Binding(
        "shift+tab",
        "call('panes.turn', -1)",
        "Previous pane",
        show=False,
        priority=True,
        id="pane.previous",
    ),
    Binding(
        "[",
        "call('navigation.step_frame', -1)",
        "Previous frame",
        show=False,
        id="frame.previous",
        tooltip="previous frame",
    ),
    Binding(
        "]",
        "call('navigation.step_frame', 1)",
        "Next frame",
        show=False,
        id="frame.next",
        tooltip="next frame",
    ),
    Binding(
        "s",
        "call('other_screens.open_swimlane')",
        "Swimlane",
        id="view.lanes",
        tooltip="show the messages of the task as a swimlane",
    ),
    Binding(
        "L",
        "call('other_screens.open_plots')",
        "Plots",
        show=False,
        id="view.plots",
        tooltip="plot traffic over time, and latencies",
    ),
    Binding(
        "r",
        "call('other_screens.open_findings')",
        "Findings by rule",
        show=False,
        id="view.findings",
        tooltip="list the findings by rule",
    ),
    Binding(
        "space",
        "call('other_screens.open_replay')",
        "Replay",
        show=False,
        id="view.replay",
        tooltip="replay the list with a clock",
    ),
    Binding(
        "m",
        "call('row_actions.toggle_mark')",
        "Mark",
        id="view.mark",
        tooltip="mark or unmark the exchange or frame",
    ),
    Binding(
        "p",
        "pause",
        "Pause",
        id="view.pause",
        tooltip="pause or resume the display, not the recording",
    ),
    Binding(
        "D",
        "call('row_actions.compare')",
        "Diff",
        id="view.diff",
        tooltip="compare with the marked or the previous call",
    ),
    Binding("q", "leave", "Quit", id="app.leave", tooltip="go back; in the first pane, quit"),
    *(
        Binding(
            str(tab + 1),
            f"call('navigation.show_tab', {tab})",
            name,
            show=False,
            id=f"tab.{name.lower()}",
            tooltip=f"show the tab {name}",
        )
        for tab, name in enumerate(TABS)
    ),
)

MAIN_KEYS = (*FILTER_KEYS, *MATCH_KEYS, *COMMAND_KEYS, *ROW_KEYS, *PANE_KEYS, *RECORDING_KEYS)
"""All of them, in the order in which the last line shows them."""
REPLAY_CALLS = frozenset(
    {"panes.turn", "navigation.step_frame", "navigation.show_tab", "other_screens.open_swimlane"}
)
"""Methods of controllers that can be called in a replay; the others need the recording as a
whole."""
