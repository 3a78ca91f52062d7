"""What a check found, before anybody formats it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from a2a_inspect.commands.check.suppressions import Suppression
from a2a_proxy.model.finding import Finding, Severity
from a2a_proxy.recording.reader import Recording
from a2a_proxy.recording.recheck import recheck
from a2a_proxy.recording.rows import SessionRow, key
from a2a_proxy.rules.catalogue import rules
from a2a_proxy.rules.rule import Rule


class Found(msgspec.Struct):
    """One finding with what is needed to tell of it."""

    finding: Finding
    operation: str = ""
    """Of its exchange; empty where it has none."""
    suppressed: str = ""
    """The reason why it does not count; empty where it does."""


class Checked(msgspec.Struct):
    """One session of one recording."""

    path: str
    session: int
    exchanges: int
    frames: int
    missing: str
    """What the capture lacks, in words; empty where it is whole."""
    found: list[Found]


class Report(msgspec.Struct):
    """All that was checked."""

    ran: list[Rule]
    fail_on: Severity | None = None
    """From here on a finding makes the check fail; None: never."""
    checked: list[Checked] = []
    unused: list[Suppression] = []
    """Suppressions that nothing was found for."""

    def all(self) -> Iterator[tuple[Checked, Found]]:
        """Every finding that counts, in order."""
        return ((one, each) for one in self.checked for each in one.found if not each.suppressed)

    def count(self, severity: Severity) -> int:
        """Findings of one severity that count."""
        return sum(each.finding.severity is severity for _, each in self.all())

    @property
    def suppressed(self) -> int:
        """Findings that do not count."""
        return sum(bool(each.suppressed) for one in self.checked for each in one.found)

    @property
    def worst(self) -> Severity | None:
        """The gravest severity that counts; None where nothing was found."""
        return max((each.finding.severity for _, each in self.all()), default=None)


def chosen(select: Iterable[str], ignore: Iterable[str]) -> dict[str, Rule]:
    """The rules whose ids begin with one of `select` (all where it is empty) and with none of `ignore`.

    `GEN` is short for `A2A-GEN`.
    """
    wanted, unwanted = tuple(map(full_id, select)), tuple(map(full_id, ignore))
    return {
        ident: rule
        for ident, rule in rules().items()
        if (not wanted or ident.startswith(wanted)) and not (unwanted and ident.startswith(unwanted))
    }


def full_id(word: str) -> str:
    """An id, or the beginning of one, with the letters that all have."""
    word = word.upper()
    return word if word.startswith("A2A-") else f"A2A-{word}"


def check(recording: Recording, path: Path, wanted: dict[str, Rule]) -> Iterator[Checked]:
    """Run the rules over every session of a recording."""
    for session in recording.sessions():
        counts = recording.counts(session.id)
        found = [Found(each, _operation(recording, session, each)) for each in recheck(recording, session, wanted)]
        yield Checked(str(path), session.id, counts.exchanges, counts.frames, _missing(session), found)


def _operation(recording: Recording, session: SessionRow, finding: Finding) -> str:
    row = recording.exchange(key(session.id, finding.exchange)) if finding.exchange else None
    return row.exchange.operation if row is not None else ""


def _missing(session: SessionRow) -> str:
    if not session.complete:
        return "it is still being recorded"
    return "" if session.complete == "complete" else session.complete
