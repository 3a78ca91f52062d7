"""What a check found, before anybody formats it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

import msgspec

from a2a_inspect.commands.check.suppressions import Suppression
from a2a_inspect.commands.session import evidence_words
from a2a_proxy.cli.errors import UserError
from a2a_proxy.model.finding import Finding, Severity
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import SessionRow, make_key
from a2a_proxy.recording.tools.recheck import recheck_session
from a2a_proxy.rules.define.catalogue import all_rules
from a2a_proxy.rules.define.rule import Rule

DECODER_FINDINGS = {
    "UNDECODABLE": "Bytes that cannot be read",
    "RECORDER": "The capture or the recorder was disturbed",
}
"""What is found without a rule, and can be chosen as rules can."""


class CheckFinding(msgspec.Struct):
    """One finding with what is needed to tell of it."""

    finding: Finding
    operation: str = ""
    """Of its exchange; empty where it has none."""
    suppressed: str = ""
    """The reason why it does not count; empty where it does."""


class CheckedSession(msgspec.Struct):
    """One session of one recording."""

    path: str
    session: int
    exchanges: int
    frames: int
    incomplete_reason: str
    """What the capture lacks, in words; empty where it is whole."""
    findings: list[CheckFinding]
    skipped_rules: list[str] = []
    """Ids of the rules that said nothing, for payloads were not recorded on purpose."""
    started: int = 0
    """When the session began, ns since the epoch."""


class CheckReport(msgspec.Struct):
    """All that was checked."""

    executed_rules: list[Rule]
    fail_on: Severity | None = None
    """From here on a finding makes the check fail; None: never."""
    sessions: list[CheckedSession] = []
    unused_suppressions: list[Suppression] = []
    """Suppressions that nothing was found for."""
    expired_suppressions: list[Suppression] = []
    """Suppressions that are out of date."""

    def counted_findings(self) -> Iterator[tuple[CheckedSession, CheckFinding]]:
        """Every finding that counts, in order."""
        return ((one, each) for one in self.sessions for each in one.findings if not each.suppressed)

    def count_findings(self, severity: Severity) -> int:
        """Findings of one severity that count."""
        return sum(each.finding.severity is severity for _, each in self.counted_findings())

    @property
    def suppressed_findings(self) -> int:
        """Findings that do not count."""
        return sum(bool(each.suppressed) for one in self.sessions for each in one.findings)

    @property
    def most_severe_rule(self) -> str:
        """The rule of the first of the gravest findings that count; empty where no rule found anything."""
        found = [each.finding for _, each in self.counted_findings() if each.finding.rule in all_rules()]
        return max(found, key=lambda each: each.severity).rule if found else ""

    @property
    def highest_severity(self) -> Severity | None:
        """The gravest severity that counts; None where nothing was found."""
        return max((each.finding.severity for _, each in self.counted_findings()), default=None)


def select_rules(select: Iterable[str], ignore: Iterable[str]) -> set[str]:
    """What begins with one of `select` (everything where it is empty) and with none of `ignore`: ids of rules, and of
    what is found without one.

    Raises:
        UserError: one of these words begins nothing.
    """
    select = tuple(select)
    wanted = _match_rule_prefixes("--select", select) if select else {*all_rules(), *DECODER_FINDINGS}
    return wanted - _match_rule_prefixes("--ignore", ignore)


def _match_rule_prefixes(option: str, words: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for word in words:
        begun = {ident for ident in all_rules() if ident.startswith(expand_rule_id(word))}
        begun |= {ident for ident in DECODER_FINDINGS if ident.startswith(word.upper())}
        if not (word and begun):
            hint = f"see which there are: a2a-inspect rules; and {', '.join(DECODER_FINDINGS)}"
            raise UserError(f"{option} {word}: no rule begins so", hint)
        found |= begun
    return found


def expand_rule_id(word: str) -> str:
    """An id, or the beginning of one, with the letters that all have: `GEN` is short for `A2A-GEN`."""
    word = word.upper()
    return word if word.startswith("A2A-") or word == "A2A" else f"A2A-{word}"


def evidence_facts(finding: Finding) -> list[str]:
    """What there is beside its line, in words: the section of its rule, the path, the value there, the number."""
    rule = all_rules().get(finding.rule)
    return ([rule.section] if rule is not None else []) + evidence_words(finding)


def check_recording(
    recording: Recording, path: Path, rule_ids: set[str], keys: Collection[int] | None = None
) -> Iterator[CheckedSession]:
    """Run the rules over every session of a recording; `rule_ids` as from `select_rules`.

    With keys of exchanges the rules see everything, and what they find in others is left out.
    """
    asked = {ident: rule for ident, rule in all_rules().items() if ident in rule_ids}
    unwanted = DECODER_FINDINGS.keys() - rule_ids
    for session in recording.sessions():
        counts = recording.counts(session.id)
        quiet: set[str] = set()
        told = (each for each in recheck_session(recording, session, asked, quiet) if each.rule not in unwanted)
        if keys is not None:
            told = (each for each in told if make_key(session.id, each.exchange) in keys)
        found = [CheckFinding(each, _finding_operation(recording, session, each)) for each in told]
        size = counts.exchanges, counts.frames
        began = session.facts.started
        yield CheckedSession(str(path), session.id, *size, _incomplete_reason(session), found, sorted(quiet), began)


def _finding_operation(recording: Recording, session: SessionRow, finding: Finding) -> str:
    row = recording.exchange(make_key(session.id, finding.exchange)) if finding.exchange else None
    return row.exchange.operation if row is not None else ""


def _incomplete_reason(session: SessionRow) -> str:
    if not session.complete:
        return "it is still being recorded"
    return "" if session.complete == "complete" else session.complete
