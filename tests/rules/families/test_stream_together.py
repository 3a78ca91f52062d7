"""An event that is missing on another stream: the rule that looks at all streams at once against
one that asks for each of them by itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from a2a_proxy.model.values import Finding, Observation, Severity
from a2a_proxy.observer import Observer
from a2a_proxy.redaction import Redactor
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.catalogue import all_rules
from a2a_proxy.rules.define.rule import RuleFinding
from a2a_proxy.rules.families.stream.delivery import (
    MissingEvent,
    is_progress,
    is_task_end,
    learn_end,
    learn_event,
    stream_delivery,
)
from a2a_proxy.rules.families.stream.together import DELIVERY_GRACE
from a2a_proxy.rules.run.engine import Engine
from a2a_proxy.rules.state.records import ExchangeRecord
from support_observer import KEY
from support_streams import packed, random_session

_MISSING = "A2A-STREAM-014"
_SECOND = 1_000_000_000


def _ask_each(see: RuleContext) -> Iterator[RuleFinding]:
    """Every other stream, open or over, gets a deadline of its own."""
    if see.frame_or_none is None:
        learn_end(see)
        return
    key, task = learn_event(see), see.task
    if key and task is not None:
        about = (
            f"{see.record.id} {see.frame.seq} {int(is_progress(see))} "
            f"{int(is_task_end(see))} {see.at} {key}"
        )
        over = map(int, (task.notes or {}).get("shared", {}))
        for number in sorted({*task.streams, *over} - {see.record.id}):
            ended = ExchangeRecord(number, 0, task.agent, see.binding, "", 0, task_id=task.task_id)
            see.schedule_due(DELIVERY_GRACE, about, see.session.exchange_records.get(number, ended))
    yield from ()


def _due_each(see: RuleContext) -> Iterator[RuleFinding]:
    exchange, seq, progress, end, at, key = see.due_note.split(" ", 5)
    task = see.task
    shown = stream_delivery(task, int(exchange)) if task is not None else None
    lost = stream_delivery(task, see.record.id) if task is not None else None
    if shown is None or lost is None:
        return
    found = MissingEvent(shown, lost, key, progress=progress == "1")
    late = not found.has_number and int(at) - lost.first_at >= _SECOND
    if found.has_come or not (found.is_due or late):
        return
    told = f"event #{exchange}.{seq} is missing on this stream"
    if found.is_passed_over:
        severity = None if found.is_due else Severity.WARNING
        yield RuleFinding(
            summary=f"{told}, but later ones were delivered",
            is_sure=found.is_due,
            is_final=lost.is_over,
            severity=severity,
        )
    elif (
        not see.is_early
        and see.record.started
        and see.record.closed_exchange is None
        and end == "0"
    ):
        yield RuleFinding(
            summary=f"{told} after {DELIVERY_GRACE} s, and no later event was delivered",
            is_sure=False,
            severity=Severity.WARNING,
        )


def _judged(seed: int, **changes: Any) -> list[Finding]:
    """What is found; where a stream had ended, the naive way does not know its connection."""
    observer, out = Observer(Redactor(KEY)), list[Observation]()
    rule = msgspec.structs.replace(all_rules()[_MISSING], **changes)
    observer._rules = Engine({**all_rules(), _MISSING: rule})
    for chunk in random_session(seed):
        observer.feed(chunk, out)
    found = [each for each in out if type(each) is Finding]
    return [
        msgspec.structs.replace(each, connection=0) if each.rule == _MISSING else each
        for each in found
    ]


@pytest.mark.parametrize("seeds", [range(start, start + 10) for start in range(0, 60, 10)], ids=str)
def test_comparing_all_streams_at_once_equals_one_by_one(seeds: range) -> None:
    """The same findings in the same order, over sessions with gaps, repetitions, lags and late
    subscribers."""
    count = 0
    for seed in seeds:
        at_once = _judged(seed)
        assert packed(at_once) == packed(_judged(seed, judge=_ask_each, due=_due_each)), seed
        count += sum(each.rule == _MISSING for each in at_once)
    assert count, "sessions without a missing event prove nothing"
