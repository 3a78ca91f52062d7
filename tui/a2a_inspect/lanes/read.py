"""Reader of a conversation: its exchanges, its marks, and any range of its rows.

Two integers are kept for each frame; frames are read when their rows are requested.
"""

import contextlib
import json
from collections.abc import Iterator, Sequence, Set

import msgspec

from a2a_inspect.data.finding_words import finding_words
from a2a_inspect.data.frame_summary import summarize_frame
from a2a_inspect.data.generation_gaps import missed_generation_words
from a2a_inspect.data.positions import PAGE
from a2a_inspect.data.segment_words import handoff_words, interruption_words
from a2a_inspect.lanes.links import TaskLinks
from a2a_inspect.lanes.model import LaneMark, LaneRow, LaneRowKind, PartyLane
from a2a_inspect.lanes.order import PAUSE_ENTRY, FrameKey, RowOrder, TurnEffect
from a2a_inspect.lanes.parties import ExchangeParties, Parties
from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import CLIENT, EventKind, Exchange, FrameKind, Handoff, Segment
from a2a_proxy.model.wire import Direction
from a2a_proxy.present import text
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import ExchangeRow, FrameRow, TaskRow, make_key, split_key
from a2a_proxy.recording.store.database import translate_errors

_MAX_FINDINGS = 2000
"""Maximum number of drawn findings; beyond it a last mark has their number."""
_MAX_CACHED_EXCHANGES = 64
"""Exchanges that are cached decoded."""
_READ_AHEAD_ROWS = 64
"""Rows whose frames are read in one query."""

_FRAMES_QUERY = """SELECT f.id, f.at, f.exchange, f.seq, f.task, f.shape FROM frame f
  WHERE f.session = ? AND f.exchange IN (SELECT value FROM json_each(?)) AND f.at <= ?
  ORDER BY f.at, f.id"""
_EXCHANGES_QUERY = """SELECT id, connection, (SELECT value FROM text WHERE id = e.binding),
  (SELECT value FROM text WHERE id = e.agent) FROM exchange e
  WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id"""
_NO_LIMIT = 1 << 62


