"""The widgets and the selection that the controllers of the main screen share."""

from dataclasses import dataclass

from a2a_inspect.data.next_places import FramePosition
from a2a_inspect.data.source import ExchangeStream, RecordingSnapshot
from a2a_inspect.dialogs.filter_box import FilterBox
from a2a_inspect.widgets.branch_tree import BranchTree
from a2a_inspect.widgets.breadcrumbs import Breadcrumbs
from a2a_inspect.widgets.detail import Detail
from a2a_inspect.widgets.exchange_list import ExchangeList
from a2a_inspect.widgets.frame_list import FrameList
from a2a_inspect.widgets.marks import RowMarks
from a2a_inspect.widgets.summary import SummaryLine


@dataclass(frozen=True)
class MainWidgets:
    """The widgets of the main screen."""

    summary: SummaryLine
    breadcrumbs: Breadcrumbs
    marks: RowMarks
    """Marks and notes, which both lists show."""
    exchanges: ExchangeList
    frames: FrameList
    detail: Detail
    tree: BranchTree
    filter_box: FilterBox


class MainState:
    """The last snapshot of the source, and the selected exchange and frame."""

    def __init__(self) -> None:
        self.snapshot = RecordingSnapshot()
        """The recording as it is shown."""
        self.pending_snapshot: RecordingSnapshot | None = None
        """The recording as it was last read, until it is shown."""
        self.has_answer = False
        """The source has answered at least once."""
        self.selected_exchange = 0
        """Key of the exchange whose frames are shown, or 0."""
        self.selected_frame = 0
        """Id of the frame that is shown, or 0."""
        self.stream: ExchangeStream | None = None
        """The selected exchange with its frames, as soon as it has been read."""
        self.pending_position: FramePosition | None = None
        """The frame to select as soon as its exchange is shown."""

    def take_pending(self) -> tuple[RecordingSnapshot, RecordingSnapshot] | None:
        """Make the pending snapshot the shown one. Return the old and the new one, or None if none
        is pending."""
        now = self.pending_snapshot
        if now is None:
            return None
        before, self.snapshot, self.pending_snapshot = self.snapshot, now, None
        return before, now
