"""`a2a-inspect lanes`: print a conversation as a swimlane or as JSON lines."""

import shutil
from collections.abc import Iterator, Sequence

import msgspec

from a2a_inspect.data.finding_counts import ending_words
from a2a_inspect.data.references import is_task_prefix, no_such_place, resolve_places
from a2a_inspect.lanes.layout import MARGIN, MIN_LANE_WIDTH, lane_head, make_geometry, paint_row
from a2a_inspect.lanes.model import LaneRow, LaneRowKind, PartyLane
from a2a_inspect.lanes.read import LaneConversation
from a2a_proxy.model.errors import UserError
from a2a_proxy.present import text
from a2a_proxy.present.output import print_json, print_line
from a2a_proxy.protocol.text import make_visible, shell_line
from a2a_proxy.recording.read.endings import EndingReader
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import ExchangeRow, TaskRow, make_key, split_key
from a2a_proxy.rules.endings.ending import Ending

_PIPED_WIDTH = 120
"""Width in cells if the output is not a terminal."""
_MIN_WIDTH = MARGIN + MIN_LANE_WIDTH + 1


class LaneOptions(msgspec.Struct, frozen=True):
    """Options of the lanes command."""

    words: tuple[str, ...] = ()
    """An exchange number (`2`, or `1:2` with its session) or the beginning of a task id."""
    as_json: bool = False
    width: int | None = None
    """Width in cells; None: the terminal's."""


def show_lanes(recording: Recording, options: LaneOptions) -> None:
    """Print one conversation.

    Raises:
        UserError: the conversation does not exist, or the words name several.
    """
    conversation = LaneConversation(recording, _find_conversation(recording, options.words))
    if options.as_json:
        # The first line: the parties.
        parties = [{"name": lane.name, "part": str(lane.role)} for lane in conversation.lanes]
        print_json(
            {
                "what": "lanes",
                "session": conversation.session,
                "title": conversation.title,
                "lanes": parties,
            }
        )
        for call, ending in _read_endings(recording, conversation):
            print_json(
                {
                    "what": "ending",
                    "session": call.session,
                    "exchange": call.exchange.id,
                    "ending": ending.to_object(),
                }
            )
        for row in conversation.iterate_rows():
            print_json(_row_object(row, conversation.lanes))
        return
    for line in _swimlane_lines(recording, conversation, options.width):
        print_line(line)


def _read_endings(
    recording: Recording, conversation: LaneConversation
) -> list[tuple[ExchangeRow, Ending]]:
    """Return the calls of the conversation that did not end well."""
    rows = list(recording.exchanges_of(conversation.session, sorted(conversation.exchanges)))
    found = EndingReader(recording).read_all(rows)
    return [(row, found[row.key]) for row in rows if row.key in found]


def _swimlane_lines(
    recording: Recording, conversation: LaneConversation, width: int | None
) -> Iterator[str]:
    width = width or shutil.get_terminal_size((_PIPED_WIDTH, 0)).columns
    places = make_geometry(max(width, _MIN_WIDTH), conversation.lanes)
    began = (
        text.format_date_time(conversation.order.start)
        if conversation.order.frames
        else "nothing was recorded"
    )
    yield f"session {conversation.session}  {conversation.title}  {began}"
    for row, ending in _read_endings(recording, conversation):
        yield f"#{row.exchange.id} did not end well: {make_visible(ending_words(row, ending))}"
    yield lane_head(places).rstrip()
    for lane_row in conversation.iterate_rows():
        yield "".join(words for words, _ in paint_row(lane_row, places)).rstrip()


def _row_object(row: LaneRow, lanes: Sequence[PartyLane]) -> dict[str, object]:
    """Return one row as JSON with stable names: times in UTC, durations in ns, without unknown
    members.

    `from` and `to` are names of lanes; `about` is the lane of a row that is not a message.
    """
    facts: dict[str, object] = {
        "what": str(row.what),
        "session": row.session,
        "at": text.format_utc(row.at),
    }
    facts["since_start_ns"] = row.since_start
    if row.what is LaneRowKind.PAUSE:
        return {**facts, "length_ns": row.since_before}
    if row.exchange:
        facts["exchange"] = row.exchange
    if row.seq >= 0:
        facts["seq"] = row.seq
    if row.what is LaneRowKind.FRAME:
        facts |= {
            "since_before_ns": row.since_before,
            "kind": row.kind.name.lower() if row.kind is not None else None,
            "from": lanes[row.source].name,
            "to": lanes[row.target].name,
        }
    else:
        facts["about"] = lanes[row.source].name
    if row.severity is not None:
        facts["severity"] = row.severity.name.lower()
    return {**facts, "text": row.text}


def _find_conversation(recording: Recording, words: tuple[str, ...]) -> int:
    """Return the key of an exchange of the named conversation."""
    listing = shell_line("a2a-inspect", "ls", recording.path)
    if len(words) > 1:
        raise UserError(
            "only one conversation can be drawn at a time",
            f"name one exchange or task of: {listing}",
        )
    if not words:
        newest = max(
            (_last_exchange(row) for row in recording.read_tasks()), default=0
        ) or _first_exchange(recording)
        if not newest:
            raise UserError("the recording has no conversation", f"list the exchanges: {listing}")
        return newest
    found = list(_exchanges_of_word(recording, words[0]))
    if not found:
        raise no_such_place(recording, words[0])
    if len(found) > 1 and not _is_one_conversation(recording, found):
        raise UserError(
            f"{words[0]} may be one of {len(found)}", f"name one exchange or task of: {listing}"
        )
    return found[0]


def _is_one_conversation(recording: Recording, exchanges: list[int]) -> bool:
    """Return whether the exchanges belong to one conversation, that is, whether hand-offs connect
    their agents."""
    session = split_key(exchanges[0])[0]
    numbers = [number for of, number in map(split_key, exchanges) if of == session]
    return len(numbers) == len(exchanges) and LaneConversation(
        recording, exchanges[0]
    ).exchanges.issuperset(numbers)


def _exchanges_of_word(recording: Recording, word: str) -> Iterator[int]:
    yield from (
        make_key(at.session, at.exchange) for at in resolve_places(recording, word) if at.exchange
    )
    exact = [row for row in recording.read_task(word) if row.task.exchanges]
    rows = exact or [
        row for row in recording.read_tasks() if is_task_prefix(word, row.task.task_id)
    ]
    yield from (make_key(row.session, row.task.exchanges[0]) for row in rows if row.task.exchanges)


def _last_exchange(row: TaskRow) -> int:
    """Return the key of the task's last exchange; 0 if it has none."""
    return make_key(row.session, row.task.exchanges[-1]) if row.task.exchanges else 0


def _first_exchange(recording: Recording) -> int:
    return next((row.key for row in recording.read_exchanges()), 0)