class LaneConversation:
    """Everything that belongs to an exchange: its task, the tasks connected by hand-offs, and their
    exchanges.

    `until` omits everything after this time, ns; `only_keys` all exchanges except these. Callers
    that show many conversations of a session pass its `links`.
    """

    def __init__(
        self,
        recording: Recording,
        exchange: int,
        until: int = 0,
        *,
        only_keys: Set[int] | None = None,
        links: TaskLinks | None = None,
    ) -> None:
        self._recording = recording
        self.root = exchange
        self.session = split_key(exchange)[0]
        self._until = until
        self._only_keys = only_keys
        self._links = links or TaskLinks(recording, self.session)
        self._cached_exchanges: dict[int, ExchangeRow | None] = {}
        self._cached_frames: dict[int, FrameRow] = {}
        """Frames of some consecutive rows, by id."""
        with translate_errors(recording.path):
            self._read_conversation()

    def _read_conversation(self) -> None:
        recording, exchange = self._recording, self.root
        session = recording.read_session(self.session)
        self._session_start = session.facts.started if session is not None else 0
        self.tasks, self.exchanges = _connected_tasks(recording, exchange, self._links)
        names = {row.task.task_id for row in self.tasks}
        self._handoffs = [
            h
            for h in self._links.handoffs
            if h.exchange in self.exchanges or {h.task_id, h.to_task} & names
        ]
        if self._only_keys is not None:
            self.exchanges = {
                number
                for number in self.exchanges
                if make_key(self.session, number) in self._only_keys
            }
        segments = list(self._read_segments())
        self._parties = Parties(list(self._read_exchange_parties()), self._handoffs, segments)
        self.order = RowOrder(self._visible_marks(self._make_marks(segments)))
        for frame in self._read_frame_keys():
            self.order.add_frame(frame)
        self.order.finish()

    @property
    def lanes(self) -> list[PartyLane]:
        """The parties, in order of first appearance."""
        names = [self._links.agent_names.find(lane.name) for lane in self._parties.lanes]
        return [
            msgspec.structs.replace(lane, name=name if names.count(name) == 1 else lane.name)
            for lane, name in zip(self._parties.lanes, names, strict=True)
        ]

    @property
    def title(self) -> str:
        """Title of the conversation."""
        names = [f"task {text.shorten_id(make_visible(row.task.task_id))}" for row in self.tasks]
        if not names:
            row = self._recording.read_exchange(self.root)
            names = [
                (
                    f"#{split_key(self.root)[1]} "
                    f"{make_visible(text.exchange_title(row.exchange)) if row else ''}"
                )
            ]
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        return ", ".join(names[:3]) + more

    def read_rows(self, first: int, count: int) -> list[LaneRow]:
        """Return some of the rows."""
        last = min(first + count, len(self.order))
        return [self._read_row(index) for index in range(first, last)]

    def iterate_rows(self, page: int = PAGE) -> Iterator[LaneRow]:
        """Yield all rows, read page by page."""
        for first in range(0, len(self.order), page):
            yield from self.read_rows(first, page)

    def row_index(self, frame: int) -> int:
        """Return the row of the frame with this id; without a frame, the first row of the exchange
        with which the conversation was opened.
        """
        if not frame:
            query = "SELECT id FROM frame WHERE session = ? AND exchange = ? ORDER BY seq LIMIT 1"
            found = self._recording.db.execute(query, split_key(self.root)).fetchone()
            frame = found[0] if found else 0
        return self.order.index_of(frame) or 0

    def _read_row(self, index: int) -> LaneRow:
        order = self.order
        entry, at = order.entries[index], order.times[index]
        since = at - order.start
        if entry == PAUSE_ENTRY:
            length = order.pause_length(index)
            return LaneRow(LaneRowKind.PAUSE, at, since, length, 0, 0, "", self.session, 0, -1)
        if entry < 0:
            mark = order.marks[-1 - entry]
            lane = self._lane_of_mark(mark)
            where = (lane, lane, mark.text, self.session, mark.exchange, mark.seq)
            return LaneRow(
                mark.what, mark.at, mark.at - order.start, 0, *where, severity=mark.severity
            )
        if entry not in self._cached_frames:
            self._read_ahead(index)
        row = self.read_frame(entry)
        if row is None:  # its session was deleted meanwhile
            return LaneRow(LaneRowKind.FRAME, at, since, 0, 0, 0, "", self.session, 0, -1, entry)
        frame = row.frame
        source, target = self._parties.find_lanes(frame.exchange, frame.direction, frame.at)
        where = (source, target, self._frame_label(row), self.session, frame.exchange, frame.seq)
        return LaneRow(
            LaneRowKind.FRAME, at, since, at - order.frame_before(index), *where, row.id, frame.kind
        )

    def read_frame(self, number: int) -> FrameRow | None:
        """Return a frame by its id, without its payload. The frame of the last requested row is not
        read again."""
        return self._cached_frames.get(number) or self._recording.read_frame(number, payload=False)

    def _read_ahead(self, index: int) -> None:
        """Read the frames of this row and of the following rows. If one is damaged, each is read
        individually."""
        numbers = [
            entry for entry in self.order.entries[index : index + _READ_AHEAD_ROWS] if entry > 0
        ]
        self._cached_frames = {}
        with contextlib.suppress(RecordingError):
            self._cached_frames = {row.id: row for row in self._recording.frames_of(numbers)}

    def _lane_of_mark(self, mark: LaneMark) -> int:
        is_by_client = mark.what in (LaneRowKind.TURN, LaneRowKind.INTERRUPTION)
        return (
            self._parties.client_lane(mark.exchange)
            if is_by_client
            else self._parties.agent_lane(mark.exchange)
        )

    def _frame_label(self, row: FrameRow) -> str:
        exchange = self.read_exchange(row.frame.exchange)
        summary = summarize_frame(self._recording, row, exchange)
        if exchange is None:
            return summary
        title = text.exchange_title(exchange)
        names = (
            row.frame.kind is FrameKind.REQUEST
            and not row.frame.seq
            and not summary.startswith(title)
        )
        return f"{summary}  {make_visible(title)}" if names else summary

    def read_exchange(self, number: int) -> Exchange | None:
        """Return an exchange of the session by its number, as it was when first read."""
        if number not in self._cached_exchanges:
            while len(self._cached_exchanges) >= _MAX_CACHED_EXCHANGES:
                self._cached_exchanges.pop(next(iter(self._cached_exchanges)))
            self._cached_exchanges[number] = self._recording.read_exchange(
                make_key(self.session, number)
            )
        found = self._cached_exchanges[number]
        return found.exchange if found is not None else None

    # Reading of the frames, segments and marks.

    def _read_exchange_parties(self) -> Iterator[ExchangeParties]:
        owners = {number: row.task for row in self.tasks for number in row.task.exchanges}
        clients: dict[int, str] = {}
        keys = json.dumps([make_key(self.session, number) for number in sorted(self.exchanges)])
        for row_key, connection, binding, agent in self._recording.db.execute(
            _EXCHANGES_QUERY, (keys,)
        ):
            number = split_key(row_key)[1]
            if connection not in clients:
                found = self._recording.read_connection(make_key(self.session, connection))
                clients[connection] = found.connection.client if found else ""
            task = owners.get(number)
            owner, task_id = (task.agent, task.task_id) if task else (agent, "")
            yield ExchangeParties(number, connection, clients[connection], owner, task_id, binding)

    def _read_frame_keys(self) -> Iterator[FrameKey]:
        """Yield the frames in order of time."""
        turns = self._turn_effects()
        numbers = json.dumps(sorted(self.exchanges))
        until = self._until - self._session_start if self._until else _NO_LIMIT
        for number, at, exchange, seq, task, shape in self._recording.db.execute(
            _FRAMES_QUERY, (self.session, numbers, until)
        ):
            yield FrameKey(
                number,
                self._session_start + at,
                exchange,
                seq,
                task,
                turns.get(shape, TurnEffect.NEITHER),
            )

    def _turn_effects(self) -> dict[int, TurnEffect]:
        """Return the effect of each frame shape that has one."""
        states = {
            int(TaskState.INPUT_REQUIRED): TurnEffect.ASKS_INPUT,
            int(TaskState.AUTH_REQUIRED): TurnEffect.ASKS_AUTH,
        }
        found: dict[int, TurnEffect] = {}
        for number, direction, kind, event, state in self._recording.db.execute(
            "SELECT id, direction, kind, event, state FROM shape"
        ):
            if direction == Direction.TO_CLIENT and state in states:
                found[number] = states[state]
            elif direction == Direction.TO_AGENT and (kind, event) == (
                FrameKind.REQUEST,
                EventKind.MESSAGE,
            ):
                found[number] = TurnEffect.SAYS
        return found

    def _read_segments(self) -> Iterator[Segment]:
        """Yield the segments of the conversation's tasks."""
        names = {row.task.task_id for row in self.tasks}
        for number in self._segment_row_keys("segment"):
            for row in self._recording.read_segments(self.session, after=number - 1, limit=1):
                if row.segment.task_id in names:
                    yield row.segment

    def _segment_row_keys(self, table: str) -> list[int]:
        """Return keys of the rows in a segment table that name one of the tasks."""
        return self._links.row_keys(table, [row.id for row in self.tasks])

    def _visible_marks(self, marks: Iterator[LaneMark]) -> Iterator[LaneMark]:
        """Filter out marks after `until` and marks about exchanges that are not selected."""
        return (
            mark
            for mark in marks
            if (not self._until or mark.at <= self._until)
            and (self._only_keys is None or not mark.exchange or mark.exchange in self.exchanges)
        )

    def _make_marks(self, segments: Sequence[Segment]) -> Iterator[LaneMark]:
        for each in segments:
            if each.speaker == CLIENT and each.turn > 1:
                yield LaneMark(
                    LaneRowKind.TURN, each.began, each.exchange, each.seq, f"turn {each.turn}"
                )
        for number in self._segment_row_keys("interruption"):
            for row in self._recording.read_interruptions(self.session, after=number - 1, limit=1):
                broken = row.interruption
                words = interruption_words(broken)
                yield LaneMark(
                    LaneRowKind.INTERRUPTION, broken.at, broken.exchange, broken.seq, words
                )
        for handoff in self._handoffs:
            yield LaneMark(
                LaneRowKind.HANDOFF,
                handoff.at,
                handoff.exchange,
                handoff.seq,
                handoff_words(handoff, self._links.agent_names),
            )
        yield from self._missed_generation_marks()
        yield from self._finding_marks()

    def _missed_generation_marks(self) -> Iterator[LaneMark]:
        for row in self.tasks:
            for gap in row.task.gaps:
                yield LaneMark(
                    LaneRowKind.MISSED,
                    gap.at,
                    gap.exchange,
                    -1,
                    missed_generation_words(self._recording, self.session, gap),
                )

    def _finding_marks(self) -> Iterator[LaneMark]:
        rest = _MAX_FINDINGS
        for number in sorted(self.exchanges):
            of = make_key(self.session, number)
            for row in self._recording.read_findings(exchange=of, limit=rest + 1):
                found = row.finding
                if not rest:
                    words = (
                        f"more than {_MAX_FINDINGS} findings: "
                        f"those of #{number} and later are not all shown"
                    )
                    yield LaneMark(
                        LaneRowKind.FINDING, found.at, number, found.seq, words, found.severity
                    )
                    return
                rest -= 1
                yield LaneMark(
                    LaneRowKind.FINDING,
                    found.at,
                    number,
                    found.seq,
                    finding_words(found),
                    found.severity,
                )


