"""Feed the examples of rules to an observer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from a2a_proxy.cards.keys import parse_keys
from a2a_proxy.cards.verify import CardVerifier
from a2a_proxy.model.values import (
    Changes,
    Connection,
    Exchange,
    Finding,
    Frame,
    Observation,
    Task,
)
from a2a_proxy.model.wire import Chunk
from a2a_proxy.observer import Observer
from a2a_proxy.recording.read.endings import EndingReader, report_failures
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import SessionRow
from a2a_proxy.recording.tools.recheck import recheck_session
from a2a_proxy.recording.write.writer import Writer
from a2a_proxy.redaction import Redactor
from a2a_proxy.rules.endings.call_facts import SessionCalls
from a2a_proxy.rules.endings.ending import Ending
from a2a_proxy.rules.endings.evaluate import FollowingFindings, find_ending
from a2a_proxy.rules.examples.objects import CARD_KEYS
from a2a_proxy.rules.examples.script import Script
from support_recording import facts

KEY = b"k" * 32


def findings(script: Script) -> list[Finding]:
    """Return the findings of rules and decoders about a conversation."""
    return [each for each in _observe(script.make_chunks())[1] if type(each) is Finding]


def frames(script: Script) -> list[Frame]:
    """Return the frames of a conversation."""
    return [each for each in _observe(script.make_chunks())[1] if type(each) is Frame]


def _observe(chunks: Sequence[Chunk]) -> tuple[Observer, list[Observation]]:
    observer = Observer(Redactor(KEY), cards=CardVerifier(parse_keys(CARD_KEYS).keys))
    out: list[Observation] = []
    for chunk in chunks:
        observer.feed(chunk, out)
    return observer, out


class _ObservedCalls:
    """The facts of a session that was observed."""

    def __init__(self, frames: list[Frame], changes: Changes, ended: int) -> None:
        self.ended = ended
        self._frames = frames
        self._exchanges = {each.id: each for each in changes.exchanges}
        self._connections = {each.id: each for each in changes.connections}
        self._tasks = changes.tasks

    def read_exchanges(self, numbers: Iterable[int] | None = None) -> Iterable[Exchange]:
        return [self._exchanges[each] for each in numbers or self._exchanges]

    def read_exchange(self, number: int) -> Exchange:
        return self._exchanges[number]

    def load(self, exchanges: Sequence[Exchange]) -> None:
        pass

    def read_frames(self, number: int, *, ids: bool = False) -> list[Frame]:
        return [each for each in self._frames if each.exchange == number]

    def read_payload(self, number: int, seq: int) -> bytes:
        return next(each.payload for each in self.read_frames(number) if each.seq == seq)

    def read_connection(self, number: int) -> Connection | None:
        return self._connections.get(number)

    def read_task(self, agent: str, task_id: str) -> Task | None:
        tasks = [each for each in self._tasks if each.task_id == task_id]
        return next((each for each in tasks if each.agent == agent), tasks[-1] if tasks else None)


def endings(session: Script | Sequence[Chunk], *, killed: bool = False) -> dict[int, Ending]:
    """Return the endings of a conversation by exchange; `killed`: the proxy is killed after it."""
    chunks = session.make_chunks() if isinstance(session, Script) else session
    observer, out = _observe(chunks)
    if killed:
        observer.interrupt_session(chunks[-1].at, out)
    frames = [each for each in out if type(each) is Frame]
    source = _ObservedCalls(frames, observer.pop_changes(), chunks[-1].at)
    calls = SessionCalls(source)
    found = {each.id: find_ending(calls, each) for each in source.read_exchanges()}
    return {number: each for number, each in found.items() if each is not None}


def find_again(recording: Recording, session: SessionRow) -> list[Finding]:
    """Return the findings that a recorder reports, by the current rules."""
    found = dict(enumerate(recheck_session(recording, session)))
    following = FollowingFindings(found.items())
    calls = recording.read_exchanges(session.id, headers=False)
    for ending in EndingReader(recording).read_all(calls).values():
        following.mark(ending)
    following.mark_totals()
    failures = report_failures(recording, session, session.ended)
    return [*(found | following.marked).values(), *failures.findings]


def told(script: Script) -> list[str]:
    """Return the same with one line for each finding, for the message of a failed test."""
    return [
        f"{each.rule} {each.severity.name} #{each.exchange}/{each.seq}: {each.summary}"
        for each in findings(script)
    ]


def record(path: Path, chunks: list[Chunk], session_number: int = 1) -> list[Finding]:
    """Write a recording of a session with the findings that were reported during it."""
    observer, out = _observe(chunks)
    session = facts(
        session_number,
        started=chunks[0].at,
        listens=("127.0.0.1:9000",),
        upstreams=("localhost:8000",),
    )
    writer = Writer(path, session)
    found = [each for each in out if type(each) is Finding]
    writer.write([each for each in out if type(each) is Frame], found, observer.pop_changes())
    writer.finish(chunks[-1].at)
    return found
