"""The panes of the main screen: how they are laid out, which has the focus, the notice of an empty
recording.

The exchanges are above, the frames of the selected one below, the selected frame at their right,
the tree at the left. A small terminal shows one pane at a time. `Panes` sets classes of the screen;
`LAYOUT_CSS` lays the panes out by them.
"""

from collections.abc import Iterator, Mapping

from textual import events
from textual.containers import Container, Horizontal, Vertical
from textual.geometry import Size
from textual.widget import Widget
from textual.widgets import Static

from a2a_inspect.screens.main_controller import MainController, MainParts
from a2a_inspect.screens.reader import release_keys
from a2a_inspect.screens.state import MainWidgets
from a2a_inspect.screens.titles import PaneTitles, empty_notice
from a2a_inspect.widgets.pane import ListHead, Pane

PANES = ("exchanges", "frames", "frame")
"""The panes in the order in which Enter opens them."""
LAYOUTS = ("tree", "plain", "columns")
"""With the tree at the left; without it; with the exchanges at the left of the frames."""
_MIN_WIDE_COLUMNS, _MIN_WIDE_ROWS = 120, 30
"""Size in cells from which several panes are shown at once."""
_MIN_WIDTH_WITH_TREE = 180
"""Width in cells from which the tree leaves enough room for the lists."""


LAYOUT_CSS = """
MainScreen { background: $background; }
MainScreen #notice {
    height: 1fr; content-align: center middle; text-align: center; color: $foreground 70%;
}
MainScreen #exchanges { height: 2fr; }
MainScreen #lower { height: 3fr; }
MainScreen #frames { width: 9fr; }
MainScreen #frame { width: 10fr; border-left: vkey $surface; }
MainScreen.-empty #exchange-list, MainScreen.-empty ListHead, MainScreen.-empty #lower {
    display: none;
}
MainScreen.-empty #exchanges { height: 1fr; }
MainScreen #notice { display: none; }
MainScreen.-empty #notice { display: block; }
MainScreen.-low Breadcrumbs { display: none; }
MainScreen.-low Breadcrumbs.-narrowed { display: block; }
MainScreen.-editing Breadcrumbs { display: none !important; }
MainScreen #all, MainScreen #lists, MainScreen #lower {
    layout: horizontal; height: 1fr; width: 1fr;
}
MainScreen #lists { layout: vertical; }
MainScreen #lower { height: 3fr; }
MainScreen #tree {
    width: 22%; min-width: 40; max-width: 64; display: none; border-right: vkey $surface;
}
MainScreen.-layout-tree #tree { display: block; }
MainScreen.-layout-columns #lists { layout: horizontal; }
MainScreen.-layout-columns #exchanges { width: 2fr; height: 1fr; }
MainScreen.-layout-columns #lower { layout: vertical; width: 3fr; height: 1fr; }
MainScreen.-layout-columns #frames { width: 1fr; height: 2fr; }
MainScreen.-layout-columns #frame { width: 1fr; height: 3fr; }
MainScreen.-empty #tree, MainScreen.-single #tree { display: none; }
MainScreen.-single #exchanges, MainScreen.-single #lower { width: 1fr; height: 1fr; }
MainScreen.-single #frames, MainScreen.-single #frame { height: 1fr; }
MainScreen.-single.-at-tree #tree { display: block; width: 1fr; border: none; }
MainScreen.-single.-at-tree #lists { display: none; }
MainScreen.-single #frames, MainScreen.-single #frame { width: 1fr; border: none; }
MainScreen.-single.-at-exchanges #lower { display: none; }
MainScreen.-single.-at-frames #exchanges, MainScreen.-single.-at-frames #frame { display: none; }
MainScreen.-single.-at-frame #exchanges, MainScreen.-single.-at-frame #frames { display: none; }
"""
"""Style sheet of the main screen. `-single` shows one pane alone."""


def make_panes(widgets: MainWidgets) -> dict[str, Pane]:
    """Return the panes by name."""
    notice = Static(id="notice", markup=False)
    return {
        "tree": Pane(widgets.tree, id="tree"),
        "exchanges": Pane(ListHead(widgets.exchanges), widgets.exchanges, notice, id="exchanges"),
        "frames": Pane(ListHead(widgets.frames), widgets.frames, id="frames"),
        "frame": Pane(widgets.detail, id="frame"),
    }


