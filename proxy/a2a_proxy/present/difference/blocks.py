"""A difference as blocks from top to bottom, without a width: the verdict first, then each call
with its differences.

Values of a difference in one line: events as `show` prints them, other JSON compact.
"""

import json
from collections.abc import Iterator
from enum import Enum
from typing import Any

import msgspec

from a2a_proxy.model.values import Exchange
from a2a_proxy.present import text
from a2a_proxy.protocol.text import make_visible, to_one_line
from a2a_proxy.recording.difference.exchanges import ArtifactText, ArtifactTexts, Difference
from a2a_proxy.recording.difference.fields import (
    DifferenceRow,
    ExchangePart,
    Path,
    ValueChange,
    format_path,
)
from a2a_proxy.recording.difference.runs import CallPair, RunDifference
from a2a_proxy.recording.difference.words import WordRun, compare_texts
from a2a_proxy.recording.read.rows import ExchangeRow, label_place

MAX_BLOCKS = 20_000
"""Blocks of one difference; the rest is not shown."""
CHANGE_MARKS = {
    ValueChange.LEFT: "-",
    ValueChange.RIGHT: "+",
    ValueChange.CHANGED: "~",
    ValueChange.MOVED: ">",
    None: " ",
}
_ONE_SIDED = (ValueChange.LEFT, ValueChange.RIGHT)
_CONTEXT_CHARACTERS = 30
"""Characters of unchanged text that are shown before and after a change."""


_STATE_PREFIX, _ROLE_PREFIX = "TASK_STATE_", "ROLE_"
_MAX_TEXT = 4000
"""Characters of a value that are shown."""


def summarize_value(value: Any) -> str:
    """Return a value in one line, with control characters escaped."""
    if isinstance(value, dict) and len(value) == 1:
        ((name, inner),) = value.items()
        if name in _SUMMARIZERS and isinstance(inner, dict):
            return to_one_line(" ".join(word for word in _SUMMARIZERS[name](inner) if word), 300)
    return to_one_line(format_json(value), 300)


def format_json(value: Any) -> str:
    """Return JSON in one line, and a text unchanged."""
    if isinstance(value, str):
        return value[:_MAX_TEXT]
    try:
        return json.dumps(value, ensure_ascii=False)[:_MAX_TEXT]
    except (RecursionError, ValueError):
        return "nested too deeply to be shown"


def _summarize_task(value: dict[str, Any]) -> list[str]:
    return ["task", *_summarize_status(value.get("status"))]


def _summarize_update(value: dict[str, Any]) -> list[str]:
    return ["status", *_summarize_status(value.get("status"))]


def _summarize_status(value: Any) -> list[str]:
    if not isinstance(value, dict):
        return []
    message = value.get("message")
    parts = _summarize_parts(message.get("parts")) if isinstance(message, dict) else ""
    return [
        str(value.get("state", "")).removeprefix(_STATE_PREFIX).lower().replace("_", "-"),
        parts,
    ]


def _summarize_artifact(value: dict[str, Any]) -> list[str]:
    artifact = value.get("artifact")
    if not isinstance(artifact, dict):
        return ["artifact"]
    marks = ", ".join(
        mark for mark, name in (("append", "append"), ("last", "lastChunk")) if value.get(name)
    )
    name = str(artifact.get("name") or artifact.get("artifactId") or "")
    return [
        "artifact",
        name,
        f"({marks})" if marks else "",
        _summarize_parts(artifact.get("parts")),
    ]


def _summarize_message(value: dict[str, Any]) -> list[str]:
    return [
        "message",
        str(value.get("role", "")).removeprefix(_ROLE_PREFIX).lower(),
        _summarize_parts(value.get("parts")),
    ]


def _summarize_parts(parts: Any) -> str:
    first = parts[0] if isinstance(parts, list) and parts else None
    if not isinstance(first, dict):
        return ""
    text = first.get("text")
    return json.dumps(text, ensure_ascii=False) if isinstance(text, str) else format_json(first)


