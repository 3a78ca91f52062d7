"""Which differences count in a drive: fewer if only the shape matters, more if nothing may
differ.

The parts of a call that `--match-on` selects, with the same names as for a replayed request; the
user's matchers.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from a2a_proxy.model.values import Exchange
from a2a_proxy.recording.difference.fields import (
    DifferenceRow,
    ExchangePart,
    Ignored,
    Path,
    ValueChange,
    header_members,
)
from a2a_proxy.recording.difference.paths import is_at_path
from a2a_proxy.recording.difference.runs import CallPair, RunDifference
from a2a_proxy.recording.difference.view import read_exchange
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import ExchangeRow
from a2a_proxy.replay.core.match_rules import (
    MEMBER_NAMES,
    MatchedRequest,
    Matcher,
    MatchName,
    MatchRules,
    part_name,
)

_IGNORED_UNLESS_STRICT = (
    Ignored.DEFAULT,
    Ignored.DIALECT,
    Ignored.BINDING,
    Ignored.ARTIFACT,
    Ignored.ORDER,
)
"""Differences that are normal between two runs of one program with the same requests and
answers."""
_SHAPE_FIELDS = frozenset({"state", "role", "append", "lastChunk", "final", "code"})
"""Members whose value belongs to the shape: they name a kind or a position."""
_CALL_FACTS = frozenset(
    {"operation", "end", "states", "status", "grpc_status", "live_payload", "made_by_proxy"}
)
_AUTH_RULE_PREFIX = "A2A-AUTH-"


_PART_NAMES = frozenset({MatchName.TEXT, MatchName.DATA, MatchName.FILES})


def is_selected(row: DifferenceRow, names: frozenset[MatchName]) -> bool:
    """Whether a difference is in one of the named parts. The facts of a call (operation, states,
    end) always are."""
    if row.part is ExchangePart.CALL:
        return True
    if row.part is ExchangePart.HEADERS:
        return MatchName.HEADERS in names
    if row.part is ExchangePart.FINDINGS:
        return False
    path = row.left or row.right or ()
    if row.part is ExchangePart.ARTIFACTS:  # texts of whole artifacts
        found = {MatchName.TEXT if path[1:] in ((), ("text",)) else MatchName.PARAMETERS}
    else:
        found = _names_at(path, row.before) | _names_at(path, row.after)
    if found & _PART_NAMES:
        found.add(MatchName.PARTS)
    return bool(found & names)


def apply_matchers(
    pair: CallPair, recorded: Recording, live: Recording, matchers: tuple[Matcher, ...]
) -> CallPair:
    """Return the call with a difference for each matcher by which its answers do not match.

    Raises RecordingError.
    """
    if pair.left is None or pair.right is None or pair.difference is None:
        return pair
    answers = _read_answer(recorded, pair.left), _read_answer(live, pair.right)
    found = MatchRules(frozenset(), matchers).run_matchers(*answers)
    rows = [msgspec.structs.replace(row, part=ExchangePart.CALL) for row in found]
    difference = msgspec.structs.replace(pair.difference, rows=(*rows, *pair.difference.rows))
    return msgspec.structs.replace(pair, difference=difference, inside=difference.count)


def _read_answer(recording: Recording, row: ExchangeRow) -> MatchedRequest:
    """Return the answer of a call, or the list of its events. An answer has no tenant."""
    exchange = row.exchange
    values = [message.value for message in read_exchange(recording, row).events]
    value = values if exchange.streaming else next(iter(values), None)
    return MatchedRequest(exchange.operation, "", value, header_members(exchange.response_headers))


def _names_at(path: Path, value: Any) -> set[MatchName]:
    """Return the names of the parts that a value at a path belongs to, or that it consists of."""
    for at, step in enumerate(path):
        if step == "parts":
            return (
                _names_of_part(path[at + 2 :], value)
                if len(path) > at + 1
                else _names_in({"parts": value})
            )
        if step in MEMBER_NAMES:
            return {MEMBER_NAMES[str(step)]}
    return _names_in(value)


def _names_of_part(path: Path, value: Any) -> set[MatchName]:
    """Return the name of a part, from the path below it or from its whole value."""
    if not path:
        return {part_name(value)} if value is not None else set()
    return {MatchName.METADATA if path[0] == "metadata" else part_name({path[0]: value})}


def _names_in(value: Any) -> set[MatchName]:
    """Return the names of the parts in a value."""
    if isinstance(value, list):
        return set[MatchName]().union(*map(_names_in, value))
    if not isinstance(value, dict):
        return {MatchName.PARAMETERS} if value is not None else set()
    found: set[MatchName] = set()
    for name, item in value.items():
        if name == "parts" and isinstance(item, list):
            found |= {part_name(part) for part in item}
        else:
            found |= {MEMBER_NAMES[name]} if name in MEMBER_NAMES else _names_in(item)
    return found


class ComparePolicy(msgspec.Struct, frozen=True):
    """The options of the comparison."""

    strict: bool = False
    """Omitted defaults, other chunks, another dialect or binding, and another order count as
    well."""
    shape: bool = False
    """Only kinds, states, order and structure count; texts and data may differ."""
    calls_without_credentials: frozenset[int] = frozenset()
    """Keys of recorded exchanges that were sent without their credentials, which the recording does
    not have."""
    given_headers: frozenset[str] = frozenset()
    """Names, in lower case, of the request headers given by the user."""
    normalize: tuple[str, ...] = ()
    """Regular expressions: texts that one of them matches are equal."""
    ignore: tuple[Path, ...] = ()
    """Paths that do not count; `*` matches any step, and the first step may be the name of an
    `ExchangePart`."""
    match_on: frozenset[MatchName] | None = None
    """The parts that count; None: all of them."""
    matchers: tuple[Matcher, ...] = ()
    """Functions of the user that compare answers (`matched_parts.apply_matchers`)."""


def apply_policy(difference: RunDifference, policy: ComparePolicy) -> RunDifference:
    """Return the difference with the policy applied to each row."""
    tests: list[Callable[[DifferenceRow], DifferenceRow]] = []
    if policy.strict:
        tests.append(_count_ignored)
    if policy.shape:
        tests.append(_keep_shape)
    if (names := policy.match_on) is not None:
        tests.append(lambda row: _mark_ignored(row, not is_selected(row, names)))
    if policy.ignore:
        tests.append(
            lambda row: _mark_ignored(row, any(is_at_path(row, path) for path in policy.ignore))
        )

    if policy.normalize:
        patterns = tuple(map(re.compile, policy.normalize))
        tests.append(lambda row: _mark_ignored(row, _is_equal_normalized(row, patterns)))

    def judge_row(row: DifferenceRow) -> DifferenceRow:
        for test in tests:
            row = test(row)
        return row

    matches = [_apply_to_match(match, judge_row, policy) for match in difference.matches]
    return RunDifference(matches, [judge_row(row) for row in difference.tasks], difference.cut)


def add_skipped(found: RunDifference, skipped: Sequence[ExchangeRow]) -> RunDifference:
    """Return the difference with the calls that were not made, at their position; no call of the
    live agent matches them."""
    alone = [CallPair(row, None) for row in skipped]
    place: list[tuple[int, CallPair]] = []
    at = 0
    for match in found.matches:
        at = match.left.key if match.left is not None else at
        place.append((at, match))
    place += [(match.left.key, match) for match in alone if match.left is not None]
    place.sort(key=lambda each: each[0])
    return RunDifference([match for _, match in place], found.tasks, found.cut)


def _apply_to_match(
    match: CallPair, judge_row: Callable[[DifferenceRow], DifferenceRow], policy: ComparePolicy
) -> CallPair:
    overlaps = match.overlaps and not policy.strict
    if match.difference is None:
        return msgspec.structs.replace(match, overlaps=overlaps)
    rows = tuple(
        map(judge_row, map(_compare_rule_text, _ignore_after_cancel(match, match.difference.rows)))
    )
    if match.left is not None and match.right is not None:
        rows = tuple(
            _ignore_target_findings(row, match.left.exchange, match.right.exchange) for row in rows
        )
    rows = tuple(_mark_ignored(row, _is_given(row, policy.given_headers)) for row in rows)
    if match.left is not None and match.left.key in policy.calls_without_credentials:
        rows = tuple(map(_ignore_missing_credentials, rows))
    difference = msgspec.structs.replace(match.difference, rows=rows)
    return msgspec.structs.replace(
        match,
        overlaps=overlaps,
        difference=difference,
        inside=difference.count,
        ignored=difference.ignored,
    )


def _is_equal_normalized(row: DifferenceRow, patterns: tuple[re.Pattern[str], ...]) -> bool:
    if not isinstance(row.before, str) or not isinstance(row.after, str):
        return False
    before, after = row.before, row.after
    for pattern in patterns:
        before, after = pattern.sub("*", before), pattern.sub("*", after)
    return before == after


def _mark_ignored(row: DifferenceRow, so: bool) -> DifferenceRow:
    return msgspec.structs.replace(row, ignored=Ignored.ASKED) if so and row.counts else row


def _count_ignored(row: DifferenceRow) -> DifferenceRow:
    return (
        msgspec.structs.replace(row, ignored=Ignored.NOT)
        if row.ignored in _IGNORED_UNLESS_STRICT
        else row
    )


def _compare_rule_text(row: DifferenceRow) -> DifferenceRow:
    """Ignore other words of the same finding, because they depend on the version of the proxy."""
    return _mark_ignored(
        row, row.part is ExchangePart.FINDINGS and row.change is ValueChange.CHANGED
    )


def _is_given(row: DifferenceRow, names: frozenset[str]) -> bool:
    path = row.left or row.right or ()
    return (
        row.part is ExchangePart.HEADERS and path[:1] == ("request_headers",) and path[-1] in names
    )


def _ignore_target_findings(row: DifferenceRow, left: Exchange, right: Exchange) -> DifferenceRow:
    """Ignore findings if binding or dialect differ, because each has its own rules."""
    if row.part is not ExchangePart.FINDINGS or not row.counts:
        return row
    other = Ignored.BINDING if left.binding is not right.binding else Ignored.DIALECT
    same = left.binding is right.binding and left.dialect is right.dialect
    return row if same else msgspec.structs.replace(row, ignored=other)


def _ignore_missing_credentials(row: DifferenceRow) -> DifferenceRow:
    """Ignore missing authentication, because the drive itself left out the credentials."""
    is_auth_finding = (
        row.part is ExchangePart.FINDINGS
        and isinstance(row.after, dict)
        and any(_AUTH_RULE_PREFIX in rule for rule in row.after)
    )
    return msgspec.structs.replace(row, ignored=Ignored.SECRET) if is_auth_finding else row


def _ignore_after_cancel(
    match: CallPair, rows: tuple[DifferenceRow, ...]
) -> Iterable[DifferenceRow]:
    """Ignore later answers if the recorded client broke off, because how many it received was
    chance."""
    assert match.left is not None
    if not match.left.exchange.how.startswith(("client", "proxy")):
        return rows
    return (
        msgspec.structs.replace(row, ignored=Ignored.CLIENT)
        if row.counts and _is_later_answer(row)
        else row
        for row in rows
    )


def _is_later_answer(row: DifferenceRow) -> bool:
    path = row.left or row.right or ()
    if row.part is ExchangePart.CALL:
        longer = path == ("states",) and str(row.after).startswith(str(row.before))
        return longer or path in (("end",), ("status",), ("grpc_status",))
    return row.change is ValueChange.RIGHT and row.part in (
        ExchangePart.EVENTS,
        ExchangePart.ARTIFACTS,
        ExchangePart.HEADERS,
    )


# --- shape


def _keep_shape(row: DifferenceRow) -> DifferenceRow:
    return _mark_ignored(row, not _IS_SHAPE[row.part](row))


def _is_shape_of_call(row: DifferenceRow) -> bool:
    path = row.left or row.right or ()
    if path[:1] == ("error",):
        return _error_reason(row.before) != _error_reason(row.after)
    return not path or path[0] in _CALL_FACTS


def _error_reason(error: Any) -> str:
    """Return an error without its message."""
    return str(error or "").partition(":")[0]


def _is_shape_of_message(row: DifferenceRow) -> bool:
    path = row.left or row.right or ()
    if row.change is ValueChange.CHANGED:
        name = next((step for step in reversed(path) if isinstance(step, str)), "")
        return name in _SHAPE_FIELDS or _json_type(row.before) is not _json_type(row.after)
    return not _is_repeated_event(row.after if row.change is ValueChange.RIGHT else row.before)


def _is_repeated_event(event: Any) -> bool:
    """Whether an event repeats the working state or is a chunk of an artifact; the model determines
    how many there are."""
    if not isinstance(event, dict) or len(event) != 1:
        return False
    update, chunk = event.get("statusUpdate"), event.get("artifactUpdate")
    if isinstance(update, dict):
        status = update.get("status")
        return isinstance(status, dict) and status.get("state") == "TASK_STATE_WORKING"
    return isinstance(chunk, dict) and bool(chunk.get("append"))


def _is_shape_of_artifacts(row: DifferenceRow) -> bool:
    """Whether an artifact was added or removed; its text may differ."""
    return row.change is not ValueChange.CHANGED


def _json_type(value: Any) -> type:
    return float if type(value) is int else type(value)


_IS_SHAPE: dict[ExchangePart, Callable[[DifferenceRow], bool]] = {
    ExchangePart.CALL: _is_shape_of_call,
    ExchangePart.FINDINGS: lambda row: row.change is not ValueChange.CHANGED,
    ExchangePart.REQUEST: _is_shape_of_message,
    ExchangePart.ARTIFACTS: _is_shape_of_artifacts,
    ExchangePart.EVENTS: _is_shape_of_message,
    ExchangePart.HEADERS: lambda _: False,
}
