"""The findings of a recording, grouped by rule and severity. Places are read on demand, by page.

The functions are queries for `RecordingSource.run_query`.
"""

from collections.abc import Iterator

import msgspec

from a2a_inspect.data.tree import CHILDREN_PER_PAGE
from a2a_proxy.model.values import Finding, Severity
from a2a_proxy.present import text
from a2a_proxy.protocol.finding_totals import count_occurrences, is_total
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.recording.read.outcome_sql import COUNTED_FINDING
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import FindingRow, label_place
from a2a_proxy.recording.store.codec import unpack_text

_GROUPS = f"""SELECT rule, (SELECT value FROM text WHERE id = rule), severity, count(*)
  FROM finding WHERE {COUNTED_FINDING} GROUP BY 1, 3"""
_PLACES = f"""SELECT id FROM finding
  WHERE rule = ? AND severity = ? AND id > ? AND {COUNTED_FINDING} ORDER BY id LIMIT ?"""


class FindingBranch(msgspec.Struct, frozen=True):
    """A rule with its number of findings, or the place of one finding."""

    label: str
    """Label without control characters."""
    rule: int
    """Id of the rule's row in `text`."""
    severity: Severity
    id: int = 0
    """Id of the finding; 0 for a rule."""
    session: int = 0
    exchange: int = 0
    """Number of the exchange; 0 for a finding about a connection."""
    seq: int = -1
    words: str = ""
    """The title of the rule, or the summary of the finding."""

    @property
    def identity(self) -> tuple[int, ...]:
        """Identity of the branch, which does not change while the recording grows."""
        return self.rule, self.severity, self.id

    @property
    def page_cursor(self) -> int:
        """Id after which the next page begins."""
        return self.id

    @property
    def is_leaf(self) -> bool:
        """Whether the branch has no children."""
        return self.id > 0


class FindingPage(msgspec.Struct, frozen=True):
    """A page of branches."""

    branches: tuple[FindingBranch, ...] = ()
    has_more: bool = False


def read_findings(
    recording: Recording, branch: FindingBranch | None, after: int | None = None
) -> FindingPage:
    """Return a page of the places of a rule after this id, or all rules with findings if there is
    no branch."""
    if branch is None:
        return FindingPage(tuple(_rule_branches(recording)))
    values = (branch.rule, branch.severity, after or 0, CHILDREN_PER_PAGE + 1)
    ids = [row[0] for row in recording.db.execute(_PLACES, values)]
    rows = (
        next(recording.read_findings(after=each - 1, limit=1)) for each in ids[:CHILDREN_PER_PAGE]
    )
    places = tuple(_place_branch(branch, row) for row in rows if not is_total(row.finding))
    return FindingPage(places, len(ids) > CHILDREN_PER_PAGE)


def _rule_branches(recording: Recording) -> Iterator[FindingBranch]:
    """Yield the rules: the most severe first, of these the most frequent. Unlisted repetitions are
    counted."""
    from a2a_proxy.rules.define.catalogue import all_rules

    unlisted: dict[tuple[str, Severity], int] = {}
    for session in recording.read_sessions():
        for total in recording.finding_totals(session.id):
            kind = total.rule, total.severity
            unlisted[kind] = unlisted.get(kind, 0) + count_occurrences(total) - 1
    groups = []
    for number, name, severity, rows in recording.db.execute(_GROUPS).fetchall():
        rule = unpack_text(name)
        groups.append(
            (-severity, -(rows + unlisted.get((rule, Severity(severity)), 0)), rule, number)
        )
    for negative, count, rule, number in sorted(groups):
        severity = Severity(-negative)
        label = make_visible(f"{severity.name.lower():7} {-count:>4}  {rule:14}")
        known = all_rules().get(rule)
        yield FindingBranch(label, number, severity, words=known.title if known is not None else "")


def _place_branch(group: FindingBranch, row: FindingRow) -> FindingBranch:
    finding = row.finding
    return FindingBranch(
        make_visible(_place_words(row.session, finding)),
        group.rule,
        group.severity,
        row.id,
        row.session,
        finding.exchange,
        finding.seq,
        make_visible(finding.summary),
    )


def _place_words(session: int, finding: Finding) -> str:
    """Return `#1.3 (agent's event)`, or the connection."""
    if not finding.exchange:
        return text.finding_place(finding) or label_place(session)
    words = finding.evidence.get("frame", "") if finding.seq >= 0 else "whole exchange"
    place = label_place(session, finding.exchange, finding.seq)
    return f"{place} ({words})" if words else place
