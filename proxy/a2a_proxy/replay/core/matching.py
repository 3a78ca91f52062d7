"""Matching of a request to the recorded calls: after canonicalisation, with identifiers mapped to
each other, and on request with masks in place of values that differ in every run."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from a2a_proxy.model.values import Binding
from a2a_proxy.protocol.operations import OPERATION_BY_NAME
from a2a_proxy.recording.difference.fields import (
    CanonicalFields,
    DifferenceRow,
    ValueChange,
    header_members,
)
from a2a_proxy.recording.difference.ids import LEFT, RIGHT, WORD_PATTERN, PairedIds
from a2a_proxy.recording.difference.structure import ValueReducer, bound_depth, compare_values
from a2a_proxy.replay.core.ids import ReplayIds
from a2a_proxy.replay.core.likeness import WordLikeness, row_distance
from a2a_proxy.replay.core.masks import (
    RunTimes,
    coarse_text,
    is_of_run,
    iter_masked,
    mask_members,
    mask_text,
    member_kind,
)
from a2a_proxy.replay.core.match_rules import MatchedRequest, MatchRules
from a2a_proxy.replay.core.script import LABEL, PlayerRequest, RecordedCall

_MAX_NEAREST = 64
"""Maximum number of calls compared to find the nearest one."""
HEADERS_FIELD = "headers"


class CallFit(msgspec.Struct, frozen=True):
    """The result of comparing a recorded call with a request."""

    index: int
    rows: tuple[DifferenceRow, ...]
    """The differences that count."""
    ids: ReplayIds
    """The identifier map if it is this call."""
    distance: float = 0.0
    """How far the request is from the call, to find the nearest call: 1 for each value that only
    one of them has."""


class RequestMatcher:
    """The calls of a script, indexed by their requests."""

    def __init__(self, calls: tuple[RecordedCall, ...], rules: MatchRules) -> None:
        self._calls = calls
        self._rules = rules
        self._tasks = [requested_task(call.request) for call in calls]
        self._requests = [bound_depth(call.request) for call in calls]
        self._by_operation: dict[str, list[int]] = defaultdict(list)
        self._by_token: dict[tuple[bool, str, bytes], list[int]] = defaultdict(list)
        """By whether values are masked, operation and token."""
        self._anything: dict[str, list[int]] = defaultdict(list)
        """Calls that a token cannot find: a credential was recorded as a label, which matches any
        value."""
        for index, call in enumerate(calls):
            self._by_operation[call.operation].append(index)
            key = self._rules.select_parts(self._requests[index], call.tenant)
            if LABEL.search(repr(key)):
                self._anything[call.operation].append(index)
            else:
                for masked in (False, True):
                    self._by_token[
                        masked, call.operation, likeness_token(key, masked=masked)
                    ].append(index)
        self._likeness = WordLikeness(
            [self._rules.select_parts(each, "") for each in self._requests]
        )

    def calls_of(self, request: PlayerRequest) -> list[int]:
        """Return all calls of the request's operation, in recorded order; not those with the base
        path of another agent, unless there are no others."""
        every = self._by_operation.get(request.operation, [])
        if not request.agent:
            return every
        return [index for index in every if not self._has_other_agent(index, request)] or every

    def _has_other_agent(self, index: int, request: PlayerRequest) -> bool:
        call = self._calls[index]
        return call.agent != request.agent and call.binding in (Binding.JSONRPC, Binding.REST)

    def find_candidates(self, request: PlayerRequest, *, masked: bool = False) -> list[int]:
        """Return the calls that may have the same request, in recorded order. A prefilter: not all
        of them match."""
        every = self.calls_of(request)
        if self._rules.compares_nothing or request.operation not in OPERATION_BY_NAME:
            return every
        token = likeness_token(
            self._rules.select_parts(request.value, request.tenant), masked=masked
        )
        found = {
            *self._by_token.get((masked, request.operation, token), ()),
            *self._anything.get(request.operation, ()),
        }
        if any(self._calls[index].dialect is not request.dialect for index in every):
            found.update(
                index for index in every if self._calls[index].dialect is not request.dialect
            )
        return sorted(found.intersection(every))

    def first_match(
        self, request: PlayerRequest, ids: ReplayIds, among: Iterable[int]
    ) -> CallFit | None:
        """Return the first of these candidates whose request matches."""
        return next(self.iter_matches(request, ids, among), None)

    def masked_rows(self, fit: CallFit, request: PlayerRequest) -> tuple[DifferenceRow, ...]:
        """Return the differences between a call and a request that are equal after masking."""
        return self._fit_call(fit.index, request, fit.ids).rows

    def iter_matches(
        self,
        request: PlayerRequest,
        ids: ReplayIds,
        among: Iterable[int],
        *,
        masked_at: int | None = None,
    ) -> Iterator[CallFit]:
        """Yield these candidates whose request matches: exactly, or after masking at the time of
        the request."""
        free = self._rules.compares_nothing or request.operation not in OPERATION_BY_NAME
        task = requested_task(request.value) if self._rules.compares_tasks else ""
        for index in among:
            if (
                not free
                and task
                and self._tasks[index]
                and not ids.may_be_task(self._tasks[index], task)
            ):
                continue
            fit = self._fit_call(index, request, ids, learn_only=free, masked_at=masked_at)
            if not fit.rows:
                yield fit

    def find_nearest(self, request: PlayerRequest, ids: ReplayIds, among: list[int]) -> CallFit:
        """Return the call that is least different, the first of several.

        Compares the `_MAX_NEAREST` calls that have most words in common with the request.
        """
        likely = self._likeness.most_alike(
            self._rules.select_parts(request.value, ""), among, _MAX_NEAREST
        )
        fits = [self._fit_call(index, request, ids) for index in likely]
        return min(fits, key=lambda fit: (fit.distance, len(fit.rows)))

    def _fit_call(
        self,
        index: int,
        request: PlayerRequest,
        ids: ReplayIds,
        *,
        learn_only: bool = False,
        masked_at: int | None = None,
    ) -> CallFit:
        call = self._calls[index]
        times = None if masked_at is None else RunTimes(call.began, masked_at)
        trial = ids.make_trial(masked=times is not None)
        fields = CanonicalFields(dialects=call.dialect is not request.dialect)
        rows: tuple[DifferenceRow, ...] = ()
        if not learn_only:
            recorded, now = (
                self._rules.select_parts(self._requests[index], call.tenant),
                self._rules.select_parts(request.value, request.tenant),
            )
            rows = find_differences(recorded, now, trial, fields, times)
            if self._rules.compares_headers:
                rows += self._header_rows(call, request)
            if self._rules.matchers and not rows:
                rows = self._rules.run_matchers(_matched_call(call), _matched_request(request))
        find_differences(
            self._requests[index], request.value, trial, fields
        )  # fields that are not compared hold identifiers as well
        return CallFit(index, rows, trial, sum(map(row_distance, rows)))

    def _header_rows(self, call: RecordedCall, request: PlayerRequest) -> tuple[DifferenceRow, ...]:
        """Compare the headers, on one binding only: on two bindings they are never the same."""
        if call.binding is not request.binding:
            return ()
        fields = CanonicalFields(headers=True)
        recorded, now = (
            self._rules.select_headers(header_members(each.headers)) for each in (call, request)
        )
        found = compare_values(recorded, now, PairedIds(), fields)
        rows = (row for row in found.rows if row.counts)
        return tuple(
            msgspec.structs.replace(
                row,
                left=row.left and (HEADERS_FIELD, *row.left),
                right=row.right and (HEADERS_FIELD, *row.right),
            )
            for row in rows
        )


def find_differences(
    recorded: Any, now: Any, ids: ReplayIds, fields: CanonicalFields, times: RunTimes | None = None
) -> tuple[DifferenceRow, ...]:
    """Return the differences that count; `ids` learns the pairs of identifiers. A label matches any
    value in its place.

    `times`: values that differ in every run do not count; `ids` must be a masked map.
    """
    if times is None:
        rows = compare_values(recorded, now, ids, fields).rows
        return tuple(row for row in rows if not _is_filled_label(row, ids) and row.counts)
    found = find_differences(mask_members(recorded), mask_members(now), ids, fields)
    rows = () if found else compare_values(recorded, now, ids.make_trial(), fields).rows
    return found or tuple(row for row in rows if row.counts and not _is_of_runs(row, ids, times))


def _is_of_runs(row: DifferenceRow, ids: ReplayIds, times: RunTimes) -> bool:
    """Whether two values that are equal after masking differ only in values of the two runs."""
    before, after = row.before, row.after
    name = next(
        (step for step in reversed(row.right or row.left or ()) if isinstance(step, str)), ""
    )
    if row.change is not ValueChange.CHANGED:
        return True
    if (kind := member_kind(name, before)) is not None:
        return is_of_run(kind, str(before), times.recorded) and is_of_run(
            kind, str(after), times.now
        )
    if not isinstance(before, str) or not isinstance(after, str):
        return True
    pairs = zip(
        iter_masked(ids.neutralize_ids(LEFT, before)),
        iter_masked(ids.neutralize_ids(RIGHT, after)),
        strict=False,
    )
    return all(
        one == other or (is_of_run(*one, times.recorded) and is_of_run(*other, times.now))
        for one, other in pairs
    )


def _matched_call(call: RecordedCall) -> MatchedRequest:
    return MatchedRequest(call.operation, call.tenant, call.request, header_members(call.headers))


def _matched_request(request: PlayerRequest) -> MatchedRequest:
    return MatchedRequest(
        request.operation, request.tenant, request.value, header_members(request.headers)
    )


class _AnyIdentifiers(PairedIds):
    """Treats all identifiers as unknown, and those in texts as equal."""

    def neutralize_text(self, side: int, text: str) -> str:  # noqa: ARG002  # both sides read alike
        """Return a text without the words that may be identifiers."""
        return WORD_PATTERN.sub("", text)


class _AnyMasked(PairedIds):
    """Treats all identifiers as unknown, and those and all masked values in texts as equal."""

    def neutralize_text(self, side: int, text: str) -> str:  # noqa: ARG002  # both sides read alike
        """Return a text without the words that may be identifiers, and without numbers."""
        return coarse_text(text)


def requested_task(request: Any) -> str:
    """Return the task id of a request; empty if it has none."""
    if not isinstance(request, dict):
        return ""
    message = request.get("message")
    found = (
        message.get("taskId")
        if isinstance(message, dict)
        else request.get("taskId") or request.get("id")
    )
    return found if isinstance(found, str) else ""


def request_token(value: Any) -> bytes:
    """Return a token that is the same for requests that differ only in the task they name."""
    return ValueReducer(PairedIds(), CanonicalFields(), LEFT).reduce_item(value).token


def likeness_token(value: Any, *, masked: bool = False) -> bytes:
    """Return a token that is the same for values that may match, whatever identifiers their texts
    name. A prefilter."""
    ids = _AnyMasked() if masked else _AnyIdentifiers()
    shown = mask_members(value) if masked else value
    return ValueReducer(ids, CanonicalFields(), LEFT).reduce_item(shown).token


def _is_filled_label(row: DifferenceRow, ids: ReplayIds) -> bool:
    """Whether a credential was recorded as a label and the text around it is the same; the label
    then stands for it."""
    if (
        row.change is not ValueChange.CHANGED
        or not isinstance(row.before, str)
        or not isinstance(row.after, str)
    ):
        return False
    before, after = (
        (mask_text(row.before), mask_text(row.after)) if ids.masked else (row.before, row.after)
    )
    labels = LABEL.findall(before)
    pieces = map(re.escape, LABEL.split(before))
    value = "([^\0]+)" if ids.masked else "((?s:.+))"
    filled = re.fullmatch(value.join(pieces), after) if labels else None
    if filled is None:
        return False
    for label, now in zip(labels, filled.groups(), strict=True):
        ids.pair_ids("label", label, now)
    return True
