"""A source of a recording as it was at a moment, which can be moved."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from a2a_inspect.data.finding_counts import ExchangeLine
from a2a_inspect.data.replay.as_of import AsOf
from a2a_inspect.data.source import ExchangeStream, FrameLine, RecordingSnapshot, RecordingSource
from a2a_proxy.recording.read.reader import Recording

_Value = TypeVar("_Value")


class ReplaySource(RecordingSource):
    """The recording as of its first query; `until` is the moment that is shown."""

    def __init__(self, source: RecordingSource, keys: Sequence[int] | None = None) -> None:
        """With `keys`, only these exchanges are shown; None: all."""
        super().__init__(source.path, files=source.files, later=True)
        self._keys = keys
        self._as_of: AsOf | None = None
        self._reported_until = -1

    async def time_range(self) -> tuple[int, int]:
        """Return start and end of the shown span, ns since the epoch; zeros without exchanges."""

        def read(as_of: AsOf) -> tuple[int, int]:
            return (as_of.frame_times[0], as_of.frame_times[-1]) if as_of.frame_times else (0, 0)

        return await self._ask_as_of(read, (0, 0))

    async def next_frame_time(self, position: int, by: int) -> int:
        """Return `AsOf.next_frame_time`."""
        return await self._ask_as_of(lambda known: known.next_frame_time(position, by), position)

    async def poll(self) -> RecordingSnapshot | None:
        """Return the snapshot at `until`; None if it has not moved since the last call."""
        until = self.until
        if until == self._reported_until:
            return None
        self._reported_until = until
        return await self._ask_as_of(lambda known: known.snapshot(until), None)

    async def read_exchanges(self, page: int) -> list[ExchangeLine]:
        """Return one page of the list, by the time of the first byte."""
        until = self.until
        return await self._ask_as_of(lambda known: known.read_exchanges(page, until), [])

    async def read_stream(self, exchange: int) -> ExchangeStream | None:
        """Return the exchange of this key as it was."""
        until, stream = self.until, await super().read_stream(exchange)
        return (
            await self._ask_as_of(lambda known: known.rewind_stream(stream, until), None)
            if stream is not None
            else None
        )

    async def read_frames(self, exchange: int, page: int) -> list[FrameLine]:
        """Return one page of the frames that had passed."""
        until, lines = self.until, await super().read_frames(exchange, page)
        return await self._ask_as_of(lambda known: known.frames_until(lines, until), [])

    async def exchange_index(self, exchange: int) -> int:
        """Return the index of this exchange in the list, or where it would be."""
        return await self._ask_as_of(lambda known: known.find_index(exchange), 0)

    async def count_frames(self) -> int:
        """Return the number of all frames."""
        return await self._ask_as_of(lambda known: len(known.frame_times), 0)

    async def _ask_as_of(self, question: Callable[[AsOf], _Value], nothing: _Value) -> _Value:
        def read(recording: Recording) -> _Value:
            if self._as_of is None:
                self._as_of = AsOf(recording, self._keys)
            return question(self._as_of)

        return await self.run_query(read, nothing)
