"""What an exchange brought of each artifact, put together: compared as one text, whatever chunks it came in."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from a2a_proxy.model.frame import EventKind
from a2a_proxy.protocol.artifact import AssembledArtifact, assemble_artifacts
from a2a_proxy.recording.difference.ids import LEFT, RIGHT, PairedIds
from a2a_proxy.recording.difference.values import DifferenceRow, ExchangePart, Ignored, Path, ValueChange
from a2a_proxy.recording.difference.view import ComparedExchange


class Text(msgspec.Struct, frozen=True):
    """The text of an artifact on one side."""

    text: str
    starts: tuple[tuple[int, int], ...]
    """Where each chunk begins, in characters, and the frame that brought it."""
    complete: bool

    def frame_at(self, at: int) -> int:
        """The frame that brought the character at `at`."""
        return next((seq for start, seq in reversed(self.starts) if start <= at), -1)


class Texts(msgspec.Struct, frozen=True):
    """An artifact on both sides."""

    name: str
    left: Text
    right: Text


def compare_artifacts(
    left: ComparedExchange, right: ComparedExchange, ids: PairedIds
) -> tuple[list[DifferenceRow], tuple[Texts, ...]]:
    """Rows about artifacts, and the texts of those that both sides have. `ids` knows the exchanges' events already."""
    mine, other = _texts(left), _texts(right)
    rows: list[DifferenceRow] = []
    both: list[Texts] = []
    free = dict(other)
    for (artifact, name), text in mine.items():
        found = next((key for key in free if _same(ids, artifact, key[0])), None)
        if found is None:
            rows.append(_row(ValueChange.LEFT, (name,), text.text, None))
            continue
        pair = Texts(name, text, free.pop(found))
        both.append(pair)
        rows += _differences(pair)
    rows += [_row(ValueChange.RIGHT, (name,), None, text.text) for (_, name), text in free.items()]
    return rows, tuple(both)


def _same(ids: PairedIds, left: str, right: str) -> bool:
    known = ids.number(LEFT, "artifact", left)
    return known == ids.number(RIGHT, "artifact", right) if known else left == right


def _differences(texts: Texts) -> Iterator[DifferenceRow]:
    left, right = texts.left, texts.right
    if left.text != right.text:
        yield _row(ValueChange.CHANGED, (texts.name, "text"), left.text, right.text)
    if left.complete != right.complete:
        yield _row(ValueChange.CHANGED, (texts.name, "complete"), left.complete, right.complete)
    if len(left.starts) != len(right.starts):
        path = (texts.name, "chunks")
        yield _row(ValueChange.CHANGED, path, len(left.starts), len(right.starts), Ignored.ARTIFACT)


def _row(
    change: ValueChange, path: Path, before: object, after: object, ignored: Ignored = Ignored.NOT
) -> DifferenceRow:
    places = (None if change is ValueChange.RIGHT else path, None if change is ValueChange.LEFT else path)
    return DifferenceRow(change, *places, before, after, ignored, ExchangePart.ARTIFACTS)


def _texts(view: ComparedExchange) -> dict[tuple[str, str], Text]:
    """By id and name; those that have text."""
    brought = [entry for entry in view.events if entry.kind in (EventKind.ARTIFACT, EventKind.TASK)]
    found = assemble_artifacts((entry.seq, entry.event) for entry in brought)
    named = {(artifact, of.artifact.name or artifact): _text(of) for artifact, of in found.items()}
    return {key: text for key, text in named.items() if text.text}


def _text(found: AssembledArtifact[int]) -> Text:
    """The parts' text in one. Which part came in which chunk follows from their order where each brought one part."""
    parts = [part.text or "" for part in found.artifact.parts]
    chunks = found.chunks if len(found.chunks) == len(parts) else found.chunks[:1] * len(parts)
    starts: list[tuple[int, int]] = []
    at = 0
    for text, seq in zip(parts, chunks, strict=True):
        starts.append((at, seq))
        at += len(text)
    return Text("".join(parts), tuple(starts), found.complete)
