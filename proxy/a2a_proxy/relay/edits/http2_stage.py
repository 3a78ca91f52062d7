"""What the editor and the faults of an HTTP/2 connection share: the scanners of both directions."""

from a2a_proxy.http.h2 import Violation
from a2a_proxy.http.h2_scan import Http2Scanner
from a2a_proxy.model.wire import Direction
from a2a_proxy.relay.edits.edit import UNLIMITED, EditFact, Output


class Http2Stage:
    """The part of an `Editor` that scans bytes."""

    def __init__(self, to_agent: Http2Scanner, to_client: Http2Scanner) -> None:
        self._scanners = (to_agent, to_client)
        self._legs = tuple(zip(Direction, self._scanners, strict=True))
        self._scanner = to_agent
        """The scanner of the latest bytes."""
        self.budget = UNLIMITED
        self.position = 0
        self.now = 0.0
        """Time of the bytes that are handled, in monotonic seconds."""
        self.facts: list[EditFact] = []
        """The edits made."""

    def feed(self, direction: Direction, data: bytes, now: float, start: int = 0) -> list[Output]:
        """Handle bytes of the sender of `direction` and return the bytes to write now."""
        self.now, budget = now, self.budget
        scanner = self._scanner = self._scanners[direction]
        scanner.budget, self.position = budget, len(data)
        try:
            self.position = scanner.feed(data, start)
        except Violation as wrong:
            self._stop_direction(direction, wrong)
        self.budget = scanner.budget
        return self._collect_outputs()

    def take_edits(self) -> list[EditFact]:
        """Return the edits made since the last call."""
        facts, self.facts = self.facts, []
        return facts

    def _collect_outputs(self) -> list[Output]:
        sent = []
        for direction, scanner in self._legs:
            if out := scanner.out:
                if data := b"".join(out):
                    sent.append(Output(direction, data))
                out.clear()
        return sent

    def _stop_direction(self, direction: Direction, wrong: Violation) -> None:
        """End a direction that cannot be followed, and whose header blocks were sent as
        literals."""
        reason = f"expected {wrong.expected}, got {wrong.got}"
        detail = {"reason": reason, "refused": True}
        self.facts.append(EditFact(direction, "ended", wrong.offset, detail))
        stream = self._scanners[0].highest_stream + (2 if direction is Direction.TO_AGENT else 0)
        self._scanners[direction].end_undecodable(stream)
