"""The metrics, in prometheus_client. Labels have few values: no ids, and `other` for unknown
operations."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from a2a_proxy.follower.histogram_buckets import (
    CALL_BUCKETS,
    TASK_BUCKETS,
    WAIT_BUCKETS,
    histogram_seconds,
)
from a2a_proxy.model.values import Exchange, Finding, Frame
from a2a_proxy.model.wire import Direction
from a2a_proxy.protocol.finding_totals import count_occurrences

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""Content type of a page whose names need no escaping. Many readers accept only this version and
refuse 1.0.0."""
GAP_RULE = "A2A-GEN-001"
_CALL_LABELS = ("method", "binding", "upstream")


def call_status(exchange: Exchange) -> str:
    """Return the end of a call: `ok`, `error` (the agent returned one) or `cut` (the call is
    incomplete)."""
    if exchange.how != "complete":
        return "cut"
    return "error" if exchange.error else "ok"


class SessionMetrics:
    """All metrics of one session."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._duration = Histogram(
            "a2a_proxy_operation_duration_seconds",
            "From the first byte of the request to the end of the call.",
            (*_CALL_LABELS, "status"),
            registry=registry,
            buckets=CALL_BUCKETS,
        )
        self._first_event = Histogram(
            "a2a_proxy_stream_first_event_seconds",
            "From the first byte of the request to the first message of the agent.",
            _CALL_LABELS,
            registry=registry,
            buckets=WAIT_BUCKETS,
        )
        self._event_gap = Histogram(
            "a2a_proxy_stream_event_gap_seconds",
            "Between two events of a stream.",
            _CALL_LABELS,
            registry=registry,
            buckets=WAIT_BUCKETS,
        )
        self._task = Histogram(
            "a2a_proxy_task_duration_seconds",
            "From the first sight of a task to the state in which it ended.",
            ("state", "upstream"),
            registry=registry,
            buckets=TASK_BUCKETS,
        )
        way = (*_CALL_LABELS, "direction")
        self._frames = Counter(
            "a2a_proxy_frames", "Messages and wire events.", way, registry=registry
        )
        self._bytes = Counter(
            "a2a_proxy_bytes", "Bytes of these frames on the wire.", way, registry=registry
        )
        found = ("rule", "severity")
        self._findings = Counter(
            "a2a_proxy_findings", "Findings of the rules.", found, registry=registry
        )
        self._gaps = Counter(
            "a2a_proxy_generation_gaps", "Generations missing in a stream.", registry=registry
        )
        self._open = Gauge(
            "a2a_proxy_open_calls", "Calls that are open.", _CALL_LABELS, registry=registry
        )
        self._seen: set[tuple[str, str, str]] = set()
        """Labels of calls that were open: their series go to 0 and do not vanish."""
        self._tasks = Gauge(
            "a2a_proxy_tasks", "Tasks of this session by state.", ("state",), registry=registry
        )
        self._lost = Counter(
            "a2a_proxy_recorder_lost_bytes", "Bytes relayed but not captured.", registry=registry
        )
        self._total_findings = 0
        """Bytes already added to `_lost`."""
        self._lag = Gauge(
            "a2a_proxy_recorder_behind_bytes",
            "Bytes of the journal not yet in the recording.",
            registry=registry,
        )

    def record_frame(self, frame: Frame, call: tuple[str, str, str]) -> None:
        """Count a frame, with the labels of its call or empty ones."""
        way = "to_agent" if frame.direction is Direction.TO_AGENT else "to_client"
        self._frames.labels(*call, way).inc()
        self._bytes.labels(*call, way).inc(max(frame.end - frame.start, 0))

    def record_event_gap(self, ns: int, call: tuple[str, str, str]) -> None:
        """Count the time between two events."""
        self._event_gap.labels(*call).observe(histogram_seconds(ns))

    def record_call(self, exchange: Exchange, call: tuple[str, str, str]) -> None:
        """Count a closed call."""
        self._duration.labels(*call, call_status(exchange)).observe(
            histogram_seconds(exchange.closed - exchange.started)
        )
        if exchange.streaming and exchange.first_event:
            self._first_event.labels(*call).observe(
                histogram_seconds(exchange.first_event - exchange.started)
            )

    def record_task_end(self, ns: int, state: str, upstream: str) -> None:
        """Count the duration of a task that reached a final state."""
        self._task.labels(state, upstream).observe(histogram_seconds(ns))

    def record_finding(self, finding: Finding) -> None:
        """Count a finding, or those that a total stands for."""
        self._findings.labels(finding.rule, finding.severity.name.lower()).inc(
            count_occurrences(finding)
        )
        if finding.rule == GAP_RULE:
            self._gaps.inc()

    def record_snapshot(
        self,
        open_calls: dict[tuple[str, str, str], int],
        tasks: dict[str, int],
        lost: int,
        lag: int,
    ) -> None:
        """Set the current values."""
        self._seen |= open_calls.keys()
        for call in self._seen:
            self._open.labels(*call).set(open_calls.get(call, 0))
        for state, count in tasks.items():
            self._tasks.labels(state).set(count)
        self._lost.inc(max(lost - self._total_findings, 0))
        self._total_findings = max(lost, self._total_findings)
        self._lag.set(lag)

    def format_exposition(self) -> bytes:
        """Return the page in Prometheus' text format."""
        return generate_latest(self._registry)
