"""The column that tells of findings, in the lists of exchanges and of frames."""

from __future__ import annotations

from a2a_inspect.data.finding_counts import SEVERITIES, ExchangeLine
from a2a_inspect.data.source import FrameLine
from a2a_inspect.widgets.columns import ListColumn


def finding_marks(line: ExchangeLine | FrameLine) -> str:
    """How many there are and how grave they are, in signs; nothing where there is none."""
    return str(line.finding_counts or "")


def finding_style(line: ExchangeLine | FrameLine) -> str:
    """How that looks."""
    return SEVERITIES[line.finding_counts.highest_severity] if line.finding_counts is not None else ""


FINDINGS_COLUMN = ListColumn("FOUND", 5, finding_marks, style=finding_style)