_SUMMARIZERS = {
    "task": _summarize_task,
    "statusUpdate": _summarize_update,
    "artifactUpdate": _summarize_artifact,
    "message": _summarize_message,
}


class BlockKind(Enum):
    """Kind of a block."""

    NOTE = "note"
    """A sentence over both columns."""
    TITLE = "title"
    """A call, on both sides or one."""
    HEAD = "head"
    """The subject of a difference."""
    VALUE = "value"
    """The values of both sides."""


class DifferenceBlock(msgspec.Struct, frozen=True):
    """A block of lines."""

    kind: BlockKind
    left: str
    """Text of the left side; of both columns for a note or a head."""
    right: str | None = None
    mark: str = " "
    """`-` only left, `+` only right, `~` changed, `>` moved, blank if both sides are the same."""
    anchor: bool = False
    """Whether a difference begins here, as a target of the next and previous keys."""
    ignored: bool = False


def difference_blocks(
    difference: RunDifference, *, everything: bool = False
) -> list[DifferenceBlock]:
    """Return all blocks; with `everything` also the blocks of equal and canonical fields."""
    made = list(_summary_blocks(difference))
    for block in _call_blocks(difference, everything):
        if len(made) >= MAX_BLOCKS:
            made.append(
                DifferenceBlock(
                    BlockKind.NOTE,
                    "too many differences to show them all: choose a call, or use a filter",
                )
            )
            break
        made.append(block)
    return made


def _summary_blocks(difference: RunDifference) -> Iterator[DifferenceBlock]:
    yield DifferenceBlock(BlockKind.NOTE, _summary_line(difference))
    for match in difference.matches:
        if match.left is not None and match.right is not None:
            ends = text.outcome_of(match.left.exchange), text.outcome_of(match.right.exchange)
            if ends[0] != ends[1] and len(difference.matches) > 1:
                yield DifferenceBlock(
                    BlockKind.NOTE,
                    f"{_exchange_label(match.left)} ended {ends[0]}, "
                    f"{_exchange_label(match.right)} {ends[1]}",
                )
    if difference.ignored:
        yield DifferenceBlock(
            BlockKind.NOTE,
            f"{text.format_count(difference.ignored, 'difference')} in canonical fields not "
            f"counted",
        )
    for remark in difference.cut:
        yield DifferenceBlock(BlockKind.NOTE, f"note: {make_visible(remark)}")


def _summary_line(difference: RunDifference) -> str:
    changes = [match.change for match in difference.matches]
    compared = f"{text.format_count(len(changes), 'call')} compared"
    if not difference.count:
        return f"same: {compared}" if len(changes) != 1 else "same"
    if len(changes) == 1 and changes[0] is ValueChange.CHANGED:
        return f"different: {text.format_count(difference.count, 'difference')}"
    words = []
    for change, phrase in (
        (ValueChange.CHANGED, "differ"),
        (ValueChange.LEFT, "only left"),
        (ValueChange.RIGHT, "only right"),
        (ValueChange.MOVED, "in another order"),
        (None, "the same"),
    ):
        if number := changes.count(change):
            words.append(
                f"{number} {phrase}"
                if not (change is ValueChange.CHANGED and number == 1)
                else "1 differs"
            )
    return f"different: of {text.format_count(len(changes), 'call')} {', '.join(words)}"


def _call_blocks(difference: RunDifference, everything: bool) -> Iterator[DifferenceBlock]:
    for row in difference.tasks:
        if everything or row.counts:
            yield DifferenceBlock(BlockKind.NOTE, "")
            yield from _row_blocks(
                row,
                f"task {make_visible(text.shorten_id(str((row.left or ('',))[0])))} "
                f"{(row.left or ('',))[-1]}",
            )
    single = len(difference.matches) == 1
    before: ValueChange | None = None
    for match in difference.matches:
        if match.change is None and not everything and not single:
            continue
        if match.change is not before or match.change not in _ONE_SIDED:
            yield DifferenceBlock(BlockKind.NOTE, "")
        before = match.change
        yield _title_block(match)
        if match.difference is not None:
            yield from _difference_rows(match.difference, everything)