class Panes(MainController):
    """Layout, zoom and focus."""

    def __init__(self, parts: MainParts, panes: Mapping[str, Pane], titles: PaneTitles) -> None:
        super().__init__(parts)
        self._panes = panes
        self._titles = titles
        self.is_small = True
        """There is room for only one pane at a time."""
        self.is_zoomed = False
        """The pane with the focus is shown alone although there is room for more."""
        self._selected_layout = ""
        """The layout that the user chose; empty: it depends on the width."""

    def compose(self) -> Iterator[Widget]:
        """Yield the panes in their containers."""
        with Horizontal(id="all"):
            yield self._panes["tree"]
            with Vertical(id="lists"):
                yield self._panes["exchanges"]
                with Container(id="lower"):
                    yield self._panes["frames"]
                    yield self._panes["frame"]

    # Classes.

    def switch_classes(self, classes: dict[str, bool]) -> None:
        """Set or remove classes of the screen. Styles are computed once for all: each time takes as
        long as a paint."""
        if any(self.screen.has_class(name) != is_set for name, is_set in classes.items()):
            for name, is_set in classes.items():
                self.screen.set_class(is_set, name, update=False)
            self.screen.update_node_styles()

    def apply_size(self, size: Size) -> None:
        """Lay the panes out for a size of the screen."""
        self.switch_classes({"-low": size.height < _MIN_WIDE_ROWS})
        self.is_small = size.width < _MIN_WIDE_COLUMNS or size.height < _MIN_WIDE_ROWS
        self._apply_layout(size.width)

    def _apply_layout(self, width: int) -> None:
        """Show one pane or all, with the tree if the user chose it or there is room for it."""
        layout = self._selected_layout or ("tree" if width >= _MIN_WIDTH_WITH_TREE else "plain")
        layouts = {f"-layout-{name}": name == layout and not self.is_small for name in LAYOUTS}
        self.switch_classes({**layouts, "-single": self.is_small or self.is_zoomed})
        self._titles.update_titles()

    def is_tree_shown(self) -> bool:
        """Whether the tree is visible."""
        return self.screen.has_class("-at-tree") or (
            self.screen.has_class("-layout-tree") and not self.is_zoomed
        )

    def show_notice(self) -> None:
        """Show the notice if the recording is empty, or else the lists."""
        empty = self._state.has_answer and not self._state.snapshot.exchanges
        self._widgets.exchanges.placeholder = "" if self._state.has_answer else "  opening"
        self.switch_classes({"-empty": empty})
        if empty:
            self.screen.query_one("#notice", Static).update(
                empty_notice(self._source, self._state.snapshot)
            )
            release_keys(self.screen)
        elif self.screen.focused is None:  # the notice hid the lists, which takes the focus away
            self.focus_pane(self.focused_pane())

    def place_filter_box(self, *, above: bool) -> None:
        """Put the filter's box in the place of the breadcrumbs, or back below the panes."""
        box = self._widgets.filter_box
        if above != self.screen.has_class("-editing"):
            place: Widget = self._widgets.breadcrumbs if above else self.screen.query_one("#all")
            self.screen.move_child(box, after=place)
            self.switch_classes({"-editing": above})

    # Focus.

    def focus_pane(self, name: str) -> None:
        """Give the focus to a pane."""
        self.switch_classes({f"-at-{each}": each == name for each in self._panes})
        targets: dict[str, Widget] = {
            "tree": self._widgets.tree,
            "exchanges": self._widgets.exchanges,
            "frames": self._widgets.frames,
            "frame": self._widgets.detail.current_view,
        }
        targets[name].focus()

    def focused_pane(self) -> str:
        """Return the name of the pane that has, or last had, the focus."""
        return next(
            (name for name in self._panes if self.screen.has_class(f"-at-{name}")), "exchanges"
        )

    def focused_index(self) -> int:
        """Return the index of that pane in `PANES`; 0 for the tree."""
        return next(
            (at for at, name in enumerate(PANES) if self.screen.has_class(f"-at-{name}")), 0
        )

    def note_focus(self, event: events.DescendantFocus) -> None:
        """Show the pane whose widget got the focus; a small terminal shows no other."""
        inside = {name: pane in event.widget.ancestors for name, pane in self._panes.items()}
        if any(inside.values()):
            self.switch_classes({f"-at-{name}": yes for name, yes in inside.items()})
        self._titles.update_titles()

    # Actions.

    def turn(self, by: int) -> None:
        """Go to the next pane that Tab reaches, or to the previous one."""
        if self.screen.has_class("-empty"):
            return
        has_tree = self.is_tree_shown() or self.screen.has_class("-single")
        panes = ["tree", *PANES] if has_tree else list(PANES)
        self.focus_pane(panes[(panes.index(self.focused_pane()) + by) % len(panes)])

    def go_back(self) -> bool:
        """Go from the tree to the list, or to the pane before. Return False in the first pane."""
        if self.focused_pane() == "tree":
            self.focus_pane("exchanges")
        elif self.focused_index():
            self.focus_pane(PANES[self.focused_index() - 1])
        else:
            return False
        return True

    def next_layout(self) -> None:
        """Use the next layout."""
        if self.is_small:
            self.show_message("only one pane fits: Tab shows the next, t the tree")
            return
        now = next(name for name in LAYOUTS if self.screen.has_class(f"-layout-{name}"))
        self._selected_layout = LAYOUTS[(LAYOUTS.index(now) + 1) % len(LAYOUTS)]
        self.is_zoomed = False
        if self._selected_layout != "tree" and self.screen.has_class("-at-tree"):
            self.focus_pane("exchanges")
        self._apply_layout(self.screen.size.width)

    def toggle_zoom(self) -> None:
        """Show the pane with the focus alone, or all panes."""
        self.is_zoomed = not self.is_zoomed
        self._apply_layout(self.screen.size.width)

    def toggle_tree(self) -> None:
        """Go to the tree, or from it back to the list."""
        if self.screen.has_class("-at-tree"):
            self.focus_pane("exchanges")
            return
        if not self.is_small and not self.is_zoomed:
            self._selected_layout = "tree"
        self.focus_pane("tree")
        self._apply_layout(self.screen.size.width)
