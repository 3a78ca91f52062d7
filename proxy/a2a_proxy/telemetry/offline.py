"""Export a finished recording's spans to a backend or a file, with recorded times and the same ids
every time.

Links between the calls of several recordings, of proxies that each recorded one hop of a
conversation.

The recordings are joined in memory, as by `show`, and the relations found there become links of the
spans of each recording, whose ids do not change. A trace that the agents propagated is one trace
without these links.
"""

import contextlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import BinaryIO, Protocol, TypeVar

import msgspec

from a2a_proxy.model.values import Handoff
from a2a_proxy.recording.joined.joiner import join_recordings
from a2a_proxy.recording.joined.numbers import NumberMap, Origin
from a2a_proxy.recording.read.multi_reader import MultiReader
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import SessionRow, make_key, split_key
from a2a_proxy.telemetry.errors import TelemetryError
from a2a_proxy.telemetry.links import handoff_link, handoff_source, task_link
from a2a_proxy.telemetry.logs import frame_log
from a2a_proxy.telemetry.otlp_json import logs_object, spans_object
from a2a_proxy.telemetry.request_outcome import RequestOutcome, RequestResult
from a2a_proxy.telemetry.retry_sender import MAX_BATCH, send_in_parts, split_requests
from a2a_proxy.telemetry.sdk import SdkBackend
from a2a_proxy.telemetry.services import is_service_named, session_resource
from a2a_proxy.telemetry.span_options import DEFAULT_SPAN_OPTIONS, SpanOptions
from a2a_proxy.telemetry.span_reader import CallSpans, OtherRecordingLinks, SpanReader
from a2a_proxy.telemetry.values import Attributes, LogValue, SpanContextIds, SpanLink, SpanValue

_Value = TypeVar("_Value")


_JOINED_SESSION = 1
"""Number of the only session of the joined recording."""


class RecordingLinks:
    """Links between several recordings, which are identified by their position."""

    def __init__(
        self, recordings: Sequence[Recording], joined: Recording, numbers: NumberMap
    ) -> None:
        self._recordings = recordings
        self._joined = joined
        self._numbers = numbers
        self._handoffs: dict[int, list[Handoff]] = {}
        for row in joined.read_handoffs(_JOINED_SESSION):
            self._handoffs.setdefault(row.handoff.to_exchange, []).append(row.handoff)
        self._spans: dict[Origin, SpanReader] = {}

    def session_links(self, file: int) -> Callable[[int], OtherRecordingLinks]:
        """Return a function from the number of a session in a file to the links of its
        exchanges."""
        return lambda session: partial(self._links_of_exchange, (file, session))

    def _links_of_exchange(self, exchange: Origin, number: int) -> Iterator[SpanLink]:
        if not self._numbers.has_exchange(exchange, number):
            return
        here = self._numbers.exchange_number(exchange, number)
        first, task_id = self._first_exchange_of_task(here)
        context = self._span_context(first, exchange)
        if context is not None:
            yield task_link(context, task_id)
        for handoff in self._handoffs.get(here, []):
            context = self._span_context(
                handoff_source(self._joined, _JOINED_SESSION, handoff), exchange
            )
            if context is not None:
                yield handoff_link(context, handoff)

    def _first_exchange_of_task(self, exchange: int) -> tuple[int, str]:
        """Return the first exchange of the joined recording that touched the task of `exchange`,
        and the task's id."""
        row = self._joined.read_exchange(make_key(_JOINED_SESSION, exchange))
        task_id = row.exchange.task_id if row is not None else ""
        tasks = (
            (each.task for each in self._joined.read_task(task_id, session=_JOINED_SESSION))
            if task_id
            else ()
        )
        return next((task.exchanges[0] for task in tasks if exchange in task.exchanges), 0), task_id

    def _span_context(self, joined: int, own_origin: Origin) -> SpanContextIds | None:
        """Return the span context of an exchange of the joined recording, or None if it is in the
        same session."""
        origin = self._numbers.find_origin(joined)
        if origin is None or origin[0] == own_origin:
            return None
        place, number = origin
        file, session = place
        recording = self._recordings[file]
        row, facts = (
            recording.read_exchange(make_key(session, number)),
            recording.read_session(session),
        )
        if row is None or facts is None:
            return None
        if place not in self._spans:
            self._spans[place] = SpanReader(recording, facts)
        return self._spans[place].span_context(row.exchange)


@contextlib.contextmanager
def open_recording_links(several: MultiReader) -> Iterator[RecordingLinks]:
    """Yield the links of these recordings, which must stay open meanwhile. Raises
    RecordingError."""
    with join_recordings(several) as (joined, numbers):
        yield RecordingLinks([member.recording for member in several.members], joined, numbers)


class SpanSink(Protocol):
    """Destination of spans."""

    def write_spans(self, resource: Attributes, spans: Sequence[SpanValue]) -> None:
        """Write spans of one session. Raises TelemetryError."""

    def write_logs(self, resource: Attributes, logs: Sequence[LogValue]) -> None:
        """Write log records of one session. Raises TelemetryError."""


