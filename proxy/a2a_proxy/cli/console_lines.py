"""The lines of the console about exchanges and findings: their order, and findings that repeat.

The recorder sends findings before exchanges, and by severity, because it drops the last ones if
there are too many.
"""

from a2a_proxy.model.values import Finding, Severity
from a2a_proxy.present import text
from a2a_proxy.recorder.status import ExchangeStatus, FindingStatus, Line

_MAX_LABELLED = 5_000
"""Exchanges whose repeated findings are remembered until the exchange is printed."""
_MAX_RULES = 3
"""Rules that one label names."""


class StatusBatch:
    """Collects lines until the recorder has sent all of its commit."""

    def __init__(self) -> None:
        self._lines: list[Line] = []

    def add(self, line: Line) -> None:
        """Add a line."""
        self._lines.append(line)

    def take(self) -> list[Line]:
        """Return the lines in order of time, those about an exchange directly below it, and forget
        them."""
        lines, self._lines = self._lines, []
        starts = {
            line.exchange.id: _time(line) for line in lines if isinstance(line, ExchangeStatus)
        }

        def order(line: Line) -> tuple[int, int, bool, int]:
            number = _exchange_number(line)
            start = starts.get(number)
            if start is None:
                return _time(line), 0, False, 0
            return start, number, not isinstance(line, ExchangeStatus), _time(line)

        return sorted(lines, key=order)


def _exchange_number(line: Line) -> int:
    if isinstance(line, ExchangeStatus):
        return line.exchange.id
    return line.finding.exchange if isinstance(line, FindingStatus) else line.missed.by


def _time(line: Line) -> int:
    """Return the time that the line shows, ns."""
    if isinstance(line, ExchangeStatus):
        return line.exchange.started
    return line.finding.at if isinstance(line, FindingStatus) else line.missed.healed


class FindingRepeats:
    """The findings of one run."""

    def __init__(self) -> None:
        self._first: dict[tuple[str, Severity], int] = {}
        """Rule and severity -> exchange of the first finding."""
        self._repeated: dict[int, dict[str, None]] = {}
        """Exchange -> its repeated findings: severity and rule."""

    def is_first(self, finding: Finding) -> bool:
        """Whether no finding before had this rule and severity; otherwise it is kept for the label
        of its exchange."""
        first = self._first.setdefault((finding.rule, finding.severity), -1)
        if first < 0:
            self._first[finding.rule, finding.severity] = finding.exchange
            return True
        if finding.exchange not in (0, first):
            self._repeated.setdefault(finding.exchange, {})[
                f"{finding.severity.name.lower()} {finding.rule}"
            ] = None
            if len(self._repeated) > _MAX_LABELLED:
                del self._repeated[next(iter(self._repeated))]
        return False

    def take_label(self, exchange: int) -> str:
        """Return `again error A2A-VER-001, warning A2A-SSE-012`, once, or an empty text if the
        exchange has no repeated findings."""
        rules = list(self._repeated.pop(exchange, ()))
        if not rules:
            return ""
        rest = len(rules) - _MAX_RULES
        return f"again {', '.join(rules[:_MAX_RULES])}" + (
            f" and {text.format_count(rest, 'more rule')}" if rest > 0 else ""
        )
