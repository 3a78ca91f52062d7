"""Feed the examples of rules to an observer."""

from __future__ import annotations

from pathlib import Path

from a2a_proxy.cards.keys import parse_keys
from a2a_proxy.cards.verify import CardVerifier
from a2a_proxy.model.values import Finding, Frame, Observation
from a2a_proxy.model.wire import Chunk
from a2a_proxy.observer import Observer
from a2a_proxy.recording.write.writer import Writer
from a2a_proxy.redaction import Redactor
from a2a_proxy.rules.examples.objects import CARD_KEYS
from a2a_proxy.rules.examples.script import Script
from support_recording import facts

KEY = b"k" * 32


def findings(script: Script) -> list[Finding]:
    """Return the findings of rules and decoders about a conversation."""
    observer = Observer(Redactor(KEY), cards=CardVerifier(parse_keys(CARD_KEYS).keys))
    out: list[Observation] = []
    for chunk in script.make_chunks():
        observer.feed(chunk, out)
    return [each for each in out if type(each) is Finding]


def told(script: Script) -> list[str]:
    """Return the same with one line for each finding, for the message of a failed test."""
    return [
        f"{each.rule} {each.severity.name} #{each.exchange}/{each.seq}: {each.summary}"
        for each in findings(script)
    ]


def record(path: Path, chunks: list[Chunk]) -> list[Finding]:
    """Write a recording of a session with the findings that were reported during it."""
    observer = Observer(Redactor(KEY), cards=CardVerifier(parse_keys(CARD_KEYS).keys))
    out: list[Observation] = []
    for chunk in chunks:
        observer.feed(chunk, out)
    session = facts(
        1, started=chunks[0].at, listens=("127.0.0.1:9000",), upstreams=("localhost:8000",)
    )
    writer = Writer(path, session)
    found = [each for each in out if type(each) is Finding]
    writer.write([each for each in out if type(each) is Frame], found, observer.pop_changes())
    writer.finish(chunks[-1].at)
    return found
