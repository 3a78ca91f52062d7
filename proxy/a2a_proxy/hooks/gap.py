"""A gap in the generations of a task, as the finding of A2A-GEN-001 tells it
(manual/protocol.md "Generation tracking")."""

from __future__ import annotations

import re

import msgspec

from a2a_proxy.model.finding import Finding

GAP_RULE = "A2A-GEN-001"
_MISSING = re.compile(r"\bgenerations? (\d+)(?: to (\d+))?")
"""Where the rule's summaries name the missing generations: `generation 3 is missing: 2 is followed by 4 (agent)`."""


class Gap(msgspec.Struct, frozen=True):
    """Changes of a task that were not told on one stream."""

    task_id: str
    first: int
    """The first generation left out; 0 where the finding does not say."""
    last: int
    """The last one left out; equal to `first` where it is one."""
    finding: Finding

    @property
    def missing(self) -> range:
        """The generations left out."""
        return range(self.first, self.last + 1) if self.first else range(0)


def gap_of(finding: Finding) -> Gap | None:
    """The gap that a finding tells; None where it tells none."""
    if finding.rule != GAP_RULE:
        return None
    found = _MISSING.search(finding.summary)
    first, last = found.groups() if found else ("0", "0")
    return Gap(finding.task_id, int(first), int(last or first), finding)
