"""Turns, interruptions and hand-offs by the frame where they begin, for outputs that print
frames."""

from a2a_inspect.commands.segments.objects import handoff_object, interruption_object
from a2a_inspect.data.agent_names import AgentNames
from a2a_inspect.data.segment_words import handoff_words, interruption_words
from a2a_proxy.model.values import CLIENT
from a2a_proxy.recording.read.reader import Recording


class SegmentMarks:
    """Marks of one session."""

    def __init__(self, recording: Recording, session: int) -> None:
        self.names = AgentNames(recording, session)
        self._lines: dict[tuple[int, int], list[str]] = {}
        self._interruptions = [row.interruption for row in recording.read_interruptions(session)]
        self._handoffs = [row.handoff for row in recording.read_handoffs(session)]
        for row in recording.read_segments(session):
            segment = row.segment
            if segment.speaker == CLIENT and segment.turn > 1:
                self._add_mark(segment.exchange, segment.seq, f"turn {segment.turn} of the task")
        for broken in self._interruptions:
            self._add_mark(broken.exchange, broken.seq, interruption_words(broken))
        for handoff in self._handoffs:
            self._add_mark(handoff.exchange, handoff.seq, handoff_words(handoff, self.names))

    def _add_mark(self, exchange: int, seq: int, words: str) -> None:
        self._lines.setdefault((exchange, seq), []).append(words)

    def lines_at(self, exchange: int, seq: int) -> list[str]:
        """Return the lines about a frame."""
        return self._lines.get((exchange, seq), [])

    def exchange_object(self, exchange: int) -> dict[str, object]:
        """Return the marks of an exchange as JSON with stable names."""
        return {
            "interruptions": [
                interruption_object(each)
                for each in self._interruptions
                if each.exchange == exchange
            ],
            "handoffs": [
                handoff_object(each) for each in self._handoffs if each.exchange == exchange
            ],
        }
