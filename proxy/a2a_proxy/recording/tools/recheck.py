"""Application of the current rules to a recording: its frames are checked again in the order of
storing."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from a2a_proxy.cards.verify import CardVerifier
from a2a_proxy.model.card_signature import CardSignature, SignatureVerdict
from a2a_proxy.model.values import Binding, EventKind, Exchange, Finding, Frame, Observation
from a2a_proxy.model.wire import ConnectionFacts
from a2a_proxy.protocol.finding_totals import follows_ending
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import SessionRow, make_key
from a2a_proxy.rules.define.rule import Rule
from a2a_proxy.rules.run.engine import Engine

RULE_PREFIX = "A2A-"
"""Prefix of the ids of rules; findings of the recorder and its decoders do not have it."""
_MAX_CACHED_EXCHANGES = 1000
"""Number of exchanges that are cached."""
_MAX_CARD_LINES = 20
_MAX_CACHED_ENDS = 100_000
"""Number of exchanges whose end is cached, and of connections whose facts are."""


def recheck_session(
    recording: Recording,
    session: SessionRow,
    rules: dict[str, Rule] | None = None,
    quiet: set[str] | None = None,
    cards: CardRecheck | None = None,
) -> Iterator[Finding]:
    """Yield the findings of a session, in order of time, of all rules or of `rules`.

    With `cards` signatures of cards are verified again. Ids of rules that were skipped because a
    payload was deliberately not recorded are added to `quiet`. The stored findings of decoders come
    first, because the recording does not have the bytes to repeat them.
    """
    for row in recording.read_findings(session.id):
        if not row.finding.rule.startswith(RULE_PREFIX):
            yield _forget_ending(row.finding)
    engine = Engine(rules)
    source = _StoredContext(recording, session.id)
    out: list[Observation] = []
    last = session.facts.started
    for frame_row in recording.frames_after(0, session=session.id):
        frame = frame_row.frame
        last = max(last, frame.at)
        if frame.exchange and source.find_closed_at(frame.exchange) is None:
            continue
        if (
            cards is not None
            and frame.event is EventKind.CARD
            and frame.exchange
            and not frame.ours
        ):
            source.set_signatures(
                frame.exchange, cards.verify(frame, source.get_exchange(frame.exchange))
            )
        engine.on_frame(frame, source, out)
        if frame.exchange and (over := source.take_ended(frame.exchange)) is not None:
            engine.on_exchange_closed(over, out)
        yield from _take_findings(out)
    engine.end_session(max(session.ended, last), out)
    if quiet is not None:
        quiet |= engine.skipped_rules
    yield from _take_findings(out)


def _forget_ending(finding: Finding) -> Finding:
    """Return a finding that follows from no ending: which one it follows from is found again."""
    if not follows_ending(finding):
        return finding
    evidence = {name: value for name, value in finding.evidence.items() if name != "follows"}
    return msgspec.structs.replace(finding, evidence=evidence)


def _take_findings(out: list[Observation]) -> list[Finding]:
    found = [each for each in out if isinstance(each, Finding)]
    out.clear()
    return found


class CardRecheck:
    """Verifies the signatures of recorded cards, and keeps a line about each signed card."""

    def __init__(self, verifier: CardVerifier) -> None:
        self._verifier = verifier
        self.lines: dict[str, str] = {}
        """The place of the first card by what was found about it."""

    def verify(self, frame: Frame, exchange: Exchange) -> tuple[CardSignature, ...]:
        """Return the signatures of a recorded card. Where a secret was replaced by a label the
        recorded verdict holds, because the signed bytes are not there."""
        found = exchange.card_signatures
        if not frame.redacted and not frame.truncated:
            found = self._verifier.read_frame(frame, exchange.binding)
        for each in found:
            words = each.describe()
            if frame.redacted and each.verdict is SignatureVerdict.UNVERIFIED:
                words += ": the recorded card has labels in the place of secrets"
            if words not in self.lines and len(self.lines) < _MAX_CARD_LINES:
                self.lines[words] = f"#{frame.exchange}.{frame.seq}"
        return found


class _StoredContext:
    """Exchanges and connections of a recording, as they were known when their frames arrived."""

    def __init__(self, recording: Recording, session: int) -> None:
        self._recording = recording
        self._session = session
        self._recent: dict[int, Exchange | None] = {}
        """The exchanges read last; the next frame mostly belongs to one of them."""
        self._closed: dict[int, int] = {}
        self._unreported: set[int] = set()
        """Ended exchanges that `take_ended` has not returned yet."""
        self._facts: dict[int, ConnectionFacts] = {}
        self._signatures: dict[int, tuple[CardSignature, ...]] = {}
        """Verified again, by exchange."""

    def set_signatures(self, number: int, signatures: tuple[CardSignature, ...]) -> None:
        """Replace the recorded verdicts about the card of an exchange."""
        if signatures:
            self._signatures[number] = signatures

    def _read_exchange(self, number: int) -> Exchange | None:
        if number in self._recent:
            return self._recent[number]
        row = self._recording.read_exchange(make_key(self._session, number))
        found = self._recent[number] = row.exchange if row is not None else None
        if len(self._recent) > _MAX_CACHED_EXCHANGES:
            del self._recent[next(iter(self._recent))]
        return found

    def find_closed_at(self, number: int) -> int | None:
        """Return the end of the exchange in ns (0 if open), or None if the recording does not have
        the exchange."""
        closed = self._closed.get(number)
        if closed is None:
            found = self._read_exchange(number)
            if found is None:
                return None
            closed = self._closed[number] = found.closed
            if closed:
                self._unreported.add(number)
            if (
                len(self._closed) > _MAX_CACHED_ENDS
            ):  # reporting the end of an exchange again changes nothing
                del self._closed[next(iter(self._closed))]
        return closed

    def get_exchange(self, number: int) -> Exchange:
        """Return the exchange without its end."""
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
            card_signatures=self._signatures.get(number, found.card_signatures),
        )

    def call_of(self, number: int) -> tuple[Binding, str, int, str]:
        """Return its binding, operation, start and agent."""
        found = self._read_exchange(number)
        assert found is not None
        return found.binding, found.operation, found.started, found.agent

    def take_ended(self, number: int) -> Exchange | None:
        """Return the exchange with its end, once; otherwise None."""
        if number not in self._unreported:
            return None
        self._unreported.discard(number)
        return self._read_exchange(number)

    def closed_at(self, number: int) -> int:
        """Return the end of the exchange in ns, or 0 if it has none."""
        return self.find_closed_at(number) or 0

    def get_facts(self, connection: int) -> ConnectionFacts:
        """Return the addresses of a connection."""
        facts = self._facts.get(connection)
        if facts is None:
            row = self._recording.read_connection(make_key(self._session, connection))
            facts = row.connection.facts if row is not None else ConnectionFacts("", "", "")
            self._facts[connection] = facts
            if len(self._facts) > _MAX_CACHED_ENDS:
                del self._facts[next(iter(self._facts))]
        return facts
