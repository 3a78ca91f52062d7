"""Metrics of live traffic, through the metrics SDK, which cannot backdate: finished recordings have
none.

Labels are of a small set: method, binding, state, outcome, upstream; never an id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from a2a_proxy import __version__
from a2a_proxy.follower.histogram_buckets import (
    CALL_BUCKETS,
    TASK_BUCKETS,
    WAIT_BUCKETS,
    histogram_seconds,
)
from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import Exchange, Finding, Task
from a2a_proxy.protocol.outcome import outcome_of
from a2a_proxy.telemetry.attributes import binding_label, span_name, split_address
from a2a_proxy.telemetry.events import CallEvents
from a2a_proxy.telemetry.sdk import metric_exporter, sdk_resource
from a2a_proxy.telemetry.target import OtlpTarget
from a2a_proxy.telemetry.values import SCOPE, Attributes

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Observation

GAP_RULE = "A2A-GEN-001"
_TERMINAL = frozenset(state.value for state in TaskState if state.terminal)


class MetricsSnapshot(msgspec.Struct, frozen=True):
    """Current numbers at one time."""

    open: Mapping[str, int] = {}
    """Number of open calls by upstream."""
    tasks: Mapping[str, int] = {}
    """Number of tasks by state."""
    dropped: int = 0
    """Bytes that were relayed but not recorded."""


class SessionMetrics:
    """Metrics of one session, sent by a thread of the SDK every `OTEL_METRIC_EXPORT_INTERVAL`."""

    def __init__(self, target: OtlpTarget, resource: Attributes) -> None:
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

        reader = PeriodicExportingMetricReader(metric_exporter(target))
        self._provider = MeterProvider([reader], sdk_resource(resource))
        meter = self._provider.get_meter(SCOPE, __version__)
        make = meter.create_histogram
        times: list[tuple[str, str, Sequence[float]]] = [
            ("operation.duration", "Time from the first byte to the end of a call.", CALL_BUCKETS),
            ("stream.first_event", "Time until the agent's first message.", WAIT_BUCKETS),
            ("stream.event_gap", "Time between two messages of the agent.", WAIT_BUCKETS),
            (
                "task.duration",
                "Time from a task's first frame to its terminal state.",
                TASK_BUCKETS,
            ),
        ]
        self._duration, self._first_event, self._event_gap, self._task = (
            make(f"a2a_proxy.{name}", "s", description, explicit_bucket_boundaries_advisory=of)
            for name, description, of in times
        )
        self._frames, self._bytes = _LabelledCounts(), _LabelledCounts()
        frames, data = "Frames of finished calls.", "Bytes of finished calls."
        meter.create_observable_counter(
            "a2a_proxy.frames", [self._frames.observe_counts], "{frame}", frames
        )
        meter.create_observable_counter("a2a_proxy.bytes", [self._bytes.observe_counts], "By", data)
        self._findings = meter.create_counter(
            "a2a_proxy.findings", "{finding}", "Findings of the rules."
        )
        self._gaps = meter.create_counter(
            "a2a_proxy.generation.gaps", "{gap}", "Gaps in generations."
        )
        self._snapshot = MetricsSnapshot()
        meter.create_observable_gauge(
            "a2a_proxy.streams.open", [self._observe_open_calls], "{stream}", "Calls that are open."
        )
        meter.create_observable_gauge(
            "a2a_proxy.tasks", [self._observe_tasks], "{task}", "Tasks by state."
        )
        lost = "Bytes that were relayed but not recorded."
        meter.create_observable_counter(
            "a2a_proxy.recorder.dropped", [self._observe_dropped], "By", lost
        )

    def record_call(
        self, exchange: Exchange, events: CallEvents, upstream: str, task: Task | None
    ) -> None:
        """Record a finished call."""
        labels = {
            "a2a.method.name": span_name(exchange),
            "a2a_proxy.binding": binding_label(exchange),
            "a2a_proxy.outcome": outcome_of(exchange),
            **_server_attributes(upstream),
        }
        self._duration.record(histogram_seconds(exchange.closed - exchange.started), labels)
        if exchange.first_event:
            self._first_event.record(
                histogram_seconds(exchange.first_event - exchange.started), labels
            )
        for gap in events.gaps if exchange.streaming else ():
            self._event_gap.record(histogram_seconds(gap), labels)
        self._frames.add(events.frames, labels)
        self._bytes.add(exchange.bytes_to_agent, labels, ("a2a_proxy.direction", "to agent"))
        self._bytes.add(exchange.bytes_to_client, labels, ("a2a_proxy.direction", "to client"))
        at = _task_end(task, exchange)
        if task is not None and at:
            attributes = {
                "a2a.task.state": TaskState(task.states[-1][1]).label,
                **_server_attributes(upstream),
            }
            self._task.record(histogram_seconds(at - task.first), attributes)

    def record_finding(self, finding: Finding) -> None:
        """Record a finding."""
        self._findings.add(1, {"rule": finding.rule, "severity": finding.severity.name.lower()})
        if finding.rule == GAP_RULE:
            self._gaps.add(1)

    def record_snapshot(self, snapshot: MetricsSnapshot) -> None:
        """Store the current numbers, which another thread sends."""
        self._snapshot = snapshot

    def close(self) -> None:
        """Send the remaining values and shut down."""
        self._provider.shutdown()

    def _observe_open_calls(self, _: CallbackOptions) -> Iterable[Observation]:
        from opentelemetry.metrics import Observation

        return [
            Observation(count, _server_attributes(upstream))
            for upstream, count in self._snapshot.open.items()
        ]

    def _observe_tasks(self, _: CallbackOptions) -> Iterable[Observation]:
        from opentelemetry.metrics import Observation

        return [
            Observation(count, {"a2a.task.state": state})
            for state, count in self._snapshot.tasks.items()
        ]

    def _observe_dropped(self, _: CallbackOptions) -> Iterable[Observation]:
        from opentelemetry.metrics import Observation

        return [Observation(self._snapshot.dropped)]


class _LabelledCounts:
    """Counts by labels, which the SDK reads when it sends. The SDK's own counters, with three
    additions per call, used a tenth of the export's processor time."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[tuple[str, str | int], ...]] = Counter()

    def add(self, count: int, labels: Mapping[str, str | int], *more: tuple[str, str]) -> None:
        """Add to the count of these labels."""
        self._counts[*labels.items(), *more] += count

    def observe_counts(self, _: CallbackOptions) -> Iterable[Observation]:
        """Return the observations; called by the sending thread."""
        from opentelemetry.metrics import Observation

        return [Observation(count, dict(labels)) for labels, count in self._counts.copy().items()]


def _task_end(task: Task | None, exchange: Exchange) -> int:
    """Return the end of the task in ns if this call was the first to show it, else 0, because polls
    show it again."""
    if task is None or not task.states or task.states[-1][1] not in _TERMINAL:
        return 0
    at = task.states[-1][0]
    return at if exchange.started <= at <= exchange.closed and exchange.last_event >= at else 0


def _server_attributes(upstream: str) -> dict[str, str | int]:
    """Return the agent's address as in spans, or the command of a stdio agent."""
    host, port = split_address(upstream)
    return (
        {"server.address": upstream}
        if port is None
        else {"server.address": host, "server.port": port}
    )