def _title_block(match: CallPair) -> DifferenceBlock:
    sides = [_call_label(row) if row is not None else "" for row in (match.left, match.right)]
    anchor = match.change not in (ValueChange.CHANGED, None)
    return DifferenceBlock(
        BlockKind.TITLE, sides[0], sides[1], CHANGE_MARKS[match.change], anchor=anchor
    )


def _exchange_label(row: ExchangeRow) -> str:
    return label_place(row.session, row.exchange.id)


def _call_label(row: ExchangeRow) -> str:
    exchange = row.exchange
    words = [
        _exchange_label(row),
        text.exchange_title(exchange),
        text.binding_and_dialect(exchange),
    ]
    words += [text.outcome_label(exchange), text.latency_label(exchange), _end_reason(exchange)]
    return make_visible("  ".join(word for word in words if word))


def _end_reason(exchange: Exchange) -> str:
    return exchange.error or (
        text.end_reason(exchange) if text.outcome_of(exchange) == "cut" else ""
    )


def _difference_rows(difference: Difference, everything: bool) -> Iterator[DifferenceBlock]:
    texts = {each.name: each for each in difference.texts}
    for row in difference.rows:
        if not (everything or row.counts):
            continue
        path = row.left or row.right or ()
        if row.part is ExchangePart.ARTIFACTS and path[-1] == "text":
            yield from _artifact_blocks(row, texts[str(path[0])])
        else:
            yield from _row_blocks(row, _row_label(row))


def _row_label(row: DifferenceRow) -> str:
    """Return the subject of a row: `event 3 | 4  $.statusUpdate.status.state`."""
    place = _path_label(row.left, row.right)
    if row.part is ExchangePart.EVENTS:
        return f"{_frames_label('frame', row)} {place}"
    if row.part is ExchangePart.REQUEST:
        return (
            f"request {place}"
            if row.frames in ((0, 0), (-1, -1))
            else f"{_frames_label('request', row)} {place}"
        )
    words = " ".join(str(step) for step in row.left or row.right or ())
    if row.part is ExchangePart.ARTIFACTS:
        return f"artifact {make_visible(words)}"
    if row.part is ExchangePart.FINDINGS:
        value = row.before if row.change is ValueChange.LEFT else row.after
        rules = value if isinstance(value, dict) else (row.left or ())[1:]
        return make_visible("finding " + " ".join(map(str, rules)))
    return make_visible(words.replace("_", " "))


def _path_label(left: Path | None, right: Path | None) -> str:
    one, other = (
        make_visible(format_path(path)) if path is not None else "" for path in (left, right)
    )
    if one == "$" and other in ("$", ""):
        return ""
    return (
        one or (other if other != "$" else "")
        if one == other or not (one and other)
        else f"{one} | {other}"
    )


def _frames_label(noun: str, row: DifferenceRow) -> str:
    numbers = [str(frame) for frame in row.frames if frame >= 0]
    return f"{noun} {' | '.join(dict.fromkeys(numbers))}"


def _row_blocks(row: DifferenceRow, label: str) -> Iterator[DifferenceBlock]:
    why = f"  ({row.ignored})" if row.ignored else ""
    mark, ignored = CHANGE_MARKS[row.change], bool(row.ignored)
    head = label.strip() + why
    before, after = _row_value(row, row.before), _row_value(row, row.after)
    if row.change is ValueChange.LEFT:
        yield DifferenceBlock(
            BlockKind.HEAD, f"{head}  {before}", "", mark, anchor=True, ignored=ignored
        )
    elif row.change is ValueChange.RIGHT:
        yield DifferenceBlock(
            BlockKind.HEAD, "", f"{head}  {after}", mark, anchor=True, ignored=ignored
        )
    elif row.change is ValueChange.MOVED:
        yield DifferenceBlock(
            BlockKind.HEAD, f"{head}  {before}", None, mark, anchor=True, ignored=ignored
        )
    else:
        yield DifferenceBlock(BlockKind.HEAD, head, None, mark, anchor=True, ignored=ignored)
        yield _value_block(row.before, row.after, mark, ignored)


