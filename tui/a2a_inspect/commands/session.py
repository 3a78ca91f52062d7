"""A session as lines: time, addresses, completeness of the capture, and the lines about its
connections."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Collection, Iterator

from a2a_inspect.data.notes import note_counts
from a2a_proxy.capture import file_layout
from a2a_proxy.capture.backlog import MIN_LAG, recording_lag
from a2a_proxy.model.values import Connection, Finding
from a2a_proxy.present import text
from a2a_proxy.present.text import finding_object
from a2a_proxy.protocol.finding_totals import is_total
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.recording.read.multi_reader import MultiReader
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import FindingRow, SessionRow, make_key
from a2a_proxy.rules.define.catalogue import all_rules

_UNREAD = {"tls": "not read: encrypted", "opaque": "not HTTP"}
"""Reason why a connection of this kind has no exchanges."""


def session_line(session: SessionRow) -> str:
    """Return `session 1  2026-01-31 09:41:07  127.0.0.1:9000 -> agent:8000  capture complete`,
    and its faults."""
    facts = session.facts
    ways = ", ".join(text.session_routes(facts))
    faults = f"  faults on purpose: {make_visible('; '.join(facts.faults))}" if facts.faults else ""
    return (
        f"session {session.id}  {text.format_date_time(facts.started)}  {make_visible(ways)}  "
        f"{_completeness_words(session)}{faults}"
    )


def member_lines(several: MultiReader) -> Iterator[str]:
    """Yield a line for each session, by time; with several files, each line begins with the file's
    name in the list."""
    many = len(several.members) > 1
    width = max(len(member.name) for member in several.members)
    for member, session in several.read_sessions():
        line = "  ".join(
            filter(None, (session_line(session), note_counts(member.recording, session.id)))
        )
        yield f"{make_visible(member.name):{width}}  {line}" if many else line


def _completeness_words(session: SessionRow) -> str:
    if not session.complete:
        return unended_words(session)
    words = f"INCOMPLETE: {session.missing_text}" if session.missing_text else "capture complete"
    return make_visible("; ".join(filter(None, (words, session.choice_text))))


def unended_words(session: SessionRow) -> str:
    """Return the state of a session without an end, which depends on whether its journal still
    exists."""
    try:
        left = {leftover.session.uuid for leftover in file_layout.find_leftovers()}
        known = file_layout.sessions_with_journal()
    except OSError:
        left, known = set(), set()
    uuid = session.facts.uuid
    if uuid in left:
        return "not recorded to the end; finish with: a2a-inspect recover"
    if uuid in known:
        return f"being recorded{lag_words(session)}"
    return "ended abruptly"


def lag_words(session: SessionRow) -> str:
    """Return how far the recording of a running session is behind, as in `, 4 min behind`; empty if
    it keeps up."""
    lag = recording_lag(session.facts.uuid, session.position, time.time_ns())
    return f", {text.format_lag(lag)} behind" if lag >= MIN_LAG else ""


def connection_findings(recording: Recording, session: SessionRow) -> Iterator[FindingRow]:
    """Yield findings about connections rather than exchanges."""
    return recording.read_findings(exchange=make_key(session.id, 0))


def unread_connections(recording: Recording, session: SessionRow) -> Iterator[Connection]:
    """Yield connections that could not be read."""
    rows = recording.read_connections(session.id)
    return (row.connection for row in rows if row.connection.kind in _UNREAD)


def connection_lines(recording: Recording, session: SessionRow) -> Iterator[str]:
    """Yield a line per connection that could not be read and per finding about a connection."""
    for connection in unread_connections(recording, session):
        data = text.format_size(connection.bytes_to_agent + connection.bytes_to_client)
        way = f"-> {make_visible(connection.upstream)}"
        yield (
            f"connection {connection.id}  {connection.kind}  {way}  {data}, "
            f"{_UNREAD[connection.kind]}"
        )
    for row in connection_findings(recording, session):
        yield "  ".join(filter(None, (text.finding_place(row.finding), finding_words(row.finding))))


def finding_words(finding: Finding, width: int = 0, gap: int = 2) -> str:
    """Return `warning  UNDECODABLE not HTTP/2`, with the severity right-aligned in `width`
    cells."""
    return (
        f"{finding.severity.name.lower():>{width}}{' ' * gap}{make_visible(finding.rule)} "
        f"{make_visible(finding.summary)}"
    )


def finding_facts(finding: Finding) -> dict[str, object]:
    """Return a finding as JSON with stable names, with its rule's title if a rule reported it."""
    rule = all_rules().get(finding.rule)
    about = {"section": finding_section(finding), "title": rule.title} if rule is not None else {}
    return {**finding_object(finding), **about}


def finding_section(finding: Finding) -> str:
    """Return the section that the finding cites, which is of the version of its traffic; empty
    without a rule."""
    rule = all_rules().get(finding.rule)
    return finding.evidence.get("section", rule.section) if rule is not None else ""


_EVIDENCE_FORMS = {
    "actor": "must act: {}",
    "path": "at {}",
    "value": "found: {}",
    "expected": "expected: {}",
    "count": "number {} of its kind",
    "follows": "follows from {}",
}


def evidence_words(finding: Finding, omitted: Collection[str] = ()) -> list[str]:
    """Return the known evidence in words: who must act, the path in the payload, the value there,
    and so on, except the `omitted` names.
    """
    evidence = finding.evidence
    if "value" in evidence and "expected" in evidence:
        evidence = {**evidence, "value": f"{evidence['value']}, expected: {evidence['expected']}"}
        omitted = {*omitted, "expected"}
    forms = ((name, form) for name, form in _EVIDENCE_FORMS.items() if name not in omitted)
    return [form.format(evidence[name]) for name, form in forms if name in evidence]


class RuleMeanings:
    """The meanings of rules in one output: each is printed only below the first finding of its
    rule."""

    def __init__(self) -> None:
        self._explained_rules: set[str] = set()

    def explain_finding(self, finding: Finding) -> str:
        """Return the rule's description and section; empty if it was returned before or the finding
        has no rule."""
        rule = all_rules().get(finding.rule)
        if rule is None or rule.id in self._explained_rules:
            return ""
        self._explained_rules.add(rule.id)
        return f"{rule.description} ({finding_section(finding)})"

    def evidence_lines(self, finding: Finding) -> list[str]:
        """Return the evidence of a finding, then the meaning of its rule, wrapped."""
        evidence = make_visible("; ".join(evidence_words(finding)))
        return [
            *([evidence] if evidence else []),
            *textwrap.wrap(self.explain_finding(finding), 100),
        ]


def connection_counts(recording: Recording, session: SessionRow) -> str:
    """Return the counts of these lines: `1 connection not read, 2 findings of connections`; empty
    without lines."""
    unread = sum(1 for _ in unread_connections(recording, session))
    found = sum(not is_total(row.finding) for row in connection_findings(recording, session))
    counts = [f"{text.format_count(unread, 'connection')} not read"] if unread else []
    return ", ".join(
        [*counts, f"{text.format_count(found, 'finding')} of connections"] if found else counts
    )
