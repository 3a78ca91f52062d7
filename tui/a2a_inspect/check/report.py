"""Findings of a check, independent of the output format."""

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

import msgspec

from a2a_inspect.check.suppressions import Suppression
from a2a_inspect.data.finding_words import evidence_words, finding_section
from a2a_inspect.data.generation_gaps import operation_of
from a2a_inspect.data.session_lines import unended_words
from a2a_proxy.cards.verify import CardVerifier
from a2a_proxy.model.errors import UserError
from a2a_proxy.model.values import EventKind, Finding, Severity, Task
from a2a_proxy.present import generations
from a2a_proxy.protocol.describe import describe_frame
from a2a_proxy.protocol.finding_totals import ENDING_RULES, count_occurrences, follows_ending
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.recording.read.endings import EndingReader
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import SessionRow, make_key
from a2a_proxy.recording.tools.recheck import CardRecheck, recheck_session
from a2a_proxy.rules.define.catalogue import all_rules
from a2a_proxy.rules.define.other_findings import OTHER_FINDINGS
from a2a_proxy.rules.define.rule import Rule
from a2a_proxy.rules.endings.evaluate import FollowingFindings

DECODER_FINDINGS = {
    ident: OTHER_FINDINGS[ident].title
    for ident in ("UNDECODABLE", "HANDSHAKE", "RECORDER", "IMPORT")
}
"""Findings that no rule reports. They can be selected like rules."""
CARD_FINDINGS = {ident: OTHER_FINDINGS[ident].title for ident in ("MIGRATION", "PROBE")}
"""The same for a card that is checked by itself."""

_UPDATES = frozenset({EventKind.STATUS, EventKind.ARTIFACT, EventKind.MESSAGE})


class CheckFinding(msgspec.Struct):
    """One finding with everything a report prints about it."""

    finding: Finding
    operation: str = ""
    """Operation of the finding's exchange; empty if the finding has no exchange."""
    missed: str = ""
    """What the events missing by a gap were and how the gap was closed, as far as the recording
    shows."""
    suppressed: str = ""
    """Reason why the finding is ignored; empty if it counts."""

    @property
    def counts(self) -> bool:
        """Whether it is counted."""
        return not (self.suppressed or follows_ending(self.finding))


class CheckedSession(msgspec.Struct):
    """One session of one recording."""

    path: str
    session: int
    exchanges: int
    frames: int
    incomplete_reason: str
    """What the capture lacks, in words; empty if it is complete."""
    findings: list[CheckFinding]
    skipped_rules: list[str] = []
    """Ids of the rules that were skipped because payloads were deliberately not recorded."""
    started: int = 0
    """Start of the session, ns since the epoch."""
    contents: str = ""
    """What was checked, in words; empty for a recording, whose exchanges and frames are counted."""
    notes: list[str] = []
    """Facts that are no findings, a line each."""


class CheckReport(msgspec.Struct):
    """Result of a check over all recordings."""

    executed_rules: list[Rule]
    fail_on: Severity | None = None
    """Lowest severity that makes the check fail; None: never."""
    sessions: list[CheckedSession] = []
    unused_suppressions: list[Suppression] = []
    """Suppressions that matched no finding."""
    expired_suppressions: list[Suppression] = []
    """Suppressions that are out of date."""
    other_findings: dict[str, str] = msgspec.field(default_factory=DECODER_FINDINGS.copy)
    """Findings that no rule reports: id and description."""
    lists_all: bool = False
    """Whether the text lists each finding; otherwise it groups them by rule."""

    def counted_findings(self) -> Iterator[tuple[CheckedSession, CheckFinding]]:
        """Yield every finding that counts, in order."""
        return ((one, each) for one in self.sessions for each in one.findings if each.counts)

    def count_findings(self, severity: Severity) -> int:
        """Return the number of counted findings of one severity."""
        found = (each.finding for _, each in self.counted_findings())
        return sum(count_occurrences(each) for each in found if each.severity is severity)

    @property
    def suppressed_findings(self) -> int:
        """Number of suppressed findings."""
        suppressed = (
            each.finding for one in self.sessions for each in one.findings if each.suppressed
        )
        return sum(map(count_occurrences, suppressed))

    @property
    def most_severe_rule(self) -> str:
        """Rule of the first of the most severe counted findings; empty if there are no such
        findings."""
        found = [
            each.finding for _, each in self.counted_findings() if each.finding.rule in all_rules()
        ]
        return max(found, key=lambda each: each.severity).rule if found else ""

    @property
    def highest_severity(self) -> Severity | None:
        """The most severe severity of the counted findings; None without findings."""
        return max((each.finding.severity for _, each in self.counted_findings()), default=None)


def select_rules(
    select: Iterable[str],
    ignore: Iterable[str],
    other_findings: Collection[str] = DECODER_FINDINGS.keys(),
) -> set[str]:
    """Return the ids that begin with a prefix in `select` (all if it is empty) and with no prefix
    in `ignore`.

    They are ids of rules, and of `other_findings` that no rule reports.

    Raises:
        UserError: no id begins with one of the prefixes.
    """
    select = tuple(select)
    every = {*all_rules(), *other_findings}
    wanted = _match_rule_prefixes("--select", select, other_findings) if select else every
    return wanted - _match_rule_prefixes("--ignore", ignore, other_findings)


