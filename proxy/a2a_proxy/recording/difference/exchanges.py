"""Differences between two exchanges: outcome, findings, request and response.

Assembled artifacts of an exchange: each is compared as one text, independently of its chunks.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from a2a_proxy.model.values import Binding, EventKind, Exchange
from a2a_proxy.protocol.artifact import AssembledArtifact, assemble_artifacts
from a2a_proxy.protocol.errors import GENERATION_MISMATCH, RPC_REASONS, RPC_REASONS_0_1
from a2a_proxy.recording.difference.fields import (
    CanonicalFields,
    CompareResult,
    DifferenceRow,
    ExchangePart,
    Ignored,
    Path,
    ValueChange,
    header_members,
)
from a2a_proxy.recording.difference.ids import LEFT, PairedIds
from a2a_proxy.recording.difference.structure import compare_values
from a2a_proxy.recording.difference.view import (
    ComparedExchange,
    ComparedMessage,
    read_exchange,
    read_message,
)
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import ExchangeRow

_REASONS = {*RPC_REASONS.values(), *RPC_REASONS_0_1.values(), GENERATION_MISMATCH}
_BINDING_MEMBERS = frozenset({"status", "grpc_status", "target", "method"})
_PART_ORDER = tuple(ExchangePart)


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
        found = next(
            (
                key
                for key in free
                if key[0] == (ids.find_partner(LEFT, "artifact", artifact) or artifact)
            ),
            None,
        )
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


class Difference(msgspec.Struct, frozen=True):
    """Two exchanges and their differences."""

    left: ExchangeRow
    right: ExchangeRow
    rows: tuple[DifferenceRow, ...]
    """In the order of `ExchangePart`."""
    texts: tuple[ArtifactTexts, ...] = ()
    """Texts of the artifacts that both sides have."""
    cut: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """Number of differences that count."""
        return sum(row.counts for row in self.rows)

    @property
    def ignored(self) -> int:
        """Number of differences in canonical fields."""
        return len(self.rows) - self.count


def compare_exchanges(
    left: tuple[Recording, ExchangeRow],
    right: tuple[Recording, ExchangeRow],
    ids: PairedIds | None = None,
) -> Difference:
    """Compare two exchanges of one recording or of two, in any bindings and dialects.

    Times are not compared. Raises RecordingError.
    """
    return _ExchangeComparison(left, right, ids or PairedIds()).compare_parts()


def compare_frames(
    left: tuple[Recording, ExchangeRow],
    right: tuple[Recording, ExchangeRow],
    frames: tuple[int, int],
) -> Difference:
    """Compare the payloads of two frames, by their numbers. Raises RecordingError, also if a frame
    does not exist."""
    one, other = (
        read_message(*side, number) for side, number in zip((left, right), frames, strict=True)
    )
    found = compare_values(
        one.value, other.value, PairedIds(), _make_fields(left[1].exchange, right[1].exchange)
    )
    rows = [
        msgspec.structs.replace(row, part=ExchangePart.EVENTS, frames=frames) for row in found.rows
    ]
    return Difference(left[1], right[1], tuple(rows), (), found.cut)


def _make_fields(left: Exchange, right: Exchange) -> CanonicalFields:
    card = left.binding is Binding.CARD or left.operation == "GetExtendedAgentCard"
    return CanonicalFields(left.dialect is not right.dialect, card, plain=not left.operation)


class _ExchangeComparison:
    """One comparison of two exchanges."""

    def __init__(
        self,
        left: tuple[Recording, ExchangeRow],
        right: tuple[Recording, ExchangeRow],
        ids: PairedIds,
    ) -> None:
        self._sides = left, right
        self._left = read_exchange(*left)
        self._right = read_exchange(*right)
        self._ids = ids
        one, other = left[1].exchange, right[1].exchange
        self._bindings = one.binding is not other.binding
        self._fields = _make_fields(one, other)
        self._cut: list[str] = [*self._left.cut, *self._right.cut]

    def compare_parts(self) -> Difference:
        """Compare all parts."""
        requests = self._compare_messages(
            self._left.requests, self._right.requests, ExchangePart.REQUEST
        )
        events_of_sides = [
            [entry for entry in of.events if not (self._bindings and entry.failed)]
            for of in (self._left, self._right)
        ]
        events = self._compare_messages(events_of_sides[0], events_of_sides[1], ExchangePart.EVENTS)
        artifacts, texts = compare_artifacts(self._left, self._right, self._ids)
        alone = {str(path[0]) for row in artifacts if len(path := row.left or row.right or ()) == 1}
        if artifacts or texts:
            events = [_mark_covered(row, alone) for row in events]
        rows = [
            *self._compare_calls(),
            *self._compare_findings(),
            *requests,
            *artifacts,
            *events,
            *self._compare_headers(),
        ]
        rows.sort(key=lambda row: _PART_ORDER.index(row.part))
        return Difference(
            self._left.row, self._right.row, tuple(rows), texts, tuple(dict.fromkeys(self._cut))
        )

    def _compare_values(self, left: Any, right: Any, fields: CanonicalFields) -> CompareResult:
        found = compare_values(left, right, self._ids, fields)
        self._cut += found.cut
        return found

    def _compare_messages(
        self, left: list[ComparedMessage], right: list[ComparedMessage], part: ExchangePart
    ) -> list[DifferenceRow]:
        """Compare messages: one on each side directly, however different; several after
        alignment."""
        if len(left) == len(right) == 1:
            frames = left[0].seq, right[0].seq
            rows = self._compare_values(left[0].value, right[0].value, self._fields).rows
            return [msgspec.structs.replace(row, part=part, frames=frames) for row in rows]
        found = self._compare_values(
            [entry.value for entry in left], [entry.value for entry in right], self._fields
        )
        message_rows = [_message_row(row, left, right, part) for row in found.rows]
        return sorted(message_rows, key=lambda row: max(row.frames))

    def _compare_calls(self) -> Iterator[DifferenceRow]:
        left, right = self._call_facts(self._left.exchange), self._call_facts(self._right.exchange)
        for name, before in left.items():
            after = right[name]
            if before == after:
                continue
            ignored = (
                Ignored.BINDING
                if name == "binding" or (self._bindings and name in _BINDING_MEMBERS)
                else Ignored.NOT
            )
            ignored = Ignored.DIALECT if name == "dialect" else ignored
            if not ignored and isinstance(before, str) and isinstance(after, str):
                row = next(
                    iter(
                        compare_values(
                            {name: before}, {name: after}, self._ids, CanonicalFields(plain=True)
                        ).rows
                    )
                )
                ignored = row.ignored
            yield DifferenceRow(
                ValueChange.CHANGED, (name,), (name,), before, after, ignored, ExchangePart.CALL
            )

    def _call_facts(self, exchange: Exchange) -> dict[str, Any]:
        facts: dict[str, Any] = {
            "operation": exchange.operation,
            "error": _error_without_code(exchange.error) if self._bindings else exchange.error,
            "end": exchange.how,
            "states": " > ".join(exchange.states),
            "status": exchange.status,
            "grpc_status": exchange.grpc_status,
            "binding": str(exchange.binding),
            "dialect": str(exchange.dialect),
            "live_payload": exchange.live_payload,
            "made_by_proxy": exchange.ours,
        }
        if not exchange.operation:
            facts |= {"method": exchange.method, "target": exchange.target}
        return facts

    def _compare_findings(self) -> list[DifferenceRow]:
        sides = []
        for recording, row in self._sides:
            found = [each.finding for each in recording.read_findings(exchange=row.key)]
            sides.append([{each.rule: each.summary} for each in found])
        rows = self._compare_values(sides[0], sides[1], CanonicalFields(plain=True)).rows
        return [msgspec.structs.replace(row, part=ExchangePart.FINDINGS) for row in rows]

    def _compare_headers(self) -> list[DifferenceRow]:
        rows: list[DifferenceRow] = []
        one, other = self._left.exchange, self._right.exchange
        for name in ("request_headers", "response_headers", "trailers"):
            fields = CanonicalFields(self._fields.dialects, headers=True)
            found = self._compare_values(
                header_members(getattr(one, name)), header_members(getattr(other, name)), fields
            )
            for row in found.rows:
                ignored = row.ignored or (Ignored.BINDING if self._bindings else Ignored.NOT)
                places = _path_below(row.left, name), _path_below(row.right, name)
                rows.append(
                    DifferenceRow(
                        row.change, *places, row.before, row.after, ignored, ExchangePart.HEADERS
                    )
                )
        return rows


def _path_below(path: Path | None, name: str) -> Path | None:
    return None if path is None else (name, *path)


def _error_without_code(line: str) -> str:
    """Return the error without the binding's code."""
    head, colon, message = line.partition(": ")
    reason = next((word for word in head.split() if word in _REASONS), "")
    return f"{reason}: {message}".removeprefix(": ") if colon else line


