"""Links between the calls of several recordings, of proxies that each recorded one hop of a
conversation.

The recordings are joined in memory, as by `show`, and the relations found there become links of the
spans of each recording, whose ids do not change. A trace that the agents propagated is one trace
without these links.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from a2a_proxy.model.values import Handoff
from a2a_proxy.recording.joined.joiner import join_recordings
from a2a_proxy.recording.joined.numbers import NumberMap, Origin
from a2a_proxy.recording.read.multi_reader import MultiReader
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import make_key
from a2a_proxy.telemetry.links import handoff_link, handoff_source, task_link
from a2a_proxy.telemetry.span_reader import OtherRecordingLinks, SpanReader
from a2a_proxy.telemetry.values import SpanContextIds, SpanLink

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
