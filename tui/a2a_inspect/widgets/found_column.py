"""The column that tells of findings, in the lists of exchanges and of frames."""

from __future__ import annotations

from a2a_inspect.data.finding_counts import SEVERITIES, ExchangeLine
from a2a_inspect.data.source import FrameLine
from a2a_inspect.widgets.columns import ListColumn


def found(line: ExchangeLine | FrameLine) -> str:
    """How many there are and how grave they are, in signs; nothing where there is none."""
    return str(line.found or "")


def found_style(line: ExchangeLine | FrameLine) -> str:
    """How that looks."""
    return SEVERITIES[line.found.worst] if line.found is not None else ""


FOUND = ListColumn("FOUND", 5, found, style=found_style)
