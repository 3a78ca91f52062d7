"""The parts of a call that `--match-on` selects, with the same names as for a replayed request; the
user's matchers."""

from __future__ import annotations

from typing import Any

import msgspec

from a2a_proxy.recording.difference.fields import DifferenceRow, ExchangePart, Path, header_members
from a2a_proxy.recording.difference.runs import CallPair
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