def _row_value(row: DifferenceRow, value: Any) -> str:
    """Return a value in one line; of a finding its summary."""
    if row.part is ExchangePart.FINDINGS and isinstance(value, dict):
        return summarize_value(next(iter(value.values()), ""))
    return summarize_value(value)


def _value_block(before: Any, after: Any, mark: str, ignored: bool) -> DifferenceBlock:
    if isinstance(before, str) and isinstance(after, str):
        left, right = make_excerpts(compare_texts(before, after))
        return DifferenceBlock(BlockKind.VALUE, left, right, mark, ignored=ignored)
    return DifferenceBlock(
        BlockKind.VALUE,
        make_visible(format_json(before)),
        make_visible(format_json(after)),
        mark,
        ignored=ignored,
    )


def _artifact_blocks(row: DifferenceRow, texts: ArtifactTexts) -> Iterator[DifferenceBlock]:
    """Yield an artifact's text by words, and the chunks in which they differ."""
    pieces = compare_texts(texts.left.text, texts.right.text)
    gone, new = (
        sum(len(p.text.split()) for p in pieces if p.change is side)
        for side in (ValueChange.LEFT, ValueChange.RIGHT)
    )
    words = f"{text.format_count(gone, 'word')} only left, {new} only right"
    yield DifferenceBlock(
        BlockKind.HEAD,
        f"artifact {make_visible(texts.name)} text: {words}",
        None,
        CHANGE_MARKS[row.change],
        anchor=True,
    )
    for run in _group_changes(pieces):
        first = next(piece for piece in run if piece.change)
        left, right = make_excerpts(run)
        sides = (
            _chunk_label(texts.left, first.left) + left,
            _chunk_label(texts.right, first.right) + right,
        )
        yield DifferenceBlock(BlockKind.VALUE, *sides, CHANGE_MARKS[row.change])


def _chunk_label(side: ArtifactText, at: int) -> str:
    """Return the frame that carried the chunk, if there are several."""
    return f"frame {side.frame_at(at)}: " if len(side.starts) > 1 else ""


def _group_changes(pieces: tuple[WordRun, ...]) -> Iterator[tuple[WordRun, ...]]:
    """Yield changes with their surrounding text; adjacent changes are grouped."""
    group: list[WordRun] = []
    for piece in pieces:
        if piece.change is not None or len(piece.text) <= 2 * _CONTEXT_CHARACTERS:
            group.append(piece)
            continue
        if any(each.change for each in group):
            yield (*group, piece)
        group = [piece]
    if any(each.change for each in group):
        yield tuple(group)


def make_excerpts(pieces: tuple[WordRun, ...]) -> tuple[str, str]:
    """Return both texts, escaped: changes in brackets, unchanged parts shortened. A text without a
    common part has no brackets."""
    made = []
    for side, other in (
        (ValueChange.LEFT, ValueChange.RIGHT),
        (ValueChange.RIGHT, ValueChange.LEFT),
    ):
        mine = [piece for piece in pieces if piece.change is not other]
        alone = all(piece.change for piece in mine)
        words = [
            _excerpt_run(piece, number, len(mine), side, alone) for number, piece in enumerate(mine)
        ]
        made.append(make_visible("".join(words)))
    return made[0], made[1]


def _excerpt_run(piece: WordRun, number: int, of: int, side: ValueChange, alone: bool) -> str:
    if piece.change is side:
        excerpt = piece.text[:1000] + ("…" if len(piece.text) > 1000 else "")
        return excerpt if alone else f"[{excerpt}]"
    words = piece.text
    if len(words) <= 2 * _CONTEXT_CHARACTERS:
        return words
    head = words[:_CONTEXT_CHARACTERS] if number else ""
    tail = words[-_CONTEXT_CHARACTERS:] if number < of - 1 else ""
    return f"{head}…{tail}"
