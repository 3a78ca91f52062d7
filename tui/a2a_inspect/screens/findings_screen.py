"""The findings of the recording by rule: how many there are, and where."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from a2a_inspect.data.finding_tree import FindingBranch
from a2a_inspect.widgets.branch_tree import BranchTree, LoadBranches


class FindingsScreen(ModalScreen[FindingBranch | None]):
    """The screen. Returns the finding that the user chose."""

    DEFAULT_CSS = """
    FindingsScreen { align: center middle; }
    FindingsScreen > Vertical {
        width: 96%; height: 90%;
        background: $background; border: round $primary; border-title-color: $text;
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,r", "dismiss", "Close", id="findings.close")
    ]

    def __init__(self, load_findings: LoadBranches, title: str) -> None:
        super().__init__()
        self._tree = BranchTree(load_findings, id="findings-tree")
        self._heading = title

    def compose(self) -> ComposeResult:
        """Return the tree in a frame."""
        box = Vertical(self._tree)
        box.border_title, box.border_subtitle = (
            self._heading,
            "enter opens a rule, or goes to the place",
        )
        yield box

    def on_mount(self) -> None:
        """Read the rules."""
        self._tree.focus()
        self._tree.reread_open_branches()

    @on(BranchTree.Chosen)
    def _choose(self, message: BranchTree.Chosen) -> None:
        """Return the place, or open or close the rule."""
        message.stop()
        branch = message.branch
        if isinstance(branch, FindingBranch) and branch.is_leaf:
            self.dismiss(branch)
        elif self._tree.cursor_node is not None:
            self._tree.cursor_node.toggle()