class ExportTotals(msgspec.Struct):
    """Numbers of exported items."""

    spans: int = 0
    logs: int = 0
    open: int = 0
    """Calls that were still open and so have no span."""


class JsonLinesSink:
    """Writes OTLP JSON, one line per request."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def write_spans(self, resource: Attributes, spans: Sequence[SpanValue]) -> None:
        """`SpanSink.write_spans`."""
        self._stream.write(
            json.dumps(spans_object(resource, spans), separators=(",", ":")).encode() + b"\n"
        )

    def write_logs(self, resource: Attributes, logs: Sequence[LogValue]) -> None:
        """`SpanSink.write_logs`."""
        self._stream.write(
            json.dumps(logs_object(resource, logs), separators=(",", ":")).encode() + b"\n"
        )


class BackendSink:
    """Sends to a backend; the first failure ends the export."""

    def __init__(self, backend: SdkBackend) -> None:
        self._backend = backend

    def write_spans(self, resource: Attributes, spans: Sequence[SpanValue]) -> None:
        """`SpanSink.write_spans`."""
        for _, outcome in send_in_parts(spans, partial(self._backend.send_spans, resource)):
            self._check_outcome(outcome)

    def write_logs(self, resource: Attributes, logs: Sequence[LogValue]) -> None:
        """`SpanSink.write_logs`."""
        self._check_outcome(self._backend.send_logs(resource, logs))

    def _check_outcome(self, outcome: RequestOutcome) -> None:
        if outcome.result is RequestResult.SENT and not outcome.rejected:
            return
        where = self._backend.target.shown
        if outcome.result is RequestResult.LATER:
            hint = (
                "check the endpoint and --protocol: grpc usually has port 4317, http/protobuf 4318"
            )
            raise TelemetryError(f"no answer from the OTLP backend {where}: {outcome.why}", hint)
        hint = "check the endpoint, its credentials (OTEL_EXPORTER_OTLP_HEADERS) and --protocol"
        raise TelemetryError(f"the OTLP backend {where} refused the request: {outcome.why}", hint)


class RecordingExport:
    """Export of one recording."""

    def __init__(
        self,
        recording: Recording,
        sink: SpanSink,
        *,
        shape: SpanOptions = DEFAULT_SPAN_OPTIONS,
        frames: bool = False,
        beyond: Callable[[int], OtherRecordingLinks] | None = None,
        done: ExportTotals | None = None,
    ) -> None:
        """`frames` also exports a log record for each frame. `beyond` returns the links to spans of
        other recordings for a session. `done` counts the exported items, also those of previous
        exports."""
        self._recording = recording
        self._sink = sink
        self._shape = shape
        self._frames = frames
        self._other_links = beyond
        self.done = done if done is not None else ExportTotals()
        """Numbers of items exported so far, also if the export fails."""

    def run(self, keys: set[int] | None, only: set[int] | None = None) -> None:
        """Send the calls with these keys, of `only` these sessions; None means all. Raises
        TelemetryError, RecordingError."""
        for session in self._recording.read_sessions():
            if only is not None and session.id not in only:
                continue
            mine = (
                None
                if keys is None
                else {each for each in keys if split_key(each)[0] == session.id}
            )
            if mine is None or mine:
                self._export_session(session, mine)

    def _export_session(self, session: SessionRow, keys: set[int] | None) -> None:
        resource = session_resource(session, os.environ)
        beyond = self._other_links(session.id) if self._other_links is not None else lambda _: ()
        spans = SpanReader(
            self._recording,
            session,
            self._shape,
            fixed_service=is_service_named(os.environ),
            other_links=beyond,
        )
        for some in _split_batches(self._read_call_spans(session, spans, keys)):
            for request in split_requests([span for made in some for span in made.spans]):
                self._sink.write_spans(resource, request)
                self.done.spans += len(request)
            if self._frames:
                self._send_frames(session, resource, some)

    def _read_call_spans(
        self, session: SessionRow, spans: SpanReader, keys: set[int] | None
    ) -> Iterator[CallSpans]:
        chosen = map(self._recording.read_exchange, sorted(keys)) if keys is not None else None
        for row in (
            self._recording.read_exchanges(session.id) if chosen is None else filter(None, chosen)
        ):
            made = spans.call_spans(row.exchange)
            if made is None:
                self.done.open += 1
            else:
                yield made

    def _send_frames(
        self, session: SessionRow, resource: Attributes, calls: Sequence[CallSpans]
    ) -> None:
        logs = (log for made in calls for log in self._session_logs(session, made))
        for some in _split_batches(logs):
            self._sink.write_logs(resource, some)
            self.done.logs += len(some)

    def _session_logs(self, session: SessionRow, made: CallSpans) -> Iterator[LogValue]:
        rows = self._recording.read_frames(make_key(session.id, made.exchange), payloads=False)
        return (frame_log(row.frame, made.context, made.service) for row in rows)


def _split_batches(values: Iterable[_Value]) -> Iterator[list[_Value]]:
    source = iter(values)
    while some := list(islice(source, MAX_BATCH)):
        yield some
