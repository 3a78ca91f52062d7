"""p50, p95 and the maximum of each measure of a session."""

from collections.abc import Iterable, Iterator

import msgspec

from a2a_inspect.commands.segments.conversation_tree import ConversationTree
from a2a_proxy.protocol.segments.measures import compute_percentile
from a2a_proxy.recording.read.conversations import SegmentContent


class MeasureSummary(msgspec.Struct, frozen=True):
    """Summary of one measure, ns."""

    count: int
    p50: int
    p95: int
    most: int

    def as_object(self) -> dict[str, int]:
        """Return the values with stable names."""
        return {"count": self.count, "p50_ns": self.p50, "p95_ns": self.p95, "max_ns": self.most}


class MeasureValues:
    """The values of each measure."""

    def __init__(
        self, talks: Iterable[ConversationTree], contents: dict[int, SegmentContent]
    ) -> None:
        self._values: dict[str, list[int]] = {}
        for talk in talks:
            for turn in talk.turns:
                self._add_value("time_to_first_event", turn.first_event)
                self._add_value("time_to_first_output", turn.first_output)
                self._add_value("response_latency", turn.response)
                self._add_value("turn_duration", turn.duration)
                for gap in (
                    *turn.gaps,
                    *(
                        g
                        for each in turn.agents
                        if each.id in contents
                        for g in contents[each.id].gaps
                    ),
                ):
                    self._add_value("gap_between_events", gap)
                self._add_value("human_wait", turn.human_wait)
                self._add_value("close_latency", turn.close)
            for broken in talk.interruptions:
                self._add_value("interruption_latency", broken.latency)
                self._add_value("reaction_time", broken.reaction_time)
            for handoff in talk.handoffs:
                self._add_value("transfer_latency", handoff.latency)
            for tool in talk.tools:
                self._add_value("tool_latency", tool.latency)

    def _add_value(self, name: str, value: int | None) -> None:
        if value is not None:
            self._values.setdefault(name, []).append(value)

    def summarise_measures(self) -> Iterator[tuple[str, MeasureSummary]]:
        """Yield the measures that have values, in a fixed order."""
        for name in MEASURE_NAMES:
            values = sorted(self._values.get(name, ()))
            if values:
                yield (
                    name,
                    MeasureSummary(
                        len(values),
                        compute_percentile(values, 0.5),
                        compute_percentile(values, 0.95),
                        values[-1],
                    ),
                )


MEASURE_NAMES = (
    "time_to_first_event",
    "time_to_first_output",
    "response_latency",
    "turn_duration",
    "gap_between_events",
    "human_wait",
    "close_latency",
    "interruption_latency",
    "reaction_time",
    "transfer_latency",
    "tool_latency",
)
