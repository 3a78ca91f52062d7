"""Today's rules over what was recorded, whenever that was: frames again in the order in which they were stored."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from a2a_proxy.model.chunk import ConnectionFacts
from a2a_proxy.model.exchange import Binding, Exchange
from a2a_proxy.model.finding import Finding
from a2a_proxy.model.observation import Observation
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import SessionRow, make_key
from a2a_proxy.rules.define.rule import Rule
from a2a_proxy.rules.run.engine import Engine

RULE_PREFIX = "A2A-"
"""Ids of rules have it; findings of the recorder and its decoders have not."""
_MAX_CACHED_EXCHANGES = 1000
"""Exchanges that are kept between two looks at them."""
_MAX_CACHED_ENDS = 100_000
"""Exchanges of which the end is kept, after which others are read anew; the same for the facts of connections."""


def recheck_session(
    recording: Recording, session: SessionRow, rules: dict[str, Rule] | None = None, quiet: set[str] | None = None
) -> Iterator[Finding]:
    """What the rules (all of them unless told which) say of a session, in order of time.

    `quiet` is given the ids of those that had to say nothing, for a payload which was not recorded on purpose.
    What the decoders said when it was recorded comes first: a recording does not have the bytes to say it again.
    """
    for row in recording.findings(session.id):
        if not row.finding.rule.startswith(RULE_PREFIX):
            yield row.finding
    engine = Engine(rules)
    source = _StoredContext(recording, session.id)
    out: list[Observation] = []
    last = session.facts.started
    for frame_row in recording.frames_after(0, session=session.id):
        frame = frame_row.frame
        last = max(last, frame.at)
        if frame.exchange and source.find_closed_at(frame.exchange) is None:
            continue
        engine.on_frame(frame, source, out)
        if frame.exchange and (over := source.take_ended(frame.exchange)) is not None:
            engine.on_exchange_closed(over, out)
        yield from _take_findings(out)
    engine.end(max(session.ended, last), out)
    if quiet is not None:
        quiet |= engine.skipped_rules
    yield from _take_findings(out)


def _take_findings(out: list[Observation]) -> list[Finding]:
    found = [each for each in out if isinstance(each, Finding)]
    out.clear()
    return found


class _StoredContext:
    """Exchanges and connections of a recording, as a rule could have known them when their frames passed."""

    def __init__(self, recording: Recording, session: int) -> None:
        self._recording = recording
        self._session = session
        self._recent: dict[int, Exchange | None] = {}
        """Those read last; a frame that follows is mostly of one of them."""
        self._closed: dict[int, int] = {}
        self._unreported: set[int] = set()
        """Those that ended, until `take_ended` has told it."""
        self._facts: dict[int, ConnectionFacts] = {}

    def _read_exchange(self, number: int) -> Exchange | None:
        if number in self._recent:
            return self._recent[number]
        row = self._recording.exchange(make_key(self._session, number))
        found = self._recent[number] = row.exchange if row is not None else None
        if len(self._recent) > _MAX_CACHED_EXCHANGES:
            del self._recent[next(iter(self._recent))]
        return found

    def find_closed_at(self, number: int) -> int | None:
        """When the exchange was over, ns, 0 for never; None where the recording does not have it."""
        closed = self._closed.get(number)
        if closed is None:
            found = self._read_exchange(number)
            if found is None:
                return None
            closed = self._closed[number] = found.closed
            if closed:
                self._unreported.add(number)
            if len(self._closed) > _MAX_CACHED_ENDS:  # what is told of one of them a second time changes nothing
                del self._closed[next(iter(self._closed))]
        return closed

    def exchange(self, number: int) -> Exchange:
        """The exchange without its end."""
        found = self._read_exchange(number)
        assert found is not None
        return msgspec.structs.replace(
            found,
            trailers=(),
            closed=0,
            how="",
            error="",
            error_code=0,
            grpc_status=-1,
            half_close="",
            states=(),
        )

    def call_of(self, number: int) -> tuple[Binding, str, int]:
        """Its binding, operation and beginning."""
        found = self._read_exchange(number)
        assert found is not None
        return found.binding, found.operation, found.started

    def take_ended(self, number: int) -> Exchange | None:
        """The exchange with its end, once; None where it did not end."""
        if number not in self._unreported:
            return None
        self._unreported.discard(number)
        return self._read_exchange(number)

    def closed_at(self, number: int) -> int:
        """When it was over, ns; 0 where it never was."""
        return self.find_closed_at(number) or 0

    def facts(self, connection: int) -> ConnectionFacts:
        """The addresses of a connection."""
        facts = self._facts.get(connection)
        if facts is None:
            row = self._recording.connection(make_key(self._session, connection))
            facts = row.connection.facts if row is not None else ConnectionFacts("", "", "")
            self._facts[connection] = facts
            if len(self._facts) > _MAX_CACHED_ENDS:
                del self._facts[next(iter(self._facts))]
        return facts