def _connected_tasks(
    recording: Recording, exchange: int, links: TaskLinks
) -> tuple[list[TaskRow], set[int]]:
    """Return the tasks and exchanges that belong together: of one task, or connected by hand-offs
    between agents."""
    session, number = split_key(exchange)
    tasks: dict[str, TaskRow] = {}
    exchanges: set[int] = set()
    found = recording.read_exchange(exchange)
    names = [found.exchange.task_id] if found is not None and found.exchange.task_id else []
    new = {number}
    while names or new - exchanges:
        exchanges |= new
        for name in dict.fromkeys(names):
            for row in recording.read_task(name):
                if row.session == session and name not in tasks:
                    tasks[name] = row
                    exchanges |= {
                        *links.exchanges_of(row.id),
                        *row.task.exchanges,
                    }  # the task row has only the last 256
        connected = [h for h in links.handoffs if _is_handoff_connected(h, set(tasks), exchanges)]
        names = [
            name for h in connected for name in (h.task_id, h.to_task) if name and name not in tasks
        ]
        names = [
            name
            for name in names
            if any(row.session == session for row in recording.read_task(name))
        ]
        new = {number for h in connected for number in (h.exchange, h.to_exchange) if number}
    return sorted(tasks.values(), key=lambda row: row.id), exchanges


def _is_handoff_connected(handoff: Handoff, tasks: set[str], exchanges: set[int]) -> bool:
    return bool({handoff.task_id, handoff.to_task} & tasks) or bool(
        {handoff.exchange, handoff.to_exchange} & exchanges
    )
