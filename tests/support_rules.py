"""Examples of rules fed to an observer."""

from __future__ import annotations

from a2a_proxy.model.finding import Finding
from a2a_proxy.model.observation import Observation
from a2a_proxy.observer import Observer
from a2a_proxy.redaction import Redactor
from a2a_proxy.rules.examples.script import Script

KEY = b"k" * 32


def findings(script: Script) -> list[Finding]:
    """What the rules, and the decoders, say of a conversation."""
    observer = Observer(Redactor(KEY))
    out: list[Observation] = []
    for chunk in script.chunks():
        observer.feed(chunk, out)
    return [each for each in out if type(each) is Finding]


def told(script: Script) -> list[str]:
    """The same, a line each, to be read when a test fails."""
    return [
        f"{each.rule} {each.severity.name} #{each.exchange}/{each.seq}: {each.summary}" for each in findings(script)
    ]
