"""The column of findings in the lists of exchanges and frames."""

from a2a_inspect.data.finding_counts import SEVERITIES, ExchangeLine
from a2a_inspect.data.source import FrameLine
from a2a_inspect.widgets.columns import ListColumn


def finding_marks(line: ExchangeLine | FrameLine) -> str:
    """Return the number and highest severity of the findings as signs; empty without findings."""
    return str(line.finding_counts or "")


def finding_style(line: ExchangeLine | FrameLine) -> str:
    """Return the style of the signs."""
    return (
        SEVERITIES[line.finding_counts.highest_severity] if line.finding_counts is not None else ""
    )


FINDINGS_COLUMN = ListColumn("FOUND", 5, finding_marks, style=finding_style)
