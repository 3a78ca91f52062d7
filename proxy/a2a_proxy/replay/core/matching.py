"""Which recorded call is meant by a request: exact after canonicalisation, identifiers by who stands for whom."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import msgspec

from a2a_proxy.protocol.operations import BY_NAME
from a2a_proxy.recording.difference.fields import Fields, members
from a2a_proxy.recording.difference.ids import LEFT, Ids
from a2a_proxy.recording.difference.reduced import Reduced
from a2a_proxy.recording.difference.structure import compare
from a2a_proxy.recording.difference.values import Change, Row
from a2a_proxy.replay.core.asked import Asked
from a2a_proxy.replay.core.ids import IdMap
from a2a_proxy.replay.core.labels import LABEL
from a2a_proxy.replay.core.options import Preset
from a2a_proxy.replay.core.script import Call

_LEFT_OUT = frozenset({"metadata", "extensions", "messageId"})
"""Members of a request and of its message that only `strict` looks at. That of the message is still mapped."""
_NEAR = 64
"""Calls that are looked at for the nearest one."""
_ID = re.compile(r"[0-9A-Za-z_-]{8,}")
HEADERS = "headers"


class Fit(msgspec.Struct, frozen=True):
    """A recorded call against what is asked."""

    index: int
    rows: tuple[Row, ...]
    """What differs and counts."""
    ids: IdMap
    """What is known of identifiers if it is this call."""
    places: int = 0
    """Leaves that differ, to find the nearest."""


class Matcher:
    """The calls of a script, by what they were asked."""

    def __init__(self, calls: tuple[Call, ...], preset: Preset) -> None:
        self._calls = calls
        self._strict = preset is Preset.STRICT
        self._any = preset is Preset.BY_OPERATION
        self._by_operation: dict[str, list[int]] = defaultdict(list)
        self._tokens: list[bytes | None] = []
        """By call; None where a credential was recorded as a label: anything may be there now."""
        for index, call in enumerate(calls):
            self._by_operation[call.operation].append(index)
            key = self._key(call.request, call.tenant)
            self._tokens.append(None if LABEL.search(repr(key)) else likeness_token(key))

    def of(self, operation: str) -> list[int]:
        """All calls of an operation, in recorded order."""
        return self._by_operation.get(operation, [])

    def first(self, asked: Asked, ids: IdMap, among: list[int]) -> Fit | None:
        """The first of these calls that was asked the same."""
        return next((fit for fit in self._fits(asked, ids, among)), None)

    def count(self, asked: Asked, ids: IdMap, among: list[int]) -> int:
        """How many of them were."""
        return sum(1 for _ in self._fits(asked, ids, among))

    def _fits(self, asked: Asked, ids: IdMap, among: list[int]) -> Iterator[Fit]:
        if self._any or asked.operation not in BY_NAME:
            for index in among:
                yield self._fit(index, asked, ids, learn_only=True)
            return
        wanted = likeness_token(self._key(asked.value, asked.tenant))
        for index in among:
            if self._tokens[index] not in (wanted, None) and self._calls[index].dialect is asked.dialect:
                continue
            fit = self._fit(index, asked, ids)
            if not fit.rows:
                yield fit

    def nearest(self, asked: Asked, ids: IdMap, among: list[int]) -> Fit:
        """Of some calls the one that differs least, the first of several. The first `_NEAR` are looked at."""
        fits = [self._fit(index, asked, ids) for index in among[:_NEAR]]
        return min(fits, key=lambda fit: (fit.places, len(fit.rows)))

    def _fit(self, index: int, asked: Asked, ids: IdMap, *, learn_only: bool = False) -> Fit:
        call = self._calls[index]
        trial = ids.trial()
        fields = Fields(dialects=call.dialect is not asked.dialect)
        rows: tuple[Row, ...] = ()
        if not learn_only:
            recorded, now = self._key(call.request, call.tenant), self._key(asked.value, asked.tenant)
            rows = differences(recorded, now, trial, fields)
            if self._strict:
                rows += self._of_headers(call, asked)
        compare(call.request, asked.value, trial, fields)  # also what is not looked at has identifiers
        return Fit(index, rows, trial, sum(map(_weight, rows)))

    def _key(self, value: Any, tenant: str) -> Any:
        """What counts of a request."""
        if not isinstance(value, dict):
            return value
        made = value if self._strict else without(value)
        return {**made, "tenant": tenant} if tenant and "tenant" not in made else made

    def _of_headers(self, call: Call, asked: Asked) -> tuple[Row, ...]:
        """Headers, in `strict` on one binding: on two they are never the same."""
        if call.binding is not asked.binding:
            return ()
        fields = Fields(headers=True)
        found = compare(members(call.headers), members(asked.headers), Ids(), fields)
        rows = (row for row in found.rows if row.counts)
        return tuple(
            msgspec.structs.replace(
                row, left=row.left and (HEADERS, *row.left), right=row.right and (HEADERS, *row.right)
            )
            for row in rows
        )


def differences(recorded: Any, now: Any, ids: IdMap, fields: Fields) -> tuple[Row, ...]:
    """What differs and counts; `ids` learns who stands for whom. A label stands for whatever is there now."""
    rows = compare(recorded, now, ids, fields).rows
    return tuple(row for row in rows if not _filled(row, ids) and row.counts)


def without(value: dict[str, Any]) -> dict[str, Any]:
    """A request without what a program may change and still mean the same."""
    made = {name: item for name, item in value.items() if name not in _LEFT_OUT}
    if isinstance(message := made.get("message"), dict):
        made["message"] = {name: item for name, item in message.items() if name not in _LEFT_OUT}
    return made


class _Blank(Ids):
    """Of identifiers nobody knows any, and in texts they are all alike."""

    def neutral(self, side: int, text: str) -> str:  # noqa: ARG002  # both sides read alike
        """A text without what may be an identifier."""
        return _ID.sub("", text)


def token(value: Any) -> bytes:
    """The same for requests that ask the same of another task."""
    return Reduced(Ids(), Fields(), LEFT).item(value).token


def likeness_token(value: Any) -> bytes:
    """The same for values that may be the same, whatever identifiers their texts name: a sieve before comparing."""
    return Reduced(_Blank(), Fields(), LEFT).item(value).token


def _filled(row: Row, ids: IdMap) -> bool:
    """A credential was recorded as a label, and all around it is the same: from now on the label stands for it."""
    if row.change is not Change.CHANGED or not isinstance(row.before, str) or not isinstance(row.after, str):
        return False
    labels = LABEL.findall(row.before)
    pieces = map(re.escape, LABEL.split(row.before))
    filled = re.fullmatch("((?s:.+))".join(pieces), row.after) if labels else None
    if filled is None:
        return False
    for label, now in zip(labels, filled.groups(), strict=True):
        ids.pair("label", label, now)
    return True


def _weight(row: Row) -> int:
    return sum(_leaves(value) for value in (row.before, row.after))


def _leaves(value: Any) -> int:
    if isinstance(value, dict):
        return sum(map(_leaves, value.values()))
    return sum(map(_leaves, value)) if isinstance(value, list) else 1
