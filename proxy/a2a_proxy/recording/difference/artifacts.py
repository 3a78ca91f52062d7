"""Assembled artifacts of an exchange: each is compared as one text, independently of its chunks."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from a2a_proxy.model.values import EventKind
from a2a_proxy.protocol.artifact import AssembledArtifact, assemble_artifacts
from a2a_proxy.recording.difference.fields import (
    DifferenceRow,
    ExchangePart,
    Ignored,
    Path,
    ValueChange,
)
from a2a_proxy.recording.difference.ids import LEFT, PairedIds
from a2a_proxy.recording.difference.view import ComparedExchange


class ArtifactText(msgspec.Struct, frozen=True):
    """The text of an artifact on one side."""

    text: str
    starts: tuple[tuple[int, int], ...]
    """Offset of each chunk, in characters, with the frame that carried it."""
    complete: bool

    def frame_at(self, at: int) -> int:
        """Return the frame that carried the character at offset `at`."""
        return next((seq for start, seq in reversed(self.starts) if start <= at), -1)


class ArtifactTexts(msgspec.Struct, frozen=True):
    """An artifact on both sides."""

    name: str
    left: ArtifactText
    right: ArtifactText


def compare_artifacts(
    left: ComparedExchange, right: ComparedExchange, ids: PairedIds
) -> tuple[list[DifferenceRow], tuple[ArtifactTexts, ...]]:
    """Return the differences of artifacts, and the texts of the artifacts that both sides have.

    `ids` must already contain the pairs from the exchanges' events.
    """
    mine, other = _artifact_texts(left), _artifact_texts(right)
    rows: list[DifferenceRow] = []
    both: list[ArtifactTexts] = []
    free = dict(other)
    for (artifact, name), text in mine.items():
        found = next((key for key in free if _is_same_artifact(ids, artifact, key[0])), None)
        if found is None:
            rows.append(_artifact_row(ValueChange.LEFT, (name,), text.text, None))
            continue
        pair = ArtifactTexts(name, text, free.pop(found))
        both.append(pair)
        rows += _text_differences(pair)
    rows += [
        _artifact_row(ValueChange.RIGHT, (name,), None, text.text)
        for (_, name), text in free.items()
    ]
    return rows, tuple(both)


def _is_same_artifact(ids: PairedIds, left: str, right: str) -> bool:
    return right == (ids.find_partner(LEFT, "artifact", left) or left)


def _text_differences(texts: ArtifactTexts) -> Iterator[DifferenceRow]:
    left, right = texts.left, texts.right
    if left.text != right.text:
        yield _artifact_row(ValueChange.CHANGED, (texts.name, "text"), left.text, right.text)
    if left.complete != right.complete:
        yield _artifact_row(
            ValueChange.CHANGED, (texts.name, "complete"), left.complete, right.complete
        )
    if len(left.starts) != len(right.starts):
        path = (texts.name, "chunks")
        yield _artifact_row(
            ValueChange.CHANGED, path, len(left.starts), len(right.starts), Ignored.ARTIFACT
        )


def _artifact_row(
    change: ValueChange, path: Path, before: object, after: object, ignored: Ignored = Ignored.NOT
) -> DifferenceRow:
    places = (
        None if change is ValueChange.RIGHT else path,
        None if change is ValueChange.LEFT else path,
    )
    return DifferenceRow(change, *places, before, after, ignored, ExchangePart.ARTIFACTS)


def _artifact_texts(view: ComparedExchange) -> dict[tuple[str, str], ArtifactText]:
    """Return the artifacts that have text, by id and name."""
    brought = [entry for entry in view.events if entry.kind in (EventKind.ARTIFACT, EventKind.TASK)]
    found = assemble_artifacts((entry.seq, entry.event) for entry in brought)
    named = {
        (artifact, of.artifact.name or artifact): _join_parts(of) for artifact, of in found.items()
    }
    return {key: text for key, text in named.items() if text.text}


def _join_parts(assembled: AssembledArtifact[int]) -> ArtifactText:
    """Return the text of all parts.

    If each chunk carried one part, the order of the parts determines their chunks.
    """
    parts = [part.text or "" for part in assembled.artifact.parts]
    chunks = (
        assembled.chunks
        if len(assembled.chunks) == len(parts)
        else assembled.chunks[:1] * len(parts)
    )
    starts: list[tuple[int, int]] = []
    at = 0
    for text, seq in zip(parts, chunks, strict=True):
        starts.append((at, seq))
        at += len(text)
    return ArtifactText("".join(parts), tuple(starts), assembled.complete)
