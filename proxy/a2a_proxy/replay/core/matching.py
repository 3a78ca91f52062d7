"""Which recorded call is meant by a request: exact after canonicalisation, identifiers by who stands for whom."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from a2a_proxy.protocol.operations import BY_NAME
from a2a_proxy.recording.difference.fields import Fields, members
from a2a_proxy.recording.difference.ids import LEFT, WORD, PairedIds
from a2a_proxy.recording.difference.reduced import Reduced, bounded
from a2a_proxy.recording.difference.structure import compare
from a2a_proxy.recording.difference.values import DifferenceRow, ValueChange
from a2a_proxy.replay.core.ids import IdMap
from a2a_proxy.replay.core.labels import LABEL
from a2a_proxy.replay.core.options import MatchPreset
from a2a_proxy.replay.core.player_io import PlayerRequest
from a2a_proxy.replay.core.script import RecordedCall

_LEFT_OUT = frozenset({"metadata", "extensions", "messageId"})
"""Members of a request and of its message that only `strict` looks at. That of the message is still mapped."""
_NEAR = 64
"""Calls that are looked at for the nearest one."""
HEADERS = "headers"


class Fit(msgspec.Struct, frozen=True):
    """A recorded call against what is asked."""

    index: int
    rows: tuple[DifferenceRow, ...]
    """What differs and counts."""
    ids: IdMap
    """What is known of identifiers if it is this call."""
    places: int = 0
    """Leaves that differ, to find the nearest."""


class Matcher:
    """The calls of a script, by what they were asked."""

    def __init__(self, calls: tuple[RecordedCall, ...], preset: MatchPreset) -> None:
        self._calls = calls
        self._strict = preset is MatchPreset.STRICT
        self._any = preset is MatchPreset.BY_OPERATION
        self._tasks = [asked_task(call.request) for call in calls]
        self._requests = [bounded(call.request) for call in calls]
        self._by_operation: dict[str, list[int]] = defaultdict(list)
        self._by_token: dict[tuple[str, bytes], list[int]] = defaultdict(list)
        self._anything: dict[str, list[int]] = defaultdict(list)
        """Calls that a token cannot find: a credential was recorded as a label, and anything may be there now."""
        for index, call in enumerate(calls):
            self._by_operation[call.operation].append(index)
            key = self._key(self._requests[index], call.tenant)
            if LABEL.search(repr(key)):
                self._anything[call.operation].append(index)
            else:
                self._by_token[call.operation, likeness_token(key)].append(index)

    def of(self, operation: str) -> list[int]:
        """All calls of an operation, in recorded order."""
        return self._by_operation.get(operation, [])

    def candidates(self, asked: PlayerRequest) -> list[int]:
        """The calls that may have been asked the same, in recorded order: a sieve."""
        every = self.of(asked.operation)
        if self._any or asked.operation not in BY_NAME:
            return every
        token = likeness_token(self._key(asked.value, asked.tenant))
        found = {*self._by_token.get((asked.operation, token), ()), *self._anything.get(asked.operation, ())}
        if any(self._calls[index].dialect is not asked.dialect for index in every):  # they say some things otherwise
            found.update(index for index in every if self._calls[index].dialect is not asked.dialect)
        return sorted(found)

    def first(self, asked: PlayerRequest, ids: IdMap, among: Iterable[int]) -> Fit | None:
        """The first of these candidates that was asked the same."""
        return next(self._fits(asked, ids, among), None)

    def count(self, asked: PlayerRequest, ids: IdMap, among: Iterable[int]) -> int:
        """How many of them were."""
        return sum(1 for _ in self._fits(asked, ids, among))

    def _fits(self, asked: PlayerRequest, ids: IdMap, among: Iterable[int]) -> Iterator[Fit]:
        free = self._any or asked.operation not in BY_NAME
        task = asked_task(asked.value)
        for index in among:
            if not free and task and self._tasks[index] and not ids.may(self._tasks[index], task):
                continue
            fit = self._fit(index, asked, ids, learn_only=free)
            if not fit.rows:
                yield fit

    def nearest(self, asked: PlayerRequest, ids: IdMap, among: list[int]) -> Fit:
        """Of some calls the one that differs least, the first of several. The first `_NEAR` are looked at."""
        fits = [self._fit(index, asked, ids) for index in among[:_NEAR]]
        return min(fits, key=lambda fit: (fit.places, len(fit.rows)))

    def _fit(self, index: int, asked: PlayerRequest, ids: IdMap, *, learn_only: bool = False) -> Fit:
        call = self._calls[index]
        trial = ids.trial()
        fields = Fields(dialects=call.dialect is not asked.dialect)
        rows: tuple[DifferenceRow, ...] = ()
        if not learn_only:
            recorded, now = self._key(self._requests[index], call.tenant), self._key(asked.value, asked.tenant)
            rows = differences(recorded, now, trial, fields)
            if self._strict:
                rows += self._of_headers(call, asked)
        differences(self._requests[index], asked.value, trial, fields)  # also what is not looked at has identifiers
        return Fit(index, rows, trial, sum(map(_weight, rows)))

    def _key(self, value: Any, tenant: str) -> Any:
        """What counts of a request."""
        made = value if self._strict else without(value)
        return {**made, "tenant": tenant} if tenant and isinstance(made, dict) and "tenant" not in made else made

    def _of_headers(self, call: RecordedCall, asked: PlayerRequest) -> tuple[DifferenceRow, ...]:
        """Headers, in `strict` on one binding: on two they are never the same."""
        if call.binding is not asked.binding:
            return ()
        fields = Fields(headers=True)
        found = compare(members(call.headers), members(asked.headers), PairedIds(), fields)
        rows = (row for row in found.rows if row.counts)
        return tuple(
            msgspec.structs.replace(
                row, left=row.left and (HEADERS, *row.left), right=row.right and (HEADERS, *row.right)
            )
            for row in rows
        )


def differences(recorded: Any, now: Any, ids: IdMap, fields: Fields) -> tuple[DifferenceRow, ...]:
    """What differs and counts; `ids` learns who stands for whom. A label stands for whatever is there now."""
    rows = compare(recorded, now, ids, fields).rows
    return tuple(row for row in rows if not _filled(row, ids) and row.counts)


def without(value: Any) -> Any:
    """A request without what a program may change and still mean the same."""
    if not isinstance(value, dict):
        return value
    made = {name: item for name, item in value.items() if name not in _LEFT_OUT}
    if isinstance(message := made.get("message"), dict):
        made["message"] = {name: item for name, item in message.items() if name not in _LEFT_OUT}
    return made


class _Blank(PairedIds):
    """Of identifiers nobody knows any, and in texts they are all alike."""

    def neutral(self, side: int, text: str) -> str:  # noqa: ARG002  # both sides read alike
        """A text without what may be an identifier."""
        return WORD.sub("", text)


def asked_task(request: Any) -> str:
    """The id of the task that a request is about; empty where it is about none."""
    if not isinstance(request, dict):
        return ""
    message = request.get("message")
    found = message.get("taskId") if isinstance(message, dict) else request.get("taskId") or request.get("id")
    return found if isinstance(found, str) else ""


def token(value: Any) -> bytes:
    """The same for requests that ask the same of another task."""
    return Reduced(PairedIds(), Fields(), LEFT).item(value).token


def likeness_token(value: Any) -> bytes:
    """The same for values that may be the same, whatever identifiers their texts name: a sieve before comparing."""
    return Reduced(_Blank(), Fields(), LEFT).item(value).token


def _filled(row: DifferenceRow, ids: IdMap) -> bool:
    """A credential was recorded as a label, and all around it is the same: from now on the label stands for it."""
    if row.change is not ValueChange.CHANGED or not isinstance(row.before, str) or not isinstance(row.after, str):
        return False
    labels = LABEL.findall(row.before)
    pieces = map(re.escape, LABEL.split(row.before))
    filled = re.fullmatch("((?s:.+))".join(pieces), row.after) if labels else None
    if filled is None:
        return False
    for label, now in zip(labels, filled.groups(), strict=True):
        ids.pair("label", label, now)
    return True


def _weight(row: DifferenceRow) -> int:
    return sum(_leaves(value) for value in (row.before, row.after))


def _leaves(value: Any) -> int:
    if isinstance(value, dict):
        return sum(map(_leaves, value.values()))
    return sum(map(_leaves, value)) if isinstance(value, list) else 1
