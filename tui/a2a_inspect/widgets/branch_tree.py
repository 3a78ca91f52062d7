"""A tree of branches. They are read when they are opened, a page at a time."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, ClassVar, Protocol

from rich.style import Style
from rich.text import Text
from textual import on, work
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Tree
from textual.widgets.tree import TreeNode

from a2a_inspect.widgets.columns import fit_text


class Branch(Protocol):
    """A branch of a tree."""

    @property
    def label(self) -> str:
        """Label without control characters."""
        ...

    @property
    def words(self) -> str:
        """Words after the label, as many as fit, without control characters."""
        ...

    @property
    def identity(self) -> tuple[int, ...]:
        """Identity of the branch, which does not change while the recording grows."""
        ...

    @property
    def page_cursor(self) -> int:
        """Key after which the next page of siblings begins."""
        ...

    @property
    def is_leaf(self) -> bool:
        """Whether the branch has no children."""
        ...


class BranchPage(Protocol):
    """A page of children."""

    @property
    def branches(self) -> Sequence[Branch]:
        """The children."""
        ...

    @property
    def has_more(self) -> bool:
        """Whether there are more."""
        ...


LoadBranches = Callable[[Any, int | None], Awaitable[BranchPage]]
"""Function that returns a page of children of a branch, None for the root, after a key."""
_Node = TreeNode[Branch | None]
"""Node without a branch: the root, or the line for unread siblings."""
_WORDS_GAP, _CURSOR_SIGN = "  ", " ◂"
_MIN_WORDS = 6
"""Cells below which no words are shown."""


class BranchTree(Tree[Branch | None], inherit_bindings=False):
    """The tree."""

    DEFAULT_CSS = """
    BranchTree {
        height: 1fr; background: $background; padding: 0;
        scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0;
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "cursor_down", "Down", show=False, id="tree.down"),
        Binding("k,up", "cursor_up", "Up", show=False, id="tree.up"),
        Binding(
            "l,right,space",
            "open",
            "Open",
            id="tree.open",
            key_display="l",
            tooltip="show its children",
        ),
        Binding(
            "h,left",
            "close",
            "Close",
            id="tree.close",
            key_display="h",
            tooltip="close it, or go to the branch above",
        ),
        Binding(
            "enter",
            "select_cursor",
            "Only this",
            id="tree.choose",
            tooltip="show only this branch in the list",
        ),
        Binding(
            "pagedown,ctrl+d,ctrl+f", "page_down", "Page down", show=False, id="tree.page-down"
        ),
        Binding("pageup,ctrl+u", "page_up", "Page up", show=False, id="tree.page-up"),
        Binding("home", "scroll_home", "First", show=False, id="tree.first"),
        Binding("G,end", "scroll_end", "Last", show=False, id="tree.last"),
    ]

    class Chosen(Message):
        """Posted when the user wants to see only this branch."""

        def __init__(self, branch: Branch) -> None:
            super().__init__()
            self.branch = branch

    def __init__(self, load_branches: LoadBranches, *, id: str) -> None:
        super().__init__("", id=id)
        self._load_branches = load_branches
        self.show_root = False
        self.guide_depth = 2
        self.auto_expand = False

    def render_label(self, node: _Node, base_style: Style, style: Style) -> Text:
        """Return the label, with as many of its words as fit, and a sign at the cursor's node."""
        label = super().render_label(node, base_style, style)
        if node.data is not None and node.data.words:
            room = (
                self.size.width
                - self._indent(node)
                - label.cell_len
                - len(_WORDS_GAP)
                - len(_CURSOR_SIGN)
            )
            if room >= _MIN_WORDS:
                label.append(
                    _WORDS_GAP + fit_text(node.data.words, room).rstrip(),
                    base_style + Style(italic=True),
                )
        return label.append(_CURSOR_SIGN, base_style + style) if node is self.cursor_node else label

    def _indent(self, node: _Node) -> int:
        """Return the cells before a label that are not part of it: the guides."""
        depth = 0
        while node.parent is not None and node.parent is not self.root:
            node, depth = node.parent, depth + 1
        return depth * self.guide_depth

    @work(group="tree", exclusive=True)
    async def reread_open_branches(self) -> None:
        """Read open branches again for new children and changed numbers. Closed branches are not
        read."""
        waiting: list[_Node] = [self.root]
        while waiting:
            node = waiting.pop()
            page = await self._load_branches(node.data, None)
            self._merge_first_page(node, page)
            waiting += [
                each for each in node.children if each.data is not None and each.is_expanded
            ]
        if self.cursor_line < 0:
            self.cursor_line = 0
        if len(self.root.children) == 1 and not self.root.children[0].children:
            self.root.children[0].expand()

    def _merge_first_page(self, node: _Node, page: BranchPage) -> None:
        """Merge a first page that was read again: update the labels, and append new children unless
        unread ones precede them.
        """
        nodes = {each.data.identity: each for each in node.children if each.data is not None}
        if not {each.identity for each in page.branches} & nodes.keys():
            node.remove_children()
            nodes = {}
        whole = len(node.children) == len(nodes)
        for branch in page.branches:
            old = nodes.get(branch.identity)
            if old is not None:
                old.data = branch
                old.set_label(Text(branch.label))
            elif whole:
                self._add_branch(node, branch)
        if whole and page.has_more and len(nodes) <= len(page.branches):
            self._add_more_leaf(node)

    def _add_branch(self, node: _Node, branch: Branch) -> None:
        node.add(Text(branch.label), branch, allow_expand=not branch.is_leaf)

    def _add_more_leaf(self, node: _Node) -> None:
        node.add_leaf(Text("… more"), None)

    @on(Tree.NodeExpanded)
    def _read_expanded(self, event: Tree.NodeExpanded[Branch | None]) -> None:
        event.stop()
        if event.node.data is not None and not event.node.children:
            self._read_next_page(event.node, None)

    @work(group="branch")
    async def _read_next_page(self, node: _Node, after: int | None) -> None:
        """Read the next page of a branch's children."""
        page = await self._load_branches(node.data, after)
        for each in node.children:
            if each.data is None:
                each.remove()
        for branch in page.branches:
            self._add_branch(node, branch)
        if page.has_more:
            self._add_more_leaf(node)

    @on(Tree.NodeSelected)
    def _choose_selected(self, event: Tree.NodeSelected[Branch | None]) -> None:
        event.stop()
        node = event.node
        if node.data is not None:
            self.post_message(self.Chosen(node.data))
        elif node.parent is not None:
            self._read_rest_of(node.parent)

    def _read_rest_of(self, parent: _Node) -> None:
        last = next(
            (each.data for each in reversed(parent.children) if each.data is not None), None
        )
        self._read_next_page(parent, last.page_cursor if last is not None else None)

    def action_open(self) -> None:
        """Open the branch, or load the rest."""
        node = self.cursor_node
        if node is None:
            return
        if node.data is None and node.parent is not None:
            self._read_rest_of(node.parent)
        elif node.allow_expand and not node.is_expanded:
            node.expand()
        else:
            self.action_cursor_down()

    def action_close(self) -> None:
        """Close the branch; if it is closed, go to its parent."""
        node = self.cursor_node
        if node is not None and node.is_expanded and node.allow_expand:
            node.collapse()
        elif node is not None and node.parent is not None and node.parent is not self.root:
            self.move_cursor(node.parent)