def _match_rule_prefixes(
    option: str, words: Iterable[str], other_findings: Collection[str]
) -> set[str]:
    found: set[str] = set()
    for word in words:
        begun = {ident for ident in all_rules() if ident.startswith(expand_rule_id(word))}
        begun |= {ident for ident in other_findings if ident.startswith(word.upper())}
        if not (word and begun):
            hint = f"list the rules: a2a-inspect rules; also valid: {', '.join(other_findings)}"
            raise UserError(f"{option} {word}: no rule id begins with it", hint)
        found |= begun
    return found


def expand_rule_id(word: str) -> str:
    """Return an id or prefix with the common first letters: `GEN` is short for `A2A-GEN`."""
    word = word.upper()
    return word if word.startswith("A2A-") or word == "A2A" else f"A2A-{word}"


def evidence_facts(finding: Finding, omitted: Collection[str] = ()) -> list[str]:
    """Return the section that a finding cites and the evidence in words, except the `omitted`
    names."""
    return ([section] if (section := finding_section(finding)) else []) + evidence_words(
        finding, omitted
    )


def check_recording(
    recording: Recording,
    path: Path,
    rule_ids: set[str],
    keys: Collection[int] | None = None,
    verifier: CardVerifier | None = None,
) -> Iterator[CheckedSession]:
    """Run the rules over every session of a recording; `rule_ids` as from `select_rules`. With
    `verifier` signatures of cards are verified again.

    With `keys` (of exchanges) the rules still read everything, and findings about other exchanges
    are left out.
    """
    asked = {ident: rule for ident, rule in all_rules().items() if ident in rule_ids}
    unwanted = DECODER_FINDINGS.keys() - rule_ids
    for session in recording.read_sessions():
        counts = recording.count_rows(session.id)
        quiet: set[str] = set()
        cards = CardRecheck(verifier) if verifier is not None else None
        judged = recheck_session(recording, session, asked, quiet, cards)
        included = (each for each in judged if each.rule not in unwanted)
        if keys is not None:
            included = (each for each in included if make_key(session.id, each.exchange) in keys)
        found = [_make_finding(recording, session, each) for each in included]
        if any(ident.startswith(ENDING_RULES) for ident in rule_ids):
            found += _add_endings(recording, session, found, rule_ids, keys)
        size = counts.exchanges, counts.frames
        began = session.facts.started
        notes = (
            [f"card {place}: {make_visible(words)}" for words, place in cards.lines.items()]
            if cards
            else []
        )
        notes += [session.choice_text] if session.choice_text else []
        reason = session.missing_text if session.complete else unended_words(session)
        yield CheckedSession(
            str(path), session.id, *size, reason, found, sorted(quiet), began, notes=notes
        )


def _add_endings(
    recording: Recording,
    session: SessionRow,
    findings: list[CheckFinding],
    rule_ids: set[str],
    keys: Collection[int] | None,
) -> list[CheckFinding]:
    """Return the findings of the endings, and mark those that follow from one."""
    following = FollowingFindings(enumerate(each.finding for each in findings))
    rows = recording.read_exchanges(session.id, headers=False)
    endings = [
        each
        for each in EndingReader(recording).read_all(rows).values()
        if each.severity is not None
        and each.rule in rule_ids
        and (keys is None or make_key(session.id, each.exchange) in keys)
    ]
    for each in endings:
        following.mark(each)
    following.mark_totals()
    for index, finding in following.marked.items():
        findings[index].finding = finding
    return [_make_finding(recording, session, each.to_finding()) for each in endings]


def _make_finding(recording: Recording, session: SessionRow, finding: Finding) -> CheckFinding:
    missed = _describe_missed(recording, session.id, finding)
    row = (
        recording.read_exchange(make_key(session.id, finding.exchange))
        if finding.exchange
        else None
    )
    return CheckFinding(finding, row.exchange.operation if row is not None else "", missed)


def _describe_missed(recording: Recording, session: int, finding: Finding) -> str:
    """Return what the events that a finding misses were, and how the gap was closed: `generation 4:
    artifact "plan" on #7.3; healed by #9 GetTask at generation 6`. Empty if the finding misses
    nothing, or nothing is known.
    """
    missing = finding.evidence.get("missing")
    if not missing or not finding.task_id:
        return ""
    first, _, last = missing.partition("-")
    numbers = range(int(first), int(last or first) + 1)
    words: list[str] = []
    for each in recording.read_task(finding.task_id, session=session):
        words += _events_elsewhere(recording, session, each.task, finding.exchange, numbers)
        for gap in each.task.gaps:
            if gap.healed and (gap.exchange, gap.at) == (finding.exchange, finding.at):
                words.append(
                    generations.healed_label(
                        gap, lambda number: operation_of(recording, session, number)
                    )
                )
    return f"generation {missing}: {'; '.join(words)}" if words else ""


def _events_elsewhere(
    recording: Recording, session: int, task: Task, exchange: int, numbers: range
) -> Iterator[str]:
    """Yield each missing event as another exchange of the task shows it."""
    wanted = set(numbers)
    for number in task.exchanges:
        if number == exchange or not wanted:
            continue
        row = recording.read_exchange(make_key(session, number))
        for each in recording.read_frames(make_key(session, number)) if row is not None else ():
            frame = each.frame
            if (
                frame.generation in wanted
                and frame.task_id == task.task_id
                and frame.event in _UPDATES
                and row
            ):
                wanted.discard(frame.generation)
                description = describe_frame(
                    frame, frame.payload, row.exchange.operation, row.exchange.dialect
                )
                yield f"{description} on #{number}.{frame.seq}"
