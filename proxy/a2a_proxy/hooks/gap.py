"""A gap in the generations of a task, from a finding of A2A-GEN-001
(manual/protocol.md "Generation tracking")."""

import re

import msgspec

from a2a_proxy.model.values import Finding

GAP_RULE = "A2A-GEN-001"
_OLD_SUMMARY = re.compile(
    r"\bgenerations? (\d+)(?: to (\d+))?"
    r"|[:;(] ?(\d+)(?: to (\d+))?(?=\)| (?:came|did)\b)"
)
"""The missing generations in summaries of versions whose evidence does not name them:
`4 after 2: 3 did not come`."""


class Gap(msgspec.Struct, frozen=True):
    """Generations of a task that are missing on one stream."""

    task_id: str
    first: int
    """The first missing generation; 0 if the finding does not name it."""
    last: int
    """The last missing generation; equal to `first` if only one is missing."""
    finding: Finding

    @property
    def missing(self) -> range:
        """The missing generations."""
        return range(self.first, self.last + 1) if self.first else range(0)


def gap_of(finding: Finding) -> Gap | None:
    """Return the gap that a finding reports, or None if the finding reports none."""
    if finding.rule != GAP_RULE:
        return None
    first, _, last = finding.evidence.get("missing", "").partition("-")
    if not first and (old := _OLD_SUMMARY.search(finding.summary)) is not None:
        first, last = old[1] or old[3], old[2] or old[4]
    return Gap(finding.task_id, int(first or 0), int(last or first or 0), finding)
