"""What a check found, before anybody formats it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from a2a_proxy.model.finding import Finding, Severity
from a2a_proxy.recording.reader import Recording
from a2a_proxy.recording.recheck import recheck
from a2a_proxy.rules.catalogue import rules
from a2a_proxy.rules.rule import Rule


class Checked(msgspec.Struct):
    """One session of one recording."""

    path: str
    session: int
    exchanges: int
    frames: int
    missing: str
    """What the capture lacks, in words; empty where it is whole."""
    findings: list[Finding]


class Report(msgspec.Struct):
    """All that was checked."""

    ran: list[Rule]
    checked: list[Checked]

    def count(self, severity: Severity) -> int:
        """Findings of one severity."""
        return sum(each.severity is severity for one in self.checked for each in one.findings)

    def worst(self) -> Severity | None:
        """The gravest severity found; None where nothing was."""
        return max((each.severity for one in self.checked for each in one.findings), default=None)


def chosen(select: Iterable[str], ignore: Iterable[str]) -> dict[str, Rule]:
    """The rules whose ids begin with one of `select` (all where it is empty) and with none of `ignore`.

    `GEN` is short for `A2A-GEN`.
    """
    wanted, unwanted = tuple(map(_prefix, select)), tuple(map(_prefix, ignore))
    return {
        ident: rule
        for ident, rule in rules().items()
        if (not wanted or ident.startswith(wanted)) and not ident.startswith(unwanted)
    }


def _prefix(word: str) -> str:
    word = word.upper()
    return word if word.startswith("A2A-") else f"A2A-{word}"


def check(recording: Recording, path: Path, wanted: dict[str, Rule]) -> list[Checked]:
    """Run the rules over every session of a recording."""
    found = []
    for session in recording.sessions():
        counts = recording.counts(session.id)
        missing = "" if session.complete in ("", "complete") else session.complete
        findings = list(recheck(recording, session, wanted))
        found.append(Checked(str(path), session.id, counts.exchanges, counts.frames, missing, findings))
    return found
