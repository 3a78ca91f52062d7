"""A line with the path of the selected row and the filter of the list."""

from typing import ClassVar

from rich.segment import Segment
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from a2a_inspect.data.source import ExchangeStream, FrameLine
from a2a_inspect.widgets.columns import fit_text
from a2a_proxy.present import text

ONLY_PROMPT = "only "


class Breadcrumbs(Widget):
    """The path at the left and the filter at the right, as it would be typed."""

    DEFAULT_CSS = """
    Breadcrumbs { height: 1; background: $background; color: $text-muted; }
    Breadcrumbs > .crumbs--only { color: $text-accent; text-style: bold; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {"crumbs--only"}

    where: reactive[tuple[str, ...]] = reactive(())
    only: reactive[str] = reactive("")

    class Clicked(Message):
        """Posted when the line was clicked."""

    def render_line(self, y: int) -> Strip:  # noqa: ARG002 - one line only
        """Return `session 1 › task 7604 › #3        only err`."""
        width = self.size.width
        only = f"{ONLY_PROMPT}{self.only}" if self.only else ""
        right = fit_text(only, min(len(only), max(width * 2 // 3, width - 20)))
        left = " › ".join(self.where)
        room = max(width - len(right) - 3, 0)
        style = self.get_visual_style("crumbs--only").rich_style
        parts = [
            Segment(f" {fit_text(left, room, tail=len(left) > room)} ", self.rich_style),
            Segment(f"{right} ", style),
        ]
        return Strip(parts).adjust_cell_length(width, self.rich_style)

    def on_click(self) -> None:
        """Let the user edit the filter."""
        self.post_message(self.Clicked())


def breadcrumb_path(
    stream: ExchangeStream | None, line: FrameLine | None, sessions: int
) -> tuple[str, ...]:
    """Return the path from the session down to the frame."""
    if stream is None:
        return ()
    exchange = stream.row.exchange
    steps = [f"session {stream.row.session}"] if sessions > 1 else []
    steps += [f"context {text.shorten_id(exchange.context_id)}"] if exchange.context_id else []
    steps += [f"task {text.shorten_id(exchange.task_id)}"] if exchange.task_id else []
    steps.append(f"#{exchange.id} {text.exchange_title(exchange)}")
    if line is not None and line.row.exchange_key == stream.row.key:
        steps.append(f"frame {line.row.frame.seq}")
    return tuple(steps)