def _message_row(
    row: DifferenceRow,
    left: list[ComparedMessage],
    right: list[ComparedMessage],
    part: ExchangePart,
) -> DifferenceRow:
    """Convert a row about a list of messages to a row about one message."""
    frames = _frame_seq(row.left, left), _frame_seq(row.right, right)
    places = row.left and row.left[1:], row.right and row.right[1:]
    return DifferenceRow(row.change, *places, row.before, row.after, row.ignored, part, frames)


def _frame_seq(path: Path | None, entries: list[ComparedMessage]) -> int:
    return entries[path[0]].seq if path and isinstance(path[0], int) else -1


def _mark_covered(row: DifferenceRow, alone: set[str]) -> DifferenceRow:
    """Ignore a difference that the assembled artifact already shows: text of parts, and the cuts
    between chunks.

    `alone` are the artifacts that only one side has.
    """
    path = row.left or row.right or ()
    if row.ignored or not _is_artifact_text(row, path, alone):
        return row
    return msgspec.structs.replace(row, ignored=Ignored.ARTIFACT)


def _is_artifact_text(row: DifferenceRow, path: Path, alone: set[str]) -> bool:
    if not path:
        message = row.after if row.change is ValueChange.RIGHT else row.before
        return row.change is not ValueChange.CHANGED and _has_only_text(message, alone)
    if path[0] == "artifactUpdate" and path[1:] in (("append",), ("lastChunk",)):
        return True
    if "parts" not in path or ("artifact" not in path and "artifacts" not in path):
        return False
    below = path[path.index("parts") + 1 :]
    if len(below) == 2:
        return below[1] == "text"
    values = [value for value in (row.before, row.after) if value is not None]
    return len(below) == 1 and all(
        isinstance(value, dict) and set(value) <= {"text"} for value in values
    )


def _has_only_text(event: Any, alone: set[str]) -> bool:
    """Whether an event only adds text to an artifact, or carries text of an artifact of one side
    only.

    An event that replaces earlier text does more.
    """
    update = event.get("artifactUpdate") if isinstance(event, dict) else None
    artifact = update.get("artifact") if isinstance(update, dict) else None
    if not isinstance(update, dict) or not isinstance(artifact, dict):
        return False
    if (
        not update.get("append")
        and str(artifact.get("name") or artifact.get("artifactId")) not in alone
    ):
        return False
    parts = artifact.get("parts")
    return isinstance(parts, list) and all(
        isinstance(part, dict) and set(part) <= {"text"} for part in parts
    )
